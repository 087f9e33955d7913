"""The lines about model calls under way, in virtual time."""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.models.accounting import ASKED_TO_WAIT, BEFORE_RETRY, RATE_LIMIT, CallStats, Wait
from graphrag_pipeline.pipeline.live_status import LiveProgress, LiveStatus, keeping_up, read_live_status
from graphrag_pipeline.pipeline.progress import PoolProgress, describe_calls, describe_waiting
from graphrag_pipeline.pipeline.staleness import StalePartition


@dataclass
class VirtualRun:
    """Records that a pool works off in virtual time, with a look at the progress every half second."""

    n_slots: int = 1
    account: CallStats = field(default_factory=lambda: CallStats(limit=1))
    now: float = 0.0
    lines: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.account.limit = self.n_slots
        self.progress = PoolProgress(self.account, lambda line: self.lines.append((self.now, line)), 10, 30, self.clock)

    def clock(self) -> float:
        return self.now

    def run(self, latencies: list[float], retry_at: float = float("inf")) -> VirtualRun:
        """Do records in order; one with latency 0 comes from the store."""
        started, total, done = self.now, len(latencies), 0
        running: list[tuple[float, int]] = []
        queue = list(enumerate(latencies))
        while done < total:
            while queue and len(running) < self.n_slots:
                index, latency = queue.pop(0)
                if latency:
                    self.account.under_way[index] = self.now
                    heapq.heappush(running, (self.now + latency, index))
                else:
                    done, self.account.n_cached = done + 1, self.account.n_cached + 1
            end, index = heapq.heappop(running) if running else (self.now, -1)
            self._look_until(end, done, total)
            if index >= 0:
                del self.account.under_way[index]
                done, self.account.n_calls = done + 1, self.account.n_calls + 1
                self.account.n_records += 1
                self.account.n_retries = int(self.now - started > retry_at)
        self.progress(total, total)
        return self

    def _look_until(self, end: float, done: int, total: int) -> None:
        while (tick := (self.now // 0.5 + 1) * 0.5) < end:
            self.now = tick
            self.progress(done, total)
        self.now = end

    def said(self) -> list[tuple[float, float, str]]:
        """Return (time, seconds left, line) of each line with an estimate."""
        found = [(at, re.search(r"about ([\d,]+) s", line), line) for at, line in self.lines]
        return [(at, float(match[1].replace(",", "")), line) for at, match, line in found if match]


@given(
    is_called=st.lists(st.booleans(), min_size=20, max_size=150).filter(any),
    latency=st.sampled_from([0.3, 1.2, 7.0, 45.0]),
    n_slots=st.integers(1, 8),
)
def test_the_time_left_never_grows_while_calls_keep_their_pace(
    is_called: list[bool], latency: float, n_slots: int
) -> None:
    run = VirtualRun(n_slots).run([latency * one for one in is_called])
    said = run.said()
    for (before_at, before, _), (at, seconds, _) in pairwise(said):
        assert seconds <= max(before - (at - before_at), 0) + 1, "whole seconds are shown"
    assert not any("more than before" in line for *_, line in said)
    for at, seconds, _ in said:
        assert seconds >= run.now - at - latency - 1, "an upper estimate, but for the calls under way"


@given(latencies=st.lists(st.sampled_from([0.0, 0.5, 3.0, 20.0, 90.0]), min_size=20, max_size=100))
def test_a_line_with_more_time_left_says_why(latencies: list[float]) -> None:
    said = VirtualRun(2).run(latencies).said()
    for (before_at, before, _), (at, seconds, line) in pairwise(said):
        assert seconds <= max(before - (at - before_at), 0) + 1 or "more than before: calls take longer now" in line


def test_stored_replies_do_not_count_as_fast_calls() -> None:
    """60 of 269 records done after 8 calls of 1.2 s: the others need 1.2 s each, if none of them is stored."""
    run = VirtualRun().run([0.0] * 52 + [1.2] * 217)
    at, seconds, line = run.said()[0]
    assert line.startswith("60 of 269 done: 8 calls, 52 from the cache") and at == 10.0
    assert seconds == pytest.approx(209 * 1.2, rel=0.1)


def test_retries_are_the_stated_reason_of_a_longer_time() -> None:
    run = VirtualRun().run([1.0] * 30 + [40.0] + [1.0] * 30, retry_at=40)
    longer = [line for *_, line in run.said() if "more than before" in line]
    assert any("1 retry" in line and line.endswith("(more than before: after retries)") for line in longer)


def test_the_next_run_with_the_same_account_has_a_pace_of_its_own() -> None:
    run = VirtualRun().run([1.0] * 30)
    n_lines = len(run.said())
    run.run([5.0] * 30)
    assert run.said()[n_lines][1] == pytest.approx(5.0 * 28, rel=0.15), "not the second a record of the first run"
    assert not any("more than before" in line for *_, line in run.said())


def test_a_slow_model_shows_what_is_under_way_and_no_line_twice_in_half_a_minute() -> None:
    run = VirtualRun().run([100.0, 100.0])
    assert [line for at, line in run.lines if at < 100] == [
        f"0 of 2 done: 0 calls, 0 from the cache, 0 tokens; 1 under way for {seconds} s, at most 1 at once"
        for seconds in (10, 40, 70)
    ]


def test_the_oldest_of_several_requests_is_named() -> None:
    account = CallStats(limit=4, under_way={1: 60.0, 2: 10.0})
    assert describe_waiting(account, 350.0, True) == "; 2 under way, the oldest for 340 s, at most 4 at once"
    assert describe_waiting(CallStats(limit=4), 350.0, True) == "; none under way, at most 4 at once"
    assert describe_waiting(CallStats(), 350.0, True) == "", "no request was sent yet"


@pytest.mark.parametrize(
    ("waits", "line"),
    [
        (
            {1: Wait(360.0, BEFORE_RETRY), 2: Wait(434.0, ASKED_TO_WAIT), 3: Wait(400.0, ASKED_TO_WAIT)},
            "; none under way, the next in 84 s (the server asked to wait), at most 4 at once",
        ),
        (
            {1: Wait(380.0, RATE_LIMIT), 2: Wait(362.0, BEFORE_RETRY)},
            "; none under way, the next in 12 s (a pause before a retry), at most 4 at once",
        ),
    ],
    ids=["asked by the server", "own pauses"],
)
def test_a_wait_is_named_with_its_length(waits: dict[object, Wait], line: str) -> None:
    assert describe_waiting(CallStats(limit=4, waits=waits), 350.0, True) == line
    assert describe_waiting(CallStats(waits=waits), 350.0, True) == line.removesuffix(", at most 4 at once")


def test_a_line_during_a_pause_names_the_wait_instead_of_the_time_left() -> None:
    run = VirtualRun().run([1.0] * 15)
    assert run.said()
    run.account.waits[1] = Wait(run.now + 100, ASKED_TO_WAIT)
    run.account.n_retries += 1
    run.now += 11
    run.progress(15, 20)
    assert run.lines[-1][1].endswith("; none under way, the next in 89 s (the server asked to wait), at most 1 at once")


@pytest.mark.parametrize(
    ("account", "line"),
    [
        (
            CallStats(n_calls=230, n_cached=10, n_retries=3, n_timeouts=2, prompt_tokens=41_000, cost=0.314),
            "120 of 400 done: 230 calls, 10 from the cache, 3 retries (2 time-outs), 41,000 tokens, 0.31 USD",
        ),
        (
            CallStats(n_calls=1, n_retries=1, n_timeouts=1, prompt_tokens=1),
            "120 of 400 done: 1 call, 0 from the cache, 1 retry (1 time-out), 1 token",
        ),
        (CallStats(n_calls=2), "120 of 400 done: 2 calls, 0 from the cache, 0 tokens"),
    ],
    ids=["all", "one of each", "without trouble"],
)
def test_counts_are_in_words(account: CallStats, line: str) -> None:
    assert describe_calls(account, 120, 400) == line


def test_the_page_names_the_stage_that_runs_and_the_smallest_cost(tmp_path: Path) -> None:
    account = CallStats()
    account.cost = 0.0004
    with keeping_up(tmp_path):
        progress = LiveProgress(tmp_path, "2 files changed", account)
        progress.plan([StalePartition("text_units", "03", ("new",)), StalePartition("graph", "all", ("new",))])
        progress.begin("text_units", "03")
        progress.finish("text_units", "03", is_fresh=False)
        progress.begin("graph", "all")
        assert read_live_status(tmp_path) == LiveStatus("indexing", "2 files changed: graph, 0.0004 USD", 1, 2)
