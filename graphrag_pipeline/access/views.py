"""Making, checking and removing the views that the principals of `access.yaml` need.

A view has the documents of the snapshot that its root has published, as far as they pass. It is brought up to date by
an index run of its own, which computes what changed. If a document was deleted or edited, communities are clustered
from scratch. If a document does not pass any more, the view is removed at once and made from nothing, so that not even
numbers of records remember it. Earlier snapshots of a view are never kept. Keep out: places and settings of views
(`view_settings.py`).
"""

from __future__ import annotations

import logging
import math
import re
import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from graphrag_pipeline.access.access_file import ViewRules
from graphrag_pipeline.access.view_guard import find_unreadable
from graphrag_pipeline.access.view_records import note_end, note_start
from graphrag_pipeline.access.view_settings import derive_settings, find_view, view_id, write_view
from graphrag_pipeline.access.withdrawn import has_withdrawn
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.errors import DamagedFileError, NoSnapshotError, PipelineError
from graphrag_pipeline.filters import parse_filter
from graphrag_pipeline.identity import bucket_keys
from graphrag_pipeline.models.accounting import paid_run
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.progress import RunObserver
from graphrag_pipeline.pipeline.published_documents import PublishedDocuments
from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import VIEWS_FOLDER, Root, init_root
from graphrag_pipeline.pipeline.verification import verify_root
from graphrag_pipeline.query.filtering.document_mask import DocumentFields
from graphrag_pipeline.storage.garbage import DAMAGED_FOLDER
from graphrag_pipeline.storage.locks import one_view_builder
from graphrag_pipeline.storage.snapshots import Snapshot

_log = logging.getLogger(__name__)
_ID = re.compile(r"[0-9a-f]{16}")
_TAG = "graphrag/view"


@dataclass(frozen=True)
class ViewReport:
    """A view after it was made or checked.

    Attributes:
        filters: of its documents.
        snapshot: published snapshot; "" before the first.
        n_documents: documents in it.
        n_bytes: of its folder.
        seconds: that making it took; 0.0 for a check.
        problems: reasons why it is not right or not up to date.
    """

    root: str
    place: Path
    filters: tuple[str, ...]
    snapshot: str
    n_documents: int
    n_bytes: int
    seconds: float = 0.0
    problems: tuple[str, ...] = ()


def build_view(
    name: str, root: Root, filters: Sequence[str], rules: ViewRules, observer: RunObserver | None = None
) -> ViewReport:
    """Make a view, or bring it up to date.

    Args:
        name: of the served root, for the report.

    Raises:
        PipelineError: the root holds an imported index or has no documents with a field of the filters, or a stage of
            the view failed. The last published state of the view stays, unless it is damaged.
    """
    started = time.monotonic()
    if root.is_imported:
        raise PipelineError(
            f"`{root.path}` holds an imported index, so there are no documents to make a view of; a principal can read "
            "only all of it"
        )
    check_filters(root, filters)
    with one_view_builder(root.path / VIEWS_FOLDER), closing(root.open_snapshot()) as published:
        view = write_view(root, filters, rules, published.id)
        note_start(view.path)
        before = view.snapshots.current_manifest()
        try:
            _update(view, published, filters, observer)
        except (NoSnapshotError, DamagedFileError) as error:
            if not verify_root(view, is_repairing=True).findings:
                raise  # a file of the root is damaged
            _log.warning("the view %s was damaged and is repaired: %s", view.path, error)
            if not _can_be_opened(view):
                _start_over(view)
            _update(Root(view.path), published, filters, observer)
        view = Root(view.path)
        made, seconds = view.snapshots.current() or "", time.monotonic() - started
        note_end(view.path, published.id, made, None if before and made == before.id else seconds)
    return _report(name, view, tuple(filters), seconds)


def _update(view: Root, published: Snapshot, filters: Sequence[str], observer: RunObserver | None) -> None:
    if _has_withdrawn(published, view, filters):
        view = _start_over(view)
    tags = {_TAG: view.path.name}
    with paid_run("access build", ", ".join(sorted(filters))):
        run_index(view, observer, allow_empty=True, tags=tags, is_reclustering=_has_lost(view), allow_removal=True)
    prune(view, n_kept=1, before=math.inf)


def _can_be_opened(view: Root) -> bool:
    try:
        view.open_snapshot().close()
    except NoSnapshotError:
        return False
    return True


def take_down_view(root: Root, filters: Sequence[str]) -> bool:
    """Remove what was made of a view if a document of it does not pass any more; return whether it was.

    All views are looked at before the first one is made, so that none waits for another to lose a document.

    Raises:
        PipelineError: the root has no published index, or a table of a snapshot is missing.
    """
    place = find_view(root.path, filters)
    if not (place / "settings.yaml").exists():
        return False
    with one_view_builder(root.path / VIEWS_FOLDER), closing(root.open_snapshot()) as published:
        view = Root(place)
        is_withdrawn = _has_withdrawn(published, view, filters)
        if is_withdrawn:
            _start_over(view)
    return is_withdrawn


def _has_withdrawn(published: Snapshot, view: Root, filters: Sequence[str]) -> bool:
    if view.snapshots.current() is None:
        return False
    with closing(view.open_snapshot()) as made:
        return has_withdrawn(published.table("documents"), made.table("documents"), filters)


def _has_lost(view: Root) -> bool:
    """Return whether a document of the view was deleted or edited, so that communities may remember it."""
    heads = view.tables.heads("corpus_manifest", _buckets(view)).values()
    before = {key for head in heads if head for key in _contents(view.tables.read_head(head))}
    return bool(before) and not before <= {key for rows in detect_input(view).values() for key in _contents(rows)}


def _start_over(view: Root) -> Root:
    """Remove everything that was made of a view, and return it; readers lose it at once."""
    if view.shared:  # other machines read it; the next publication replaces it
        return view
    (view.path / "snapshots" / "current.json").unlink(missing_ok=True)
    for name in ("snapshots", "heads", "tables", "evaluations", "dagster", f"cache/{DAMAGED_FOLDER}"):
        shutil.rmtree(view.path / name, ignore_errors=True)
    init_root(view.path)
    return Root(view.path)


def _buckets(root: Root) -> list[str]:
    return bucket_keys(root.settings.storage.n_buckets)


def _contents(manifest: pa.Table) -> Iterator[tuple[str, str]]:
    ids, hashes = manifest["document_id"].to_pylist(), manifest["content_hash"].to_pylist()
    return ((one, content) for one, content in zip(ids, hashes, strict=True) if content)


def check_filters(root: Root, filters: Sequence[str]) -> None:
    """Refuse filters that cannot mean what was meant: a field that no document of the root has.

    Raises:
        PipelineError: the message lists the fields, so it is for the operator only.
    """
    snapshot = root.open_snapshot()
    try:
        fields = DocumentFields(snapshot.table("documents"))
        for text in filters:
            fields.mask_of(parse_filter(text))
    finally:
        snapshot.close()


def check_view(name: str, root: Root, filters: Sequence[str], rules: ViewRules) -> ViewReport:
    """Compare a view with its root: its settings, and the documents of its snapshot; nothing is written.

    Raises:
        PipelineError: the root has no published index, or a filter has a field that no document has.
    """
    check_filters(root, filters)
    place = find_view(root.path, filters)
    if not (place / "settings.yaml").exists():
        return ViewReport(name, place, tuple(filters), "", 0, 0, problems=("not made yet",))
    view, published = Root(place), root.snapshots.current() or ""
    wanted = derive_settings(root, filters, rules, view.settings.input.snapshot)
    problems = [] if view.settings == wanted else ["its settings are not of today"]
    if view.snapshots.current_manifest() is None:
        problems.append("not made yet, or damaged")
    elif damage := find_unreadable(place):
        problems.append(f"damaged: {damage}; run `graphrag-pipeline access build`")
    else:
        problems += _compare_documents(
            PublishedDocuments(root.tables, root.snapshots.manifest(published), filters), view
        )
    report = _report(name, view, tuple(filters), 0.0)
    return ViewReport(**{**vars(report), "problems": tuple(problems)})


def _compare_documents(published: PublishedDocuments, view: Root) -> list[str]:
    """Return how the documents of a view's snapshot differ from the published ones that pass."""
    records = published.records(view.settings.storage.n_buckets)
    now = {(record.document_id, record.content_hash) for record in records}
    snapshot = view.open_snapshot()
    try:
        ids = set(snapshot.table("documents")["id"].to_pylist())
        heads = view.tables.heads("documents", _buckets(view)).values()
        rows = [
            row
            for head in heads
            if head
            for row in view.tables.read_head(head).select(["id", "content_hash"]).to_pylist()
        ]
        held = {(row["id"], row["content_hash"]) for row in rows if row["id"] in ids}
    finally:
        snapshot.close()
    more, fewer = len(ids) - len({key for key, _ in held & now}), len(now - held)
    found = [f"{more:,} of its documents are gone, changed or not permitted now"] if more else []
    return [*found, f"{fewer:,} documents are new or changed"] if fewer else found


def _report(name: str, view: Root, filters: tuple[str, ...], seconds: float) -> ViewReport:
    manifest = view.snapshots.current_manifest()
    n_documents = int(manifest.tables["documents"]["n_rows"]) if manifest else 0
    return ViewReport(
        name, view.path, filters, manifest.id if manifest else "", n_documents, _measure(view.path), seconds
    )


def _measure(folder: Path) -> int:
    """Return the bytes of all files below a folder; a file with several names counts once."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            stat = path.stat()
            found[stat.st_dev, stat.st_ino] = stat.st_size
    return sum(found.values())


def remove_unneeded_views(root: Path, needed: Collection[tuple[str, ...]], is_dry_run: bool = False) -> list[Path]:
    """Remove the views of filters that no principal has any more, and return their places."""
    wanted = {view_id(filters) for filters in needed}
    folder = root / VIEWS_FOLDER
    unneeded = [place for place in sorted(folder.glob("*")) if _ID.fullmatch(place.name) and place.name not in wanted]
    for place in [] if is_dry_run else unneeded:
        _log.info("removes the view %s", place)
        shutil.rmtree(place)
    return unneeded
