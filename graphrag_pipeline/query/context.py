"""Token budgets: how a context is divided between its parts and packed.

The law: a packed context never exceeds its budget, and no row is left out that would still have fitted. Token counts
are those stored with the records; nothing is tokenised here. A row costs `ROW_OVERHEAD` more than its stored count
(numbers, separators, a source heading), a part that has rows `PART_OVERHEAD` once (its heading and column names).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

ROW_OVERHEAD = 16
PART_OVERHEAD = 24

Chooser = Callable[[int], list[int]]
"""Tokens it may spend -> rows it takes, in order, never dearer than that."""


@dataclass(frozen=True)
class Part:
    """One table of a context.

    Attributes:
        share: of the budget that is its own, 0-1; what it leaves goes to the other parts.
        costs: tokens of each candidate row, best first, with `ROW_OVERHEAD`.
        choose: which rows to take; None takes them in order (`pack_rows`).
    """

    name: str
    share: float
    costs: Sequence[int]
    choose: Chooser | None = None


def row_costs(n_tokens: Sequence[int]) -> list[int]:
    """Tokens of rows as they stand in a context, from their stored counts."""
    return [int(n) + ROW_OVERHEAD for n in n_tokens]


def pack_parts(parts: Sequence[Part], max_tokens: int) -> dict[str, list[int]]:
    """Choose rows of every part within one budget.

    Each part first gets its share, or less if all its rows cost less; what is over goes to the parts that want more, in
    proportion to their shares. Parts are then packed in the order given, each with what the ones before it left
    unspent, and at last the rest goes round once more. A part with its own `choose` belongs last: it is asked once.

    Returns:
        Positions into each part's `costs`, in order.
    """
    filled = [part for part in parts if len(part.costs)]
    left = max_tokens - PART_OVERHEAD * len(filled)
    if left <= 0:
        return {part.name: [] for part in parts}
    allowances = divide_budget([sum(part.costs) for part in filled], [part.share for part in filled], left)
    rows: dict[str, list[int]] = {part.name: [] for part in parts}
    carried = 0
    for part, allowance in zip(filled, allowances, strict=True):
        budget = allowance + carried
        taken = part.choose(budget) if part.choose else pack_rows(part.costs, budget)
        rows[part.name] = taken
        spent = sum(part.costs[row] for row in taken)
        carried += allowance - spent
        left -= spent
    for part in filled:
        if part.choose is None:
            extra = pack_rows(part.costs, left, skip=rows[part.name])
            left -= sum(part.costs[row] for row in extra)
            rows[part.name] = sorted(rows[part.name] + extra)
    return rows


def divide_budget(wanted: Sequence[int], shares: Sequence[float], budget: int) -> list[int]:
    """Give each part its share of a budget, never more than it wants; what it leaves goes to the others by theirs.

    Args:
        wanted: tokens each part could use.
        shares: non-negative weights; parts with weight zero come last, in equal parts.

    Returns:
        Tokens per part; their sum is at most `budget`, and less only if every wish is met.
    """
    given = [0] * len(wanted)
    left = budget
    while left > 0:
        open_parts = [i for i in range(len(wanted)) if given[i] < wanted[i]]
        if not open_parts:
            break
        weights = {i: shares[i] for i in open_parts}
        if sum(weights.values()) <= 0:
            weights = dict.fromkeys(open_parts, 1.0)
        total = sum(weights.values())
        grants = {i: min(wanted[i] - given[i], int(left * weights[i] / total)) for i in open_parts}
        if not any(grants.values()):
            # Less than one token each by proportion: what is left goes to the first that wants it.
            first = max(open_parts, key=lambda i: (weights[i], -i))
            grants = {first: min(left, wanted[first] - given[first])}
        for i, grant in grants.items():
            given[i] += grant
        left -= sum(grants.values())
    return given


def pack_rows(costs: Sequence[int], budget: int, skip: Sequence[int] = ()) -> list[int]:
    """Take rows in order while they fit; one that does not is passed over, and smaller ones behind it may still fit."""
    skipped = set(skip)
    taken = []
    for row, cost in enumerate(costs):
        if row not in skipped and cost <= budget:
            taken.append(row)
            budget -= cost
    return taken
