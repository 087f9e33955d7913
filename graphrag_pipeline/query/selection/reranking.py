"""Text units in the order of a reranking model (`rerank_model` in the settings).

A search chooses its candidates as it does without the model. The best `n_candidates` of them are sent, the search packs
them in the new order, and the others follow in their own. Text units that the model gave no score come behind those
with one, in their old order. If no score can be had, the order stays as it was, and the account says why. Keep out:
which text units are candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.records import read_text_units
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.selection.candidates import Pick
from graphrag_pipeline.query.token_budget import answer_cost

T = TypeVar("T")


@dataclass(frozen=True)
class RerankAccount:
    """`selection.reranked` of a result.

    Attributes:
        n_candidates: text units that were sent.
        n_scored: those of them that got a score; 0 if the order stayed as it was.
        n_cut: those of which the end was left out, because they are longer than the model takes.
        failure: why scores are missing; "" if none is.
    """

    model: str
    n_candidates: int
    n_scored: int
    n_cut: int
    failure: str

    def to_dict(self) -> dict[str, Any]:
        return {"is_reranked": self.n_scored > 0, **vars(self)}


def rerank_units(
    index: IndexReader, question: str, units: Sequence[TextUnitRecord]
) -> tuple[list[TextUnitRecord], RerankAccount]:
    """Return text units in the order of the reranking model; the first `n_candidates` are sent.

    Raises:
        PipelineError: no reranking model is set.
    """
    order, account = _rerank(index, question, [unit.text for unit in units[: _n_candidates(index)]])
    return _apply(units, order), account


def rerank_picks(
    index: IndexReader, question: str, picks: Sequence[Pick], rows: np.ndarray
) -> tuple[list[Pick], RerankAccount]:
    """Return picks of whole text units in the order of the reranking model; the first `n_candidates` are sent.

    Args:
        rows: of the text units that picks name by position.

    Raises:
        PipelineError: no reranking model is set.
    """
    sent = rows[[pick.text_unit for pick in picks[: _n_candidates(index)]]]
    texts = [unit.text for unit in read_text_units(index, sent, np.zeros(len(sent)))]
    order, account = _rerank(index, question, texts)
    return _apply(picks, order), account


def _n_candidates(index: IndexReader) -> int:
    return index.settings.rerank_model.n_candidates


def _apply(items: Sequence[T], order: Sequence[int]) -> list[T]:
    return [*(items[place] for place in order), *items[len(order) :]]


def _rerank(index: IndexReader, question: str, texts: Sequence[str]) -> tuple[list[int], RerankAccount]:
    """Return the order of texts, best first, and the account."""
    reranker = index.reranker
    unchanged = list(range(len(texts)))
    if not texts:
        return unchanged, RerankAccount(reranker.model, 0, 0, 0, "")
    n_tokens = reranker.count_tokens(question, texts)
    if not _is_affordable(index, n_tokens):
        most = index.calls.budget.most or 0
        failure = f"the budget of {most:,} tokens for this question does not allow {n_tokens:,} for reranking"
        return unchanged, RerankAccount(reranker.model, 0, 0, 0, failure)
    try:
        found = reranker.rerank(question, texts)
    except PipelineError as error:  # of the endpoint: an order without the model is better than no answer
        return unchanged, RerankAccount(reranker.model, len(texts), 0, 0, str(error))
    index.calls.budget.spent += n_tokens
    scores = [-np.inf if score is None else score for score in found.scores]
    order = sorted(unchanged, key=lambda place: (-scores[place], place))
    n_scored = sum(score is not None for score in found.scores)
    return order, RerankAccount(reranker.model, len(texts), n_scored, found.n_cut, found.failure)


def _is_affordable(index: IndexReader, n_tokens: int) -> bool:
    """Whether the question's token budget pays for the model and, if a model answers, for an empty answer."""
    is_by_model = index.settings.answers.engine == "model"
    return index.calls.budget.is_affordable(n_tokens + (answer_cost(index.settings, 0) if is_by_model else 0))
