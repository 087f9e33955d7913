"""Progress of an index run: the observer it reports to, a bar of partitions, and lines about model calls.

Keep out: what is run, and where a run's log goes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.pipeline.staleness import StalePartition
from graphrag_pipeline.text.safe_output import escape_line

LOG_EVERY_S = 10.0
QUIET_EVERY_S = 30.0
TOLERANCE = 1.25
"""An estimate of the time left up to this factor above the one before, counted down, is noise."""


class RunObserver:
    """Receives news of an index run and ignores it. A subclass overrides what it needs."""

    def plan(self, stale: list[StalePartition]) -> None:
        """Receive what is stale, before anything runs."""

    def progress(self, message: str) -> None:
        """Receive a line about model calls: their estimate, or how many are done and what they cost."""

    def begin(self, stage: str, partition: str) -> None:
        """Receive that a partition of a stage begins."""

    def finish(self, stage: str, partition: str, is_fresh: bool) -> None:
        """Receive that a partition of a stage is done: computed, or skipped because it was fresh."""


class LogObserver(RunObserver):
    """Writes lines about model calls to a log."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log

    def progress(self, message: str) -> None:
        self._log(message)


class IndexProgress(RunObserver):
    """A progress bar on standard error. Without a terminal only the lines about model calls are printed."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}", justify="left"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task("detecting changes", total=None)

    def __enter__(self) -> IndexProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def plan(self, stale: list[StalePartition]) -> None:
        """Reset the bar to the number of stale partitions."""
        self._progress.reset(self._task, total=len(stale), description="indexing")

    def progress(self, message: str) -> None:
        """Show a message on the bar, or print it as a line without a terminal."""
        safe = escape_line(message)
        if self._progress.disable:
            self._progress.console.print(safe, highlight=False, soft_wrap=True, markup=False)
        else:
            self._progress.update(self._task, description=escape(safe))

    def begin(self, stage: str, partition: str) -> None:
        """Name what is computed now: the first bucket also waits for the worker processes to start."""
        self._progress.update(self._task, description=stage if partition == "all" else f"{stage} {partition}")

    def finish(self, stage: str, partition: str, is_fresh: bool) -> None:
        """Advance the bar by one partition."""
        self._progress.update(self._task, advance=1)


class PoolProgress:
    """A `pool.Progress` that reports in lines how many calls are done, what they cost, and what is left.

    Args:
        account: where the calls are counted.
        report: receives a line.
        every_s: seconds between lines.
        quiet_s: seconds between lines while nothing gets done.
        clock: returns monotonic time in seconds.
    """

    def __init__(
        self,
        account: CallStats,
        report: Callable[[str], None],
        every_s: float = LOG_EVERY_S,
        quiet_s: float = QUIET_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._account = account
        self._report = report
        self._every_s, self._quiet_s = every_s, quiet_s
        self._clock = clock
        self._reported = clock()
        self._news: tuple[int, ...] = ()
        self._done, self._is_ended = 0, False
        self._pace = Pace(account, self._reported)

    def __call__(self, done: int, total: int) -> None:
        now = self._clock()
        if self._is_ended or done < self._done:  # the next run with the same account
            self._pace = Pace(self._account, now)
        self._done, self._is_ended = done, done >= total
        self._pace.look(now)
        account = self._account
        news = (done, total, account.n_calls, account.n_cached, account.n_retries)
        is_quiet = news == self._news
        if done < total and now - self._reported < (self._quiet_s if is_quiet else self._every_s):
            return
        self._reported, self._news = now, news
        is_paused = not account.starts() and account.next_wait() is not None
        line = describe_calls(account, done, total)
        if done < total:
            left = "" if is_paused else self._pace.say(total - done, now)
            line += describe_waiting(account, now, is_quiet or not left) + left
        self._report(line)


class Pace:
    """The pace of one run of calls: the time since the first call over the records done that needed one.

    A record that is answered from the store or without a model says nothing about calls, and each record left counts as
    one that needs a call. So the time left is an upper estimate. It never grows from one line to the next, unless the
    line says why. Records that surely need no call are done first (`pool.Work`).

    Args:
        account: where its calls are counted, perhaps after those of earlier runs.
        now: monotonic time in seconds; the run has not made a call before.
    """

    def __init__(self, account: CallStats, now: float) -> None:
        self._account = account
        self._records, self._cost = account.n_records, account.cost
        self._started = self._advanced = now
        self._n_called = 0
        self._said: tuple[float, int] | None = None  # when all will be done, and the retries until then

    def look(self, now: float) -> None:
        """Note how many records that needed a call are done."""
        n_called = self._account.n_records - self._records
        if n_called > self._n_called:
            self._n_called, self._advanced = n_called, now
        elif not n_called and not self._account.starts():
            self._started = self._advanced = now

    def say(self, n_left: int, now: float) -> str:
        """Return what is left now, as in "; about 45 s and 0.72 USD left"; "" while no call is done."""
        if not self._n_called:
            return ""
        each_s = (self._advanced - self._started) / self._n_called
        n_queued = max(n_left - max(len(self._account.starts()), 1), 0)
        seconds, why = max(n_left * each_s - (now - self._advanced), n_queued * each_s), ""
        if self._said:
            end, n_retries = self._said
            expected = max(end - now, 0.0)
            if seconds <= expected * TOLERANCE + each_s:
                seconds = min(seconds, expected)
            else:
                reason = "after retries" if self._account.n_retries > n_retries else "calls take longer now"
                why = f" (more than before: {reason})"
        self._said = (now + seconds, self._account.n_retries)
        cost = (self._account.cost - self._cost) / self._n_called * n_left
        return f"; about {seconds:,.0f} s{f' and {cost:.2f} USD' if cost else ''} left{why}"


def describe_calls(account: CallStats, done: int, total: int) -> str:
    """Return what is done, for example:

    "120 of 400 done: 230 calls, 10 from the cache, 3 retries (2 time-outs), 41,000 tokens, 0.31 USD".
    """
    cost = f", {account.cost:.2f} USD" if account.cost else ""
    timeouts = f" ({_count(account.n_timeouts, 'time-out')})" if account.n_timeouts else ""
    retries = f", {_count(account.n_retries, 'retry', 'retries')}{timeouts}" if account.n_retries else ""
    tokens = _count(account.prompt_tokens + account.completion_tokens, "token")
    calls = _count(account.n_calls, "call")
    return f"{done:,} of {total:,} done: {calls}, {account.n_cached:,} from the cache{retries}, {tokens}{cost}"


def describe_waiting(account: CallStats, now: float, is_waiting: bool) -> str:
    """Return the limit in force, for example ", at most 8 at once".

    Args:
        now: monotonic time in seconds.
        is_waiting: nothing gets done; then also how many requests are under way and since when, for example
            "; 3 under way, the oldest for 340 s, at most 8 at once"; or why none is, for example
            "; none under way, the next in 84 s (the server asked to wait), at most 8 at once".
    """
    limit = f", at most {account.limit} at once" if account.limit else ""
    starts = account.starts()
    wait = None if starts else account.next_wait()
    if not is_waiting or not (limit or wait):
        return limit
    if not starts:
        following = f", the next in {max(wait.until - now, 0):,.0f} s ({wait.reason})" if wait else ""
        return f"; none under way{following}{limit}"
    since = f"{max(now - starts[0], 0):,.0f} s"
    return f"; {len(starts):,} under way{', the oldest' if len(starts) > 1 else ''} for {since}{limit}"


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"
