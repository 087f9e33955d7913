"""The answers that a server needs about views: whether one may be read now, and which snapshot of it a link means.

After a publication of the root, a view that holds a document which is not permitted any more is refused at once; any
other view is read until the next one is made. Keep out: making views (`views.py`), HTTP.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from graphrag_pipeline.access.view_records import ViewRecord, list_records, read_record
from graphrag_pipeline.access.view_settings import find_view
from graphrag_pipeline.access.withdrawn import has_withdrawn
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.storage.manifests import is_snapshot_id
from graphrag_pipeline.storage.snapshots import Snapshot

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
            raise ViewNotReadyError(
                "This root has no published index now.", self._seconds_left(self._record_of(filters))
            )
        key = (published, filters, view.id)
        with self._lock:
            if key not in self._is_withdrawn:
                with closing(project.open_snapshot(published)) as snapshot:
                    kept = {known: found for known, found in self._is_withdrawn.items() if known[0] == published}
                    documents = snapshot.table("documents"), view.table("documents")
                    self._is_withdrawn = kept | {key: has_withdrawn(*documents, filters)}
            is_withdrawn = self._is_withdrawn[key]
        if is_withdrawn:
            raise self.missing(filters)

    def missing(self, filters: tuple[str, ...]) -> ViewNotReadyError:
        """Return the error of a view that cannot be read now, with the reason and the time that is left."""
        record = self._record_of(filters)
        seconds = self._seconds_left(record)
        reason = (
            "What you may read of this root changed, so it is made again for you from what you may read now"
            if record.made_of
            else "The part of this root that you may read is not made yet"
        )
        last = f"; the last time that took {record.seconds:.0f} s" if record.seconds else ""
        return ViewNotReadyError(f"{reason}{last}. It is likely to be ready in about {math.ceil(seconds)} s.", seconds)

    def _record_of(self, filters: Sequence[str]) -> ViewRecord:
        return read_record(find_view(self._root, filters))

    def _seconds_left(self, own: ViewRecord) -> float:
        return own.seconds_left(time.time()) if own.seconds else _FIRST_S  # that of other views would tell their size

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
