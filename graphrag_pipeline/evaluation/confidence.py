"""Confidence intervals (95 %) of means and of paired differences.

    values from 0 to 1       Gaffke's limits (Gaffke 2005; Learned-Miller and Thomas 2020, arXiv 1905.06208)
    paired differences       the same: differences of values from 0 to 1 are from -1 to 1
    times and counts         percentile bootstrap of the mean (Efron 1979)

Gaffke's lower limit is the 2.5 % quantile of the sum of w_i * x_i over the sorted values and one more value, 0, with
random weights w, uniform over all weights that add up to 1. The upper limit is that of 1 - x, taken from 1. So an
interval is never a point: values that n questions did not show may exist. For values of 0 and 1 the limits are those of
Clopper and Pearson (1934). If no value falls, no limit falls. If no sorted value changes by more than d, no limit does.

The quantile is that of drawn weights. These laws and the exact limits of values of 0 and 1 bound it on both sides
(`_bound_limit`), so that shares of questions have exact limits. The number of values is the seed of what is drawn. So
the same values give the same interval on every machine, whatever their order. scipy has no limits with these laws: its
bootstrap of equal values is a point. Keep out: what is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
N_RESAMPLES = 20_000
INTERVALS = "[95 % confidence intervals, by Gaffke: exact for shares of questions; of times and counts by bootstrap]"
"""Explanation of the brackets below a table."""
GAFFKE = "gaffke"
BOOTSTRAP = "bootstrap"
NONE = "none"
_TAIL = (1 - LEVEL) / 2
_MAX_DRAWN = 4_000_000
"""Most values of all samples together, but for `_MIN_RESAMPLES`."""
_MIN_RESAMPLES = 1_000
_DIGITS = 9
_LIMIT_DIGITS = 6  # of sums of 32-bit weights


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % confidence interval.

    Attributes:
        n: number of values.
        mean: null without values.
        low, high: the interval, which contains the mean; null if `method` is "none".
        method: "gaffke", "bootstrap", or "none": no value, or times or counts that are all equal.
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
    """Return the mean of values from 0 to 1 with Gaffke's interval.

    Raises:
        ValueError: a value is below 0 or above 1.
    """
    if not values:
        return Estimate(0, None, None, None, NONE)
    ordered: NDArray[np.float64] = np.sort(np.round(np.asarray(values, dtype=np.float64), _DIGITS))
    if ordered[0] < 0 or ordered[-1] > 1:
        raise ValueError(f"values from 0 to 1 are expected, not {ordered[0]:g} to {ordered[-1]:g}")
    mean = float(np.mean(ordered))
    low, high = _lower_limit(ordered), 1 - _lower_limit((1 - ordered)[::-1])
    return Estimate(len(ordered), mean, min(low, mean), max(round(high, _LIMIT_DIGITS), mean), GAFFKE)


def estimate_proportion(n_hits: int, n: int) -> Estimate:
    """Return n_hits / n with its interval, that of Clopper and Pearson."""
    return estimate_mean([1.0] * n_hits + [0.0] * (n - n_hits))


def estimate_amount(values: Sequence[float]) -> Estimate:
    """Return the mean of times or counts with its percentile bootstrap interval; equal values have none."""
    if not values:
        return Estimate(0, None, None, None, NONE)
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    mean = float(ordered.mean())
    if ordered[0] == ordered[-1]:
        return Estimate(len(ordered), mean, None, None, NONE)
    from scipy.stats import bootstrap

    found = bootstrap(
        (ordered,),
        np.mean,
        n_resamples=_n_samples(len(ordered)),
        batch=max(1, _MAX_DRAWN // len(ordered)),
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(len(ordered)),
    )
    low, high = found.confidence_interval
    return Estimate(len(ordered), mean, min(float(low), mean), max(float(high), mean), BOOTSTRAP)


def _lower_limit(ordered: NDArray[np.float64]) -> float:
    """Return Gaffke's lower limit of the mean of ascending values from 0 to 1."""
    sums = _draw_weights(len(ordered)) @ ordered.astype(np.float32)
    return round(_bound_limit(float(np.quantile(sums, _TAIL)), ordered), _LIMIT_DIGITS)


def _bound_limit(drawn: float, ordered: NDArray[np.float64]) -> float:
    """Return the number nearest to a drawn limit that the exact limits of values of 0 and 1 allow.

    Gaffke's limit falls by no more than the values, and rises by no more. So with the limit E_k of k ones and n - k
    zeros, and the k-th largest value x_k, it is at least E_k - (1 - x_k) and at most E_k + x_{k+1}, for every k. Both
    bounds keep the laws above, and are equal for values of 0 and 1.
    """
    exact, falling = _exact_limits(len(ordered)), ordered[::-1]
    least = float(np.max(exact - 1 + np.concatenate(([1.0], falling))))
    most = float(np.min(exact + np.concatenate((falling, [0.0]))))
    return min(max(drawn, least), most)


@lru_cache(maxsize=8)
def _exact_limits(n: int) -> NDArray[np.float64]:
    """Return Clopper and Pearson's lower limits of 0 to n hits of n."""
    from scipy.special import betaincinv

    hits = np.arange(1, n + 1)
    return np.concatenate(([0.0], betaincinv(hits, n - hits + 1, _TAIL)))


@lru_cache(maxsize=2)
def _draw_weights(n: int) -> NDArray[np.float32]:
    """Return random weights of n values, one row for each sample; what a row lacks to 1 is the weight of the value 0.

    This weight has the distribution 1 - (1 - u)^n. It is not drawn: its quantiles are taken, so limits near the edge
    are exact.
    """
    random = np.random.default_rng(n)
    n_samples = _n_samples(n)
    shares = random.standard_exponential((n_samples, n), dtype=np.float32)
    shares /= shares.sum(axis=1, keepdims=True)
    left = ((np.arange(n_samples) + 0.5) / n_samples) ** (1 / n)
    shares *= left[:, np.newaxis].astype(np.float32)
    return shares


def _n_samples(n: int) -> int:
    return min(N_RESAMPLES, max(_MIN_RESAMPLES, _MAX_DRAWN // n))


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
    """Compare the values of A and B, from 0 to 1, question by question; one without both values does not count."""
    differences = _subtract(values, others)
    halves = estimate_mean([(1 + difference) / 2 for difference in differences])
    # The estimate of values from -1 to 1 whose image from 0 to 1 has the given one.
    mean, low, high = (None if v is None else 2 * v - 1 for v in (halves.mean, halves.low, halves.high))
    return _count_pairs(figure, differences, Estimate(halves.n, mean, low, high, halves.method))


def compare_amounts(figure: str, values: Sequence[float | None], others: Sequence[float | None]) -> PairedDifference:
    """Compare times or counts of A and B pair by pair; a pair without both values does not count."""
    differences = _subtract(values, others)
    return _count_pairs(figure, differences, estimate_amount(differences))


def _subtract(values: Sequence[float | None], others: Sequence[float | None]) -> list[float]:
    pairs = zip(values, others, strict=True)
    return [round(a - b, _DIGITS) for a, b in pairs if a is not None and b is not None]


def _count_pairs(figure: str, differences: Sequence[float], found: Estimate) -> PairedDifference:
    wins, losses = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return PairedDifference(figure, found, wins, losses, len(differences) - wins - losses, sign_test(wins, losses))


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value: the probability of a result at least this uneven if both are equally good."""
    from scipy.stats import binomtest

    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
