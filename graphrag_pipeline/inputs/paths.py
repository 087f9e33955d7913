"""Paths of the input folder, on disk or behind a URL: ignored files, and labels.

Ignored are hidden names (`.git`, `.DS_Store`), temporary files of editors and office programs (`x~`, `#x#`, `~$x.docx`,
`Thumbs.db`, `desktop.ini`), `__MACOSX`, and paths that match `input.exclude`. A label is a path with forward slashes in
valid UTF-8 and one line. A backslash is doubled, an undecodable byte is written as `\\xff` and a control character as
`\\u000a`, so different files have different labels.

Keep out: listing and reading a folder (`files.py` on disk, `remote.py` behind a URL).
"""

from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass

from graphrag_pipeline.text.safe_output import escape_json_controls

GONE = "was removed while the folder was read"
"""The problem of a file that no longer exists: its documents go, too."""
_IGNORED = ("Thumbs.db", "desktop.ini", "__MACOSX")


@dataclass(frozen=True)
class InputFile:
    """A file of the input folder.

    Attributes:
        path: path inside the folder, as a label.
        location: path of the file, or of its copy, on this machine.
        problem: reason why it cannot be read; None if it can.
        url_path: path in the store behind the folder's URL; "" for a file on disk.
        n_bytes: size that the store reports.
        version: hash of the version that the store reports; "" if it reports only the size.
        is_fault: whether the problem is that it cannot be accessed now, so that its content is not known.
    """

    path: str
    location: bytes
    problem: str | None = None
    url_path: str = ""
    n_bytes: int = 0
    version: str = ""
    is_fault: bool = False


def label_of(name: bytes) -> str:
    """Return a path's bytes as unique text in one line, unchanged if it is UTF-8 without backslashes and controls."""
    text = name.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return escape_json_controls(text).replace("\n", r"\u000a")


def is_ignored(name: bytes) -> bool:
    """Whether a file or folder with this name (not path) is ignored."""
    text = os.fsdecode(name)
    return text.startswith((".", "~$")) or text.endswith("~") or text in _IGNORED or (text[0] == text[-1] == "#")


def is_excluded(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern matches a path.

    `*` also matches slashes, and a leading `**/` also matches the top folder. An excluded folder excludes its content.
    """
    return any(
        fnmatch.fnmatchcase(path, pattern.rstrip("/")) or fnmatch.fnmatchcase(path, pattern.removeprefix("**/"))
        for pattern in patterns
    )
