"""Confidence intervals (95 %) of means and of paired differences.

    shares of questions         exact limits (Clopper and Pearson 1934)
    other values                percentile bootstrap of the mean (Efron 1979)

The number of values is the seed of the bootstrap, so the same values give the same interval on every machine, whatever
their order. Keep out: what is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95
INTERVALS = "[95 % confidence intervals: exact for shares of questions, else by bootstrap]"
"""Explanation of the brackets below a table."""
EXACT = "exact"
BOOTSTRAP = "bootstrap"
NONE = "none"
_MAX_RESAMPLES = 20_000
_MIN_RESAMPLES = 1_000
_MAX_DRAWN = 4_000_000  # values of all samples together, 32 MB
_DIGITS = 9


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % confidence interval.

    Attributes:
        n: number of values.
        mean: null without values.
        low, high: the interval, which contains the mean; null if `method` is "none".
        method: "exact", "bootstrap", or "none": no value, or values that are all equal and not 0 or 1.
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


def estimate_share(values: Sequence[float]) -> Estimate:
    """Return the mean of values from 0 to 1: with exact limits if all are 0 or 1, else by bootstrap."""
    if not values or any(value not in (0, 1) for value in values):
        return estimate_mean(values)
    from scipy.stats import binomtest

    n_hits = int(sum(values))
    low, high = binomtest(n_hits, len(values)).proportion_ci(LEVEL)
    return Estimate(len(values), n_hits / len(values), float(low), float(high), EXACT)


def estimate_mean(values: Sequence[float]) -> Estimate:
    """Return the mean with its percentile bootstrap interval; equal values have none."""
    if not values:
        return Estimate(0, None, None, None, NONE)
    ordered = np.sort(np.round(np.asarray(values, dtype=np.float64), _DIGITS))
    n, mean = len(ordered), float(ordered.mean())
    if ordered[0] == ordered[-1]:
        return Estimate(n, mean, None, None, NONE)
    from scipy.stats import bootstrap

    found = bootstrap(
        (ordered,),
        np.mean,
        n_resamples=min(_MAX_RESAMPLES, max(_MIN_RESAMPLES, _MAX_DRAWN // n)),
        batch=max(1, _MAX_DRAWN // n),
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(n),
    )
    low, high = found.confidence_interval
    return Estimate(n, mean, min(float(low), mean), max(float(high), mean), BOOTSTRAP)


@dataclass(frozen=True)
class PairedDifference:
    """Values of A minus those of B on the same questions.

    Attributes:
        figure: name of the values.
        difference: mean difference with its interval.
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
    """Compare the values of A and B question by question; one without both values does not count."""
    pairs = zip(values, others, strict=True)
    differences = [round(a - b, _DIGITS) for a, b in pairs if a is not None and b is not None]
    wins, losses = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    ties = len(differences) - wins - losses
    return PairedDifference(figure, estimate_mean(differences), wins, losses, ties, sign_test(wins, losses))


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value: the probability of a result at least this uneven if both are equally good."""
    from scipy.stats import binomtest

    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
