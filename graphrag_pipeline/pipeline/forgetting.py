"""Forgetting a document: removing every trace of it after it was deleted and the index was published again.

Removed are the snapshots that hold it, stage files that no head names, cached conversions of its file, and deleted rows
that LanceDB keeps in its files. Model replies and vectors that the present index does not come from are removed too:
`try`, earlier prompts and pruned files leave replies that nothing names. A document that is still in the input folder
or in the published index is refused, and so is one that a tuned set of prompts was written from. Dagster's records keep
previews of tables; `dagster/` may be removed at any time. Keep out: deleting a document from the index, which `index`
does.
"""

from __future__ import annotations

import math
import shutil
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
from graphrag_pipeline.pipeline.retention import sweep_root
from graphrag_pipeline.pipeline.root import VIEWS_FOLDER, Root
from graphrag_pipeline.pipeline.stages import CANDIDATE
from graphrag_pipeline.pipeline.tuned_sets import folder_of, list_sets
from graphrag_pipeline.storage.garbage import SweepReport, check_readable
from graphrag_pipeline.storage.locks import hold_alone, is_held, one_index_run, one_view_builder, one_writer
from graphrag_pipeline.storage.snapshot_store import refusal_of
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.storage.vectors import LANCEDB
from graphrag_pipeline.storage.vectors.folders import VectorFolder, holds_deleted, rewrite_whole
from graphrag_pipeline.storage.vectors.stores import collection_of
from graphrag_pipeline.text.counted import counted

_SPARED_STAGES = ("resolution",)
"""Stages whose replies stay: verdicts on whether two names are one quote descriptions, but no row names them."""

_KEY = ["id", "path", "record"]
_N_NEAREST = 5
_LOWEST_SCORE = 60.0
"""Least similarity (rapidfuzz, 0 to 100) of a path that is suggested."""


@dataclass(frozen=True)
class Forgotten:
    """The outcome of forgetting a document.

    Attributes:
        documents: path, and record inside the file, of the forgotten documents.
        swept: snapshots and files.
        n_replies, n_vectors: removed from the cache of models.
        rewritten: vector collections of other snapshots that still held deleted rows.
    """

    documents: tuple[str, ...]
    swept: SweepReport
    n_replies: int
    n_vectors: int
    rewritten: tuple[str, ...]


class UnknownDocumentError(PipelineError):
    """No file names the document that is to be forgotten. Nothing was removed.

    Attributes:
        nearest: paths of documents that were perhaps meant, the likeliest first.
    """

    def __init__(self, document: str, nearest: tuple[str, ...]) -> None:
        meant = f"Perhaps you mean {' or '.join(map(repr, nearest))}. " if nearest else ""
        super().__init__(
            f"document {document!r}: no snapshot and no file of the index holds a document of this path or id; it "
            f"is forgotten already, was pruned, or has another name. Nothing was removed. {meant}Names are in `path` "
            "of `graphrag-pipeline sql 'SELECT id, path FROM documents'`. If it was pruned, replies of models may "
            "still hold it: run this with --pruned, which removes all that the present index does not need, and "
            "without a terminal also with --yes"
        )
        self.nearest = nearest


def forget_document(root: Root, document: str, is_pruned: bool = False) -> Forgotten:
    """Remove every trace of a document that was deleted.

    Args:
        document: its path in the input folder (then all records of that file) or its id.
        is_pruned: the document may be unknown, since `snapshots prune` removed all files that name it.

    Raises:
        UnknownDocumentError: the document is unknown. Nothing is removed.
        PipelineError: it is still in the input folder, in the index or open in a reader.
            Nothing of it is removed then.
    """
    if root.shares_cache:
        raise PipelineError(
            f"`{root.path}` uses the cache of another root (`storage.cache_folder`), whose replies would be removed; "
            "forget the document there, then remove this root and make it again"
        )
    views = root.path / VIEWS_FOLDER
    with one_view_builder(views), one_index_run(root.path), root.writing(), one_writer(root.path), ExitStack() as locks:
        if root.shared:
            root.shared.fetch_all()  # these files show where the document is and what came from it
        check_readable(root.tables, root.snapshots)
        known = _find_documents(root, document)
        if not known and not is_pruned:
            raise UnknownDocumentError(document, _find_nearest(root, document))
        _refuse_input(root, document, known)
        _refuse_indexed(root, document, known)
        _refuse_tuned(root, document, known)
        doomed = _holding(root, known)
        hidden = _hidden_vectors(root, doomed)
        for snapshot_id in doomed:
            _refuse_read(snapshot_id, is_held(root.snapshots.path_of(snapshot_id)))
        for snapshot_id in sorted({snapshot_id for snapshot_id, _ in hidden}):  # readers may not open them now
            _refuse_read(snapshot_id, not locks.enter_context(hold_alone(root.snapshots.path_of(snapshot_id))))
        n_replies, n_vectors = _forget_replies(root)
        folders = {collection_of(folder): folder for _, folder in hidden}
        if root.shared:
            root.shared.upload_again(folders.values())
        for folder in folders.values():
            rewrite_whole(root.snapshots.folder / "vectors", folder)
        # Last: these files name the document, so that forgetting can be repeated after a crash.
        swept = sweep_root(root, doomed, math.inf)
        for view in views.glob("*/"):  # `access build` makes them again, as does a server within seconds
            shutil.rmtree(view, ignore_errors=True)
        labels = tuple(f"{path} ({record})" if record else path for path, record in sorted(known.values()))
        return Forgotten(labels, swept, n_replies, n_vectors, tuple(sorted(folders)))


_Known = dict[str, tuple[str, str]]
"""Document id -> path and record."""


def _find_documents(root: Root, document: str) -> _Known:
    """Return documents of this id or path in any snapshot or stage file; `snapshots prune` may have removed them."""
    rows = _list_documents(root)
    return {row["id"]: (row["path"], row["record"]) for row in rows if document in (row["id"], row["path"])}


def _list_documents(root: Root) -> list[dict[str, str]]:
    tables = [StageFiles.on_disk(root).read("documents", _KEY)]
    tables += [snapshot.table("documents").select(_KEY) for snapshot in _snapshots(root)]
    return pa.concat_tables(tables).to_pylist()


def _find_nearest(root: Root, document: str) -> tuple[str, ...]:
    """Return the paths that are the most like a name, the likeliest first."""
    from rapidfuzz import fuzz, process

    paths = sorted({row["path"] for row in _list_documents(root)})
    found = process.extract(
        document, paths, scorer=fuzz.WRatio, processor=str.casefold, limit=_N_NEAREST, score_cutoff=_LOWEST_SCORE
    )
    return tuple(path for path, _, _ in found)


def _snapshots(root: Root) -> Iterator[Snapshot]:
    """Yield every whole snapshot, without a lock on it."""
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
            f"document {document!r} is still in {root.shown_input}; remove it there, run `graphrag-pipeline index`, "
            "then this again"
        )


def _refuse_indexed(root: Root, document: str, known: _Known) -> None:
    """Refuse while the heads, the candidate or the published snapshot hold the document."""
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
            f"refused by the golden questions ({refusal}); undo what changed, or raise publishing.max_recall_drop, run "
            "`graphrag-pipeline index`, then this again"
        )
    if rows.num_rows or holding & in_use:
        way_out = "`graphrag-pipeline index` (with --allow-empty, if it was the last one)"
        way_out = "`graphrag-pipeline import` of an index without it" if root.is_imported else way_out
        raise PipelineError(f"document {document!r} is still in the index; run {way_out}, then this again")


def _refuse_tuned(root: Root, document: str, known: _Known) -> None:
    """Refuse while a tuned set was written from the document: its prompts may quote it, and the user owns them."""
    for tuned in list_sets(root.path):
        if any(document_id in known for _, document_id in tuned.sample):
            is_adopted = tuned.name == root.settings.tuning.adopted
            first = "run `graphrag-pipeline tune revert`, then " if is_adopted else ""
            raise PipelineError(
                f"document {document!r} is in the sample of the tuned set `{tuned.name}`, whose prompts may quote it; "
                f"{first}delete {folder_of(root.path, tuned.name)}, then run this again"
            )


def _holding(root: Root, known: _Known) -> list[str]:
    """Return the snapshots that hold one of the documents, oldest first, and damaged ones, which may hold it."""
    whole = {snapshot.id: snapshot for snapshot in _snapshots(root)}
    ids = pa.array(sorted(known), pa.string())
    return [i for i in root.snapshots.ids() if i not in whole or (whole[i].rows_of("documents", ids) >= 0).any()]


def _hidden_vectors(root: Root, doomed: Collection[str]) -> list[tuple[str, VectorFolder]]:
    """Return (snapshot, folder) of remaining snapshots whose vector folders hold deleted rows in their files."""
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
        raise PipelineError(f"snapshot {snapshot_id} is open in another process; end that process, then run this again")


def _forget_replies(root: Root) -> tuple[int, int]:
    """Remove replies and vectors that nothing in the present index came from."""
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
    """Return what was removed, in lines; `retention.render_sweep` reports the sweep."""
    lines = [f"forgot {document}" for document in forgotten.documents]
    lines += [f"rewrote vectors {name}" for name in forgotten.rewritten]
    replies, vectors = counted(forgotten.n_replies, "replies"), counted(forgotten.n_vectors, "vectors")
    lines.append(f"removed {replies} and {vectors} of models")
    return lines
