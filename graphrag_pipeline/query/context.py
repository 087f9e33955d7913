"""Token budgets: how a context is divided between its parts and packed.

Invariant: a packed context never exceeds its budget, and no row is left out that would still have fitted. Token counts
are those stored with the records; nothing is tokenized here. A row costs `ROW_OVERHEAD` more than its stored count
(numbers, separators, a source heading). A part with rows costs `PART_OVERHEAD` once (its heading and column names).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

ROW_OVERHEAD = 16
PART_OVERHEAD = 24

Chooser = Callable[[int], tuple[list[int], int]]
"""Token budget -> the rows to take, in order, and their cost, which is never more than the budget."""


@dataclass(frozen=True)
class Part:
    """One table of a context.

    Attributes:
        share: of the budget, 0-1; what the part leaves unused goes to the other parts.
        costs: tokens of each candidate row, best first, with `ROW_OVERHEAD`.
        choose: which rows to take; None takes them in order (`pack_rows`).
    """

    name: str
    share: float
    costs: Sequence[int]
    choose: Chooser | None = None


def row_costs(n_tokens: Sequence[int]) -> list[int]:
    """Return the tokens that rows take in a context, from their stored counts."""
    return [int(n) + ROW_OVERHEAD for n in n_tokens]


def pack_parts(parts: Sequence[Part], max_tokens: int) -> dict[str, list[int]]:
    """Choose rows of every part within one budget.

    Each part first gets its share, or less if all its rows cost less. The rest goes to the parts that want more, in
    proportion to their shares. Parts are then packed in the order given; each gets what the parts before it left
    unspent. At last the parts are offered once more what is still left. A part with its own `choose` belongs last: its
    function is called once.

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
        if part.choose:
            rows[part.name], spent = part.choose(budget)
        else:
            rows[part.name] = pack_rows(part.costs, budget)
            spent = sum(part.costs[row] for row in rows[part.name])
        carried += allowance - spent
        left -= spent
    for part in filled:
        if part.choose is None:
            extra = pack_rows(part.costs, left, skip=rows[part.name])
            left -= sum(part.costs[row] for row in extra)
            rows[part.name] = sorted(rows[part.name] + extra)
    return rows


def divide_budget(wanted: Sequence[int], shares: Sequence[float], budget: int) -> list[int]:
    """Give each part its share of a budget, but never more than it wants; the rest goes to the others by their shares.

    Args:
        wanted: tokens each part could use.
        shares: non-negative weights; parts with weight zero come last, in equal parts.

    Returns:
        Tokens per part. Their sum is at most `budget`, and less only if every part has all that it wants.
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
            # Each would get less than one token by proportion: the first part that wants tokens gets the rest.
            first = max(open_parts, key=lambda i: (weights[i], -i))
            grants = {first: min(left, wanted[first] - given[first])}
        for i, grant in grants.items():
            given[i] += grant
        left -= sum(grants.values())
    return given


def pack_rows(costs: Sequence[int], budget: int, skip: Sequence[int] = ()) -> list[int]:
    """Take rows in order while they fit; a row that does not fit is skipped, a smaller one behind it may fit."""
    skipped = set(skip)
    taken = []
    for row, cost in enumerate(costs):
        if row not in skipped and cost <= budget:
            taken.append(row)
            budget -= cost
    return taken


def pack_batches(costs: Sequence[int], max_tokens: int, overhead: int = PART_OVERHEAD) -> list[list[int]]:
    """Cut positions into runs that fit the budget; one that exceeds it is a run alone.

    Args:
        overhead: tokens that each run takes besides.
    """
    batches: list[list[int]] = []
    left = 0
    for position, cost in enumerate(costs):
        if not batches or cost > left:
            batches.append([])
            left = max_tokens - overhead
        batches[-1].append(position)
        left -= cost
    return batches
