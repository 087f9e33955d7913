"""Locks between processes that work on one root; freed when their process dies."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from graphrag_pipeline.storage import files

_log = logging.getLogger(__name__)


def one_writer(root: Path) -> AbstractContextManager[None]:
    """From the merged graph on, and for publishing, one process at a time; a second one waits.

    Re-entrant within a process. Bucket stages need no lock: each writes its own partition.
    """
    return _one_process(root / "cache" / "index.lock", f"{root}: another process is writing the index; waiting for it")


def one_index_run(root: Path) -> AbstractContextManager[None]:
    """One `index` of a root at a time; a second one waits, and then finds the work done instead of doing it twice.

    Taken before `one_writer`, never after it.
    """
    return _one_process(root / "cache" / "index_run.lock", f"{root}: another `index` is running; waiting for it")


@contextmanager
def _one_process(path: Path, waiting: str) -> Iterator[None]:
    """Hold the lock file `path`; says `waiting` if another process has it.

    Raises:
        PipelineError: the folder of the lock cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, is_singleton=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            _log.warning(waiting)
            lock.acquire()
    except OSError as error:
        raise files.write_error(path, error) from error
    try:
        yield
    finally:
        lock.release()
