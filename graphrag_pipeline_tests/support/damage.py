"""Damage to files of a root: flipped bits, cuts, zeros of the same size."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

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


def index_files(root: Path, folders: Iterable[str] = FOLDERS) -> list[Path]:
    """Every file of an index that is not empty, sorted."""
    found = (path for folder in folders for path in (root / folder).rglob("*"))
    return sorted(path for path in found if path.is_file() and path.stat().st_size)
