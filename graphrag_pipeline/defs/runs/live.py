"""Which runs of Dagster still work, and ending those whose process died: Dagster would call them started for ever.

A run holds a lock file of its own in the root while it works; the lock is freed when its process dies, however that
happens. So a run that Dagster calls started, and whose lock is free, is dead. A run of another machine, or of another
root of the same Dagster home, holds no lock that can be seen from here, and nothing is said of it. Keep out: who waits
for runs.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.defs.runs.names import HOST_TAG
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.storage.locks import hold_for_reading, is_held

if TYPE_CHECKING:
    from dagster import DagsterInstance, DagsterRun
    from dagster._core.storage.dagster_run import RunRecord

_SETTLES_S = 30.0
"""A run that began or let go of its lock this short a time ago may only be on its way to its next state."""

_FORGOTTEN_S = 7 * 86_400

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_DIED = "The process of this run died (killed, out of memory, or its machine or container was restarted)"


def host_tags() -> dict[str, str]:
    """What a run on this machine is tagged with."""
    with suppress(OSError):
        return {HOST_TAG: f"{socket.gethostname()} {_BOOT_ID.read_text().strip()}"}
    return {HOST_TAG: socket.gethostname()}


@contextmanager
def working(root: Root, run_id: str, is_over: bool = False) -> Iterator[None]:
    """Hold the lock of a run; without one where the root cannot be written.

    Args:
        is_over: Dagster knows the end of the run once the block is left, and the lock is not needed any more.
    """
    path, descriptor = _lock_file(root, run_id), None
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        descriptor = hold_for_reading(path)
    try:
        yield
        if is_over:
            path.unlink(missing_ok=True)
    finally:
        if descriptor is not None:
            with suppress(OSError):  # removed meanwhile
                os.utime(path)  # Dagster is told of the end of the run only after this
            os.close(descriptor)


def end_dead_runs(instance: DagsterInstance, root: Root, now: float | None = None) -> list[str]:
    """Report runs of this root whose process died, as failed, or canceled if that was asked for; returns their ids.

    Args:
        now: seconds since 1970; the clock's if None.
    """
    import dagster as dg

    statuses = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
    now = time.time() if now is None else now
    ended = []
    for record in instance.get_run_records(dg.RunsFilter(statuses=statuses)):
        if _is_dead(root, record, now) and _end(instance, record.dagster_run.run_id):
            ended.append(record.dagster_run.run_id)
    _remove_old_locks(instance, root)
    return ended


def _is_dead(root: Root, record: RunRecord, now: float) -> bool:
    path = _lock_file(root, record.dagster_run.run_id)
    if not _is_here(record.dagster_run) or not path.exists() or is_held(path):
        return False
    with suppress(FileNotFoundError):
        return now - max(path.stat().st_mtime, record.start_time or 0.0) > _SETTLES_S
    return False


def _is_here(run: DagsterRun) -> bool:
    """Whether a run works, or worked, on this machine: a container started anew has the kernel of the one before."""
    return bool(set(run.tags.get(HOST_TAG, "").split()) & set(host_tags()[HOST_TAG].split()))


def _end(instance: DagsterInstance, run_id: str) -> bool:
    import dagster as dg

    run = instance.get_run_by_id(run_id)  # as it is now
    if run and run.status == dg.DagsterRunStatus.STARTED:
        instance.report_run_failed(run, f"{_DIED}; what was finished is kept, run reindex_stale again")
    elif run and run.status == dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, f"{_DIED} while it was being terminated")
    else:
        return False
    return True


def _remove_old_locks(instance: DagsterInstance, root: Root) -> None:
    """Remove lock files of runs that ended, and old ones of runs that this Dagster home does not know."""
    for path in _lock_folder(root).glob("*.lock"):
        run = instance.get_run_by_id(path.stem)
        with suppress(OSError):  # another process removes it, too
            is_old = time.time() - path.stat().st_mtime > _FORGOTTEN_S and not is_held(path)
            if run.is_finished if run else is_old:
                path.unlink()


def _lock_file(root: Root, run_id: str) -> Path:
    return _lock_folder(root) / f"{run_id}.lock"


def _lock_folder(root: Root) -> Path:
    return root.path / "cache" / "runs"
