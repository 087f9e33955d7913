"""The answers that a server needs about views: which may be read, which are damaged, and which snapshot a link means.

After a publication of the root, a view that holds a document which is not permitted any more is refused at once; any
other view is read until the next one is made. Keep out: making views (`views.py`), HTTP.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.access.view_settings import find_view
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.files import read_sealed, seal
from graphrag_pipeline.filters import COLUMNS, Filter, flatten_metadata, passes, read_metadata
from graphrag_pipeline.inputs.source_records import is_row_number, parse_filters
from graphrag_pipeline.pipeline.root import VIEWS_FOLDER, Root
from graphrag_pipeline.storage.damage import describe_damage
from graphrag_pipeline.storage.manifests import is_snapshot_id
from graphrag_pipeline.storage.snapshots import Snapshot

_FILE = "view.json"
_N_KEPT = 200
"""Publications of the root that are kept."""
_FAR_OVER = 10
"""A making that takes this many times as long as the last one has probably ended without a result."""


@dataclass(frozen=True)
class ViewRecord:
    """What is known about the making of a view, in its `view.json`.

    It relates snapshots of several views of a root, so that a link with a snapshot of one reader opens for another one.

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


def has_withdrawn(published: pa.Table, view: pa.Table, filters: Sequence[str]) -> bool:
    """Return whether a view holds a document which its root has published, and which does not pass.

    Documents with an id of their own are compared by it. A row without one has another number in a view than in its
    root, so it is compared by its text. Where that does not decide, the view counts as one that holds such a document.
    A deleted document is none: the view has it until it is brought up to date.

    Args:
        published: contract table `documents` of the root.
        view: that of the view.
    """
    held = view.select(["id", "path", "record"]).to_pylist()
    conditions = parse_filters(filters)
    rows = published.select([*COLUMNS, "metadata"]).to_pylist()
    passing = [_passes(row, conditions) for row in rows]
    if all(passing):
        return False
    refused = [row for row, is_passing in zip(rows, passing, strict=True) if not is_passing]
    allowed = {row["id"] for row, is_passing in zip(rows, passing, strict=True) if is_passing}
    named = [row for row in held if not is_row_number(row["record"] or "")]
    if not {row["id"] for row in named}.isdisjoint(row["id"] for row in refused):
        return True
    unknown = {row["id"] for row in held} - {row["id"] for row in named if row["id"] in allowed}
    texts = _texts_of(view, unknown)
    if not texts:
        return False
    hidden = _texts_of(published, {row["id"] for row in refused}) - _texts_of(published, allowed)
    paths = {row["path"] for row in refused if is_row_number(row["record"] or "")}
    numbered = {row["id"] for row in held if row["path"] in paths and is_row_number(row["record"] or "")}
    return not texts.isdisjoint(hidden) or not _texts_of(view, numbered) <= _texts_of(published, allowed)


def _passes(row: dict[str, Any], conditions: Sequence[Filter]) -> bool:
    columns = {name: row[name] for name in COLUMNS}
    metadata = dict(flatten_metadata(read_metadata(row["metadata"])))
    return all(passes(condition, columns, metadata) for condition in conditions)


def _texts_of(documents: pa.Table, ids: Iterable[str]) -> set[str]:
    wanted = pa.array(sorted(ids), pa.string())
    return set(documents["text"].filter(pc.is_in(documents["id"], value_set=wanted)).to_pylist())


_FIRST_S = 60.0
"""Seconds that the first view of a root is expected to take."""


class ViewNotReadyError(PipelineError):
    """A view cannot be read now.

    Attributes:
        retry_after_s: seconds until it is likely to be readable.
    """

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ViewGuard:
    """Answers about the views of one root; safe to use from several threads.

    Args:
        root: path of the root.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._is_withdrawn: dict[tuple[str, tuple[str, ...], str], bool] = {}

    def check(self, project: Root, filters: tuple[str, ...], view: Snapshot) -> None:
        """Refuse a view that holds a document which the published root does not permit.

        Args:
            project: the root.
            view: the snapshot that is about to be read.

        Raises:
            ViewNotReadyError: it holds one, or the root has no published index to compare with.
        """
        published = project.snapshots.current()
        if published is None:
            raise self._not_ready("This root has no published index now", filters)
        key = (published, filters, view.id)
        with self._lock:
            if key not in self._is_withdrawn:
                with closing(project.open_snapshot(published)) as snapshot:
                    kept = {known: found for known, found in self._is_withdrawn.items() if known[0] == published}
                    documents = snapshot.table("documents"), view.table("documents")
                    self._is_withdrawn = kept | {key: has_withdrawn(*documents, filters)}
            is_withdrawn = self._is_withdrawn[key]
        if is_withdrawn:
            raise self._not_ready("What you may read of this root changed, so it must be made again for you", filters)

    def missing(self, filters: tuple[str, ...]) -> ViewNotReadyError:
        """Return the error of a view without a snapshot that can be read; the reason may be one of many."""
        return self._not_ready("The part of this root that you may read is not ready", filters)

    def _not_ready(self, reason: str, filters: tuple[str, ...]) -> ViewNotReadyError:
        """Return the error with the time that making the view takes; whether it is being made now is not known here."""
        record = self._record_of(filters)
        seconds = record.seconds_left(time.time()) if record.seconds else _FIRST_S
        last = f"; making it took {record.seconds:.0f} s the last time" if record.seconds else ""
        return ViewNotReadyError(f"{reason}{last}. Ask again in about {math.ceil(seconds)} s.", seconds)

    def _record_of(self, filters: Sequence[str]) -> ViewRecord:
        return read_record(find_view(self._root, filters))

    def resolve(self, filters: tuple[str, ...], asked: str, current: str | None) -> str:
        """Return the snapshot of a reader's own index that a snapshot of the root or of another view means.

        Only whole ids of others are resolved, since the beginning of an id could be guessed.

        Args:
            filters: of the reader; none: he reads the root.
            asked: an id or its beginning.
            current: id of the snapshot of his index that is read now.

        Returns:
            The id of his snapshot; `asked` if it means none.
        """
        if not is_snapshot_id(asked) or asked == current:
            return asked
        found = list(self._counterparts(filters, asked))
        return current if current in found else found[-1] if found else asked

    def _counterparts(self, filters: Sequence[str], asked: str) -> Iterator[str]:
        own = self._record_of(filters).made_of if filters else None
        origins = [asked]
        for record in list_records(self._root):
            origins += [origin for origin, made in record.made_of.items() if made == asked]
        for origin in dict.fromkeys(origins):
            if own is None and origin != asked:
                yield origin
            elif own is not None and origin in own:
                yield own[origin]


def find_unreadable(place: Path) -> str:
    """Return why the published snapshot of a view cannot be read, "" if every file of it has its hash."""
    try:
        view = Root(place)
        with closing(view.snapshots.open()) as snapshot:
            damaged = snapshot.damaged_parts() or [*snapshot.changed_parts()]
            return describe_damage(damaged) if damaged else ""
    except (PipelineError, OSError) as error:
        return str(error)


class ViewWatch:
    """Finds views that are missing or damaged; contents are read only after names, sizes or times of files changed."""

    def __init__(self) -> None:
        self._whole: dict[Path, frozenset[tuple[object, ...]]] = {}

    def find_broken(self, places: Iterable[Path]) -> list[Path]:
        """Return the views that cannot be read, or have a file that changed."""
        return [place for place in places if not self._is_whole(place)]

    def _is_whole(self, place: Path) -> bool:
        state = _state_of(place / "snapshots")
        if state != self._whole.get(place, ()):
            self._whole.pop(place, None)
            if find_unreadable(place):
                return False
            self._whole[place] = state
        return True


def _state_of(folder: Path) -> frozenset[tuple[object, ...]]:
    """Return path, inode, size and time of each file below a folder; those that are removed now are left out."""
    found = set()
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            stat = path.stat()
            found.add((path, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return frozenset(found)
