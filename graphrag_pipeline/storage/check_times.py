"""When each immutable file of a root was last compared with its hash, so that the oldest come first.

`cache/file_checks.json` holds seconds since 1970 by relative path. Removing it loses nothing: all files count as never
checked. Keep out: checking.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path

from graphrag_pipeline.filesystem import files
from graphrag_pipeline.storage.damage import StoredPart

SAMPLE_BYTES = 512 << 20
"""Bytes that each `index` checks at least, about half a second."""
_DAY_S = 86_400


class CheckTimes:
    """The times of one root.

    Args:
        root: the root.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / "cache" / "file_checks.json"
        self._times = self._read()

    def _read(self) -> dict[str, float]:
        try:
            times = json.loads(self._path.read_bytes())
            return {name: float(time) for name, time in times.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def find_due(self, parts: Iterable[StoredPart], now: float, max_days: float) -> list[StoredPart]:
        """Return the parts that were not checked within `max_days`, and the oldest others up to `SAMPLE_BYTES`."""
        due: list[StoredPart] = []
        left = SAMPLE_BYTES
        for part in sorted(parts, key=lambda part: (self._time_of(part), part.path)):
            is_overdue = now - self._time_of(part) > max_days * _DAY_S
            if not is_overdue and left <= 0:
                break
            left -= part.n_bytes()
            due.append(part)
        return due

    def _time_of(self, part: StoredPart) -> float:
        return self._times.get(part.path.relative_to(self._root).as_posix(), 0.0)

    def record(self, checked: Iterable[StoredPart], known: Collection[StoredPart], now: float) -> None:
        """Save that parts were checked now; parts that are not known any more are left out.

        Raises:
            PipelineError: the disk is full or the file cannot be written.
        """
        names = {part.path.relative_to(self._root).as_posix() for part in known}
        times = {name: time for name, time in self._times.items() if name in names}
        times |= {part.path.relative_to(self._root).as_posix(): round(now) for part in checked}
        self._times = times
        files.replace(self._path, json.dumps(dict(sorted(times.items())), indent=0).encode())
