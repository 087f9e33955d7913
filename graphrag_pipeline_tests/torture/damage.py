"""Random damage: a flipped bit, a cut, zeros of the same size, or the loss of a file."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

FOLDERS = ("snapshots", "tables", "heads")
KINDS = ("flip", "cut", "zero", "remove")


def damage_file(root: Path, chance: random.Random, folders: Sequence[str] = FOLDERS) -> str | None:
    """Damage one file below a root's folders; return what was done, or None if there is no file."""
    files = sorted(path for folder in folders for path in (root / folder).rglob("*") if _is_data(path))
    if not files:
        return None
    path, kind = chance.choice(files), chance.choice(KINDS)
    try:
        _write_in_place(path, damage_bytes(path.read_bytes(), kind, chance))
    except FileNotFoundError:  # another process removed it
        return None
    return f"{kind} {path.relative_to(root)}"


def damage_bytes(data: bytes, kind: str, chance: random.Random) -> bytes | None:
    """Return a damaged form of some bytes, at least one; None if they are to be removed."""
    place = chance.randrange(len(data))
    if kind == "flip":
        return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]
    return {"cut": data[:place], "zero": bytes(len(data)), "remove": None}[kind]


def _write_in_place(path: Path, damaged: bytes | None) -> None:
    """Give a file other bytes; it is never shorter in between, since a process may have it mapped into memory."""
    if damaged is None:
        path.unlink()
        return
    with path.open("r+b") as file:
        file.write(damaged)
        file.truncate()


def _is_data(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size > 0 and not path.name.endswith(".lock")
    except FileNotFoundError:
        return False
