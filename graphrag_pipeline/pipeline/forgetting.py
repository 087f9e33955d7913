"""Forgetting a document: after it was deleted and the index published again, what remembers it goes too.

That is: the snapshots that hold it, every stage file that no head names, every reply and vector of a model that the
index as it is now does not come from (`try`, prompts of before and files that `prune` removed leave replies about it
that nothing names), cached conversions of its file, and deleted rows that LanceDB keeps in its files. What is still in
the input folder, or in the published index, is refused. Dagster's own records keep previews of tables: `dagster/` may
be removed at any time. Keep out: deleting a document from the index, which `index` does.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.models.endpoints.clients import CACHE_FILE
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.document_traces import (
    StageFiles,
    find_needed_replies,
    find_text_hashes,
)
from graphrag_pipeline.pipeline.retention import sweep_shared, unused_records
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import CANDIDATE
from graphrag_pipeline.storage.garbage import SweepReport, sweep
from graphrag_pipeline.storage.history import refusal_of
from graphrag_pipeline.storage.locks import hold_alone, is_held, one_index_run, one_writer
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.storage.vectors.folders import VectorFolder
from graphrag_pipeline.storage.vectors.purge import holds_deleted, rewrite_whole
from graphrag_pipeline.storage.vectors.registry import LANCEDB
from graphrag_pipeline.storage.vectors.stores import collection_of

_SPARED_STAGES = ("resolution",)
"""Verdicts on whether two names are one: they quote descriptions, but no row names them."""

_KEY = ["id", "path", "record"]


@dataclass(frozen=True)
class Forgotten:
    """What was removed.

    Attributes:
        documents: path, and record inside the file, of what was forgotten.
        swept: snapshots and files.
        n_replies, n_vectors: of models, in the cache.
        rewritten: collections of vectors of other snapshots that still held deleted rows.
    """

    documents: tuple[str, ...]
    swept: SweepReport
    n_replies: int
    n_vectors: int
    rewritten: tuple[str, ...]


def forget_document(root: Root, document: str) -> Forgotten:
    """Remove every trace of a document that was deleted.

    Args:
        document: its path in the input folder (then all records of that file) or its id.

    Raises:
        PipelineError: it is not known, or still in the input folder, in the index or open in a reader; nothing is
            removed then.
    """
    with one_index_run(root.path), root.writing(), one_writer(root.path), ExitStack() as locks:
        if root.shared:
            root.shared.fetch_all()  # where it is and what came from it is known from these
        known = _find_documents(root, document)
        _refuse_input(root, document, known)
        _refuse_indexed(root, document, known)
        doomed = _holding(root, known)
        hidden = _hidden_vectors(root, doomed)
        for snapshot_id in doomed:
            _refuse_read(snapshot_id, is_held(root.snapshots.path_of(snapshot_id)))
        for snapshot_id in sorted({snapshot_id for snapshot_id, _ in hidden}):  # nobody may open what is rewritten
            _refuse_read(snapshot_id, not locks.enter_context(hold_alone(root.snapshots.path_of(snapshot_id))))
        n_replies, n_vectors = _forget_replies(root)
        folders = {collection_of(folder): folder for _, folder in hidden}
        if root.shared:
            root.shared.upload_again(folders.values())
        for folder in folders.values():
            rewrite_whole(root.snapshots.folder / "vectors", folder)
        # Last: by these files it is known, so that a forgetting that was cut short can be done again.
        swept = sweep(root.tables, root.snapshots, doomed, math.inf, unused_records(root))
        swept = sweep_shared(root, swept)
        if not known:
            raise PipelineError(
                f"document {document!r}: no snapshot and no file of the index holds a document of this path or id: it "
                "is forgotten already, was pruned, or is named otherwise: as `path` in `graphrag-pipeline sql 'SELECT "
                f"id, path FROM documents'` did. What the index as it is now does not need was removed all the same: "
                f"{n_replies:,} replies and {n_vectors:,} vectors of models, {len(swept.paths):,} files"
            )
        labels = tuple(f"{path} ({record})" if record else path for path, record in sorted(known.values()))
        return Forgotten(labels, swept, n_replies, n_vectors, tuple(sorted(folders)))


_Known = dict[str, tuple[str, str]]
"""Document id -> path and record."""


def _find_documents(root: Root, document: str) -> _Known:
    """Documents of this id or path in any snapshot and any stage file; none after `snapshots prune` removed those."""
    tables = [StageFiles.on_disk(root).read("documents", _KEY)]
    tables += [snapshot.table("documents").select(_KEY) for snapshot in _snapshots(root)]
    rows = pa.concat_tables(tables).to_pylist()
    known = {row["id"]: (row["path"], row["record"]) for row in rows if document in (row["id"], row["path"])}
    return known


def _snapshots(root: Root) -> Iterator[Snapshot]:
    """Every snapshot that is whole, without holding it."""
    store = root.snapshots
    for snapshot_id in store.ids():
        try:
            snapshot = Snapshot(store.folder, snapshot_id, store.manifest(snapshot_id), store.vector_store)
        except NoSnapshotError:
            continue
        if not snapshot.missing_parts():
            yield snapshot


def _refuse_input(root: Root, document: str, known: _Known) -> None:
    present = {i for rows in detect_input(root).values() for i in rows["document_id"].to_pylist()}
    if present & set(known):
        raise PipelineError(
            f"document {document!r} is still in {root.input_folder}; remove it there, run `graphrag-pipeline index`, "
            "then this again"
        )


def _refuse_indexed(root: Root, document: str, known: _Known) -> None:
    """Refuse while the heads, the candidate or what readers get hold it."""
    rows = StageFiles.of_heads(root).read_where("documents", ["id"], "id", set(known))
    candidate = root.tables.head(CANDIDATE.name)
    in_use = {root.snapshots.current(), candidate.data_version if candidate else None}
    holding = set(_holding(root, known))
    if root.snapshots.pinned() in holding:
        raise PipelineError(
            f"document {document!r} is in snapshot {root.snapshots.pinned()}, which is pinned; run "
            "`graphrag-pipeline snapshots unpin` and `graphrag-pipeline index`, then this again"
        )
    refusal = refusal_of(root.snapshots, candidate.data_version) if candidate else ""
    if refusal and not rows.num_rows and candidate and candidate.data_version not in holding and holding & in_use:
        raise PipelineError(
            f"document {document!r} is still in the published index: candidate {candidate.data_version} without it was "
            f"refused by the golden questions ({refusal}); mend what changed, or raise publishing.max_recall_drop, run "
            "`graphrag-pipeline index`, then this again"
        )
    if rows.num_rows or holding & in_use:
        way_out = "`graphrag-pipeline index` (with --allow-empty, if it was the last one)"
        way_out = "`graphrag-pipeline import` of an index without it" if root.is_imported else way_out
        raise PipelineError(f"document {document!r} is still in the index; run {way_out}, then this again")


def _holding(root: Root, known: _Known) -> list[str]:
    """Snapshots that hold one of the documents, oldest first; also those that are damaged, since they may."""
    whole = {snapshot.id: snapshot for snapshot in _snapshots(root)}
    ids = pa.array(sorted(known), pa.string())
    return [i for i in root.snapshots.ids() if i not in whole or (whole[i].rows_of("documents", ids) >= 0).any()]


def _hidden_vectors(root: Root, doomed: Collection[str]) -> list[tuple[str, VectorFolder]]:
    """(snapshot, folder) of the snapshots that stay, whose folders hold deleted rows in their files."""
    parent = root.snapshots.folder / "vectors"
    return [
        (snapshot.id, folder)
        for snapshot in _snapshots(root)
        if snapshot.id not in doomed and snapshot.manifest.vector_store == LANCEDB
        for folder in snapshot.manifest.vectors.values()
        if holds_deleted(parent, folder)
    ]


def _refuse_read(snapshot_id: str, is_read: bool) -> None:
    if is_read:
        raise PipelineError(f"snapshot {snapshot_id} is open in another process; end that one, then run this again")


def _forget_replies(root: Root) -> tuple[int, int]:
    """Remove replies and vectors that nothing now in the index came from."""
    if not _has_cache(root):
        return 0, 0
    current, cache = StageFiles.of_heads(root), root.models.cache
    n_replies = cache.forget_others(find_needed_replies(root, current), _SPARED_STAGES)
    n_vectors = cache.forget_other_vectors(find_text_hashes(current))
    cache.compact()
    return n_replies, n_vectors


def _has_cache(root: Root) -> bool:
    return bool(root.settings.storage.cache_url) or (root.cache_folder / CACHE_FILE).exists()


def render_forgotten(forgotten: Forgotten) -> list[str]:
    """What was removed, in lines; what the sweep removed is told by `retention.render_sweep`."""
    lines = [f"forgot {document}" for document in forgotten.documents]
    lines += [f"rewrote vectors {name}" for name in forgotten.rewritten]
    lines.append(f"removed {forgotten.n_replies:,} replies and {forgotten.n_vectors:,} vectors of models")
    return lines
