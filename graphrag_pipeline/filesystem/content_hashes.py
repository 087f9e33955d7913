"""SHA-256 hashes of files, several at once, remembered in this process while a file stays the same.

A file counts as the same while its inode, size and the inode's time of change are equal. The time of the content would
not do: unpacked files all have one, and an inode is used again. A file that changed a moment ago is never remembered,
since a second change may have the same time. A check against damage of the disk asks for `is_fresh`, which reads the
file again. Keep out: the hashes that files should have.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

N_THREADS = max(2, min(8, os.cpu_count() or 2))
_UNSETTLED_NS = 50_000_000
"""Age below which a file may change again without a new time; clocks of file systems tick every 1 to 10 ms."""
_MAX_KNOWN = 100_000
_BLOCK = 1 << 20
_MIN_BYTES_FOR_THREADS = 4 << 20  # they take 2 to 8 ms to hash
_known: dict[tuple[int, int, int, int], str] = {}
T = TypeVar("T")
R = TypeVar("R")


def hash_file(path: Path, is_fresh: bool = False) -> str:
    """Return the SHA-256 of a file, 64 hex digits.

    Args:
        is_fresh: read the file although its hash is known.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb", buffering=0) as file:
        found = os.fstat(file.fileno())
        key = (found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns)
        if not is_fresh and key in _known:
            return _known[key]
        is_settled = time.time_ns() - found.st_ctime_ns > _UNSETTLED_NS
        digest = _digest(file.readinto, min(_BLOCK, found.st_size + 1))
    if len(_known) > _MAX_KNOWN:
        _known.clear()
    if is_settled:
        _known[key] = digest
    else:
        _known.pop(key, None)
    return digest


def _digest(read_into: Callable[[memoryview], int | None], block_size: int) -> str:
    digest, block = hashlib.sha256(), memoryview(bytearray(block_size))
    while n_bytes := read_into(block):
        digest.update(block[:n_bytes])
    return digest.hexdigest()


def each_in_threads(work: Callable[[T], R], items: Iterable[T], n_bytes: int) -> list[R]:
    """Return `work(item)` of each item, in order; hashing leaves the interpreter free, so threads use all cores.

    Args:
        n_bytes: size of all files together; a few small files are hashed faster than threads start.
    """
    listed = list(items)
    if len(listed) < 2 or n_bytes < _MIN_BYTES_FOR_THREADS:
        return [work(item) for item in listed]
    with ThreadPoolExecutor(N_THREADS) as threads:
        return list(threads.map(work, listed))
