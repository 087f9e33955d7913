"""Text unit selection strategies of local search: pure functions with one signature, in a registry.

Each strategy takes the matched entities' text units and a budget, and returns picks in the order of the context. All
strategies share these rules:
    - A text unit is picked once, even if it informs several entities. Only a text unit that is not yet taken uses up a
      cap, a quota, a guarantee or a round. What an entity cannot use goes to the others.
    - An entity offers its text units by the number of its own relationships in them, most first, ties in the
      order of the entity's own list, which is reading order unless an import has another. A text unit that does not fit
      the budget is skipped; `depth_first` ends there.
    - The budget is never exceeded. Apart from caps and `depth_first`, no text unit that still fits is left out.
`balanced` and `graph` (in `RANKED`) also choose text units that inform no matched entity, and put the most relevant
first. To add a strategy, write a function, add it to `STRATEGIES`, and add its name to `settings/search_names.py`. Keep
out: tables, texts, rendering.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.nearest import nearest_name
from graphrag_pipeline.query.selection.hybrid_ranking import to_one
from graphrag_pipeline.query.selection.reranking import Candidates, Limits, Pick

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
    return to_one(relevance)


def _density(candidates: Candidates) -> np.ndarray:
    density = np.zeros(len(candidates.costs))
    for units, n_relationships in zip(candidates.text_units, candidates.n_of_entity, strict=True):
        of_entity = to_one(n_relationships / np.maximum(candidates.costs[units], 1))
        density[units] = np.maximum(density[units], of_entity)
    return density


def _discount(scores: np.ndarray) -> np.ndarray:
    """Return 1 / log2(1 + rank) of each positive score, as DCG discounts ranks; 0 for the others.

    PageRank falls by orders of magnitude from hop to hop. Ranks give text units that are two hops away a chance.
    """
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return np.where(scores > 0, 1 / np.log2(1 + ranks), 0.0)


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


MINIMUM_QUOTA = 1
"""Text units that `weighted_quota` gives each entity at least, also one whose similarity is not positive."""

Strategy = Callable[[Candidates, Limits], list[Pick]]


def select_text_units(strategy: str, candidates: Candidates, limits: Limits) -> list[Pick]:
    """Run a strategy by name.

    Raises:
        PipelineError: no strategy has this name; the message lists the valid names.
    """
    check_strategy(strategy)
    return STRATEGIES[strategy](candidates, limits)


def check_strategy(strategy: object) -> None:
    """Check that a strategy has this name.

    Raises:
        PipelineError: no strategy has it; the message suggests the nearest name and lists the valid ones.
    """
    if strategy not in list(STRATEGIES):  # an option may be any value, even an unhashable one
        near = nearest_name(strategy, STRATEGIES)
        guess = f"; did you mean {near!r}? Valid" if near else "; valid"
        raise PipelineError(f"unknown text unit selection strategy {strategy!r}{guess}: {', '.join(STRATEGIES)}")


class _TextUnitSelection:
    """State of a selection: text units taken, budget left, and the position in each entity's offer."""

    def __init__(self, candidates: Candidates, limits: Limits) -> None:
        self.picks: list[Pick] = []
        self._n_reserved = list(limits.reserved or [0] * len(candidates.text_units))
        self._costs = candidates.costs
        self._left = limits.budget
        self._smallest = int(candidates.costs.min()) if len(candidates.costs) else 0
        self._is_taken = np.zeros(len(candidates.costs), dtype=bool)
        self._offers = list(map(_offer, candidates.text_units, candidates.n_of_entity))

    @property
    def is_reserved(self) -> np.ndarray:
        """Whether each entity has a reserved text unit, bool (n entities,)."""
        return np.array(self._n_reserved, dtype=np.int64) > 0

    @property
    def entities(self) -> range:
        return range(len(self._offers))

    def take_next(self, entity: int) -> bool:
        """Take an entity's best text unit that is not yet taken and fits, and return whether it had one.

        Its reserved text units count first: they are taken already and cost nothing here.
        """
        if self._n_reserved[entity]:
            self._n_reserved[entity] -= 1
            return True
        if self._left < self._smallest:
            return False
        # The budget only shrinks: what does not fit now never will, so the iterator may drop it.
        return any(not self._is_taken[unit] and self._take(unit, entity) for unit in self._offers[entity])

    def _take(self, unit: int, entity: int) -> bool:
        """Take a text unit if it fits, and return whether it did."""
        cost = int(self._costs[unit])
        if cost > self._left:
            return False
        self._is_taken[unit] = True
        self._left -= cost
        self.picks.append(Pick(unit, entity))
        return True

    def take_all(self, entity: int) -> None:
        while self.take_next(entity):
            pass

    def take_until_full(self, entity: int) -> bool:
        """Take an entity's text units up to the first that does not fit, and return whether all fitted."""
        return all(self._is_taken[unit] or self._take(unit, entity) for unit in self._offers[entity])

    def take_quotas(self, quotas: np.ndarray) -> np.ndarray:
        """Take one text unit for each entity with a quota, then the other ones; return how many each took."""
        n_taken = np.array(
            [quota > 0 and self.take_next(entity) for entity, quota in enumerate(quotas)], dtype=np.int64
        )
        for entity in np.flatnonzero(n_taken).tolist():
            while n_taken[entity] < quotas[entity] and self.take_next(entity):
                n_taken[entity] += 1
        return n_taken

    def sort_by_entity(self) -> None:
        """Put the text units taken so far in the order of their entities."""
        self.picks.sort(key=lambda pick: pick.entity)

    def take_round(self) -> int:
        """Take one text unit for each entity that has one, and return how many were taken."""
        return sum([self.take_next(entity) for entity in self.entities])


def _offer(units: np.ndarray, n_relationships: np.ndarray) -> Iterator[int]:
    return iter(units[np.argsort(-n_relationships, kind="stable")].tolist())


def depth_first(candidates: Candidates, limits: Limits) -> list[Pick]:
    """Take all text units of the first entity, then of the second, up to the first that does not fit the budget.

    This is the rule of Microsoft GraphRAG: a text unit belongs to the first entity that has it, the order is by
    (entity, -relationships of this entity in the text unit), and a frequent entity can take the whole budget.
    """
    selection = _TextUnitSelection(candidates, limits)
    for entity in selection.entities:
        if not selection.take_until_full(entity):
            break
    return selection.picks


def per_entity_cap(candidates: Candidates, limits: Limits) -> list[Pick]:
    """Take at most `cap` text units per entity, depth first; budget above the caps stays unused."""
    selection = _TextUnitSelection(candidates, limits)
    for entity in selection.entities:
        for _ in range(limits.cap):
            if not selection.take_next(entity):
                break
    return selection.picks


def round_robin(candidates: Candidates, limits: Limits) -> list[Pick]:
    """Take one text unit per entity and round, until the budget or the text units end."""
    selection = _TextUnitSelection(candidates, limits)
    while selection.take_round():
        pass
    return selection.picks


def weighted_quota(candidates: Candidates, limits: Limits) -> list[Pick]:
    """Take as many text units per entity as its quota, which is proportional to its similarity and at least one.

    Quotas are rounded by largest remainder (`divide_quota`). Every entity has its first text unit before one has its
    second. Unused quota is divided by the same rule among the entities that still have text units. If costs are
    tokens, n is the number of text units that fit at their mean cost; depth first fills the rest of the budget.
    """
    selection = _TextUnitSelection(candidates, limits)
    is_open = np.array([len(units) > 0 for units in candidates.text_units], dtype=bool) | selection.is_reserved
    left = _n_affordable(candidates.costs, limits.budget) + sum(limits.reserved or ())
    minimum = MINIMUM_QUOTA
    while left > 0 and is_open.any():
        quotas = np.array(divide_quota(np.clip(candidates.similarity, 0.0, None), left, is_open, minimum))
        n_taken = selection.take_quotas(quotas)
        is_open &= n_taken == quotas
        left -= int(n_taken.sum())
        minimum = 0
    selection.sort_by_entity()
    for entity in selection.entities:
        selection.take_all(entity)
    return selection.picks


def divide_quota(weights: np.ndarray, n: int, is_open: np.ndarray, minimum: int = MINIMUM_QUOTA) -> list[int]:
    """Divide n by largest remainder among the open parts, each of which gets at least `minimum` if n is enough.

    A part with less than the minimum by its weight gets the minimum, and the others divide what is left. If n is not
    enough for all minimums, the parts with most weight have theirs.
    """
    n_parts = n // minimum if minimum else len(weights)
    if n_parts < is_open.sum():
        first = np.lexsort((np.arange(len(weights)), -weights, ~is_open))[:n_parts]
        return [minimum if part in first else 0 for part in range(len(weights))]
    is_poor = np.zeros(len(weights), dtype=bool)
    while True:
        receives = is_open & ~is_poor
        rest = n - minimum * int(is_poor.sum())
        parts = np.array(largest_remainder(np.where(receives, weights, 0.0), rest, receives))
        parts[is_poor] = minimum
        found = receives & (parts < minimum)
        if not found.any():
            return [int(part) for part in parts]
        is_poor |= found


def _n_affordable(costs: np.ndarray, budget: int) -> int:
    fit = costs[costs <= budget]
    return min(len(fit), int(budget / max(float(fit.mean()), 1.0))) if len(fit) else 0


def largest_remainder(weights: np.ndarray, n: int, is_open: np.ndarray | None = None) -> list[int]:
    """Divide n in proportion to weights by the largest remainder method; in equal parts if no weight is positive.

    Part i is floor(n w_i / sum w). The rest goes, one each, to the largest fractions; ties to the lower position.
    Weights .95, .82 and .71 divide 39 into 15, 13 and 11.

    Args:
        is_open: bool (len(weights),), whether a part may be more than 0; None: all.
    """
    receives = np.ones(len(weights), dtype=bool) if is_open is None else is_open
    weights = weights if weights[receives].sum() > 0 else receives.astype(float)
    exact = n * weights / weights.sum()
    parts = np.floor(exact + 1e-9).astype(int)
    order = np.lexsort((np.arange(len(weights)), -np.round(exact - parts, 9), ~receives))
    parts[order[: n - int(parts.sum())]] += 1
    return [int(part) for part in parts]


def minimum_guarantee(candidates: Candidates, limits: Limits) -> list[Pick]:
    """Take `guaranteed` text units per entity in rounds, so that a small budget is shared; then depth first."""
    selection = _TextUnitSelection(candidates, limits)
    for _ in range(limits.guaranteed):
        selection.take_round()
    selection.sort_by_entity()
    for entity in selection.entities:
        selection.take_all(entity)
    return selection.picks


STRATEGIES: dict[str, Strategy] = {
    "balanced": balanced,
    "graph": graph,
    "depth_first": depth_first,
    "per_entity_cap": per_entity_cap,
    "round_robin": round_robin,
    "weighted_quota": weighted_quota,
    "minimum_guarantee": minimum_guarantee,
}
RANKED = frozenset(("balanced", "graph"))
"""Strategies that choose among all candidates and put the most relevant text unit first."""
