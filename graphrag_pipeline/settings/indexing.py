"""Options of the steps that make the index, one section per step, in the order of the data.

Keep out: how questions are answered (`search_settings.py`), models (`model_settings.py`).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from graphrag_pipeline.settings.section import LANGUAGE, Engine, Section, for_model, limit, model_overrides


class TextUnitsSettings(Section):
    """How documents are split into text units."""

    size: int = Field(1200, ge=16, description="Most tokens in a text unit.")
    overlap: int = Field(100, ge=0, description="Most tokens repeated from the end of the previous text unit.")
    min_fill: float = Field(
        0.6, gt=0, le=1, description="A text unit ends at a sentence between this share of size and size itself."
    )
    encoding: str = Field("o200k_base", description="tiktoken encoding that counts tokens (o200k_base is bundled).")
    aggregation_target: int = Field(
        1200, ge=16, description="Chunk files: tokens that chunks are combined to, in order, along their bounds."
    )
    aggregation_max: int = Field(1500, ge=16, description="Chunk files: most tokens of combined chunks.")
    aggregation_max_pages: int = Field(3, ge=1, description="Chunk files: most pages that combined chunks span.")

    @model_validator(mode="after")
    def _target_fits(self) -> TextUnitsSettings:
        if self.aggregation_target > self.aggregation_max:
            raise ValueError(
                f"aggregation_target ({self.aggregation_target}) must not exceed aggregation_max "
                f"({self.aggregation_max})"
            )
        return self

    @model_validator(mode="after")
    def _overlap_fits(self) -> TextUnitsSettings:
        if self.overlap >= self.size * self.min_fill:
            raise ValueError(
                f"overlap ({self.overlap}) must be smaller than size x min_fill ({self.size * self.min_fill:g}): "
                "text units could not advance; lower overlap or raise size"
            )
        return self


class ExtractionSettings(Section):
    """How entities, relationships and claims are found in text units."""

    engine: Engine = Field("embedded", description="embedded: names by rule, no model, no key; model: a chat model.")
    max_entities_per_sentence: int = Field(
        8,
        ge=2,
        description="embedded: a sentence naming more entities (a list) relates only those next to each other.",
        json_schema_extra={"engine": "embedded"},
    )
    model: dict[str, Any] = model_overrides()
    entity_types: tuple[str, ...] = for_model(
        ("ORGANIZATION", "PERSON", "GEO", "EVENT"), "types to look for; others are kept and counted.", min_length=1
    )
    max_gleanings: int = for_model(1, "most follow-up calls per text unit for what was missed.", ge=0)
    has_claims: bool = for_model(False, "whether claims are extracted too, in calls of their own.")
    claim_description: str = for_model(
        "Any claims or facts that could be relevant to information discovery.", "what counts as a claim."
    )
    language: str = for_model("auto", LANGUAGE)


class GraphSettings(Section):
    """How mentions are merged into one graph."""

    weight: Literal["strength", "n_mentions"] = Field(
        "strength", description="Relationship weight: sum of the mentions' strengths, or their number."
    )
    max_memory: str = Field("2GB", description="Memory DuckDB may use for the merge before it spills to disk.")


class ResolutionSettings(Section):
    """Which entities are one although their names differ, beside the rules on names, which always hold."""

    engine: Engine = Field(
        "embedded", description="embedded: rules, and vectors if min_similarity is set; model: also a chat model."
    )
    min_similarity: float | None = Field(
        None, gt=0, le=1, description="Cosine of names and descriptions from which two of one type are one; null: none."
    )
    model: dict[str, Any] = model_overrides()
    min_asked_similarity: float = for_model(0.8, "cosine from which it is asked whether two are one.", gt=0, le=1)
    max_asked: int = for_model(1000, "most pairs asked about, the nearest first.", ge=0)

    @property
    def least_similarity(self) -> float | None:
        """The least cosine at which two entities are looked at; None where vectors have no say."""
        asked = self.min_asked_similarity if self.engine == "model" else None
        return min((least for least in (self.min_similarity, asked) if least is not None), default=None)

    @property
    def is_semantic(self) -> bool:
        """Whether vectors have a say."""
        return self.least_similarity is not None


class DescriptionsSettings(Section):
    """How the descriptions of one entity or relationship become one."""

    engine: Engine = Field(
        "embedded", description="embedded: the most telling sentences, verbatim; model: a summary by a chat model."
    )
    max_sentences: int = Field(5, ge=1, description="embedded: most sentences in a description.")
    model: dict[str, Any] = model_overrides()
    max_input_tokens: int = for_model(4000, "most tokens of descriptions in one call; more are folded.", ge=100)
    max_words: int = for_model(500, "most words of a summary.", ge=10)
    language: str = for_model("auto", LANGUAGE)


class CommunitiesSettings(Section):
    """Hierarchical Leiden clustering of the graph."""

    max_cluster_size: int = Field(10, ge=2, description="A community with more entities is split one level down.")
    resolution: float = Field(1.0, gt=0, description="Higher gives more, smaller communities.")
    seed: int = Field(3735928559, ge=0, description="Seed of the clustering.")


class ReportsSettings(Section):
    """Community reports."""

    engine: Engine = Field("embedded", description="embedded: an extractive report; model: by a chat model.")
    max_input_tokens: int = Field(8000, ge=200, description="Most tokens of context behind a report.")
    min_report_size: int = Field(
        3, ge=1, description="Communities with fewer entities get a report without a model call."
    )
    max_findings: int = Field(8, ge=1, le=10, description="embedded: most findings in a report.")
    model: dict[str, Any] = model_overrides()
    max_words: int = for_model(1500, "most words of a report.", ge=50)
    rewrite_share: float = limit(
        "model: a report is written again once more than this share of what is known of its community is new to it.",
        default=0.05,
        ge=0,
        lt=1,
    )
    language: str = for_model("auto", LANGUAGE)


class EmbeddingsSettings(Section):
    """Vectors of text units, entities, relationships and reports."""

    engine: Engine = Field(
        "embedded", description="embedded: bundled static vectors, 256 dimensions; model: see embedding_model."
    )
