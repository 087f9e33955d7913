"""Immutable folders that hold the list of their own files with sizes.

The list is written before the folder gets its final name, so a folder with a list was complete once. A folder of an
older release has no list and counts as damaged until it gets one. Keep out: the meaning of the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from graphrag_pipeline.filesystem import files

LIST_FILE = "files.json"


def write_file_list(folder: Path) -> None:
    """Write the list of a complete folder: {"relative/path": bytes}."""
    sizes = {name: size for name, size in _sizes(folder) if name != LIST_FILE}
    files.replace(folder / LIST_FILE, json.dumps(dict(sorted(sizes.items())), indent=1).encode())


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
        listed: dict[str, int] = json.loads((folder / LIST_FILE).read_bytes())
        sizes = dict(_sizes(folder))
        return [folder / name for name, size in listed.items() if sizes.get(name) != size]
    except (OSError, ValueError, AttributeError):
        return [folder / LIST_FILE if folder.is_dir() else folder]
