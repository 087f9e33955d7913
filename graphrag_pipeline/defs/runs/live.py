"""Locks of working Dagster runs, and ending runs whose process died, which Dagster would show as started for ever.

A run holds a lock file in the root while it works, and the operating system frees the lock when the process dies. So a
run that Dagster shows as started, and whose lock is free, is dead. Runs of other machines hold no lock here. With a
shared store they send heartbeats, and one that stops sending is dead. All other runs are left alone, such as those of
other roots with the same Dagster home. Keep out: waiting for runs.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.defs.runs.naming import HOST_TAG
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.storage.locks import hold_for_reading, is_held

if TYPE_CHECKING:
    from dagster import DagsterInstance, DagsterRun, RunRecord

_SETTLES_S = 30.0
"""Seconds after its start or the release of its lock in which a run may only be changing its state."""

_FORGOTTEN_S = 7 * 86_400

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT_DIGITS = 8  # tells machines apart, and the tag stays short
_DIED = "The process of this run died (killed, out of memory, or its machine or container was restarted)"
WAY_ON = "Finished partitions and paid replies are kept: launch reindex_stale, which goes on from there"
"""What to do after a killed run of an index job."""


def host_tags() -> dict[str, str]:
    """Return the tags of a run on this machine."""
    with suppress(OSError):
        return {HOST_TAG: f"{socket.gethostname()} {_BOOT_ID.read_text().strip()[:_BOOT_DIGITS]}"}
    return {HOST_TAG: socket.gethostname()}


@contextmanager
def working(root: Root, run_id: str, is_over: bool = False) -> Iterator[None]:
    """Hold the lock of a run inside the block, and send its heartbeats; no lock if the root cannot be written.

    Args:
        is_over: remove the lock file after the block, because Dagster knows the end of the run by then.
    """
    path, descriptor = _lock_file(root, run_id), None
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        descriptor = hold_for_reading(path)
    try:
        with root.shared.heartbeats.beating(run_id) if root.shared else nullcontext():
            yield
        if is_over:
            path.unlink(missing_ok=True)
    finally:
        if descriptor is not None:
            with suppress(OSError):  # removed by another process
                os.utime(path)  # the run settles: Dagster learns of its end only after this
            os.close(descriptor)


def end_dead_runs(instance: DagsterInstance, root: Root, now: float | None = None) -> list[str]:
    """Report runs of this root whose process died as failed, or as canceled if they were terminated. Returns their ids.

    Args:
        now: seconds since 1970; the clock's if None.
    """
    import dagster as dg

    statuses = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
    now = time.time() if now is None else now
    records = instance.get_run_records(dg.RunsFilter(statuses=statuses))
    dead = [record.dagster_run.run_id for record in records if _is_dead(root, record, now)]
    ended = [run_id for run_id in [*dead, *_find_dead_elsewhere(root, records)] if _end(instance, run_id)]
    _remove_old_locks(instance, root)
    return ended


def _find_dead_elsewhere(root: Root, records: Sequence[RunRecord]) -> list[str]:
    """Return the runs on other machines, or in other containers, that stopped sending heartbeats."""
    if not root.shared:
        return []
    ids = [record.dagster_run.run_id for record in records]
    dead = root.shared.heartbeats.find_dead([run_id for run_id in ids if not _lock_file(root, run_id).exists()])
    for run_id in dead:
        root.shared.heartbeats.forget(run_id)
    return dead


def _is_dead(root: Root, record: RunRecord, now: float) -> bool:
    path = _lock_file(root, record.dagster_run.run_id)
    if not _is_here(record.dagster_run) or not path.exists() or is_held(path):
        return False
    with suppress(FileNotFoundError):
        return now - max(path.stat().st_mtime, record.start_time or 0.0) > _SETTLES_S
    return False


def _is_here(run: DagsterRun) -> bool:
    """Return whether a run is of this machine, by host name or boot id: a restarted container keeps the boot id."""
    return bool(set(run.tags.get(HOST_TAG, "").split()) & set(host_tags()[HOST_TAG].split()))


def _end(instance: DagsterInstance, run_id: str) -> bool:
    import dagster as dg

    run = instance.get_run_by_id(run_id)  # its present status
    if run and run.status == dg.DagsterRunStatus.STARTED:
        instance.report_run_failed(run, f"{_DIED}. {WAY_ON}")
    elif run and run.status == dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, f"{_DIED} while it was being terminated")
    else:
        return False
    return True


def _remove_old_locks(instance: DagsterInstance, root: Root) -> None:
    """Remove lock files of runs that ended, and old ones of runs that this Dagster home does not know."""
    for path in _lock_folder(root).glob("*.lock"):
        run = instance.get_run_by_id(path.stem)
        with suppress(OSError):  # another process may remove it first
            is_old = time.time() - path.stat().st_mtime > _FORGOTTEN_S and not is_held(path)
            if run.is_finished if run else is_old:
                path.unlink()


def _lock_file(root: Root, run_id: str) -> Path:
    return _lock_folder(root) / f"{run_id}.lock"


def _lock_folder(root: Root) -> Path:
    return root.path / "cache" / "runs"
