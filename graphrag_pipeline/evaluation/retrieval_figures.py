"""Retrieval figures on gold questions, without a model: the share of the evidence among the first k text units.

    recall@k         = |evidence in the first k text units| / |evidence|, in the order that a search returns them
    all-evidence@k   = 1 if recall@k = 1, else 0

Figures are means over the questions that name evidence, with 95 % confidence intervals (`confidence.py`). Evidence that
the index does not have counts as not found and is reported. Keep out: searching.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.conditions import Condition, Ranker, parse_condition, rank_text_units
from graphrag_pipeline.evaluation.confidence import (
    Estimate,
    PairedDifference,
    compare_pairs,
    estimate_mean,
    estimate_share,
)
from graphrag_pipeline.evaluation.questions import Evidence, Question, find_evidence
from graphrag_pipeline.query.selection.strategies import STRATEGIES

if TYPE_CHECKING:
    from graphrag_pipeline.query.index.graph_index import GraphIndex

DEFAULT_METHODS = ("bm25", "vector", "basic", *(f"local:{strategy}" for strategy in STRATEGIES))
"""The baselines, and local search with every strategy."""
MAX_K = 1_000


@dataclass(frozen=True)
class RetrievalFigures:
    """Retrieval figures of one method.

    Attributes:
        recalls: recall@k of each question, in order.
        question_ms: wall-clock time of each question, in order, in milliseconds.
    """

    method: str
    k: int
    recalls: tuple[float, ...]
    question_ms: tuple[float, ...]

    def estimates(self) -> dict[str, Estimate]:
        """Return the means with their confidence intervals."""
        return {
            "recall": estimate_share(self.recalls),
            "all_evidence": estimate_share(self.whole),
            "milliseconds": estimate_mean(self.question_ms),
        }

    @property
    def recall(self) -> float:
        """Mean of recall@k over the questions, 0-1."""
        return float(np.mean(self.recalls))

    @property
    def whole(self) -> list[float]:
        """1 for each question whose whole evidence is found, else 0."""
        return [float(recall == 1) for recall in self.recalls]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "estimates": {name: asdict(value) for name, value in self.estimates().items()}}


def parse_methods(names: Iterable[str]) -> list[Condition]:
    """Parse conditions that return text units.

    Raises:
        PipelineError: a name is unknown, or the method returns no text units.
    """
    conditions = [parse_condition(name) for name in names]
    for condition in conditions:
        if not condition.finds_text_units:
            raise PipelineError(f"{condition.name}: returns no ranked text units, so it has no recall")
    return conditions


def measure_retrieval(
    index: GraphIndex, questions: Sequence[Question], methods: Sequence[Condition], k: int
) -> tuple[list[RetrievalFigures], Evidence]:
    """Measure each method, in order, and return the figures with the evidence as rows of the index.

    Raises:
        PipelineError: the index has none of the evidence, k is out of range, or an option does not validate.
    """
    if not 1 <= k <= MAX_K:
        raise PipelineError(f"k is {k}; it must be 1 to {MAX_K:,}")
    for condition in methods:
        condition.settings_of(index)
    evidence = find_evidence(index.snapshot, questions)
    if not any(rows for of_question in evidence.rows for rows in of_question):
        raise PipelineError(
            f"snapshot {index.snapshot.id} has none of the evidence, such as {evidence.unknown[0]}; name documents by "
            "path, id or title as `graphrag-pipeline sql 'SELECT path, id, title FROM documents'` shows them, or text "
            "units by id"
        )
    return [_measure(index, questions, evidence, condition, k) for condition in methods], evidence


def _measure(
    index: GraphIndex, questions: Sequence[Question], evidence: Evidence, condition: Condition, k: int
) -> RetrievalFigures:
    rank, times = partial(rank_text_units, condition), []
    rank(index, questions[0].question, k)  # leaves the loading at first use out of the time

    def rank_timed(index: GraphIndex, question: str, k: int) -> list[str]:
        started = time.perf_counter()
        ids = rank(index, question, k)
        times.append(1000 * (time.perf_counter() - started))
        return ids

    recalls = recall_each(index, [question.question for question in questions], evidence.rows, rank_timed, k)
    return RetrievalFigures(condition.name, k, tuple(recalls), tuple(times))


def recall_each(
    index: GraphIndex, questions: Sequence[str], evidence: Sequence[Sequence[frozenset[int]]], rank: Ranker, k: int
) -> list[float]:
    """Return recall@k of each question.

    Args:
        evidence: per question and piece of evidence, the rows of the text units, any of which counts.
    """
    recalls = []
    for question, pieces in zip(questions, evidence, strict=True):
        rows = set(index.snapshot.rows_of("text_units", rank(index, question, k)[:k]).tolist())
        recalls.append(sum(not rows.isdisjoint(piece) for piece in pieces) / len(pieces))
    return recalls


def compare_retrieval(figures: RetrievalFigures, others: RetrievalFigures) -> list[PairedDifference]:
    """Compare two measurements of the same questions, question by question."""
    return [
        compare_pairs(f"recall@{figures.k}", figures.recalls, others.recalls),
        compare_pairs(f"all-evidence@{figures.k}", figures.whole, others.whole),
    ]


def render_figures(figures: Sequence[RetrievalFigures]) -> list[str]:
    """Return lines of a table: each mean with its confidence interval."""
    width = max(len("method"), *(len(row.method) for row in figures))
    k = figures[0].k
    lines = [f"{'method':{width}}  {f'recall@{k}':20}  {f'all-evidence@{k}':20}  ms"]
    for row in figures:
        found = row.estimates()
        shown = f"{found['recall'].render():20}  {found['all_evidence'].render():20}"
        lines.append(f"{row.method:{width}}  {shown}  {found['milliseconds'].render(1)}")
    return lines
