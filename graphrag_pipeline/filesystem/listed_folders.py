"""Immutable folders that hold the list of their own files with sizes and hashes.

The list is written before the folder gets its final name, so a folder with a list was complete once. It holds a hash of
itself. A folder without a list counts as damaged. Keep out: the meaning of the files.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.files import read_sealed, seal

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
    """Return the SHA-256 of a file, 64 hex digits; it is remembered while the file stays the same.

    That is while its inode, size and the inode's time of change are equal: unpacked files all have one time of content.
    A file that changed a moment ago is not remembered, since a second change may have the same time.

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


LIST_FILE = "files.json"


@dataclass(frozen=True)
class ListedFile:
    """The size in bytes and the SHA-256 that a list has of a file."""

    n_bytes: int
    sha256: str


def write_file_list(folder: Path) -> None:
    """Write the list of a complete folder: its files by relative path."""
    sizes = dict(sorted((name, size) for name, size in _sizes(folder) if name != LIST_FILE))
    hashes = each_in_threads(hash_file, (folder / name for name in sizes), sum(sizes.values()))
    listed = {
        name: asdict(ListedFile(size, sha256)) for (name, size), sha256 in zip(sizes.items(), hashes, strict=True)
    }
    files.replace(folder / LIST_FILE, seal({"files": listed}))


def read_file_list(folder: Path) -> dict[str, ListedFile]:
    """Return the list of a folder.

    Raises:
        OSError: the folder has no list.
        ValueError: the list is damaged.
    """
    data = (folder / LIST_FILE).read_bytes()
    try:
        return {name: ListedFile(**file) for name, file in read_sealed(data, is_required=True)["files"].items()}
    except (AttributeError, TypeError, KeyError) as error:
        raise ValueError(f"`{folder / LIST_FILE}` is damaged ({error})") from None


def has_list(folder: Path) -> bool:
    try:
        read_file_list(folder)
    except (OSError, ValueError):
        return False
    return True


def _sizes(folder: Path) -> Iterator[tuple[str, int]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path.stat().st_size


def find_damaged_files(folder: Path) -> list[Path]:
    """Return the listed files that are missing or have another size.

    Returns:
        Paths of files; the path of the list if it is missing or damaged; `folder` if the folder is missing.
    """
    try:
        listed, sizes = read_file_list(folder), dict(_sizes(folder))
    except (OSError, ValueError):
        return [folder / LIST_FILE if folder.is_dir() else folder]
    return [folder / name for name, file in listed.items() if sizes.get(name) != file.n_bytes]


def find_changed_files(folder: Path, is_fresh: bool = False) -> list[Path]:
    """Return what `find_damaged_files` returns, and the listed files whose content has another hash.

    Args:
        is_fresh: read files whose hash this process knows, too.
    """
    if damaged := find_damaged_files(folder):
        return damaged
    listed = {folder / name: file for name, file in read_file_list(folder).items()}
    n_bytes = sum(file.n_bytes for file in listed.values())
    is_same = each_in_threads(lambda path: has_hash(path, listed[path].sha256, is_fresh), listed, n_bytes)
    return [path for path, same in zip(listed, is_same, strict=True) if not same]


def link_whole_files(folder: Path, target: Path) -> None:
    """Link the files of a folder that have the hash of its list into another folder, and no others.

    Raises:
        OSError: the folder has no list, or a link or copy cannot be made.
        ValueError: the list is damaged.
    """
    for name, file in read_file_list(folder).items():
        if has_hash(folder / name, file.sha256):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            files.link_or_copy(folder / name, target / name)


def has_hash(path: Path, sha256: str, is_fresh: bool = False) -> bool:
    """Return whether a file can be read and its hash starts with these hex digits (at least one)."""
    try:
        return bool(sha256) and hash_file(path, is_fresh).startswith(sha256)
    except OSError:
        return False
