"""Confidence intervals: laws of bootstrap and Wilson, published values, and paired differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.evaluation.confidence import (
    BOOTSTRAP,
    NONE,
    WILSON,
    compare_pairs,
    estimate_mean,
    estimate_proportion,
)

shares = st.lists(st.floats(0, 1), min_size=1, max_size=25)


@settings(max_examples=60, deadline=None)
@given(shares, st.randoms(use_true_random=False))
def test_an_interval_contains_the_mean_whatever_the_order(values: list[float], random) -> None:
    found = estimate_mean(values)
    assert found.mean == pytest.approx(np.mean(values)) and found.n == len(values)
    if found.method == NONE:
        assert len(values) == 1 and found.low is found.high is None
    else:
        assert 0 <= found.low <= found.mean <= found.high <= 1
    shuffled = random.sample(values, len(values))
    again = estimate_mean(shuffled)
    assert (again.low, again.high, again.method) == (found.low, found.high, found.method)


@given(st.integers(0, 60), st.integers(1, 60))
def test_wilsons_interval_is_never_a_point_and_narrows_with_more_questions(n_hits: int, n: int) -> None:
    n_hits = min(n_hits, n)
    one, more = estimate_proportion(n_hits, n), estimate_proportion(4 * n_hits, 4 * n)
    assert 0 <= one.low <= one.mean <= one.high <= 1 and one.low < one.high
    assert more.high - more.low < one.high - one.low


def test_wilsons_interval_has_its_published_values() -> None:
    """Newcombe 1998, Statistics in Medicine 17, table I, method 3: 81 of 263, 15 of 148, 0 of 20, 1 of 29."""
    for hits, n, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611),
                               (1, 29, 0.0061, 0.1718)):  # fmt: skip
        found = estimate_proportion(hits, n)
        assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_proportions_get_wilson_and_other_values_the_bootstrap() -> None:
    assert estimate_mean([1, 0, 1.0]).method == WILSON and estimate_mean([0.5, 1]).method == BOOTSTRAP
    assert estimate_mean([1, 1, 1]).low == pytest.approx(0.4385, abs=1e-4), "three of three are not certainty"
    assert estimate_mean([]).mean is None and estimate_mean([]).render() == "-"
    assert estimate_mean([0.25]).render() == "0.250"


def test_the_bootstrap_is_near_the_normal_interval_of_many_values() -> None:
    values = np.random.default_rng(1).uniform(0, 1, 400)
    found = estimate_mean(values.tolist())
    margin = 1.96 * values.std() / 20
    assert (found.low, found.high) == pytest.approx((found.mean - margin, found.mean + margin), abs=0.004)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-0.02, 0.02)), min_size=2, max_size=12))
def test_limits_move_no_more_than_the_values(changes: list[tuple[float, float]]) -> None:
    values, moved = [value for value, _ in changes], [value + change for value, change in changes]
    one, other = (compare_pairs("f1", each, [0.0] * len(each)).difference for each in (values, moved))
    largest = float(np.abs(np.sort(values) - np.sort(moved)).max()) + 1e-8
    assert abs(one.low - other.low) <= largest and abs(one.high - other.high) <= largest


def test_limits_are_those_of_all_samples() -> None:
    """All 7**7 samples of seven values: the limits that no number of drawn samples could improve."""
    values = np.array([0.03, 0.05, 0.1, 0.12, 0.35, 0.4, 1.0])
    means = np.array([0.0])
    for _ in values:
        means = np.add.outer(means, values).ravel()
    low, high = np.quantile(means / 7, [0.025, 0.975])
    found = estimate_mean(values.tolist())
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.006)


def test_many_values_are_drawn_less_often() -> None:
    values = np.random.default_rng(2).uniform(0, 1, 30_000)
    found = estimate_mean(values.tolist())
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / 30_000**0.5, rel=0.1)


def test_pairs_are_compared_question_by_question() -> None:
    """Paired values that differ by a constant have a narrow interval, though the values themselves vary widely."""
    first = [0.1, 0.9, 0.4, 0.7, None]
    found = compare_pairs("f1", first, [value - 0.1 if value is not None else 0.3 for value in first])
    assert (found.wins, found.losses, found.ties, found.difference.n) == (4, 0, 0, 4)
    assert (found.difference.low, found.difference.high) == pytest.approx((0.1, 0.1))
    assert found.p_value == 2 / 2**4


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=12))
def test_swapping_a_and_b_swaps_wins_and_turns_the_sign(pairs: list[tuple[float, float]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    one, other = compare_pairs("f1", first, second), compare_pairs("f1", second, first)
    assert (one.wins, one.losses, one.ties) == (other.losses, other.wins, other.ties)
    if pairs:
        assert one.difference.mean == pytest.approx(-other.difference.mean)
