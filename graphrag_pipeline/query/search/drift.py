"""DRIFT search: from the reports nearest to the question, by follow-up questions, into the graph around it.

The idea of Microsoft's DRIFT (Dynamic Reasoning and Inference with Flexible Traversal, 2024): a global start, local
steps. `find_primer` finds the reports to start from. The first `DriftStep` lists the questions that they leave open.
`follow_up` runs rounds of follow-up questions, each with a local search. The answer is written from all steps. Nothing
is drawn at random: of the open questions, those of the best step come first.

Without a model (`drift_follow_ups.GraphFollower`) the steps have no answers. A follow-up question is about an entity
that a finding or relationship near the question names and that no question has named yet. The answer is quoted from all
contexts. A chat model (`engines/model/answers/drift.py`) answers each step and writes the next questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import fold_question
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.community_selection import Selection, select_global_context
from graphrag_pipeline.query.search.lazy import read_overview
from graphrag_pipeline.query.search.local import select_local_context
from graphrag_pipeline.query.search.raters import (
    MAX_UNSEPARATED_ROOTS,
    REPORT_VECTORS,
    RelevanceRater,
    are_representative,
    worth,
)
from graphrag_pipeline.settings.settings import DriftSearchSettings
from graphrag_pipeline.text.counted import counted

REPORTS_PER_PRIMER = 8
"""Reports found for each that is taken: many of the nearest are above or below the frontier."""


@dataclass(frozen=True)
class DriftStep:
    """One question of the search, with what was read for it.

    Attributes:
        depth: 0 for the user's question, then the round.
        context: the records read for it.
        answer: a model's, citing human-readable ids; "" without one.
        score: 0-100, how much the answer helps; the questions of the best step are followed first.
        follow_ups: the questions that it leaves open, the most useful first.
        failure: why the model gave no answer; "" if it did, or if no model was used.
        n_invented: number of removed citations of records that the model was not shown.
        n_copied: number of removed follow-up questions that repeat the prompt.
    """

    question: str
    depth: int
    context: Context
    answer: str = ""
    score: int = 0
    follow_ups: tuple[str, ...] = ()
    failure: str = ""
    n_invented: int = 0
    n_copied: int = 0


@dataclass(frozen=True)
class Primer:
    """The start of a search: reports, and the steps of the question itself."""

    selection: Selection
    steps: tuple[DriftStep, ...]


@dataclass(frozen=True)
class Drift:
    """All steps of a search.

    Attributes:
        selection: the reports of the start.
        stopped_by: "depth", "budget", "nothing open", or "failure" of all steps.
    """

    selection: Selection
    steps: tuple[DriftStep, ...]
    stopped_by: str

    @property
    def context(self) -> Context:
        """The records that all steps read, each once, in the order of the steps."""
        return merge_contexts(step.context for step in self.steps)

    @property
    def failures(self) -> list[str]:
        """The reasons why steps have no answer, each once."""
        return list(dict.fromkeys(step.failure for step in self.steps if step.failure))

    @property
    def has_failed(self) -> bool:
        """Whether no step was answered."""
        return all(step.failure for step in self.steps)

    def describe(self) -> str:
        """Return a summary such as "10 community reports and 6 follow-up questions"."""
        n_reports, n_asked = len(self.selection.kept), sum(step.depth > 0 for step in self.steps)
        return f"{counted(n_reports, 'community reports')} and {counted(n_asked, 'follow-up questions')}"

    def account(self) -> dict[str, Any]:
        follow_ups = [step for step in self.steps if step.depth]
        return {
            "primer_reports": len(self.selection.kept),
            "follow_ups": [
                {"question": step.question, "round": step.depth, "score": step.score} for step in follow_ups
            ],
            "rounds": max((step.depth for step in self.steps), default=0),
            "stopped_by": self.stopped_by,
            "is_overview": self.selection.is_overview,
            "invented_citations": sum(step.n_invented for step in self.steps),
            "copied_from_prompt": sum(step.n_copied for step in self.steps),
            "repeated_questions": self._count_repeated(),
            "failures": self.failures,
        }

    def _count_repeated(self) -> int:
        """Return how many follow-up questions repeat the question or an earlier one; they are not asked."""
        seen = {fold_question(step.question) for step in self.steps if not step.depth}
        proposed = [fold_question(question) for step in self.steps for question in step.follow_ups]
        return len(proposed) - len({*proposed} - seen)


class Follower(Protocol):
    """Maker of the steps of a search: the first, and those of the follow-up questions."""

    def start(self, selection: Selection) -> Primer:
        """Return the reports of the start and the first steps."""
        ...

    def follow(self, questions: Sequence[str], depth: int, steps: Sequence[DriftStep]) -> list[DriftStep]:
        """Return a step for each of the first questions that the budget allows, in order.

        Args:
            steps: those made so far.
        """
        ...


# -------------------------------------------------------------------------------------------------------------- primer


def find_primer(index: IndexReader, question: str, vector: np.ndarray, settings: DriftSearchSettings) -> Selection:
    """Return the reports of the frontier at `settings.level` that are nearest to a vector.

    For a question that names nothing specific, return the reports of the root communities with the highest rank.

    Args:
        question: by which the embedded engine rates the reports.
        vector: of the question, or of an answer that a model imagined.
    """
    rater = RelevanceRater(index, question)
    if rater.is_overview:
        roots = rater.rate(np.flatnonzero(records.root_mask(index))) if are_representative(index) else []
        best = sorted(roots, key=worth(True, False))[: min(MAX_UNSEPARATED_ROOTS, settings.primer_reports)]
    else:
        best = rater.rate(_nearest_communities(index, vector, settings))
    kept = tuple(replace(report, is_kept=True) for report in best)
    return Selection("nearest", kept, 0, rater.is_overview, True, background=rater.background)


def _nearest_communities(index: IndexReader, vector: np.ndarray, settings: DriftSearchSettings) -> np.ndarray:
    """Return rows of communities."""
    if not index.snapshot.n_rows("community_reports"):
        return np.zeros(0, dtype=np.int64)
    n_read = REPORTS_PER_PRIMER * settings.primer_reports
    near = index.snapshot.vectors(REPORT_VECTORS).search(vector, n_read)
    rows = index.snapshot.rows_of("community_reports", [report_id for report_id, _ in near])
    numbers = index.column("community_reports", "community")[rows[rows >= 0]]
    communities = index.rows_of_numbers("communities", "community", numbers.tolist())
    on_frontier = records.frontier_mask(index, settings.level)[communities]
    return communities[(communities >= 0) & on_frontier][: settings.primer_reports]


# ----------------------------------------------------------------------------------------------------------- follow-ups


def follow_up(primer: Primer, follower: Follower, settings: DriftSearchSettings) -> Drift:
    """Run rounds of follow-up questions, `breadth` in each, until `depth`, the budget, or no question is open.

    If all first follow-up questions repeat the user's, that question is looked up itself: else no passage is read.
    """
    steps = list(primer.steps)
    for depth in range(1, settings.depth + 1):
        questions = open_questions(steps)[: settings.breadth]
        if depth == 1 and not questions and any(step.follow_ups for step in steps):
            questions = [steps[0].question]
        made = follower.follow(questions, depth, steps) if questions else []
        steps += made
        if not questions and not all(step.failure for step in steps):
            return Drift(primer.selection, tuple(steps), "nothing open")
        if len(made) < len(questions) or not questions:
            return Drift(primer.selection, tuple(steps), "budget" if questions else "failure")
    return Drift(primer.selection, tuple(steps), "depth")


def open_questions(steps: Sequence[DriftStep]) -> list[str]:
    """Return the follow-up questions that were not asked yet, those of the best step first, each once."""
    asked = {fold_question(step.question) for step in steps}
    found: dict[str, str] = {}
    for step in sorted(steps, key=lambda step: -step.score):
        for question in step.follow_ups:
            if fold_question(question) not in asked:
                found.setdefault(fold_question(question), question)
    return list(found.values())


def read_locally(index: IndexReader, question: str, max_tokens: int) -> Context:
    """Return the context of a local search within a smaller budget, which its parts share.

    Its other options are those of the settings, but the calls of reranking and of keywords: a question has many
    follow-up questions.
    """
    local = index.settings.search("local")
    limit = min(max_tokens, local.max_context_tokens)
    changed = {"max_context_tokens": limit, "packing": "shared", "rerank": False, "model_keywords": False}
    return select_local_context(index, question, local.model_copy(update=changed))


def read_primer(index: IndexReader, question: str, selection: Selection, max_tokens: int) -> Context:
    """Return the reports of the start; if filters leave none, text units.

    Text units come from local search, or for an overview question from `read_overview`.
    """
    if selection.kept:
        return select_global_context(index, selection)
    if index.document_mask is not None and selection.is_overview:
        return read_overview(index, question, max_tokens)
    return read_locally(index, question, max_tokens)


def merge_contexts(contexts: Iterable[Context]) -> Context:
    """Return the records of several contexts, each once, in the order in which they first come."""
    merged: dict[str, dict[str, Any]] = {field.name: {} for field in fields(Context)}
    for context in contexts:
        for name, found in vars(context).items():
            for record in found:
                merged[name].setdefault(record.id, record)
    return Context(**{name: tuple(found.values()) for name, found in merged.items()})
