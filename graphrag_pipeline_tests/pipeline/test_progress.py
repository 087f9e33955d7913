"""The line about model calls under way."""

from __future__ import annotations

from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.pipeline.progress import describe_calls


def test_retries_time_outs_and_the_limit_in_force_are_reported() -> None:
    account = CallStats(n_calls=230, n_cached=10, n_retries=3, n_timeouts=2, prompt_tokens=41_000, limit=8)
    line = describe_calls(account, 120, 400, 60.0)
    assert line == (
        "120 of 400 done: 230 calls, 10 from the cache, 3 retries (2 time-outs), 41,000 tokens, at most 8 at once; "
        "about 140 s left"
    )


def test_the_estimate_counts_down_while_calls_run() -> None:
    account = CallStats(n_calls=1)
    assert [describe_calls(account, 1, 3, 10.0, since_s).split("; ")[1] for since_s in (0.0, 5.0, 30.0)] == [
        "about 20 s left",
        "about 15 s left",
        "about 0 s left",
    ]


def test_a_run_without_trouble_has_a_short_line() -> None:
    assert (
        describe_calls(CallStats(n_calls=2, limit=4), 2, 2, 1.0) == "2 of 2 done: 2 calls, 0 from the cache, 0 tokens"
    )
