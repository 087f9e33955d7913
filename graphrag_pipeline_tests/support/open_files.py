"""Files of a process as Linux lists them in `/proc`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class OpenFiles:
    """What a process holds below a folder.

    Attributes:
        n_files: file descriptors.
        n_maps: mapped parts of files.
        removed_bytes: space of removed files that it keeps, each file once.
    """

    n_files: int
    n_maps: int
    removed_bytes: int


def count_open_files(folder: Path, process: int | str = "self") -> OpenFiles:
    """Return what a process holds below a folder."""
    here, removed = f"{folder.resolve()}/", dict[str, int]()
    n_files = n_maps = 0
    for number in os.listdir(f"/proc/{process}/fd"):
        link = Path(f"/proc/{process}/fd/{number}")
        try:
            target, size = os.readlink(link), link.stat().st_size
        except OSError:  # closed just now
            continue
        if target.startswith(here):
            n_files += 1
            if target.endswith(" (deleted)"):
                removed[target] = size
    for line in Path(f"/proc/{process}/maps").read_text(encoding="utf-8").splitlines():
        span, _, _, _, _, *path = line.split(maxsplit=5)
        if path and path[0].startswith(here):
            n_maps += 1
            if path[0].endswith(" (deleted)"):
                start, end = (int(address, 16) for address in span.split("-"))
                removed.setdefault(path[0], end - start)
    return OpenFiles(n_files, n_maps, sum(removed.values()))
