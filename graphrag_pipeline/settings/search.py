"""Settings of the search methods: what each reads, and how much.

Add an option here, with a default and a description, if it belongs to one method; who rates and who answers are
sections of their own in `settings.py`. Keep out: anything that an index is made by.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

SearchMethodName = Literal["local", "global", "basic", "drift", "lazy"]


def _read_turns(value: Any) -> Any:
    """Turns written as {"role": ..., "content": ...} as pairs; what is neither is left to validation."""
    if not isinstance(value, list | tuple):
        return value
    return tuple((turn.get("role"), turn.get("content")) if isinstance(turn, Mapping) else turn for turn in value)


ConversationTurns = Annotated[
    tuple[tuple[Literal["user", "assistant"], str], ...],
    BeforeValidator(_read_turns),
]
"""(role, content) of each turn, oldest first."""


class _SearchSection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _token_budget() -> Any:
    """The most that models may be asked for about one question (`query/answers/token_budget.py`)."""
    said = "model: most tokens of prompts and replies for one question; what does not fit is not asked; null: no limit."
    return Field(None, ge=1, description=said)


def _now() -> Any:
    """The day that "the last two weeks" in a question ends with (`query/understanding/time_scope.py`)."""
    return Field(None, description='Day (ISO 8601) that "the last week" ends with; null: that of the newest document.')


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
    include_entity_names: tuple[str, ...] = Field((), description="Entities matched to every question, before others.")
    exclude_entity_names: tuple[str, ...] = Field((), description="Entities matched to no question.")
    min_community_rank: float = Field(0, ge=0, le=10, description="Reports ranked below this (0-10) are not read.")
    use_community_summary: bool = Field(False, description="Read the summaries of reports, not the whole reports.")
    relationship_ranking_attribute: Literal["rank", "combined_degree", "weight"] = Field(
        "rank", description="Relationships by rank (which is their combined_degree) or weight."
    )
    include_entity_rank: bool = Field(True, description="A model sees the rank of entities.")
    include_community_rank: bool = Field(False, description="A model sees the rank of community reports.")
    include_relationship_weight: bool = Field(True, description="A model sees the weight of relationships.")
    response_type: str | None = Field(None, description="model: form of an answer; null: that of answers.")
    conversation_history: ConversationTurns = Field(
        (), description="Turns (role, content) before the question, oldest first; given with a question."
    )
    conversation_history_max_turns: int = Field(
        5, ge=0, description="Latest questions of the conversation that are read, with what was answered."
    )
    return_candidate_context: bool = Field(False, description="Results list the records that were not chosen, too.")
    budget: int | None = _token_budget()
    now: date | None = _now()

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """Which of the columns that can be left out of the tables a model sees (`query/context.py`)."""
        columns = ("entity_rank", "community_rank", "relationship_weight")
        return tuple(name for name in columns if getattr(self, f"include_{name}"))

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
    num_repeats: int | None = Field(
        None, ge=1, le=9, description="rating model: times a report is rated; null: as rating says."
    )
    rated_text: Literal["full_content", "summary"] | None = Field(
        None, description="rating model: what of a report it reads; null: as rating says."
    )
    max_concurrency: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="rating model: most calls under way at once, if fewer than its own settings allow.",
    )
    budget: int | None = _token_budget()
    now: date | None = _now()


class BasicSearchSettings(_SearchSection):
    """Basic search: full text and vectors over text units, no graph."""

    top_k: int = Field(10, ge=1, description="Text units read.")
    max_context_tokens: int = Field(12000, ge=100, description="Most tokens of context.")
    budget: int | None = _token_budget()
    now: date | None = _now()


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
    now: date | None = _now()


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
    now: date | None = _now()


class AutoSearchSettings(_SearchSection):
    """Automatic choice of the search method by the question."""

    methods: tuple[SearchMethodName, ...] = Field(
        ("local", "global", "basic", "drift", "lazy"), min_length=1, description="Methods that may be chosen."
    )
    options: dict[str, Any] = Field({}, description="Options of the method chosen; those that it has not are ignored.")
    budget: int | None = _token_budget()
    now: date | None = _now()
