"""Settings of local search: matching, selection of text units, and how a context is packed and written.

Add an option of local search here, with a default and a description. Keep out: other methods (`search.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from graphrag_pipeline.settings.search_names import BASIC_SHARES, STRATEGIES, WITHOUT_EXCERPTS
from graphrag_pipeline.settings.search_section import MethodSection, QuestionOptions, rerank, token_budget

if TYPE_CHECKING:  # type checkers read no literals from a table
    StrategyName = str
else:
    StrategyName = Literal[STRATEGIES]


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
        f"begins with those of basic search. null: 1 with {' and '.join(BASIC_SHARES)}, else 0.",
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
