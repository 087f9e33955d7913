"""Options of the indexing steps, one section per step, in the order of the data.

Keep out: options of searches (`search.py`) and of model endpoints (`models.py`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from graphrag_pipeline.settings.section import (
    LANGUAGE,
    EngineOf,
    Section,
    for_model,
    limit,
    model_overrides,
)

ResolutionRule = Literal["unicode", "date", "possessive", "alias", "acronym", "fuzzy", "embedding", "verdict"]


MIN_FILL = 0.6
"""A text unit ends at a sentence end between this share of its size and the size itself."""


class TextUnitsSettings(Section):
    """Splitting of documents into text units."""

    size: int = Field(
        1200,
        ge=16,
        description="Maximum tokens in a text unit.",
    )
    overlap: int = Field(
        100,
        ge=0,
        description="Maximum tokens repeated from the end of the previous text unit, without markdown_blocks.",
    )
    encoding: str = Field("o200k_base", description="tiktoken encoding that counts tokens; o200k_base is bundled.")
    markdown_blocks: bool = Field(
        True,
        description="Whether documents are cut along their structure, read as Markdown: tables between rows with their "
        "header repeated, lists between items, code between blocks, titles with what follows them. Text units then do "
        "not overlap, carry the headings above them, and are embedded without marks. Otherwise documents are cut at "
        "sentence ends, as by Microsoft GraphRAG at tokens.",
    )
    aggregation: bool = Field(
        True, description="Chunk files: whether chunks are combined; otherwise each that fits is one text unit."
    )
    aggregation_target: int = Field(
        1200, ge=16, description="Chunk files: tokens to which chunks are combined, in order, along chunk boundaries."
    )
    aggregation_max: int = Field(1500, ge=16, description="Chunk files: maximum tokens of combined chunks.")
    aggregation_max_pages: int = Field(3, ge=1, description="Chunk files: maximum pages that combined chunks span.")

    def for_blocks(self) -> TextUnitsSettings:
        """Return the settings of a document cut along its structure: its text units have at most `size` tokens."""
        target = int((1 + MIN_FILL) / 2 * self.size)
        return self.model_copy(update={"aggregation": True, "aggregation_target": target, "aggregation_max": self.size})

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
        if self.overlap >= self.size * MIN_FILL:
            raise ValueError(
                f"overlap ({self.overlap}) must be smaller than {MIN_FILL:g} x size ({self.size * MIN_FILL:g}): "
                "text units could not advance; lower overlap or raise size"
            )
        return self


class GlossaryTerm(Section):
    """The meaning of a term of the corpus, and its entity type."""

    meaning: str
    type: str = ""


class ExtractionSettings(Section):
    """Extraction of entities, relationships and claims from text units."""

    engine: Annotated[str, EngineOf("extractor")] = Field(
        "embedded", description="embedded: names by spaCy and patterns, without a key; model: a chat model."
    )
    document_entities: bool = Field(
        True,
        description="Whether each document is an entity, too, named by its title, file and codes, and related to the "
        "values of its labels and to the identifiers that it mentions.",
    )
    max_entities_per_sentence: int = Field(
        8,
        ge=2,
        description="With the embedded engine: a sentence with more entities (a list) relates only adjacent ones.",
        json_schema_extra={"engine": "embedded"},
    )
    spacy_model: str = Field(
        "",
        description="With the embedded engine: an installed spaCy pipeline or the path of one, for other languages or "
        'better names; "" is the small English one that is bundled.',
        json_schema_extra={"engine": "embedded"},
    )
    model: dict[str, Any] = model_overrides()
    entity_types: tuple[str, ...] = for_model(
        ("ORGANIZATION", "PERSON", "GEO", "EVENT"),
        "entity types to look for; other types are kept and counted.",
        min_length=1,
    )
    max_gleanings: int = for_model(1, "maximum follow-up calls (gleanings) per text unit for missed entities.", ge=0)
    only_names_in_text: bool = for_model(
        True,
        "whether entities, ends of relationships and subjects of claims must be named in the text unit, in some form; "
        "others are dropped and counted. false keeps them, as Microsoft GraphRAG does.",
    )
    glossary: dict[str, GlossaryTerm] = Field(
        {},
        description="Terms of the corpus: {Falcon: {meaning: the payment service, type: SERVICE}} or {Falcon: the "
        "payment service}. A term in a text is an entity with this type and description; a model gets its meaning.",
        json_schema_extra={"counts_if_set": True},
    )
    has_claims: bool = for_model(False, "whether claims are extracted too, in separate calls.")
    claim_description: str = for_model(
        "Any claims or facts that could be relevant to information discovery.", "definition of a claim in the prompt."
    )
    language: str = for_model("auto", LANGUAGE)

    @field_validator("glossary", mode="before")
    @classmethod
    def _read_glossary(cls, value: Any) -> Any:
        """Return a term with a meaning alone as one without a type."""
        if not isinstance(value, dict):
            return value
        return {term: {"meaning": said} if isinstance(said, str) else said for term, said in value.items()}


class GraphSettings(Section):
    """Merging of mentions into one graph."""

    weight: Literal["strength", "n_mentions"] = Field(
        "strength", description="Relationship weight: sum of the mentions' strengths, or number of mentions."
    )
    max_memory: str = Field("2GB", description="Memory that DuckDB may use for the merge before it spills to disk.")


class ResolutionSettings(Section):
    """Resolution of entities with different names; `rules: false` leaves exact match, as in the GraphRAG paper."""

    rules: bool | tuple[ResolutionRule, ...] = Field(
        True,
        description="Rules that merge names. true: all; false: none, so only names with equal normal spelling are one "
        "entity; or a list of those that apply. entity_overrides.csv always applies.",
    )
    engine: Literal["embedded", "model"] = Field(
        "embedded", description="embedded: rules, and vectors if min_similarity is set; model: also a chat model."
    )
    min_similarity: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Minimum cosine of name and description at which two entities of one type are merged; null: off.",
    )
    model: dict[str, Any] = model_overrides()
    min_asked_similarity: float = for_model(
        0.8, "minimum cosine at which the model decides whether two entities are one.", gt=0, le=1
    )
    max_asked: int = for_model(1000, "maximum pairs sent to the model, most similar first.", ge=0)

    @field_validator("rules", mode="before")
    @classmethod
    def _rules_are_known(cls, value: Any) -> Any:
        known = get_args(ResolutionRule)
        unknown = [name for name in value if name not in known] if isinstance(value, list | tuple) else []
        if unknown or not isinstance(value, bool | list | tuple):
            found = f"unknown rule {unknown[0]!r}; " if unknown else ""
            raise ValueError(f"{found}write true, false or a list of {', '.join(known)}")
        return value

    @model_validator(mode="after")
    def _named_rules_can_apply(self) -> ResolutionSettings:
        named = self.rules if isinstance(self.rules, tuple) else ()
        if "embedding" in named and self.min_similarity is None:
            raise ValueError("rules names `embedding`, but min_similarity is null; set it, such as to 0.9")
        if "verdict" in named and self.engine != "model":
            raise ValueError("rules names `verdict`, but engine is `embedded`; set engine: model")
        return self

    @property
    def applied_rules(self) -> frozenset[str]:
        """The rules that apply."""
        if isinstance(self.rules, tuple):
            return frozenset(self.rules)
        return frozenset(get_args(ResolutionRule)) if self.rules else frozenset()

    @property
    def uses_model(self) -> bool:
        """Whether a chat model decides about pairs."""
        return self.engine == "model" and "verdict" in self.applied_rules

    @property
    def merged_similarity(self) -> float | None:
        """Minimum cosine at which two entities are merged without a model; None if the rule does not apply."""
        return self.min_similarity if "embedding" in self.applied_rules else None

    @property
    def least_similarity(self) -> float | None:
        """Minimum cosine at which two entities are compared; None if vectors are not used."""
        verdict = self.min_asked_similarity if self.uses_model else None
        return min((least for least in (self.merged_similarity, verdict) if least is not None), default=None)

    @property
    def is_semantic(self) -> bool:
        """Whether vectors are used."""
        return self.least_similarity is not None


class DescriptionsSettings(Section):
    """Summary of the descriptions of one entity or relationship."""

    engine: Annotated[str, EngineOf("describer")] = Field(
        "embedded", description="embedded: the most informative sentences, verbatim; model: a summary by a chat model."
    )
    max_sentences: int = Field(5, ge=1, description="With the embedded engine: maximum sentences in a description.")
    model: dict[str, Any] = model_overrides()
    max_input_tokens: int = for_model(
        4000, "maximum tokens of descriptions in one call; more are summarized in several calls.", ge=100
    )
    max_joined: int = for_model(
        3,
        "maximum short descriptions that are joined without a call; 0: two or more are summarized by a call, as in "
        "Microsoft GraphRAG.",
        ge=0,
    )
    max_words: int = for_model(500, "maximum words of a summary.", ge=10)
    language: str = for_model("auto", LANGUAGE)


class CommunitiesSettings(Section):
    """Hierarchical Leiden clustering of the graph."""

    max_cluster_size: int = Field(
        10, ge=2, description="A community with more entities is split on the next finer level."
    )
    resolution: float = Field(
        1.0, gt=0, description="Resolution of the clustering; higher gives more and smaller communities."
    )
    seed: int = Field(3735928559, ge=0, description="Random seed of the clustering.")


class ReportsSettings(Section):
    """Writing of community reports."""

    engine: Annotated[str, EngineOf("reporter")] = Field(
        "embedded", description="embedded: an extractive report; model: a report by a chat model."
    )
    max_input_tokens: int = Field(8000, ge=200, description="Maximum tokens of context for a report.")
    min_report_size: int = for_model(
        5,
        "communities with fewer entities get an extractive report without a call; 1: none, as in Microsoft GraphRAG.",
        ge=1,
    )
    model: dict[str, Any] = model_overrides()
    max_words: int = for_model(1500, "maximum words of a report.", ge=50)
    rewrite_share: float = limit(
        "With a model: a report is deferred until more than this share of its community's evidence is new.",
        default=0.05,
        ge=0,
        lt=1,
    )
    language: str = for_model("auto", LANGUAGE)


class EmbeddingsSettings(Section):
    """Vectors of text units, entities, relationships and reports."""

    engine: Annotated[str, EngineOf("embedder")] = Field(
        "embedded", description="embedded: bundled static vectors with 256 dimensions; model: see embedding_model."
    )
    n_compared: int = for_model(
        2,
        "texts per bucket that are cut on purpose where some text unit exceeds embedding_model.batch_max_tokens; "
        "status shows the cosine of their averaged vectors to those of the whole texts. 0: none.",
        ge=0,
    )
