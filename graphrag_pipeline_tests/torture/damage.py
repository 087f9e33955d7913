"""Damage to one random file of a root: a flipped bit, a cut, zeros, or its loss."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

FOLDERS = ("snapshots", "tables", "heads")


def damage_file(root: Path, chance: random.Random, folders: Sequence[str] = FOLDERS) -> str | None:
    """Damage one file below a root's folders; return what was done, or None if there is no file."""
    files = sorted(path for folder in folders for path in (root / folder).rglob("*") if _is_data(path))
    if not files:
        return None
    path = chance.choice(files)
    kind = chance.choice(("flip", "cut", "zero", "remove"))
    try:
        _DAMAGES[kind](path, chance)
    except FileNotFoundError:  # another process removed it
        return None
    return f"{kind} {path.relative_to(root)}"


def flip_bit(path: Path, chance: random.Random) -> None:
    """Flip one bit."""
    data = bytearray(path.read_bytes())
    place = chance.randrange(len(data))
    data[place] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def cut_off(path: Path, chance: random.Random) -> None:
    """Keep a beginning of the file only."""
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(len(data))])


def fill_with_zeros(path: Path, chance: random.Random) -> None:
    """Keep the size, lose the content."""
    path.write_bytes(bytes(path.stat().st_size))


def remove(path: Path, chance: random.Random) -> None:
    """Lose the file."""
    path.unlink()


_DAMAGES = {"flip": flip_bit, "cut": cut_off, "zero": fill_with_zeros, "remove": remove}


def _is_data(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size > 0 and not path.name.endswith(".lock")
    except FileNotFoundError:
        return False
