"""Counts of calls that add up."""

from __future__ import annotations

import pytest

from graphrag_pipeline.models.accounting import CallStats


def counted(*seconds: float) -> CallStats:
    stats = CallStats()
    for one in seconds:
        stats.add_call(10, 2, 0.5, one)
    return stats


def test_percentiles_are_near_the_latencies() -> None:
    stats = counted(*(number / 100 for number in range(1, 101)))
    assert stats.latency_s(0.5) == pytest.approx(0.5, rel=0.05)
    assert stats.latency_s(0.95) == pytest.approx(0.95, rel=0.05)
    assert CallStats().latency_s(0.5) == 0.0


def test_merged_counts_are_those_of_all_calls() -> None:
    one, other = counted(0.1, 0.2), counted(3.0)
    other.add_cached(4)
    other.add_retry()
    one.n_records, other.n_records = 2, 1
    other.add_call(1, 1, None, 0.0)
    merged = one.merge(other)
    assert merged.as_metadata() == counted(0.1, 0.2, 3.0, 0.0).as_metadata() | {
        "cached_calls": 4,
        "retries": 1,
        "unpriced_calls": 1,
        "prompt_tokens": 31,
        "completion_tokens": 7,
        "cost_usd": 1.5,
    }
    assert (one.n_calls, merged.n_records) == (2, 3)
