"""Text unit selection strategies of local search: pure functions with one signature, in a registry.

Each strategy takes the matched entities' text units and a budget, and returns picks in the order of the context. Rules
they share (methods.md section 7.5):
    - a text unit is picked once, however many entities it informs; only a text unit not yet taken uses up a cap, a
      quota, a guarantee or a round, and what an entity cannot use passes on;
    - an entity offers its text units by the number of the matched entities' relationships in them, most first, ties in
      reading order; one that no longer fits the budget is passed over;
    - the budget is never exceeded, and nothing is left out that would still fit, a cap apart.
`balanced` and `graph` (in `RANKED`) choose among all candidates, also those of no entity, and put the most relevant
first. Add a strategy: a function here and its name in `STRATEGIES`. Keep out: tables, texts, rendering.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.selection.candidates import Candidates, Limits, Pick
from graphrag_pipeline.query.selection.ranked import balanced, graph

Strategy = Callable[[Candidates, Limits], list[Pick]]


def select_text_units(strategy: str, candidates: Candidates, limits: Limits) -> list[Pick]:
    """Run a strategy by name.

    Raises:
        PipelineError: no strategy has this name; the valid ones are named.
    """
    check_strategy(strategy)
    return STRATEGIES[strategy](candidates, limits)


def check_strategy(strategy: object) -> None:
    """Refuse a name that no strategy has; the nearest and all valid ones are named."""
    if strategy not in list(STRATEGIES):  # an option may be anything, also what has no hash
        near = difflib.get_close_matches(str(strategy), STRATEGIES, n=1)
        guess = f"; did you mean {near[0]!r}? Valid" if near else "; valid"
        raise PipelineError(f"unknown text unit selection strategy {strategy!r}{guess}: {', '.join(STRATEGIES)}")


class _Selection:
    """Text units taken so far, what is left of the budget, and where each entity's offer stands."""

    def __init__(self, candidates: Candidates, limits: Limits) -> None:
        self.picks: list[Pick] = []
        self._n_reserved = list(limits.reserved or [0] * len(candidates.text_units))
        self._costs = candidates.costs
        self._left = limits.budget
        self._smallest = int(candidates.costs.min()) if len(candidates.costs) else 0
        self._is_taken = np.zeros(len(candidates.costs), dtype=bool)
        self._offers = [_offer(units, candidates.n_relationships) for units in candidates.text_units]

    @property
    def entities(self) -> range:
        return range(len(self._offers))

    def take_next(self, entity: int) -> bool:
        """Take an entity's best text unit that is not yet taken and fits; False if it has none.

        One that it has a seat for comes before all others and costs nothing here.
        """
        if self._n_reserved[entity]:
            self._n_reserved[entity] -= 1
            return True
        if self._left < self._smallest:
            return False
        for unit in self._offers[entity]:
            cost = int(self._costs[unit])
            # The budget only shrinks: what does not fit now never will, so the offer may move past it.
            if not self._is_taken[unit] and cost <= self._left:
                self._is_taken[unit] = True
                self._left -= cost
                self.picks.append(Pick(unit, entity))
                return True
        return False

    def take_all(self, entity: int) -> None:
        while self.take_next(entity):
            pass

    def take_round(self) -> int:
        """Take one text unit for each entity that has one; returns how many were taken."""
        return sum([self.take_next(entity) for entity in self.entities])


def _offer(units: np.ndarray, n_relationships: np.ndarray) -> Iterator[int]:
    return iter(units[np.lexsort((units, -n_relationships[units]))].tolist())


def depth_first(candidates: Candidates, limits: Limits) -> list[Pick]:
    """Everything of the first entity, then of the second: a popular entity can take the whole budget."""
    selection = _Selection(candidates, limits)
    for entity in selection.entities:
        selection.take_all(entity)
    return selection.picks


def per_entity_cap(candidates: Candidates, limits: Limits) -> list[Pick]:
    """Depth first, at most `cap` text units per entity; budget above the caps stays unused."""
    selection = _Selection(candidates, limits)
    for entity in selection.entities:
        for _ in range(limits.cap):
            if not selection.take_next(entity):
                break
    return selection.picks


def round_robin(candidates: Candidates, limits: Limits) -> list[Pick]:
    """One text unit per entity per round, until the budget or the text units end."""
    selection = _Selection(candidates, limits)
    while selection.take_round():
        pass
    return selection.picks


def weighted_quota(candidates: Candidates, limits: Limits) -> list[Pick]:
    """Quotas by the entities' similarity, rounded by largest remainder; unused quota passes on by the same rule.

    With costs in tokens, the quotas share out as many text units as fit at their mean cost, and what is then left of
    the budget is shared out again.
    """
    selection = _Selection(candidates, limits)
    is_open = np.ones(len(candidates.text_units), dtype=bool)
    left = _n_affordable(candidates.costs, limits.budget) + sum(limits.reserved or ())
    while left > 0 and is_open.any():
        quotas = largest_remainder(np.where(is_open, np.clip(candidates.similarity, 0.0, None), 0.0), left, is_open)
        for entity, quota in enumerate(quotas):
            n_taken = 0
            while n_taken < quota and selection.take_next(entity):
                n_taken += 1
            is_open[entity] &= n_taken == quota
            left -= n_taken
    for entity in selection.entities:
        selection.take_all(entity)
    return selection.picks


def _n_affordable(costs: np.ndarray, budget: int) -> int:
    fit = costs[costs <= budget]
    return min(len(fit), int(budget / max(float(fit.mean()), 1.0))) if len(fit) else 0


def largest_remainder(weights: np.ndarray, n: int, is_open: np.ndarray | None = None) -> list[int]:
    """Divide n in proportion to weights: .95/.82/.71 over 39 gives 15/13/11. Equal parts if no weight is positive.

    Args:
        is_open: who may receive; all if None. A closed one gets nothing.
    """
    receives = np.ones(len(weights), dtype=bool) if is_open is None else is_open
    weights = weights if weights[receives].sum() > 0 else receives.astype(float)
    exact = n * weights / weights.sum()
    parts = np.floor(exact + 1e-9).astype(int)
    order = np.lexsort((np.arange(len(weights)), -np.round(exact - parts, 9), ~receives))
    parts[order[: n - int(parts.sum())]] += 1
    return [int(part) for part in parts]


def minimum_guarantee(candidates: Candidates, limits: Limits) -> list[Pick]:
    """At least `guaranteed` text units per entity, in rounds so that a small budget is fair; the rest depth first."""
    selection = _Selection(candidates, limits)
    for _ in range(limits.guaranteed):
        selection.take_round()
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
"""Strategies that put the most relevant text unit first, whichever entity it is of."""
