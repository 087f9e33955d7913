"""Confidence intervals: exact limits of shares, laws of the bootstrap, and paired differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.evaluation.confidence import (
    BOOTSTRAP,
    EXACT,
    NONE,
    compare_pairs,
    estimate_mean,
    estimate_share,
)

shares = st.lists(st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1)), min_size=1, max_size=25)


@given(shares, st.randoms(use_true_random=False))
def test_an_interval_contains_the_mean_whatever_the_order(values: list[float], random) -> None:
    found = estimate_share(values)
    assert found.mean == pytest.approx(np.mean(values)) and found.n == len(values)
    if found.method != NONE:
        assert 0 <= found.low <= found.mean <= found.high <= 1 and found.low < found.high
    assert estimate_share(random.sample(values, len(values))) == found


def test_shares_of_questions_have_the_published_exact_limits() -> None:
    """Newcombe 1998, Statistics in Medicine 17, table I, method 5: 81 of 263, 15 of 148, 0 of 20, 1 of 29."""
    for hits, n, low, high in ((81, 263, 0.2527, 0.3676), (15, 148, 0.0578, 0.1617), (0, 20, 0.0, 0.1684),
                               (1, 29, 0.0009, 0.1776)):  # fmt: skip
        found = estimate_share([1.0] * hits + [0.0] * (n - hits))
        assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5) and found.method == EXACT


def test_the_bootstrap_is_near_the_normal_interval_of_many_values() -> None:
    values = np.random.default_rng(1).uniform(0, 90, 400)
    found = estimate_mean(values.tolist())
    margin = 1.96 * values.std() / 20
    assert (found.low, found.high) == pytest.approx((found.mean - margin, found.mean + margin), abs=0.4)
    assert found.method == BOOTSTRAP and estimate_mean([]).render() == "-"
    assert (estimate_mean([3.5, 3.5]).method, estimate_mean([3.5, 3.5]).render(1)) == (NONE, "3.5")


def test_pairs_are_compared_question_by_question() -> None:
    """Paired values that differ by a nearly constant amount have a narrower interval than the values."""
    first = [0.1, 0.9, 0.4, 0.7] * 50
    lower = [value - 0.1 - place % 2 / 100 for place, value in enumerate(first)]
    found = compare_pairs("f1", [*first, None], [*lower, 0.3])
    assert (found.wins, found.losses, found.ties, found.difference.n) == (200, 0, 0, 200)
    assert 0.1 < found.difference.low < 0.105 < found.difference.high < 0.11
    assert compare_pairs("f1", first[:4], [0.0] * 4).p_value == 2 / 2**4
    assert compare_pairs("f1", first, first).difference.render(sign="+") == "+0.000"


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=12))
def test_swapping_a_and_b_swaps_wins_and_turns_the_sign(pairs: list[tuple[float, float]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    one, other = compare_pairs("f1", first, second), compare_pairs("f1", second, first)
    assert (one.wins, one.losses, one.ties) == (other.losses, other.wins, other.ties)
    if pairs:
        assert one.difference.mean == pytest.approx(-other.difference.mean)
