"""Text units in the order of a reranking model (`rerank_model` in the settings).

A search chooses its candidates as it does without the model. The best `n_candidates` of them are sent, the search packs
them in the new order, and the others follow in their own. Text units that the model gave no score come behind those
with one, in their old order. If no score can be had, the order stays as it was, and the account says why.

Input and output of the text unit selection strategies: candidates, limits, picks.

Keep out: which text units are candidates.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.records import read_text_units
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.token_budget import answer_cost


@dataclass(frozen=True)
class Candidates:
    """The text units that a strategy chooses from; each is a position from 0 to n - 1, in reading order.

    Attributes:
        text_units: one int array per matched entity, best entity first, in the order of the entity's list; a text unit
            may be in several.
        n_of_entity: one int array per matched entity, along with its `text_units`: relationships of this entity that
            each of them states.
        similarity: (n_entities,) cosine of each entity to the question.
        costs: (n,) cost of each text unit: tokens, or 1 where the budget counts text units.
        relevance: (n,) 0 to 1, by personalised PageRank (`pagerank.py`); None if it was not computed.
        read_vectors: returns unit vectors, float32 (k, d), of k positions; None if texts are not compared.
    """

    text_units: tuple[np.ndarray, ...]
    n_of_entity: tuple[np.ndarray, ...]
    similarity: np.ndarray
    costs: np.ndarray
    relevance: np.ndarray | None = None
    read_vectors: Callable[[np.ndarray], np.ndarray] | None = None

    @functools.cached_property
    def informs(self) -> np.ndarray:
        """Whether each entity has each text unit, bool (n_entities, n)."""
        found = np.zeros((len(self.text_units), len(self.costs)), dtype=bool)
        for entity, units in enumerate(self.text_units):
            found[entity, units] = True
        return found

    @functools.cached_property
    def owners(self) -> np.ndarray:
        """The first entity that each text unit informs, -1 if it informs none: int64 (n,)."""
        found = np.full(len(self.costs), -1, dtype=np.int64)
        for entity in reversed(range(len(self.text_units))):
            found[self.text_units[entity]] = entity
        return found


@dataclass(frozen=True)
class Limits:
    """Limits on the number and the cost of the text units that a strategy takes.

    Attributes:
        budget: in the unit of `Candidates.costs`.
        guaranteed: text units that each entity gets under `minimum_guarantee`.
        cap: most text units for each entity under `per_entity_cap`.
        reserved: number of text units that each entity has already, outside the budget. They use up its cap, quota,
            guarantee and rounds. None means 0 for each entity.
    """

    budget: int
    guaranteed: int = 2
    cap: int = 5
    reserved: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Excerpt:
    """A part of a text unit: character offsets in its text, tokens, and the matched entities that it mentions."""

    start: int
    end: int
    n_tokens: int
    entities: tuple[int, ...]


@dataclass(frozen=True)
class Pick:
    """A text unit and the position of the entity that it was taken for; -1 if it informs no matched entity.

    Attributes:
        excerpt: the part that is taken; None if it is the whole text unit.
        mentions: of a whole text unit: matched entities whose mention in an overlapping neighbour lies in it, too.
    """

    text_unit: int
    entity: int
    excerpt: Excerpt | None = None
    mentions: tuple[int, ...] = ()


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
