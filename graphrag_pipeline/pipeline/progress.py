"""Progress of an index run: the observer it reports to, a bar of partitions, and lines about model calls.

Keep out: what is run, and where a run's log goes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.pipeline.staleness import StalePartition
from graphrag_pipeline.pipeline.time_left import Pace, TimeLeft
from graphrag_pipeline.text.safe_output import escape_line

LOG_EVERY_S = 10.0
QUIET_EVERY_S = 30.0


class RunObserver(Protocol):
    """Receives news of an index run."""

    def plan(self, stale: list[StalePartition]) -> None:
        """Receive what is stale, before anything runs."""

    def progress(self, message: str) -> None:
        """Receive a line about model calls: their estimate, or how many are done and what they cost."""

    def finish(self, stage: str, partition: str, is_fresh: bool) -> None:
        """Receive that a partition of a stage is done: computed, or skipped because it was fresh."""


class SilentObserver(RunObserver):
    """Ignores all news. A subclass overrides what it needs."""

    def plan(self, stale: list[StalePartition]) -> None:
        pass

    def progress(self, message: str) -> None:
        pass

    def finish(self, stage: str, partition: str, is_fresh: bool) -> None:
        pass


class LogObserver(SilentObserver):
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

    def finish(self, stage: str, partition: str, is_fresh: bool) -> None:
        """Advance the bar by one partition."""
        where = stage if partition == "all" else f"{stage} {partition}"
        self._progress.update(self._task, advance=1, description=f"{where}{' (unchanged)' if is_fresh else ''}")


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
        left = self._pace.say(total - done, now) if done < total and not is_paused else None
        is_waiting = done < total and (is_quiet or left is None)
        self._report(
            describe_calls(account, done, total)
            + (describe_waiting(account, now, is_waiting) if done < total else "")
            + (describe_left(left) if left else "")
        )


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


def describe_left(left: TimeLeft) -> str:
    """Return what is left, for example "; about 45 s and 0.72 USD left"."""
    cost = f" and {left.cost:.2f} USD" if left.cost else ""
    why = f" (more than before: {left.why_longer})" if left.why_longer else ""
    return f"; about {left.seconds:,.0f} s{cost} left{why}"


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"
