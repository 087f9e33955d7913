"""Text unit selection strategies of local search: pure functions with one signature, in a registry.

Each strategy takes the matched entities' text units and a budget, and returns picks in the order of the context. All
strategies share these rules:
    - A text unit is picked once, even if it informs several entities. Only a text unit that is not yet taken uses up a
      cap, a quota, a guarantee or a round. What an entity cannot use goes to the others.
    - An entity offers its text units by the number of its own relationships in them, most first, ties in reading
      order. A text unit that does not fit the budget is skipped; `depth_first` ends there.
    - The budget is never exceeded. Apart from caps and `depth_first`, no text unit that still fits is left out.
`balanced` and `graph` (in `RANKED`) also choose text units that inform no matched entity, and put the most relevant
first. To add a strategy, write a function, add it to `STRATEGIES`, and add its name to `settings/search_names.py`. Keep
out: tables, texts, rendering.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.nearest import nearest_name
from graphrag_pipeline.query.selection.candidates import Candidates, Limits, Pick
from graphrag_pipeline.query.selection.ranked import balanced, graph

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
    return iter(units[np.lexsort((units, -n_relationships))].tolist())


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
