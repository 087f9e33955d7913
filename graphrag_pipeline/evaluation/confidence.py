"""Confidence intervals (95 %) of means and of paired differences.

    values of 0 and 1 only    a proportion: Wilson's score interval (Wilson 1927), which also holds for 0 and n of n
    other values              percentile bootstrap of the mean (Efron 1979), `N_RESAMPLES` samples with replacement
                              (fewer for more than 1,000 values, whose intervals are narrow)
    paired differences        percentile bootstrap of the mean difference: questions are drawn, each with both values

The samples are drawn as places in the sorted values, and they depend on the number of values alone. So the same values
give the same interval on every machine, whatever their order. If no sorted value changes by more than d, no limit does.
Keep out: what is measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from graphrag_pipeline.evaluation.sign_test import sign_test

LEVEL = 0.95
N_RESAMPLES = 20_000
INTERVALS = (
    "[95 % confidence intervals: Wilson for shares of questions, else bootstrap; paired bootstrap of differences]"
)
"""Explanation of the brackets below a table."""
WILSON = "wilson"
BOOTSTRAP = "bootstrap"
NONE = "none"
_Z = 1.959963984540054
"""Quantile of the normal distribution for `LEVEL`."""
_MAX_DRAWN = 20_000_000
"""Most values of all samples together, but for `_MIN_RESAMPLES`."""
_MIN_RESAMPLES = 1_000
_MAX_AT_ONCE = 2_000_000
"""Most values whose means are taken at once."""
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
    samples = _draw_samples(len(ordered))
    n_at_once = max(1, _MAX_AT_ONCE // len(ordered))
    blocks = (samples[start : start + n_at_once] for start in range(0, len(samples), n_at_once))
    means = np.concatenate([ordered[block].mean(axis=1) for block in blocks])
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(len(ordered), mean, min(float(low), mean), max(float(high), mean), BOOTSTRAP)


@lru_cache(maxsize=2)
def _draw_samples(n: int) -> NDArray[np.unsignedinteger]:
    """Return places in n sorted values, one row for each sample with replacement."""
    n_samples = min(N_RESAMPLES, max(_MIN_RESAMPLES, _MAX_DRAWN // n))
    return np.random.default_rng(n).integers(0, n, (n_samples, n), dtype=np.min_scalar_type(n - 1))


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
