"""The file `view.json` of a view: the snapshots of its root that it was made of, and how long that takes.

It relates snapshots of several views of a root, so that a link with a snapshot of one reader opens for another one. A
reader never sees the snapshot of the root, since it changes with documents that he may not read. Keep out: documents.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.sealed_json import read_sealed, seal
from graphrag_pipeline.pipeline.root import VIEWS_FOLDER

_FILE = "view.json"
_N_KEPT = 200
"""Publications of the root that are kept."""
_FAR_OVER = 10
"""A making that takes this many times as long as the last one has probably ended without a result."""


@dataclass(frozen=True)
class ViewRecord:
    """What is known about the making of a view.

    Attributes:
        made_of: snapshot of the root -> snapshot of the view made of it, oldest first.
        seconds: that the last finished making took, if it changed the view; 0.0 before the first.
        started: time at which the making under way began, in seconds since 1970; 0.0 if none is under way.
    """

    made_of: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    started: float = 0.0

    def seconds_left(self, now: float) -> float:
        """Return the seconds until a view that has no snapshot now is likely to have one, at least 1.

        A making that is over its time is expected to take a quarter more of it; one far over its time has ended.
        """
        elapsed = now - self.started if self.started else 0.0
        if not 0 <= elapsed <= _FAR_OVER * max(self.seconds, 1.0):
            elapsed = 0.0
        return max(1.0, self.seconds - elapsed, elapsed / 4)


def read_record(view: Path) -> ViewRecord:
    """Return the record of a view; an empty one if the file is missing or damaged."""
    try:
        return ViewRecord(**read_sealed((view / _FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return ViewRecord()


def list_records(root: Path) -> Iterator[ViewRecord]:
    """Yield the records of all views of a root."""
    for path in sorted((root / VIEWS_FOLDER).glob(f"*/{_FILE}")):
        yield read_record(path.parent)


def note_start(view: Path) -> None:
    """Record that the view is being made from now on."""
    _write(view, replace(read_record(view), started=time.time()))


def note_end(view: Path, root_snapshot: str, view_snapshot: str, seconds: float | None) -> None:
    """Record that the view is made of a snapshot of its root.

    Args:
        seconds: that it took; None if nothing was to be made.
    """
    known = read_record(view)
    before = {one: made for one, made in known.made_of.items() if one != root_snapshot}
    made_of = dict([*before.items(), (root_snapshot, view_snapshot)][-_N_KEPT:])
    _write(view, ViewRecord(made_of, known.seconds if seconds is None else seconds))


def _write(view: Path, record: ViewRecord) -> None:
    files.replace(view / _FILE, seal(asdict(record)))
