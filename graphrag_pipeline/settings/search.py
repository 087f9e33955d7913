"""Settings of the search methods but local search: selection and limits of what each method reads.

Add an option of one method here, with a default and a description. Rating and answering have separate sections in
`settings.py`. Keep out: local search (`local_search.py`), and options of indexing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from graphrag_pipeline.settings.search_names import CHOOSABLE_METHODS
from graphrag_pipeline.settings.search_section import MethodSection, QuestionOptions, rerank, token_budget

if TYPE_CHECKING:  # type checkers read no literals from a table
    SearchMethodName = str
else:
    SearchMethodName = Literal[CHOOSABLE_METHODS]


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
    max_rated_per_level: int | None = Field(
        None,
        ge=1,
        description="With a rating model: maximum reports that it rates per level, those nearest to the question; the "
        "others keep the embedded engine's rating; null: no limit.",
    )
    small_reports_per_call: int = Field(
        1,
        ge=1,
        le=100,
        description="With a rating model: number of reports rated in one call if their communities have fewer entities "
        "than reports.min_report_size; 1: each report alone.",
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
