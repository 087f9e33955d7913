"""Paths of the input folder, wherever it is: which count, under which label.

Every file counts but hidden names (`.git`, `.DS_Store`), editors' and office programs' own files (`x~`, `#x#`,
`~$x.docx`, `Thumbs.db`, `desktop.ini`), `__MACOSX` and what `input.exclude` names. Paths are labels: forward slashes,
valid UTF-8; a backslash is doubled and an undecodable byte written `\\xff`, so that different files never share one.

Keep out: listing and reading a folder (input_files.py on disk, remote_input.py behind a URL).
"""

from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass

_IGNORED = ("Thumbs.db", "desktop.ini", "__MACOSX")


@dataclass(frozen=True)
class InputFile:
    """A file of the input folder.

    Attributes:
        path: its path inside the folder, as a label.
        location: where its bytes are on this machine.
        problem: why it cannot be read; None if it can.
        url_path: where it is in the store behind the folder's URL, of which `location` is, or will be, a copy.
        n_bytes: its size, as that store says.
        version: hash of what that store says of its content; "" if it says nothing but the size.
    """

    path: str
    location: bytes
    problem: str | None = None
    url_path: str = ""
    n_bytes: int = 0
    version: str = ""


def label_of(name: bytes) -> str:
    """A path's bytes as text, one to one: unchanged if it is UTF-8 without a backslash."""
    return name.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def is_ignored(name: bytes) -> bool:
    """Whether a file or folder of this name (no path) counts for nothing."""
    text = os.fsdecode(name)
    return text.startswith((".", "~$")) or text.endswith("~") or text in _IGNORED or (text[0] == text[-1] == "#")


def is_excluded(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern matches; `*` crosses slashes, `**/` also matches no folder, a folder takes all in it."""
    return any(
        fnmatch.fnmatchcase(path, pattern.rstrip("/")) or fnmatch.fnmatchcase(path, pattern.removeprefix("**/"))
        for pattern in patterns
    )
