"""Settings of the search methods: what each reads, and how much.

Add an option here, with a default and a description, if it belongs to one method; who rates and who answers are
sections of their own in `settings.py`. Keep out: anything that an index is made by.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

SearchMethodName = Literal["local", "global", "basic", "drift", "lazy"]


class _SearchSection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _token_budget() -> Any:
    """The most that models may be asked for about one question (`query/token_budget.py`)."""
    said = "model: most tokens of prompts and replies for one question; what does not fit is not asked; null: no limit."
    return Field(None, ge=1, description=said)


class LocalSearchSettings(_SearchSection):
    """Local search: entities near the question and what surrounds them."""

    strategy: Literal[
        "balanced", "graph", "depth_first", "round_robin", "minimum_guarantee", "per_entity_cap", "weighted_quota"
    ] = Field(
        "balanced",
        description="Text units by balanced, graph, depth_first, round_robin, minimum_guarantee, per_entity_cap or "
        "weighted_quota.",
    )
    top_k_entities: int = Field(10, ge=1, description="Entities matched to the question.")
    top_k_relationships: int = Field(10, ge=0, description="Out-network relationships per matched entity.")
    max_context_tokens: int = Field(12000, ge=100, description="Most tokens of context.")
    community_share: float = Field(0.15, ge=0, le=1, description="Share of the context for community reports.")
    text_unit_share: float = Field(0.5, ge=0, le=1, description="Share of the context for text units.")
    community_level: int = Field(2, ge=0, description="Deepest level whose reports are read.")
    guaranteed_text_units: int = Field(2, ge=1, description="minimum_guarantee: text units each entity gets.")
    max_text_units_per_entity: int = Field(5, ge=1, description="per_entity_cap: most text units an entity gets.")
    budget: int | None = _token_budget()

    @model_validator(mode="after")
    def _shares_fit(self) -> LocalSearchSettings:
        if self.community_share + self.text_unit_share > 1:
            raise ValueError("community_share + text_unit_share must not exceed 1")
        return self


class GlobalSearchSettings(_SearchSection):
    """Global search: community reports, mapped and reduced."""

    selection: Literal["dynamic", "static"] = Field(
        "dynamic", description="dynamic: rate reports from the roots down; static: all reports of one level."
    )
    level: int = Field(2, ge=0, description="static: the level whose frontier of reports is read.")
    max_level: int = Field(2, ge=0, description="dynamic: deepest level that is rated.")
    threshold: int = Field(1, ge=0, le=5, description="dynamic: reports rated below this (0-5) are pruned.")
    keep_parent: bool = Field(False, description="dynamic: keep a report although one of its children is kept.")
    max_context_tokens: int = Field(12000, ge=100, description="Most tokens in one batch of reports.")
    max_answer_tokens: int = Field(2000, ge=50, description="Most tokens of points given to the final answer.")
    seed: int = Field(86, ge=0, description="Seed of the shuffle that spreads reports over batches.")
    budget: int | None = _token_budget()


class BasicSearchSettings(_SearchSection):
    """Basic search: full text and vectors over text units, no graph."""

    top_k: int = Field(10, ge=1, description="Text units read.")
    max_context_tokens: int = Field(12000, ge=100, description="Most tokens of context.")
    budget: int | None = _token_budget()


class DriftSearchSettings(_SearchSection):
    """DRIFT search: from the reports nearest to the question, by follow-up questions, into the graph around it."""

    primer_reports: int = Field(10, ge=1, le=100, description="Community reports that it starts from.")
    level: int = Field(2, ge=0, description="The level whose frontier of reports it starts from.")
    breadth: int = Field(3, ge=0, le=20, description="Follow-up questions asked in a round.")
    depth: int = Field(2, ge=0, le=10, description="Rounds of follow-up questions.")
    max_context_tokens: int = Field(4000, ge=100, description="Most tokens of context behind a follow-up question.")
    max_answer_tokens: int = Field(4000, ge=50, description="model: most tokens of answers given to the final answer.")
    budget: int = Field(
        60000,
        ge=1,
        description="Most tokens for one question. model: of prompts and replies; embedded: of the contexts read.",
    )


class LazySearchSettings(_SearchSection):
    """Lazy search: text units tested for relevance, best first, by community; needs no reports."""

    budget: int = Field(100, ge=1, le=100_000, description="Most relevance tests, of one text unit each.")
    threshold: int = Field(2, ge=1, le=5, description="A text unit rated this (0-5) or higher is relevant.")
    max_failures: int = Field(
        5, ge=1, description="A community is given up after this many irrelevant text units in a row."
    )
    max_context_tokens: int = Field(12000, ge=100, description="Most tokens of relevant text units read at once.")
    max_answer_tokens: int = Field(2000, description="model: most tokens of points given to the final answer.", ge=50)
    max_subqueries: int = Field(
        3, description="model: most questions that a question is split into; 1: as it is.", ge=1, le=20
    )
    batch_size: int = Field(
        5, description="Text units of a community tested at once; with a model in one call.", ge=1, le=50
    )
    max_tokens: int | None = _token_budget()


class AutoSearchSettings(_SearchSection):
    """Automatic choice of the search method by the question."""

    methods: tuple[SearchMethodName, ...] = Field(
        ("local", "global", "basic", "drift", "lazy"), min_length=1, description="Methods that may be chosen."
    )
    budget: int | None = _token_budget()
