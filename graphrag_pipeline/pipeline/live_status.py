"""The status of `up` at this moment, in a file that the server beside it shows, and the progress that writes it.

Keep out: the work itself.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.pipeline.progress import IndexProgress
from graphrag_pipeline.pipeline.staleness import StalePartition
from graphrag_pipeline.storage.locks import hold_alone, is_held_alone
from graphrag_pipeline.text.counted import counted

_FILE, _LOCK = "live.json", "live.lock"
State = Literal["", "indexing", "watching", "failed"]


@dataclass(frozen=True)
class LiveStatus:
    """What a root is doing.

    Attributes:
        state: "" if nothing keeps the root up to date.
        message: one line for the user.
        n_done, n_total: stale partitions that an index run has computed, of all.
    """

    state: State = ""
    message: str = ""
    n_done: int = 0
    n_total: int = 0


@contextmanager
def keeping_up(root: Path) -> Iterator[None]:
    """Be the only process that keeps a root up to date and says so.

    Raises:
        PipelineError: another one does.
    """
    cache = root / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    (cache / _LOCK).touch()
    with hold_alone(cache / _LOCK) as is_alone:
        if not is_alone:
            raise PipelineError(f"another `graphrag-pipeline up` keeps `{root}` up to date; stop it, or use its page")
        try:
            yield
        finally:
            (cache / _FILE).unlink(missing_ok=True)


def write_live_status(root: Path, status: LiveStatus) -> None:
    """Replace the status; a full disk loses it, not the work."""
    with contextlib.suppress(PipelineError):
        files.replace(root / "cache" / _FILE, json.dumps(asdict(status)).encode())


def read_live_status(root: Path) -> LiveStatus:
    """Return what the process that keeps a root up to date says; an empty status without one."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        if is_held_alone(root / "cache" / _LOCK):
            return LiveStatus(**json.loads((root / "cache" / _FILE).read_bytes()))
    return LiveStatus()


class LiveProgress(IndexProgress):
    """A progress bar that the page shows, too.

    Args:
        why: what changed; "" for the first run.
        account: what the run pays.
    """

    def __init__(self, root: Path, why: str, account: CallStats) -> None:
        super().__init__()
        self._root, self._why, self._account = root, why, account
        self._n_done = self._n_total = 0
        self._show("looking for changes")

    def plan(self, stale: list[StalePartition]) -> None:
        """Receive what is stale, before anything runs."""
        super().plan(stale)
        self._n_done, self._n_total = 0, len(stale)
        buckets = {item.partition for item in stale if item.partition != "all"}
        said = f"{counted(len(buckets), 'buckets')} stale"
        self._show(said)
        if self._progress.disable:  # without a terminal there is no bar
            self.progress(f"{self._why or 'indexing'}: {said} ...")

    def begin(self, stage: str, partition: str) -> None:
        """Receive that a partition of a stage begins."""
        super().begin(stage, partition)
        self._show(stage.replace("_", " "))

    def finish(self, stage: str, partition: str, is_fresh: bool) -> None:
        """Receive that a partition of a stage is done."""
        super().finish(stage, partition, is_fresh)
        self._n_done += 1

    def _show(self, what: str) -> None:
        paid = f", {self._account.cost:.4f} USD" if self._account.cost else ""
        write_live_status(
            self._root, LiveStatus("indexing", f"{self._why or 'indexing'}: {what}{paid}", self._n_done, self._n_total)
        )
