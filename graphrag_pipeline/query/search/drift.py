"""DRIFT search: from the reports nearest to the question, by follow-up questions, into the graph around it.

The idea of Microsoft's DRIFT (Dynamic Reasoning and Inference with Flexible Traversal, 2024): a global start, local
steps. Steps: `find_primer` (the reports that it starts from), a first `Step` that says what they leave open,
`follow_up` (rounds of follow-up questions, each with a local search of its own), then one answer from all steps.
Nothing is drawn at random: of the questions that are open those of the best step come first. Without a model
(`GraphFollower`) the steps answer nothing: a follow-up question asks what the entities, which the findings and
relationships nearest to the question name and nobody has asked about, have to do with it; the answer is quoted from
what all contexts hold. A chat model (`model_drift.py`) answers each step and says what to ask next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.global_ import MAX_UNSEPARATED_ROOTS, Selection, select_global_context
from graphrag_pipeline.query.search.lazy import read_overview
from graphrag_pipeline.query.search.local import select_local_context
from graphrag_pipeline.query.search.report_rating import REPORT_VECTORS, RelevanceRater, are_telling, worth
from graphrag_pipeline.settings.settings import DriftSearchSettings

REPORTS_PER_PRIMER = 8
"""Reports looked at for each that is taken: of the nearest many are above or below the frontier."""


@dataclass(frozen=True)
class DriftStep:
    """One question asked on the way.

    Attributes:
        depth: 0 for the question itself, then the round.
        context: what was read for it.
        answer: a model's, citing human-readable ids; "" without one.
        score: 0-100, how much the answer helps; best steps are followed first.
        follow_ups: what it leaves open, the most useful first.
        failure: why it has no answer where a model was asked.
        n_invented: citations of what it was not shown, which were removed.
    """

    question: str
    depth: int
    context: Context
    answer: str = ""
    score: int = 0
    follow_ups: tuple[str, ...] = ()
    failure: str = ""
    n_invented: int = 0


@dataclass(frozen=True)
class Primer:
    """Where a search starts: reports, and the first steps, those of the question itself."""

    selection: Selection
    steps: tuple[DriftStep, ...]


@dataclass(frozen=True)
class Drift:
    """All that was asked on the way.

    Attributes:
        selection: the reports that it started from.
        stopped_by: "depth", "budget", "nothing open", or "failure" of all steps.
    """

    selection: Selection
    steps: tuple[DriftStep, ...]
    stopped_by: str

    @property
    def context(self) -> Context:
        """What all steps read, each record once, in the order of the steps."""
        return merge_contexts(step.context for step in self.steps)

    @property
    def failures(self) -> list[str]:
        """Why steps have no answer, each reason once."""
        return list(dict.fromkeys(step.failure for step in self.steps if step.failure))

    @property
    def has_failed(self) -> bool:
        """No step was answered."""
        return all(step.failure for step in self.steps)

    def describe(self) -> str:
        """Such as "10 community reports and 6 follow-up questions"."""
        n_reports, n_asked = len(self.selection.kept), sum(step.depth > 0 for step in self.steps)
        reports = "1 community report" if n_reports == 1 else f"{n_reports} community reports"
        return f"{reports} and {n_asked} follow-up question{'s' * (n_asked != 1)}"

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
            "failures": self.failures,
        }


class Follower(Protocol):
    """Makes the steps of a search: the first, and those of the follow-up questions."""

    def start(self, selection: Selection) -> Primer:
        """The reports that a search starts from, and the first steps."""
        ...

    def follow(self, questions: Sequence[str], depth: int, steps: Sequence[DriftStep]) -> list[DriftStep]:
        """A step for each of the first questions that the budget allows, in order.

        Args:
            steps: those made so far.
        """
        ...


# -------------------------------------------------------------------------------------------------------------- primer


def find_primer(index: IndexReader, question: str, vector: np.ndarray, settings: DriftSearchSettings) -> Selection:
    """The reports of the frontier at `settings.level` nearest to a vector; of a question that names nothing specific
    those of the root communities ranked highest.

    Args:
        question: by which the embedded engine rates them.
        vector: of the question, or of what an answer may look like.
    """
    rater = RelevanceRater(index, question)
    if rater.is_overview:
        roots = rater.rate(np.flatnonzero(records.root_mask(index))) if are_telling(index) else []
        best = sorted(roots, key=worth(True, False))[: min(MAX_UNSEPARATED_ROOTS, settings.primer_reports)]
    else:
        best = rater.rate(_nearest_communities(index, vector, settings))
    kept = tuple(replace(report, is_kept=True) for report in best)
    return Selection("nearest", kept, 0, rater.is_overview, True, background=rater.background)


def _nearest_communities(index: IndexReader, vector: np.ndarray, settings: DriftSearchSettings) -> np.ndarray:
    """Rows of communities."""
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
    """Rounds of follow-up questions, `breadth` in each, until `depth`, the budget, or nothing is open."""
    steps = list(primer.steps)
    for depth in range(1, settings.depth + 1):
        questions = open_questions(steps)[: settings.breadth]
        made = follower.follow(questions, depth, steps) if questions else []
        steps += made
        if not questions and not all(step.failure for step in steps):
            return Drift(primer.selection, tuple(steps), "nothing open")
        if len(made) < len(questions) or not questions:
            return Drift(primer.selection, tuple(steps), "budget" if questions else "failure")
    return Drift(primer.selection, tuple(steps), "depth")


def open_questions(steps: Sequence[DriftStep]) -> list[str]:
    """Follow-up questions that nobody has asked yet, those of the best step first, each once."""
    asked = {fold(step.question) for step in steps}
    found: dict[str, str] = {}
    for step in sorted(steps, key=lambda step: -step.score):
        for question in step.follow_ups:
            if fold(question) not in asked:
                found.setdefault(fold(question), question)
    return list(found.values())


def fold(question: str) -> str:
    """What two ways to write a question have in common."""
    return " ".join(question.casefold().split()).rstrip("?!. ")


def read_locally(index: IndexReader, question: str, max_tokens: int) -> Context:
    """The context of a local search, as the settings of local search say, within fewer tokens."""
    local = index.settings.local_search
    limit = min(max_tokens, local.max_context_tokens)
    return select_local_context(index, question, local.model_copy(update={"max_context_tokens": limit}))


def read_primer(index: IndexReader, question: str, selection: Selection, max_tokens: int) -> Context:
    """The reports that a search starts from; where filters leave none, the texts: local search finds them, an overview
    question reads those that stand for all.
    """
    if selection.kept:
        return select_global_context(index, selection)
    if index.document_mask is not None and selection.is_overview:
        return read_overview(index, question, max_tokens)
    return read_locally(index, question, max_tokens)


def merge_contexts(contexts: Iterable[Context]) -> Context:
    """The records of several contexts, each once, in the order in which they first come."""
    merged: dict[str, dict[str, Any]] = {field.name: {} for field in fields(Context)}
    for context in contexts:
        for name, found in vars(context).items():
            for record in found:
                merged[name].setdefault(record.id, record)
    return Context(**{name: tuple(found.values()) for name, found in merged.items()})
