"""Damage to files of a root: flipped bits, cuts, zeros of the same size."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from graphrag_pipeline.filesystem.listed_folders import LIST_FILE, read_file_list

FOLDERS = ("tables", "heads", "snapshots")
"""Folders of a root that hold an index."""


def flip_bit(path: Path, bit: int) -> None:
    """Flip one bit of a file in place; a second call restores it."""
    with path.open("r+b") as file:
        file.seek(bit // 8)
        byte = file.read(1)[0]
        file.seek(bit // 8)
        file.write(bytes([byte ^ (1 << bit % 8)]))


def cut(path: Path, n_bytes: int) -> None:
    """Shorten a file."""
    with path.open("r+b") as file:
        file.truncate(n_bytes)


def zero(path: Path) -> None:
    """Replace a file's content by zeros, as a power cut can."""
    path.write_bytes(bytes(path.stat().st_size))


def remove_hashes(root: Path) -> None:
    """Give the files of a root the form of a release without hashes."""
    for path in (root / "snapshots").rglob("*.sha256"):
        path.unlink()
    for path in (root / "snapshots").rglob(LIST_FILE):
        sizes = {name: file.n_bytes for name, file in read_file_list(path.parent).items()}
        path.write_text(json.dumps(sizes), encoding="utf-8")


def index_files(root: Path, folders: Iterable[str] = FOLDERS) -> list[Path]:
    """Every file of an index that is not empty, sorted."""
    found = (path for folder in folders for path in (root / folder).rglob("*"))
    return sorted(path for path in found if path.is_file() and path.stat().st_size)
