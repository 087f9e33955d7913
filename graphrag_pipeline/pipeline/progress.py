"""Progress of an index run: the observer it reports to, a bar of partitions, and lines about model calls.

Keep out: what is run, and where a run's log goes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.pipeline.staleness import StalePartition

LOG_EVERY_S = 10.0


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
        if self._progress.disable:
            self._progress.console.print(message, highlight=False, soft_wrap=True)
        else:
            self._progress.update(self._task, description=message)

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
    """

    def __init__(self, account: CallStats, report: Callable[[str], None], every_s: float = LOG_EVERY_S) -> None:
        self._account = account
        self._report = report
        self._every_s = every_s
        self._started = self._reported = self._advanced = time.monotonic()
        self._done = 0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done > self._done:
            self._done, self._advanced = done, now
        if done < total and now - self._reported < self._every_s:
            return
        self._reported = now
        self._report(describe_calls(self._account, done, total, self._advanced - self._started, now - self._advanced))


def describe_calls(account: CallStats, done: int, total: int, seconds: float, since_s: float = 0.0) -> str:
    """Return a line on calls under way and an estimate of the rest.

    For example: "120 of 400 done: 230 calls, 10 from the cache, 3 retries (2 time-outs), 41,000 tokens, 0.31 USD, at
    most 8 at once; about 45 s and 0.72 USD left".

    Args:
        seconds: from the start until the last record was done.
        since_s: seconds since then; the estimate counts down by them, so that it does not grow while calls run.
    """
    tokens = account.prompt_tokens + account.completion_tokens
    cost = f", {account.cost:.2f} USD" if account.cost else ""
    timeouts = f" ({account.n_timeouts:,} time-outs)" if account.n_timeouts else ""
    retries = f", {account.n_retries:,} retries{timeouts}" if account.n_retries else ""
    line = (
        f"{done:,} of {total:,} done: {account.n_calls:,} calls, {account.n_cached:,} from the cache{retries}, "
        f"{tokens:,} tokens{cost}"
    )
    if done < total and account.limit:
        line += f", at most {account.limit} at once"
    if not 0 < done < total:
        return line
    left = (total - done) / done
    left_s = max(seconds * left - since_s, 0)
    return line + f"; about {left_s:,.0f} s{f' and {account.cost * left:.2f} USD' if cost else ''} left"
