"""Progress of `index`: a bar of stages and partitions, and lines about calls of models in a run's log."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.pipeline.staleness import StalePartition

LOG_EVERY_S = 10.0


class IndexProgress:
    """A bar on standard error; silent where that is no terminal."""

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
        """Start over with what is stale."""
        self._progress.reset(self._task, total=len(stale), description="indexing")

    def say(self, line: str) -> None:
        """What calls of models are at: shown on the bar, or as a line where there is none."""
        if self._progress.disable:
            self._progress.console.print(line, highlight=False, soft_wrap=True)
        else:
            self._progress.update(self._task, description=line)

    def advance(self, stage: str, partition: str, is_fresh: bool) -> None:
        """One partition of a stage is done."""
        where = stage if partition == "all" else f"{stage} {partition}"
        self._progress.update(self._task, advance=1, description=f"{where}{' (unchanged)' if is_fresh else ''}")


class PoolProgress:
    """Lines about many calls under way: how many are done, what they cost, what is left. A `pool.Progress`.

    Args:
        account: where the calls are counted.
        say: takes a line.
        every_s: seconds between lines.
    """

    def __init__(self, account: CallStats, say: Callable[[str], None], every_s: float = LOG_EVERY_S) -> None:
        self._account = account
        self._say = say
        self._every_s = every_s
        self._started = self._said = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done < total and now - self._said < self._every_s:
            return
        self._said = now
        self._say(describe_calls(self._account, done, total, now - self._started))


def describe_calls(account: CallStats, done: int, total: int, seconds: float) -> str:
    """ "120 of 400 done: 230 calls, 10 from the cache, 410,000 tokens, 0.31 USD; about 45 s and 0.72 USD left"."""
    tokens = account.prompt_tokens + account.completion_tokens
    cost = f", {account.cost:.2f} USD" if account.cost else ""
    line = (
        f"{done:,} of {total:,} done: {account.n_calls:,} calls, {account.n_cached:,} from the cache, "
        f"{tokens:,} tokens{cost}"
    )
    if not 0 < done < total:
        return line
    left = (total - done) / done
    return line + f"; about {seconds * left:,.0f} s{f' and {account.cost * left:.2f} USD' if cost else ''} left"
