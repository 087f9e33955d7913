"""Immutable folders that hold the list of their own files with sizes and hashes.

The list is written before the folder gets its final name, so a folder with a list was complete once. It holds a hash of
itself. A list of an older release has sizes alone; a folder without a list counts as damaged until it gets one. Keep
out: the meaning of the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.content_hashes import each_in_threads, hash_file
from graphrag_pipeline.filesystem.sealed_json import read_sealed, seal

LIST_FILE = "files.json"


@dataclass(frozen=True)
class ListedFile:
    """The size in bytes and the SHA-256 that a list has of a file; "" in a list of an older release."""

    n_bytes: int
    sha256: str = ""


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
        values = json.loads(data)
        if values and all(isinstance(size, int) for size in values.values()):
            return {name: ListedFile(size) for name, size in values.items()}
        return {name: ListedFile(**file) for name, file in read_sealed(data, is_required=True)["files"].items()}
    except (AttributeError, TypeError, KeyError) as error:
        raise ValueError(f"`{folder / LIST_FILE}` is damaged ({error})") from None


def is_hashed(folder: Path) -> bool:
    """Return whether a folder has a list with the hash of each file."""
    try:
        return all(file.sha256 for file in read_file_list(folder).values())
    except (OSError, ValueError):
        return False


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
    hashed = {folder / name: file for name, file in read_file_list(folder).items() if file.sha256}
    listed = {path: file.sha256 for path, file in hashed.items()}
    n_bytes = sum(file.n_bytes for file in hashed.values())
    is_same = each_in_threads(lambda path: has_hash(path, listed[path], is_fresh), listed, n_bytes)
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
