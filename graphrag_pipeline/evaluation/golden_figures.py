"""Figures of golden questions on one snapshot: recall of local search, token F1 of its answers, and whom they name.

Figures that were stored for the same questions and settings are used again. Keep out: comparing two snapshots
(`regression_gate.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.answer_figures import AnswerFigures, measure_answers
from graphrag_pipeline.evaluation.conditions import parse_condition
from graphrag_pipeline.evaluation.confidence import Estimate, estimate_mean
from graphrag_pipeline.evaluation.figures_store import (
    load_answers,
    load_retrieval,
    name_answers,
    name_retrieval,
    save_answers,
    save_retrieval,
)
from graphrag_pipeline.evaluation.questions import Question
from graphrag_pipeline.evaluation.retrieval_figures import RetrievalFigures, measure_retrieval
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.index.graph_index import GraphIndex

METHOD = "local"
GOLDEN_K = 5
"""Text units of local search in which recall looks for evidence: about what a model reads of a small context."""
_DIGITS = 6


@dataclass(frozen=True)
class GoldenFigure:
    """One figure of golden questions that a candidate must keep.

    Attributes:
        values: of each question, in order; more is better.
        setting: the option with the largest drop that is allowed, `max_drop`.
        worse: what a snapshot with a lower value does, for messages.
    """

    name: str
    questions: tuple[Question, ...]
    values: tuple[float, ...]
    setting: str
    max_drop: float
    worse: str

    @cached_property
    def estimate(self) -> Estimate:
        """The mean with its confidence interval, which takes thousands of samples."""
        return estimate_mean(self.values)

    @property
    def mean(self) -> float:
        return self.estimate.mean or 0.0

    def is_too_low(self, before: GoldenFigure) -> bool:
        """Whether the mean is lower than another one by more than is allowed."""
        return round(before.mean - self.mean, _DIGITS) > self.max_drop


def measure_golden(root: Root, snapshot: str, questions: Sequence[Question]) -> list[GoldenFigure]:
    """Measure a snapshot: recall if questions have evidence, and what has a limit if they have answers.

    `max_f1_drop` measures token F1, `max_passage_drop` the first three passages of extractive answers.

    Raises:
        PipelineError: the snapshot cannot be opened with the current settings, or has none of the evidence.
    """
    settings = root.settings.publishing
    figures = []
    if found := tuple(question for question in questions if question.evidence):
        recalls = _measure_recall(root, snapshot, found).recalls
        limit = "publishing.max_recall_drop", settings.max_recall_drop
        figures.append(GoldenFigure(f"recall@{GOLDEN_K}", found, recalls, *limit, "finds less"))
    answered = tuple(question for question in questions if question.answers)
    is_extractive = settings.max_passage_drop is not None and root.settings.answers.engine == "embedded"
    has_passages = is_extractive and any(not question.is_unanswerable for question in answered)
    if not answered or not (has_passages or settings.max_f1_drop is not None):
        return figures
    scores = _measure_answers(root, snapshot, answered).answers
    if settings.max_f1_drop is not None:
        limit = "publishing.max_f1_drop", settings.max_f1_drop
        values = tuple(answer.f1 for answer in scores)
        figures.append(GoldenFigure("token F1", answered, values, *limit, "answers worse"))
    if has_passages:
        pairs = zip(answered, scores, strict=True)
        held = [(question, one.in_three) for question, one in pairs if one.in_three is not None]
        asked, shares = zip(*held, strict=True)
        most = settings.max_passage_drop or 0.0
        name = "answers in three passages"
        figures.append(GoldenFigure(name, asked, shares, "publishing.max_passage_drop", most, "shows the answer later"))
    return figures


def _measure_recall(root: Root, snapshot: str, questions: Sequence[Question]) -> RetrievalFigures:
    name = name_retrieval(questions, GOLDEN_K, root.settings)
    kept = load_retrieval(root.path, snapshot, name).get(METHOD)
    if kept is not None:
        return kept
    with _opened(root, snapshot) as index:
        [figures], _ = measure_retrieval(index, questions, [parse_condition(METHOD)], GOLDEN_K)
    save_retrieval(root.path, snapshot, name, [figures])
    return figures


def _measure_answers(root: Root, snapshot: str, questions: Sequence[Question]) -> AnswerFigures:
    name = name_answers(questions, False, root)
    kept = load_answers(root.path, snapshot, name).get(METHOD)
    if kept is not None:
        return kept
    with _opened(root, snapshot) as index:
        [figures] = measure_answers(index, questions, [parse_condition(METHOD)])
    save_answers(root.path, snapshot, name, [figures])
    return figures


@contextmanager
def _opened(root: Root, snapshot: str) -> Iterator[GraphIndex]:
    with (
        naming_snapshot(snapshot),
        GraphIndex(root.snapshots.open(snapshot), root.settings, root.embedder, root) as index,
    ):
        yield index


@contextmanager
def naming_snapshot(snapshot: str) -> Iterator[None]:
    """Name the snapshot that cannot be measured, and the way out, in a PipelineError."""
    try:
        yield
    except PipelineError as error:
        raise PipelineError(
            f"the golden questions cannot be measured on snapshot {snapshot} ({error}); clear "
            "`publishing.golden_questions` to publish without them"
        ) from None
