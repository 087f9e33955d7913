"""The progress bar of `index`: stages and partitions done, and the time they took."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from graphrag_pipeline.staleness import StalePartition


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

    def advance(self, stage: str, partition: str, is_fresh: bool) -> None:
        """One partition of a stage is done."""
        where = stage if partition == "all" else f"{stage} {partition}"
        self._progress.update(self._task, advance=1, description=f"{where}{' (unchanged)' if is_fresh else ''}")
