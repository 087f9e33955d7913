"""Text unit selection by rank, whichever entity a text unit is of: `graph` and `balanced` (methods.md section 7.5).

Both choose among all candidates, also those of no matched entity, and put the most relevant first. The rules they share
with the other strategies are in `selection.py`. Keep out: how relevance comes about.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from graphrag_pipeline.query.selection.candidates import Candidates, Limits, Pick

MAX_POOL = 128
"""Text units that `balanced` compares one by one: twice what fits the default budget at 100 tokens each."""


def graph(candidates: Candidates, limits: Limits) -> list[Pick]:
    """The most relevant first, by the walk, then by what is closest to the entities; whatever fits."""
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
    """Budgeted greedy maximisation of four aims, each between 0 and 1 and of equal weight; the most relevant first.

    Relevance is the walk's. Density is the share of relationships per token. Coverage is the chance that the text unit
    tells something new of an entity it informs, which falls with every text unit the entity has: 1 - product of
    (1 - 1 / (1 + number taken)); entities count alike, since relevance knows their similarity. Diversity is the
    distance (1 - cosine) from the nearest text unit taken. Only the `MAX_POOL` best by the first three at the start are
    compared; what they leave of the budget goes to the others in that order.
    """
    relevance = _relevance(candidates)
    density = _to_one(candidates.n_relationships / np.maximum(candidates.costs, 1))
    informs = np.zeros((len(candidates.text_units), len(relevance)), dtype=bool)
    for entity, units in enumerate(candidates.text_units):
        informs[entity, units] = True
    order = np.argsort(-np.round(relevance + density + informs.any(axis=0), 9), kind="stable")
    pool = order[:MAX_POOL]
    chosen = pool[_maximise(candidates, limits.budget, pool, relevance[pool] + density[pool], informs[:, pool])]
    left = limits.budget - int(candidates.costs[chosen].sum())
    rest = order[~np.isin(order, chosen)]
    chosen = np.r_[chosen, _fill(candidates.costs, rest, left)].astype(np.int64)
    return _picks(candidates, chosen[np.argsort(-relevance[chosen], kind="stable")])


def _maximise(
    candidates: Candidates, budget: int, pool: np.ndarray, worth: np.ndarray, informs: np.ndarray
) -> list[int]:
    """Places in the pool, in the order taken: each time the one with most gain among those that fit."""
    costs = candidates.costs[pool]
    vectors = candidates.read_vectors(pool) if candidates.read_vectors is not None else None
    worth = worth.copy()  # minus infinity for what is taken or does not fit
    distance = np.ones(len(pool))
    missed = 1.0 - informs  # chance that a text unit tells nothing new of an entity
    coverage = 1.0 - missed.prod(axis=0)
    n_taken = np.zeros(len(informs))
    taken: list[int] = []
    while len(taken) < len(pool):
        worth[costs > budget] = -np.inf
        gain = np.round(worth + distance + coverage, 9)
        best = int(gain.argmax())
        if gain[best] == -np.inf:
            break
        taken.append(best)
        worth[best] = -np.inf
        budget -= int(costs[best])
        entities = np.flatnonzero(informs[:, best])
        if len(entities):
            n_taken[entities] += 1
            missed[entities] = 1 - informs[entities] / (1 + n_taken[entities, None])
            coverage = 1 - missed.prod(axis=0)
        if vectors is not None:
            nearness = np.maximum(vectors @ vectors[best], 0.0)
            distance = np.minimum(distance, 1 - np.minimum(nearness, 1.0))
    return taken


def _relevance(candidates: Candidates) -> np.ndarray:
    """The walk's, or the similarity of the best entity that a text unit informs where there was no walk."""
    if candidates.relevance is not None:
        return _discount(candidates.relevance)
    relevance = np.zeros(len(candidates.costs))
    for units, similarity in zip(candidates.text_units, candidates.similarity, strict=True):
        relevance[units] = np.maximum(relevance[units], max(float(similarity), 0.0))
    return _to_one(relevance)


def _discount(scores: np.ndarray) -> np.ndarray:
    """1 / log2(1 + rank) of each positive score, as DCG discounts ranks; 0 for the others.

    A walk's scores fall by orders of magnitude from hop to hop; ranks keep what is two hops away in sight.
    """
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return np.where(scores > 0, 1 / np.log2(1 + ranks), 0.0)


def _to_one(values: np.ndarray) -> np.ndarray:
    largest = float(values.max(initial=0.0))
    return values / largest if largest > 0 else np.zeros(len(values))


def _fill(costs: np.ndarray, order: np.ndarray, budget: int) -> list[int]:
    """Text units in order while they fit; one that does not is passed over."""
    taken = []
    for unit, cost in zip(order.tolist(), costs[order].tolist(), strict=True):
        if cost <= budget:
            taken.append(unit)
            budget -= cost
    return taken


def _picks(candidates: Candidates, units: Iterable[int]) -> list[Pick]:
    """Picks of text units, each for the first entity that it informs."""
    owner = np.full(len(candidates.costs), -1, dtype=np.int64)
    for entity in reversed(range(len(candidates.text_units))):
        owner[candidates.text_units[entity]] = entity
    return [Pick(int(unit), int(owner[unit])) for unit in units]
