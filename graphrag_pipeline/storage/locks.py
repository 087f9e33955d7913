"""Locks between processes that work on one root; freed when their process dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_writer(root: Path) -> Iterator[None]:
    """From the merged graph on, and for publishing, one process at a time; a second one waits.

    Re-entrant within a process. Bucket stages need no lock: each writes its own partition.
    """
    from filelock import FileLock

    path = root / "cache" / "index.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path, is_singleton=True):
        yield
