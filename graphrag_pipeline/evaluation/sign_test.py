"""Sign test: whether one of two ways to answer wins more questions than chance explains."""

from __future__ import annotations

import math


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value: the probability of a result at least this uneven if both are equally good."""
    n = wins + losses
    tail = sum(math.comb(n, i) for i in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / 2**n)
