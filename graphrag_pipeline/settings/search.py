"""The sections of the search methods."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from graphrag_pipeline.settings.search_names import BASIC_SHARES, CHOOSABLE_METHODS, STRATEGIES, WITHOUT_EXCERPTS

if TYPE_CHECKING:  # type checkers read no literals from a table
    SearchMethodName = str
    StrategyName = str
else:
    SearchMethodName = Literal[CHOOSABLE_METHODS]
    StrategyName = Literal[STRATEGIES]


class SearchSection(BaseModel):
    """A section of a search method: frozen; an unknown option is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MethodSection(SearchSection):
    """A section of a search method whose questions have further options."""

    for_questions: dict[str, Any] = Field(
        {}, description="Options of a question that hold for all questions, such as {now: 2025-01-31}."
    )


class QuestionOptions(BaseModel):
    """Options that a question has with each method."""

    now: date | None = Field(
        None, description='Day (ISO 8601) on which "the last week" ends; null: date of the newest document.'
    )


def token_budget() -> Any:
    """Define the limit on model tokens of one question (`query/token_budget.py`)."""
    description = "With a model: maximum tokens of prompts and replies for one question; null: no limit."
    return Field(None, ge=1, description=description)


def rerank() -> Any:
    """Define whether a reranking model orders text units (`query/selection/reranking.py`)."""
    return Field(False, description="Whether rerank_model orders the text units before they are packed.")


class GlobalSection(MethodSection):
    """Global search: map and reduce over community reports."""

    selection: Literal["dynamic", "static"] = Field(
        "dynamic", description="dynamic: rate reports from the root communities down; static: all reports of one level."
    )
    level: int = Field(2, ge=0, description="With static selection: level of the report frontier that is read.")
    max_level: int | None = Field(
        None, ge=0, description="With dynamic selection: finest level that is rated; null: all levels."
    )
    threshold: int = Field(
        1, ge=0, le=5, description="With dynamic selection: minimum rating (0 to 5) of a report that is kept."
    )
    small_reports_per_call: int = Field(
        20,
        ge=1,
        le=100,
        description="With a rating model: number of short reports (under 400 tokens) rated in one call. Over 1, the "
        "model is not asked about communities under reports.min_report_size that the embedded engine rates 0. "
        "1: each report alone, as published.",
    )
    max_context_tokens: int = Field(12000, ge=100, description="Maximum tokens in one batch of reports.")


class GlobalSearchSettings(GlobalSection, QuestionOptions):
    """Options of one global search."""

    max_answer_tokens: int = Field(
        2000, ge=50, description="Maximum tokens of points in the prompt of the final answer."
    )
    budget: int | None = token_budget()
    all_levels: bool = Field(
        False,
        description="With static selection: whether to read the reports of all levels above too, parents together "
        "with their children.",
    )
    keep_parent: bool = Field(
        True, description="With dynamic selection: whether to keep a report when one of its children is kept."
    )
    min_community_size: int = Field(
        1, ge=1, description="Reports on communities with fewer entities are neither rated nor read; 1: all are."
    )
    fallback_level: int = Field(
        0,
        ge=0,
        description="With dynamic selection: if no report of a level is relevant, all of the next level are rated, "
        "down to this level; 0: never.",
    )
    seed: int = Field(86, ge=0, description="Random seed of the shuffle that spreads reports over batches.")
    num_repeats: int | None = Field(
        None, ge=1, le=9, description="With a rating model: ratings per report; null: as in rating."
    )
    rated_text: Literal["full_content", "summary"] | None = Field(
        None, description="With a rating model: text of a report that it reads; null: as in rating."
    )


class BasicSection(MethodSection):
    """Basic search: full text and vector search over text units, without the graph."""

    top_k: int = Field(10, ge=1, description="Number of text units that are read.")
    rerank: bool = rerank()
    max_context_tokens: int = Field(12000, ge=100, description="Maximum tokens of context.")


class BasicSearchSettings(BasicSection, QuestionOptions):
    """Options of one basic search."""

    budget: int | None = token_budget()


class DriftSection(MethodSection):
    """DRIFT search: from the most similar reports, by follow-up questions, into the graph around them."""

    primer_reports: int = Field(10, ge=1, le=100, description="Number of community reports in the first step.")
    breadth: int = Field(3, ge=0, le=20, description="Follow-up questions per round.")
    depth: int = Field(2, ge=0, le=10, description="Rounds of follow-up questions.")
    max_context_tokens: int = Field(4000, ge=100, description="Maximum tokens of context for a follow-up question.")
    budget: int = Field(
        60000,
        ge=1,
        description="Maximum tokens for one question: of prompts and replies with a model, of contexts with the "
        "embedded engine.",
    )


class DriftSearchSettings(DriftSection, QuestionOptions):
    """Options of one DRIFT search."""

    level: int = Field(2, ge=0, description="Level of the report frontier in the first step.")
    max_answer_tokens: int = Field(
        4000, ge=50, description="With a model: maximum tokens of answers in the prompt of the final answer."
    )


class LazySection(MethodSection):
    """Lazy search: relevance tests of text units, best first, by community; needs no reports."""

    budget: int = Field(100, ge=1, le=100_000, description="Maximum relevance tests, one text unit each.")
    threshold: int = Field(2, ge=1, le=5, description="Minimum rating (0 to 5) of a relevant text unit.")
    max_context_tokens: int = Field(12000, ge=100, description="Maximum tokens of relevant text units read at once.")


class LazySearchSettings(LazySection, QuestionOptions):
    """Options of one lazy search."""

    max_subqueries: int = Field(
        3, description="With a model: maximum questions that a question is split into; 1: no split.", ge=1, le=20
    )
    max_answer_tokens: int = Field(
        2000, ge=50, description="With a model: maximum tokens of points in the prompt of the final answer."
    )
    max_tokens: int | None = token_budget()


class AutoSection(MethodSection):
    """Automatic choice of a search method for each question."""

    methods: tuple[SearchMethodName, ...] = Field(
        CHOOSABLE_METHODS, min_length=1, description="Methods to choose from."
    )
    options: dict[str, Any] = Field(
        {}, description="Options of the chosen method; options that it does not have are ignored."
    )


class AutoSearchSettings(AutoSection, QuestionOptions):
    """Options of one question with an automatic choice."""

    budget: int | None = token_budget()


def _read_turns(value: Any) -> Any:
    """Return turns written as {"role": ..., "content": ...} as pairs; validation rejects other values."""
    if not isinstance(value, list | tuple):
        return value
    return tuple((turn.get("role"), turn.get("content")) if isinstance(turn, Mapping) else turn for turn in value)


ConversationTurns = Annotated[
    tuple[tuple[Literal["user", "assistant"], str], ...],
    BeforeValidator(_read_turns),
]
"""(role, content) of each turn, oldest first."""


NOT_IN_HEADINGS = "()[]\uff08\uff09\uff3b\uff3d\u3010\u3011,;\uff0c\uff1b"
"""Marks that end the name in a citation such as `[Data: Entities (5); Sources (7)]`, also in their full-width forms."""


MAX_NAME = 60
"""Characters of the name of a column or a heading."""


def _read_name(name: Any) -> Any:
    """Return the name of a column or a heading; nothing (`--option name=`) is an empty name."""
    if name is None or (isinstance(name, str) and not name.strip()):
        raise ValueError(
            f"is empty; write a name of 1 to {MAX_NAME} characters, or leave the setting out for the default"
        )
    if not isinstance(name, str):
        return name
    if name.splitlines() != [name]:
        raise ValueError(f"{name!r} has a line break; write a name of 1 to {MAX_NAME} characters on one line")
    if name != name.strip():
        raise ValueError(f"{name!r} begins or ends with white space; write the name without it")
    if len(name) > MAX_NAME:
        raise ValueError(f"{name[:20]!r}... has {len(name)} characters; write a name of 1 to {MAX_NAME} characters")
    return name


def _read_heading(name: str) -> str:
    """Return a heading that a citation can name."""
    if found := [mark for mark in name if mark in NOT_IN_HEADINGS]:
        raise ValueError(
            f"holds {found[0]!r}, so that a citation of the model cannot name it; write a name without brackets, "
            "commas and semicolons"
        )
    return name


ColumnName = Annotated[str, StringConstraints(pattern=r"^\S(?:[^\r\n]{0,58}\S)?$"), BeforeValidator(_read_name)]
"""The name of a column: 1 to 60 characters on one line."""
Heading = Annotated[ColumnName, AfterValidator(_read_heading)]
"""A heading of a part of the context, by which a model cites its records: 1 to 60 characters."""


def _read_delimiter(text: str) -> str:
    """Return a delimiter; "tab" and a written "\\t" are the tab."""
    mark = "\t" if text in ("tab", "\\t") else text
    if len(mark) != 1 or mark.isalnum() or mark in "_ \r\n\"'":
        raise ValueError(
            "must be one character, such as | , ; or tab (written tab), and no letter, digit, underscore, blank, "
            "line break or quote"
        )
    return mark


Delimiter = Annotated[str, AfterValidator(_read_delimiter)]
"""One character that is not a letter, a digit, an underscore, a blank, a line break or a quote."""


class LocalSection(MethodSection):
    """Local search: entities similar to the question and the records around them."""

    rerank: bool = rerank()
    model_keywords: bool = Field(
        False,
        description="Whether the chat model of answers extracts keywords from the question: names match entities, "
        "themes match relationships and reports; not with strict packing.",
    )
    strategy: StrategyName = Field("balanced", description=f"Text unit selection: {', '.join(STRATEGIES)}.")
    top_k_entities: int = Field(10, ge=1, description="Number of entities matched to the question.")
    top_k_relationships: int = Field(
        10, ge=0, description="Number of relationships per matched entity to entities that are not matched."
    )
    max_context_tokens: int = Field(12000, ge=100, description="Maximum tokens of context.")
    community_share: float = Field(0.15, ge=0, le=1, description="Share of the context for community reports.")
    text_unit_share: float = Field(0.5, ge=0, le=1, description="Share of the context for text units.")
    community_level: int = Field(2, ge=0, description="Finest level whose reports are read.")
    guaranteed_text_units: int = Field(2, ge=1, description="minimum_guarantee: text units for each entity.")
    max_text_units_per_entity: int = Field(5, ge=1, description="per_entity_cap: maximum text units for an entity.")
    packing: Literal["strict", "shared"] | None = Field(
        None,
        description="strict: as Microsoft GraphRAG packs and writes its tables: a part keeps to its share and ends at "
        "the first row that does not fit. shared: unused shares pass on, and such rows are skipped. null: strict with "
        "depth_first, else shared.",
    )

    @property
    def is_strict(self) -> bool:
        """Whether contexts are packed and written as in Microsoft GraphRAG."""
        return (self.packing or self._plain("strict", "shared")) == "strict"

    def _plain(self, reference: str, ours: str) -> str:
        return reference if self.strategy == "depth_first" else ours

    @model_validator(mode="after")
    def _shares_fit(self) -> LocalSection:
        if self.community_share + self.text_unit_share > 1:
            raise ValueError("community_share + text_unit_share must not exceed 1")
        return self

    @model_validator(mode="after")
    def _keywords_are_shared(self) -> LocalSection:
        if self.model_keywords and self.is_strict:
            raise ValueError(
                "model_keywords is not possible with strict packing; set packing to shared, or model_keywords to false"
            )
        return self


class LocalSearchSettings(LocalSection, QuestionOptions):
    """Options of one local search."""

    basic_share: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Share of the text unit budget for the best text units of basic search. They come first. They are "
        f"at most five. With {' and '.join(BASIC_SHARES)} they are the first ten of the strategy's own ranking, which "
        "begins with those of basic search. null: "
        f"{', '.join(f'{share:g} with {name}' for name, share in BASIC_SHARES.items())}, else 0.",
    )
    excerpts: bool | None = Field(
        None,
        description="Whether a matched entity is heard by an excerpt, the sentences around its mention, where its text "
        "units do not fit; not with strict packing. null: true with all strategies but depth_first.",
    )
    include_entity_names: tuple[str, ...] = Field((), description="Entities matched to every question, before others.")
    exclude_entity_names: tuple[str, ...] = Field((), description="Entities never matched.")
    min_community_rank: float = Field(0, ge=0, le=10, description="Reports with a lower rank (0 to 10) are not read.")
    use_community_summary: bool = Field(
        False, description="Whether to read summaries of reports instead of whole reports."
    )
    relationship_ranking_attribute: Literal["rank", "combined_degree", "weight"] = Field(
        "rank", description="Order of relationships: by rank (equal to combined_degree) or by weight."
    )
    include_entity_rank: bool = Field(True, description="Whether a model gets the rank of entities.")
    include_community_rank: bool = Field(False, description="Whether a model gets the rank of community reports.")
    include_relationship_weight: bool = Field(True, description="Whether a model gets the weight of relationships.")
    response_type: str | None = Field(None, description="With a model: form of the answer; null: as in answers.")
    conversation_history: ConversationTurns = Field(
        (), description="Turns (role, content) before the question, oldest first; usually given with a question."
    )
    conversation_history_max_turns: int = Field(
        5, ge=0, description="Number of latest questions of the conversation that are read; 0: none."
    )
    conversation_history_user_turns_only: bool | None = Field(
        None,
        description="Whether a model reads the user's turns of the conversation without the answers. null: true with "
        "strict packing, as in Microsoft GraphRAG, else false.",
    )
    return_candidate_context: bool = Field(
        False, description="Whether results also list the records that were not chosen."
    )
    report_levels: Literal["all", "frontier"] | None = Field(
        None,
        description="Reports of the matched entities' communities. all: of all levels down to community_level, as in "
        "Microsoft GraphRAG. frontier: of the deepest of each branch. null: all with depth_first, else frontier.",
    )
    entity_scope: Literal["all", "in_communities"] = Field(
        "all",
        description="Entities that vectors match. in_communities: those of a community of a level down to "
        "community_level, as in Microsoft GraphRAG.",
    )
    entity_key: Literal["id", "title"] = Field(
        "id",
        description="What the ids of the vector table of entities are: ids or titles of entities. title: for a vector "
        "store of your own that was filled by title.",
    )
    rank_description: ColumnName = Field(
        "number of relationships", description="Name of the column with the rank of entities, as a model gets it."
    )
    column_delimiter: Delimiter = Field(
        "|",
        description="Character between the columns that a model gets, such as `,`, `;` or `tab`. Texts that contain it "
        "stay as they are, as in Microsoft GraphRAG; strict packing quotes the cells of reports, as in CSV, "
        "and keeps `|` for text units.",
    )
    community_context_name: Heading = Field("Reports", description="Heading of the reports that a model gets.")
    entity_context_name: Heading = Field("Entities", description="Heading of the entities that a model gets.")
    relationship_context_name: Heading = Field(
        "Relationships", description="Heading of the relationships that a model gets."
    )
    claim_context_name: Heading = Field("Claims", description="Heading of the claims that a model gets.")
    text_unit_context_name: Heading = Field("Sources", description="Heading of the text units that a model gets.")
    budget: int | None = token_budget()

    @property
    def share_of_basic(self) -> float:
        """Share of the text unit budget for basic search, by the strategy if none is set."""
        return BASIC_SHARES.get(self.strategy, 0.0) if self.basic_share is None else self.basic_share

    @property
    def has_excerpts(self) -> bool:
        """Whether excerpts are taken, by the strategy and the packing if nothing is set."""
        is_usual = self.strategy not in WITHOUT_EXCERPTS and not self.is_strict
        return is_usual if self.excerpts is None else self.excerpts

    @property
    def reads_user_turns_only(self) -> bool:
        """Whether the answers of a conversation are left out, by the packing if nothing is set."""
        only = self.conversation_history_user_turns_only
        return self.is_strict if only is None else only

    @property
    def reads_all_levels(self) -> bool:
        """Whether reports of all levels are read."""
        return (self.report_levels or self._plain("all", "frontier")) == "all"

    @property
    def context_names(self) -> dict[str, str]:
        """Heading of each part of a context."""
        return {
            "reports": self.community_context_name,
            "entities": self.entity_context_name,
            "relationships": self.relationship_context_name,
            "claims": self.claim_context_name,
            "text_units": self.text_unit_context_name,
        }

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """Optional columns of the tables that a model gets (`query/context.py`)."""
        columns = ("entity_rank", "community_rank", "relationship_weight")
        return tuple(name for name in columns if getattr(self, f"include_{name}"))

    @model_validator(mode="after")
    def _names_differ(self) -> LocalSearchSettings:
        if len({name.casefold() for name in self.context_names.values()}) < len(self.context_names):
            raise ValueError("two parts of a context have the same heading; give each `..._context_name` its own")
        return self

    @model_validator(mode="after")
    def _names_one_column(self) -> LocalSearchSettings:
        if self.column_delimiter in self.rank_description:
            raise ValueError(
                f"rank_description {self.rank_description!r} holds the column_delimiter {self.column_delimiter!r}, so "
                "the heading would have a column more than the rows; change one of the two"
            )
        return self

    @model_validator(mode="after")
    def _excerpts_are_shared(self) -> LocalSearchSettings:
        if self.excerpts and self.is_strict:
            raise ValueError(
                "excerpts are not possible with strict packing; set packing to shared, or excerpts to null"
            )
        return self
