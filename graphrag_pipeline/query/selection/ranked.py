"""Text unit selection by relevance, over all candidates: the strategies `graph` and `balanced`.

Both also choose text units that inform no matched entity, and put the most relevant text unit first. The rules that all
strategies share are in `strategies.py`. Keep out: how relevance is computed (`pagerank.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from graphrag_pipeline.query.selection.candidates import Candidates, Limits, Pick

MAX_POOL = 128
"""Most text units that `balanced` compares one by one: twice as many as fit the default budget at 100 tokens each."""


def graph(candidates: Candidates, limits: Limits) -> list[Pick]:
    """Take text units by relevance while they fit, ties by closeness to the matched entities.

    closeness(t) = sum over the entities e that t informs of max(similarity(e), 0) / sqrt(number of text units of e)
    """
    relevance = _relevance(candidates)
    closeness = np.zeros(len(relevance))
    for units, similarity in zip(candidates.text_units, candidates.similarity, strict=True):
        closeness[units] += max(float(similarity), 0.0) / np.sqrt(max(len(units), 1))
    order = (
        np.lexsort((-closeness, -relevance))
        if candidates.relevance is not None
        else np.argsort(-closeness, kind="stable")
    )
    return _picks(candidates, _fill(candidates.costs, order, limits.budget))


def balanced(candidates: Candidates, limits: Limits) -> list[Pick]:
    """Take text units greedily by the sum of four aims, each from 0 to 1; return the most relevant first.

        gain(t) = relevance(t) + density(t) + coverage(t) + diversity(t)

    relevance: 1 / log2(1 + rank) in the order of PageRank, as DCG discounts ranks.
    density: relationships of an entity per token, divided by the largest value of this entity; of the entities that t
        informs, the largest. So an entity with few relationships has a densest text unit, too.
    coverage: 1 - product of (1 - 1 / (1 + n_e)) over the entities e that t informs; n_e is the number of text units of
        e already taken. Entities have equal weight because relevance already depends on their similarity.
    diversity: 1 - the largest cosine to a text unit already taken, at least 0.

    Greedy selection is the standard approximation of budgeted maximal coverage (Khuller, Moss and Naor 1999). Only the
    `MAX_POOL` best by the first three aims at the start are compared. The others fill the rest of the budget in that
    order.
    """
    relevance = _relevance(candidates)
    density = _density(candidates)
    informs = candidates.informs
    order = np.argsort(-np.round(relevance + density + informs.any(axis=0), 9), kind="stable")
    pool = order[:MAX_POOL]
    chosen = pool[_maximise(candidates, limits.budget, pool, relevance[pool] + density[pool], informs[:, pool])]
    left = limits.budget - int(candidates.costs[chosen].sum())
    rest = order[~np.isin(order, chosen)]
    chosen = np.concatenate((chosen, np.array(_fill(candidates.costs, rest, left), dtype=np.int64)))
    return _picks(candidates, chosen[np.argsort(-relevance[chosen], kind="stable")])


def _maximise(
    candidates: Candidates, budget: int, pool: np.ndarray, worth: np.ndarray, informs: np.ndarray
) -> list[int]:
    """Return positions in the pool in the order taken: each time the one with most gain of those that fit.

    Args:
        worth: float (n,), relevance + density of each text unit of the pool.
        informs: bool (n entities, n).
    """
    costs = candidates.costs[pool]
    vectors = candidates.read_vectors(pool) if candidates.read_vectors is not None else None
    worth = worth.copy()  # minus infinity: taken, or does not fit
    distance = np.ones(len(pool))
    # missed[e, t] = 1 - 1 / (1 + n_e) if text unit t informs entity e, else 1. Taking a text unit changes only the rows
    # of the entities that it informs, so the product over entities is not computed again from nothing.
    missed = 1.0 - informs
    coverage = 1.0 - missed.prod(axis=0)
    informed = [list(itertools.compress(range(len(informs)), column)) for column in informs.T.tolist()]
    n_taken = [0] * len(informs)
    taken: list[int] = []
    most, cost_of = int(costs.max(initial=0)), costs.tolist()
    gain = np.empty(len(pool))
    while len(taken) < len(pool):
        if budget < most:
            worth[costs > budget] = -np.inf
        np.add(worth, distance, out=gain)
        gain += coverage
        gain.round(9, out=gain)
        best = int(gain.argmax())
        if gain[best] == -np.inf:
            break
        taken.append(best)
        worth[best] = -np.inf
        budget -= cost_of[best]
        for entity in informed[best]:
            n_taken[entity] += 1
            missed[entity] = 1 - informs[entity] / (1 + n_taken[entity])
        if informed[best]:
            coverage = 1 - missed.prod(axis=0)
        if vectors is not None:
            nearness = (vectors @ vectors[best]).clip(0.0, 1.0)
            np.minimum(distance, 1 - nearness, out=distance)
    return taken


def _relevance(candidates: Candidates) -> np.ndarray:
    """Return the discounted PageRank; without PageRank, the similarity of the best entity in each text unit."""
    if candidates.relevance is not None:
        return _discount(candidates.relevance)
    relevance = np.zeros(len(candidates.costs))
    for units, similarity in zip(candidates.text_units, candidates.similarity, strict=True):
        relevance[units] = np.maximum(relevance[units], max(float(similarity), 0.0))
    return _to_one(relevance)


def _density(candidates: Candidates) -> np.ndarray:
    density = np.zeros(len(candidates.costs))
    for units, n_relationships in zip(candidates.text_units, candidates.n_of_entity, strict=True):
        of_entity = _to_one(n_relationships / np.maximum(candidates.costs[units], 1))
        density[units] = np.maximum(density[units], of_entity)
    return density


def _discount(scores: np.ndarray) -> np.ndarray:
    """Return 1 / log2(1 + rank) of each positive score, as DCG discounts ranks; 0 for the others.

    PageRank falls by orders of magnitude from hop to hop. Ranks give text units that are two hops away a chance.
    """
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return np.where(scores > 0, 1 / np.log2(1 + ranks), 0.0)


def _to_one(values: np.ndarray) -> np.ndarray:
    largest = float(values.max(initial=0.0))
    return values / largest if largest > 0 else np.zeros(len(values))


def _fill(costs: np.ndarray, order: np.ndarray, budget: int) -> list[int]:
    """Return the text units that fit, in order; skip one that does not."""
    taken = []
    for unit, cost in zip(order.tolist(), costs[order].tolist(), strict=True):
        if cost <= budget:
            taken.append(unit)
            budget -= cost
    return taken


def _picks(candidates: Candidates, units: Iterable[int]) -> list[Pick]:
    """Return picks of text units, each for the first entity that it informs, -1 if none."""
    chosen = np.fromiter(units, dtype=np.int64)
    return [Pick(*pick) for pick in zip(chosen.tolist(), candidates.owners[chosen].tolist(), strict=True)]
