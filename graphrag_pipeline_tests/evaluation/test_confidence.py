"""Confidence intervals: laws of Gaffke's limits and the bootstrap, published values, and paired differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.evaluation.confidence import (
    BOOTSTRAP,
    GAFFKE,
    NONE,
    compare_pairs,
    estimate_amount,
    estimate_mean,
    estimate_proportion,
)

shares = st.lists(st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1)), min_size=1, max_size=25)


@given(shares, st.randoms(use_true_random=False))
def test_an_interval_contains_the_mean_whatever_the_order(values: list[float], random) -> None:
    found = estimate_mean(values)
    assert found.mean == pytest.approx(np.mean(values)) and (found.n, found.method) == (len(values), GAFFKE)
    assert 0 <= found.low <= found.mean <= found.high <= 1 and found.low < found.high
    again = estimate_mean(random.sample(values, len(values)))
    assert (again.low, again.high) == (found.low, found.high)
    turned = estimate_mean([1 - value for value in values])
    assert (1 - turned.high, 1 - turned.low) == pytest.approx((found.low, found.high), abs=1e-5)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1)), min_size=1, max_size=25))
def test_more_found_never_lowers_a_limit(pairs: list[tuple[float, float]]) -> None:
    less, more = estimate_mean([value for value, _ in pairs]), estimate_mean([max(pair) for pair in pairs])
    assert more.low >= less.low - 1e-6 and more.high >= less.high - 1e-6


def test_shares_of_questions_have_the_published_exact_limits() -> None:
    """Newcombe 1998, Statistics in Medicine 17, table I, method 5: 81 of 263, 15 of 148, 0 of 20, 1 of 29."""
    for hits, n, low, high in ((81, 263, 0.2527, 0.3676), (15, 148, 0.0578, 0.1617), (0, 20, 0.0, 0.1684),
                               (1, 29, 0.0009, 0.1776)):  # fmt: skip
        found = estimate_proportion(hits, n)
        assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5)


@pytest.mark.parametrize(
    ("values", "shares"), [([0.0, 0.5, 1.0], [0.02, 0.1, 0.88]), ([0.0, 0.3, 1.0], [0.4, 0.4, 0.2])]
)
def test_95_of_100_intervals_of_few_questions_contain_the_true_mean(values: list[float], shares: list[float]) -> None:
    random, truth = np.random.default_rng(3), float(np.dot(values, shares))
    drawn = [estimate_mean(random.choice(values, 12, p=shares).tolist()) for _ in range(400)]
    assert sum(found.low <= truth <= found.high for found in drawn) >= 0.95 * len(drawn)


def test_no_value_has_no_interval_and_values_outside_are_refused() -> None:
    assert estimate_mean([]).mean is None and estimate_mean([]).render() == "-"
    assert estimate_mean([0.1 + 0.2 + 0.7]).high == 1
    with pytest.raises(ValueError, match="values from 0 to 1 are expected"):
        estimate_mean([7, 0.5])


def test_the_bootstrap_of_times_is_near_the_normal_interval_of_many_values() -> None:
    values = np.random.default_rng(1).uniform(0, 90, 400)
    found = estimate_amount(values.tolist())
    margin = 1.96 * values.std() / 20
    assert (found.low, found.high) == pytest.approx((found.mean - margin, found.mean + margin), abs=0.4)
    assert found.method == BOOTSTRAP and estimate_amount([]).mean is None
    assert (estimate_amount([3.5, 3.5]).method, estimate_amount([3.5, 3.5]).render(1)) == (NONE, "3.5")


def test_limits_are_those_of_all_samples() -> None:
    """All 7**7 samples of seven values: the limits that no number of drawn samples could improve."""
    values = np.array([0.03, 0.05, 0.1, 0.12, 0.35, 0.4, 1.0])
    means = np.array([0.0])
    for _ in values:
        means = np.add.outer(means, values).ravel()
    low, high = np.quantile(means / 7, [0.025, 0.975])
    found = estimate_amount(values.tolist())
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.006)


def test_pairs_are_compared_question_by_question() -> None:
    """Paired values that differ by a constant have a narrower interval than the values, which vary widely."""
    first = [0.1, 0.9, 0.4, 0.7] * 50
    found = compare_pairs("f1", [*first, None], [*(value - 0.1 for value in first), 0.3])
    assert (found.wins, found.losses, found.ties, found.difference.n) == (200, 0, 0, 200)
    assert 0.07 < found.difference.low < 0.1 < found.difference.high < 0.13
    assert compare_pairs("f1", first[:4], [0.0] * 4).p_value == 2 / 2**4


@pytest.mark.parametrize(("n", "most"), [(4, 0.602), (20, 0.168), (200, 0.018)])
def test_ties_alone_say_as_much_as_their_number(n: int, most: float) -> None:
    """As none of n questions differ, up to 1 - 0.025 ** (1 / n) of others may: about 3.7 / n."""
    found = compare_pairs("f1", [0.4] * n, [0.4] * n)
    assert (found.difference.low, found.difference.high) == pytest.approx((-most, most), abs=5e-4)
    assert (found.wins, found.losses, found.ties, found.difference.mean) == (0, 0, n, 0)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=12))
def test_swapping_a_and_b_swaps_wins_and_turns_the_sign(pairs: list[tuple[float, float]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    one, other = compare_pairs("f1", first, second), compare_pairs("f1", second, first)
    assert (one.wins, one.losses, one.ties) == (other.losses, other.wins, other.ties)
    if pairs:
        assert one.difference.mean == pytest.approx(-other.difference.mean)
