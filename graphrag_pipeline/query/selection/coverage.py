"""Coverage of a text unit selection: which matched entities are heard, and excerpts for those that are not.

An entity is heard if a picked text unit is one of its own, if its mention in an overlapping neighbour lies in a picked
one, or if an excerpt mentions it. Where whole text units leave an entity unheard, the strategy gets a little less of
the budget, and the rest goes to excerpts. Where `balanced` has room for fewer than `MIN_WHOLE` whole text units, it
takes excerpts that answer the question, and no whole text unit. Keep out: how an excerpt is found (`excerpts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphrag_pipeline.query.selection.excerpts import EXCERPT_OVERHEAD, ExcerptFinder
from graphrag_pipeline.query.selection.local_text_units import BALANCED, TextUnitPool, pick_text_units
from graphrag_pipeline.query.selection.reranking import Candidates, Limits, Pick
from graphrag_pipeline.settings.settings import LocalSearchSettings

MIN_EXCERPT_TOKENS = 12
"""Least limit of an excerpt; below it, fewer entities are heard."""
EXCERPT_TOKENS = 100
"""Most tokens of an excerpt, unless a mention has more."""
MAX_SHARE = 0.5
"""Most of the budget that excerpts may take, as far as they keep `MIN_EXCERPT_TOKENS`."""
MIN_WHOLE = 3
"""Fewer whole text units than this show a question from one side: `balanced` then takes windows of many instead."""
N_TRIES = 3
"""Selections with a budget for the excerpts that the one before lacked; the last keeps enough for all entities."""

Choose = Callable[[int], list[Pick]]
"""Budget -> picks of whole text units."""


def pick_with_excerpts(
    choose: Choose, candidates: Candidates, budget: int, finder: ExcerptFinder, max_tokens: int
) -> list[Pick]:
    """Return picks of whole text units, and behind them excerpts for the entities that these leave unheard.

    Together they cost at most the budget. If the excerpts of all entities fit it, every entity that a text mentions is
    heard. Else those of the first entities are taken.

    Args:
        max_tokens: of an excerpt; less if the excerpts of all entities would take over `MAX_SHARE` of the budget.
    """
    entities = [entity for entity, units in enumerate(candidates.text_units) if len(units)]
    fair = int(budget * MAX_SHARE) // max(len(entities), 1) - EXCERPT_OVERHEAD
    limit = min(max_tokens, max(fair, MIN_EXCERPT_TOKENS))
    reserve = 0
    for _ in range(N_TRIES):
        whole = choose(budget - reserve)
        picks = finder.hear(_unheard_of(entities, candidates, whole), whole)
        excerpts = finder.find(_unheard_of(entities, candidates, picks), limit, picks)
        needed = cost_of(candidates, excerpts)
        if cost_of(candidates, picks) + needed <= budget:
            return picks + excerpts
        reserve = min(needed, budget)
    whole = choose(max(budget - cost_of(candidates, finder.find(entities, limit)), 0))
    picks = finder.hear(_unheard_of(entities, candidates, whole), whole)
    excerpts = finder.find(_unheard_of(entities, candidates, picks), limit, picks)
    return picks + _fill(candidates, excerpts, budget - cost_of(candidates, picks))


def pick_for_entities(
    settings: LocalSearchSettings,
    pool: TextUnitPool,
    budget: int,
    finder: ExcerptFinder | None = None,
    part: int | None = None,
) -> list[Pick]:
    """Return the text units that the settings' strategy or a reranking model puts first, with excerpts if any are set.

    Args:
        finder: of excerpts; None: whole text units alone.
        part: tokens that text units have in the context, of which basic search may take its share; None: the budget.
    """
    share = settings.share_of_basic

    def choose(budget: int) -> list[Pick]:
        if pool.order is not None:
            return _fill(pool.candidates, pool.order, budget)
        limits = Limits(budget, guaranteed=settings.guaranteed_text_units, cap=settings.max_text_units_per_entity)
        basic_tokens = int((budget if part is None else part) * share) if share else None
        return pick_text_units(settings.strategy, pool, limits, basic_tokens)

    if finder is None or not settings.has_excerpts:
        return choose(budget)
    picks = pick_with_excerpts(choose, pool.candidates, budget, finder, EXCERPT_TOKENS)
    n_whole = sum(pick.excerpt is None for pick in picks)
    if settings.strategy != BALANCED or pool.order is not None or n_whole >= min(MIN_WHOLE, len(pool.rows)):
        return picks
    return finder.answer(budget) or picks


def unheard_entities(candidates: Candidates, picks: Sequence[Pick]) -> list[int]:
    """Return the positions of the matched entities that no pick informs, in order."""
    return _unheard_of(range(len(candidates.text_units)), candidates, picks)


def _unheard_of(entities: Sequence[int], candidates: Candidates, picks: Sequence[Pick]) -> list[int]:
    whole = [pick.text_unit for pick in picks if pick.excerpt is None]
    is_heard = np.any(candidates.informs[:, whole], axis=1).tolist()
    mentioned = {entity for pick in picks for entity in (pick.excerpt.entities if pick.excerpt else pick.mentions)}
    return [e for e in entities if e not in mentioned and not is_heard[e]]


def cost_of(candidates: Candidates, picks: Sequence[Pick]) -> int:
    """Return the tokens that picks take in a context."""
    return sum(
        int(candidates.costs[pick.text_unit]) if pick.excerpt is None else pick.excerpt.n_tokens + EXCERPT_OVERHEAD
        for pick in picks
    )


def _fill(candidates: Candidates, picks: Sequence[Pick], budget: int) -> list[Pick]:
    """Return the picks that fit, in order; skip one that does not."""
    taken = []
    for pick in picks:
        cost = cost_of(candidates, [pick])
        if cost <= budget:
            taken.append(pick)
            budget -= cost
    return taken
