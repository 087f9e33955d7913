"""Locks between processes that work on one root; the system frees them when their process ends.

Writers wait for each other (`one_writer`, `one_index_run`). A reader shares a lock on the manifest of its snapshot
(`hold_for_reading`). A snapshot is removed only under an exclusive lock (`hold_alone`). A reader's lock needs no new
file, so that a read-only root can be queried.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.settings.settings import SETTINGS_FILE

_log = logging.getLogger(__name__)


def one_writer(root: Path) -> AbstractContextManager[None]:
    """Admit one process at a time to the stages from the merged graph on, and to publishing; a second one waits.

    Re-entrant within a process. Bucket stages need no lock: each writes its own partition.
    """
    waiting = f"`{root}`: another process is writing the index; waiting for it"
    return _one_process(root / "cache" / "index.lock", waiting)


def one_index_run(root: Path) -> AbstractContextManager[None]:
    """Admit one `index` of a root at a time; a second one waits, then finds the work done.

    Taken before `one_writer`, never after it.

    Raises:
        PipelineError: the folder is not a root; nothing is created in it.
    """
    if not (root / SETTINGS_FILE).is_file():
        raise PipelineError(
            f"`{root / SETTINGS_FILE}` does not exist; make a root with `graphrag-pipeline init {root}`, or name one "
            "with --root"
        )
    return _one_process(root / "cache" / "index_run.lock", f"`{root}`: another `index` is running; waiting for it")


def one_view_builder(views: Path) -> AbstractContextManager[None]:
    """Admit one process at a time to the views of a root; a second one waits. Taken before all other locks.

    Args:
        views: folder of the views; it is made if it does not exist.
    """
    return _one_process(views / ".build.lock", f"`{views}`: another process is making views; waiting for it")


def one_store_writer(root: Path) -> AbstractContextManager[None]:
    """Admit one writer of the shared store per root; taken after `one_index_run`, before `one_writer`."""
    return _one_process(_store_lock(root, "writer"), f"`{root}`: another process is writing the index; waiting for it")


def one_store_sync(root: Path) -> AbstractContextManager[None]:
    """Admit one process at a time to the transfer between a root and its shared store; taken last, and held briefly."""
    return _one_process(_store_lock(root, "sync"), f"`{root}`: another process is fetching the index; waiting for it")


def is_store_written(root: Path) -> bool:
    """Return whether a process of this root is inside `one_store_writer`."""
    return is_held(_store_lock(root, "writer"))


def _store_lock(root: Path, name: str) -> Path:
    return root / "cache" / "store" / f"{name}.lock"


def one_home_repair(home: Path) -> AbstractContextManager[None]:
    """Admit one process at a time to making and repairing the databases of a Dagster home."""
    return _one_process(home / "databases.lock", f"`{home}`: another process is making Dagster's databases; waiting")


def is_index_running(root: Path) -> bool:
    """Return whether a process is inside `one_index_run`."""
    return is_held(root / "cache" / "index_run.lock")


@contextmanager
def _one_process(path: Path, waiting: str) -> Iterator[None]:
    """Hold the lock file `path`; log `waiting` if another process has it."""
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


def hold_for_reading(path: Path) -> int | None:
    """Share a lock on a file until the returned descriptor is closed; wait while a process holds it alone.

    Returns:
        A file descriptor; None if the file system has no locks.

    Raises:
        FileNotFoundError: the file does not exist, or was removed during the wait.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    except OSError:
        os.close(descriptor)
        return None
    if not os.fstat(descriptor).st_nlink:
        os.close(descriptor)
        raise FileNotFoundError(path)
    return descriptor


@contextmanager
def hold_alone(path: Path) -> Iterator[bool]:
    """Lock a file against readers, without waiting; yield whether no process reads it.

    If the file system has no locks, readers cannot be seen, and the file counts as read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        yield True
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_alone = True
        except OSError:
            is_alone = False
        yield is_alone
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Return whether a process holds a file by `hold_for_reading`."""
    with hold_alone(path) as is_alone:
        return not is_alone


def is_held_alone(path: Path) -> bool:
    """Return whether a process holds a file by `hold_alone`; processes that only look do not see each other."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
