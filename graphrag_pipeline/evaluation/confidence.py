"""Confidence intervals (95 %) of means and of paired differences.

    values of 0 and 1 only    a proportion: Wilson's score interval (Wilson 1927), which also holds for 0 and n of n
    other values              percentile bootstrap of the mean (Efron 1979), `N_RESAMPLES` samples with replacement
    paired differences        percentile bootstrap of the mean difference: questions are drawn, each with both values

The bootstrap is seeded by the values themselves, in sorted order. So the same values give the same interval on every
machine, whatever their order. Keep out: what is measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.evaluation.sign_test import sign_test
from graphrag_pipeline.identity import stable_hash

LEVEL = 0.95
N_RESAMPLES = 5_000
INTERVALS = (
    "[95 % confidence intervals: Wilson for shares of questions, else bootstrap; paired bootstrap of differences]"
)
"""Explanation of the brackets below a table."""
WILSON = "wilson"
BOOTSTRAP = "bootstrap"
NONE = "none"
_Z = 1.959963984540054
"""Quantile of the normal distribution for `LEVEL`."""
_MAX_DRAWN = 2_000_000
"""Most values that are drawn at once."""
_DIGITS = 9


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % confidence interval.

    Attributes:
        n: number of values.
        mean: null without values.
        low, high: the interval, which contains the mean; null if `method` is "none".
        method: "wilson", "bootstrap", or "none": no value, or one value that is neither 0 nor 1.
    """

    n: int
    mean: float | None
    low: float | None
    high: float | None
    method: str

    def render(self, digits: int = 3, sign: str = "") -> str:
        """Return text such as "0.652 [0.571, 0.731]"; "-" without a value."""
        if self.mean is None:
            return "-"
        mean = f"{self.mean:{sign}.{digits}f}"
        if self.low is None or self.high is None:
            return mean
        return f"{mean} [{self.low:{sign}.{digits}f}, {self.high:{sign}.{digits}f}]"


def estimate_mean(values: Sequence[float]) -> Estimate:
    """Return the mean of values with its interval: Wilson's for a proportion, else the bootstrap's."""
    if not values:
        return Estimate(0, None, None, None, NONE)
    if all(value in (0, 1) for value in values):
        return estimate_proportion(int(sum(values)), len(values))
    return _resample(values)


def estimate_proportion(n_hits: int, n: int) -> Estimate:
    """Return n_hits / n with Wilson's score interval.

    With p = n_hits / n and z = 1.96: (p + z^2 / 2n +- z * sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n).
    """
    if not n:
        return Estimate(0, None, None, None, NONE)
    share, squared = n_hits / n, _Z * _Z
    center = (share + squared / (2 * n)) / (1 + squared / n)
    margin = _Z * math.sqrt(share * (1 - share) / n + squared / (4 * n * n)) / (1 + squared / n)
    low, high = max(0.0, center - margin), min(1.0, center + margin)
    return Estimate(n, share, min(low, share), max(high, share), WILSON)


def _resample(values: Sequence[float]) -> Estimate:
    """Return the mean with its percentile bootstrap interval; one value has no interval."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    mean = float(ordered.mean())
    if len(ordered) < 2:
        return Estimate(1, mean, None, None, NONE)
    seed = int(stable_hash(*(f"{value:.{_DIGITS}f}" for value in ordered)), 16)
    generator = np.random.default_rng(seed)
    n_at_once = max(1, _MAX_DRAWN // len(ordered))
    sizes = [min(n_at_once, N_RESAMPLES - start) for start in range(0, N_RESAMPLES, n_at_once)]
    means = [ordered[generator.integers(0, len(ordered), (size, len(ordered)))].mean(axis=1) for size in sizes]
    low, high = np.quantile(np.concatenate(means), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(len(ordered), mean, min(float(low), mean), max(float(high), mean), BOOTSTRAP)


@dataclass(frozen=True)
class PairedDifference:
    """Values of A minus those of B on the same questions.

    Attributes:
        figure: name of the values.
        difference: mean difference; its interval is the paired bootstrap's.
        wins, losses, ties: questions where A's value is higher, lower, equal.
        p_value: two-sided sign test over the questions that are not ties.
    """

    figure: str
    difference: Estimate
    wins: int
    losses: int
    ties: int
    p_value: float


def compare_pairs(figure: str, values: Sequence[float | None], others: Sequence[float | None]) -> PairedDifference:
    """Compare the values of A and B question by question; a question without both values does not count."""
    pairs = [(a, b) for a, b in zip(values, others, strict=True) if a is not None and b is not None]
    differences = [round(a - b, _DIGITS) for a, b in pairs]
    wins, losses = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    found = _resample(differences) if differences else estimate_mean(())
    return PairedDifference(figure, found, wins, losses, len(pairs) - wins - losses, sign_test(wins, losses))
