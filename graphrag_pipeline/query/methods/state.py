"""The value that goes from step to step of a search: the question and the findings so far.

Frozen and picklable: Dagster's query jobs store it between ops. Keep out: the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphrag_pipeline.query.answers.answering import MappedPoints
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.query.token_budget import EMBEDDED, QueryUsage, embedded_usage
from graphrag_pipeline.query.understanding.time_phrases import TimeScope


@dataclass(frozen=True)
class SearchRequest:
    """A question as a user asks it.

    Attributes:
        question: in words.
        strategy: of local search, also if auto picks it; None is the strategy of the settings.
        filters: only documents that match all of them are read.
        options: over the method's section of the settings.
    """

    question: str
    method: str = "local"
    strategy: str | None = None
    filters: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Query:
    """A question ready to be searched: pinned to a snapshot, with all that its answer depends on.

    Attributes:
        question: the text to search for: the user's question, without a time phrase that became a filter.
        user_question: as `question.read_question` returns it.
        settings: the method's section of the settings with the options over it.
        budget: most tokens of prompts and replies; None is no limit.
        filters: given with the question, and those of its time.
    """

    question: str
    user_question: str
    method: str
    snapshot: str
    settings: Any
    budget: int | None
    filters: tuple[str, ...]
    time: TimeScope

    @property
    def options(self) -> dict[str, Any]:
        """The options of the method as plain values, with its defaults."""
        options: dict[str, Any] = self.settings.model_dump(mode="json", exclude={"for_questions"})
        return options


@dataclass(frozen=True)
class SearchState:
    """The findings of a search's steps so far, and their cost.

    Attributes:
        context: what the answer is written from; None until a step has chosen it.
        candidates: the other records that it was chosen from, if the settings want them.
        selection: how it was chosen; `selection` of the result.
        found: the value that the method's own steps hand on, such as a `Selection`, a `Drift` or a `Choice`.
        mapped: the points of reports or text units, if the method maps them.
        answer: None until a step has written it.
        spent: tokens off the query's budget.
        usage: of all steps; `step_usage` of the last one alone.
        seconds: of the steps.
    """

    query: Query
    context: Context | None = None
    candidates: Context | None = None
    selection: dict[str, Any] = field(default_factory=dict)
    found: Any = None
    mapped: MappedPoints = field(default_factory=lambda: MappedPoints(()))
    answer: Answer | None = None
    spent: int = 0
    usage: QueryUsage = field(default_factory=QueryUsage)
    step_usage: QueryUsage = field(default_factory=QueryUsage)
    seconds: float = 0.0

    @property
    def read(self) -> Context:
        """The context; an empty one if none was chosen."""
        return self.context or Context()

    @property
    def noted_answer(self) -> Answer:
        """The answer with a note on its time scope; an empty answer if none was wanted."""
        return self.query.time.add_note(self.answer or Answer(""))

    @property
    def whole_usage(self) -> QueryUsage:
        """Usage of models, and of the embedded engine if it answered."""
        answer = self.noted_answer
        return self.usage + embedded_usage(self.read.n_tokens, 0) if answer.engine == EMBEDDED else self.usage
