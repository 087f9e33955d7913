"""The candidate: contract tables, vectors and arrays frozen into one content-named snapshot, not yet published.

Both the pipeline and an import end here, so every search reads one layout. `publish` publishes a candidate if its
checks pass. Keep out: the computation of the tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from graphrag_pipeline.arrow_columns import positions
from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.files import read_sealed, seal
from graphrag_pipeline.indexing.embeddings import embedded_texts
from graphrag_pipeline.indexing.sentence_embeddings import embed_sentences, stack_sentences
from graphrag_pipeline.models.ports import load_static_embedder
from graphrag_pipeline.publishing.arrays import build_arrays
from graphrag_pipeline.publishing.checks import CHECKS, POLICY_CHECKS, CheckResult, check_removal, check_snapshot
from graphrag_pipeline.settings.settings import PublishingSettings
from graphrag_pipeline.storage.damage import ARRAYS, MAPPED_TABLE, TABLE, StoredPart, find_changed_file, has_own_hash
from graphrag_pipeline.storage.manifests import Manifest, hash_path
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.snapshots import Snapshot, map_table
from graphrag_pipeline.storage.table_store import put_parquet
from graphrag_pipeline.storage.vectors.folders import VectorFolder, VectorMatrix, VectorRows, replace_whole, vector_rows
from graphrag_pipeline.storage.vectors.rows import (
    KEY_ROWS,
    SEGMENT_ROWS,
    TABLE_ROWS,
    keys_of,
    read_apart,
)
from graphrag_pipeline.tables import VECTOR_TABLES

_SLICE_ROWS = 16_384
_MAX_ROWS_AHEAD = 150_000
"""Rows of all vector tables together, up to which they are read ahead: more do not fit into memory at once."""
_encode = json.JSONEncoder(ensure_ascii=False).encode
_FULL_TEXT = {"default-text_unit-text"}
_ATTRIBUTES = {
    "default-text_unit-text": ("document_id",),
    "default-entity-description": ("title", "type"),
    "default-relationship-description": ("source", "target"),
    "default-community-full_content": ("community", "level", "title"),
}
_EMBEDDED_COLUMNS = {
    "documents": ("id", "title"),
    "text_units": ("id", "text", "document_id", "heading_path"),
    "entities": ("id", "title", "type", "description"),
    "relationships": ("id", "source", "target", "description"),
    "community_reports": ("id", "full_content", "community", "level", "title"),
}
"""Columns that the texts and attributes of vector tables are made of, by contract table."""


def freeze_candidate(
    store: SnapshotStore,
    tables: dict[str, pa.Table],
    vectors: Mapping[str, VectorMatrix],
    embedding_fingerprint: str,
    sentences: pa.Table | None = None,
    heads: Mapping[str, dict[str, Any]] | None = None,
    previous: Manifest | None = None,
    origin: str = "pipeline",
    notes: tuple[str, ...] = (),
    code: Mapping[str, dict[str, Any]] | None = None,
) -> str:
    """Write a candidate and return the snapshot's id.

    Args:
        tables: all contract tables, in file order; reduced to the columns of vector tables during the call, since
            vectors need the memory of the others.
        vectors: vector table -> float32 matrix with one row per row of its contract table.
        sentences: rows of `sentence_embeddings`; computed here if None, as for an imported index.
        heads: data version, code version and inputs of every stage partition, by "table/partition".
        previous: the last candidate, whose LanceDB folders are reused.
        notes: repairs that an import made.
        code: the prompts, model and settings of each code version in `heads`, by name.
    """
    static_embeddings = load_static_embedder()
    if sentences is None:
        sentences = embed_sentences(tables["text_units"], static_embeddings)
    sentence_folder = store.write_sentences(stack_sentences(tables["text_units"], sentences))
    del sentences  # large, as each vector table is; those come last, one at a time
    with ThreadPoolExecutor(1) as beside:  # Arrow writes files without Python's lock, which the arrays need
        writing = beside.submit(lambda: {name: store.write_table(name, rows) for name, rows in tables.items()})
        adjacency = store.write_adjacency(build_arrays(tables))
        written = writing.result()
    _keep_embedded_columns(tables)
    manifest = Manifest(
        origin=origin,
        heads=dict(heads or {}),
        tables=written,
        adjacency=adjacency,
        vectors=_write_all_vectors(store, tables, vectors, previous),
        embedding_fingerprint=embedding_fingerprint,
        notes=notes,
        sentences=sentence_folder,
        sentence_fingerprint=static_embeddings.fingerprint,
        vector_store=store.vector_store.kind,
        code=dict(code or {}),
    )
    return store.write_manifest(manifest)


def _keep_embedded_columns(tables: dict[str, pa.Table]) -> None:
    for name, rows in tables.items():
        tables[name] = rows.select(list(_EMBEDDED_COLUMNS.get(name, ())))
    pa.default_memory_pool().release_unused()


def _write_all_vectors(
    store: SnapshotStore,
    tables: Mapping[str, pa.Table],
    vectors: Mapping[str, VectorMatrix],
    previous: Manifest | None,
) -> dict[str, VectorFolder]:
    """Write the vector tables; the vectors of small ones are read while another one is written."""
    if sum(len(tables[table]) for table, _ in VECTOR_TABLES.values()) > _MAX_ROWS_AHEAD:
        readers = {name: partial(vectors.__getitem__, name) for name in VECTOR_TABLES}
        return {name: _write_vectors(store, name, tables, read, previous) for name, read in readers.items()}
    with ThreadPoolExecutor(1) as thread:
        coming = {name: thread.submit(vectors.__getitem__, name) for name in VECTOR_TABLES}
        return {name: _write_vectors(store, name, tables, coming.pop(name).result, previous) for name in VECTOR_TABLES}


def _write_vectors(
    store: SnapshotStore,
    name: str,
    tables: Mapping[str, pa.Table],
    read: Callable[[], VectorMatrix],
    previous: Manifest | None,
) -> VectorFolder:
    matrix = read()  # before the texts: the lookup of vectors frees memory when it ends
    return store.write_vectors(name, join_vector_rows(name, tables, matrix), name in _FULL_TEXT, previous)


def join_vector_rows(name: str, tables: Mapping[str, pa.Table], matrix: VectorMatrix) -> VectorRows:
    """Return the rows of a vector table.

    Args:
        tables: its contract table, and `documents` for a table with full text; columns `_EMBEDDED_COLUMNS`.
        matrix: one vector for each row of the contract table.
    """
    rows = tables[VECTOR_TABLES[name][0]]
    return vector_rows(rows["id"], _searched_texts(name, tables), matrix, _attributes(name, rows))


def _attributes(vector_table: str, rows: pa.Table) -> pa.ChunkedArray:
    """Return the `attributes` column of a vector table: a JSON object per row."""
    names = _ATTRIBUTES[vector_table]

    def write_objects(part: pa.Table) -> list[str]:
        columns = [_encode_pairs(name, part[name].to_pylist()) for name in names]
        return [f"{{{', '.join(pairs)}}}" for pairs in zip(*columns, strict=True)]

    return _map_rows(rows.select(names), write_objects)


def _encode_pairs(name: str, values: list[Any]) -> list[str]:
    """Return `"name": value` in JSON for values of one type; each distinct value is encoded once."""
    key = _encode(name)
    encoded = {value: f"{key}: {_encode(value)}" for value in dict.fromkeys(values)}
    return [encoded[value] for value in values]


def _searched_texts(vector_table: str, tables: Mapping[str, pa.Table]) -> pa.ChunkedArray:
    """Return the `text` column of a vector table: the embedded texts, for full text below the document's title.

    Questions name titles, and only the title of its document finds a passage that says "the film".
    """
    rows = tables[VECTOR_TABLES[vector_table][0]]
    if vector_table not in _FULL_TEXT:
        return _map_rows(rows, lambda part: embedded_texts(vector_table, part))
    documents = tables["documents"]
    title_of = dict(zip(documents["id"].to_pylist(), documents["title"].to_pylist(), strict=True))

    def write_under_titles(part: pa.Table) -> list[str]:
        titles = [title_of[document_id] for document_id in part["document_id"].to_pylist()]
        return [f"{title}\n{text}" for title, text in zip(titles, embedded_texts(vector_table, part), strict=True)]

    return _map_rows(rows, write_under_titles)


def _map_rows(rows: pa.Table, write: Callable[[pa.Table], list[str]]) -> pa.ChunkedArray:
    """Return a column of strings that `write` makes from slices of rows, so that few are in Python at a time."""
    slices = (rows.slice(start, _SLICE_ROWS) for start in range(0, len(rows), _SLICE_ROWS))
    written = pa.chunked_array([pa.array(write(part), pa.string()) for part in slices], pa.string())
    pa.default_memory_pool().release_unused()
    return written


def verify(store: SnapshotStore, snapshot: Snapshot) -> list[CheckResult]:
    """Run every check on a snapshot; a pass is saved, since a snapshot never changes."""
    passed = store.folder / f"{snapshot.id}.checked"
    known = read_passed(passed)
    if known and not snapshot.damaged_parts() and not snapshot.changed_parts():
        return [CheckResult(name, []) for name in known]
    results = check_snapshot(snapshot)
    if all(result.passed for result in results):
        files.put_new(passed, seal({"passed": [result.name for result in results]}))
    return results


def read_passed(path: Path) -> list[str] | None:
    """Return the names of the checks that a snapshot passed, [] if one is unknown now; None if the file is damaged."""
    try:
        names = read_sealed(path.read_bytes(), is_required=True)["passed"]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError):
        return None
    return names if set(names) <= set(CHECKS) else []


def publish(
    store: SnapshotStore,
    snapshot_id: str,
    settings: PublishingSettings | None = None,
    trial: Callable[[Snapshot], None] | None = None,
    allow_removal: bool = False,
) -> None:
    """Publish a snapshot if all its checks pass.

    Args:
        settings: limits of the checks in `checks.POLICY_CHECKS` and of `removal.check_removal`; None: the defaults.
        trial: searches the snapshot, and raises a PipelineError if a search fails.
        allow_removal: whether any number of published documents may be gone.

    Raises:
        PipelineError: a check failed, or another snapshot is pinned; the published snapshot stays.
    """
    pinned = store.pinned()
    if pinned not in (None, snapshot_id):
        raise PipelineError(
            f"candidate {snapshot_id} is not published: snapshot {pinned} is pinned; run `graphrag-pipeline snapshots "
            "unpin`, then `graphrag-pipeline index` (or `import` again)"
        )
    snapshot = store.open(snapshot_id)
    published = None if allow_removal else open_published(store)
    results = check_candidate(store, snapshot, published, settings or PublishingSettings())
    failed = [result for result in results if not result.passed]
    if failed:
        reasons = "; ".join(f"{result.name}: {result.problems[0]}" for result in failed)
        raise PipelineError(f"candidate {snapshot_id} is not published, {len(failed)} checks failed: {reasons}")
    if trial:
        trial(snapshot)
    store.point_at(snapshot_id)


def check_candidate(
    store: SnapshotStore, snapshot: Snapshot, published: Snapshot | None, settings: PublishingSettings
) -> list[CheckResult]:
    """Run all checks that a candidate must pass to be published.

    Args:
        published: the snapshot whose documents must still be there; None: any may be gone.
    """
    policies = [CheckResult(name, check(snapshot, settings)) for name, check in POLICY_CHECKS.items()]
    removal = CheckResult("removed_documents", check_removal(published, snapshot, settings))
    return [*verify(store, snapshot), *policies, removal]


def open_published(store: SnapshotStore) -> Snapshot | None:
    """Return the published snapshot; None if no whole snapshot is published."""
    try:
        return store.open()
    except NoSnapshotError:  # a damaged snapshot counts as none
        return None


T = TypeVar("T")
_UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, KeyError, IndexError, pa.ArrowException)
"""Errors of reading damaged files; each reader of a format has its own."""


def remake(store: SnapshotStore, snapshot: Snapshot, part: StoredPart, others: Sequence[Snapshot] = ()) -> bool:
    """Make a damaged part of a snapshot again; return whether it has the content that its name promises now.

    Args:
        others: snapshots of the root that may have vectors of it.

    Raises:
        PipelineError: the disk is full or the folder cannot be written.
    """
    try:
        if part.kind == TABLE:
            _remake_table(part.path)
        elif part.kind == MAPPED_TABLE:
            _remake_copy(store, part.path)
        elif part.kind == ARRAYS:
            _remake_arrays(store, snapshot, part.path)
        else:
            _remake_vectors(snapshot, part.path, others)
    except (NoSnapshotError, *_UNREADABLE):
        return False  # a part that it is made from is damaged, too
    return not part.changed(is_fresh=True)


def _remake_table(path: Path) -> None:
    mapped = path.with_suffix(".arrow")
    if hash_path(mapped).exists() and not has_own_hash(mapped):
        return
    rows = map_table(mapped)
    rows.validate(full=True)  # a copy without a hash may be damaged; the name of the result tells
    name, _ = put_parquet(path.parent, rows)
    if name != path.name:  # another release of pyarrow writes other bytes
        (path.parent / name).unlink()


def _remake_copy(store: SnapshotStore, path: Path) -> None:
    table = path.with_suffix(".parquet")
    if not find_changed_file(table):
        store.map_table(path.parent.name, {"file": table.name})


def _remake_arrays(store: SnapshotStore, snapshot: Snapshot, path: Path) -> None:
    names = list(snapshot.manifest.tables)
    if path.parent.name == "sentences":
        text_units = snapshot.checked_table("text_units")
        store.write_sentences(stack_sentences(text_units, embed_sentences(text_units, load_static_embedder())))
        return
    tables = {name: snapshot.checked_table(name) for name in names}
    store.write_adjacency(build_arrays(tables))


def _remake_vectors(snapshot: Snapshot, path: Path, others: Sequence[Snapshot]) -> None:
    parent, name = snapshot.folder / "vectors", path.parent.name
    folder = snapshot.manifest.vectors[name]
    tables = {table: snapshot.checked_table(table) for table in (VECTOR_TABLES[name][0], "documents")}
    ids = tables[VECTOR_TABLES[name][0]]["id"].combine_chunks()
    keys = _read(lambda: keys_of(read_apart(KEY_ROWS, path, name)))
    matrix = np.zeros((len(ids), folder.dimensions), dtype=np.float32)
    for found in _find_vectors(parent, folder, ids, others):
        rows = join_vector_rows(name, tables, found)
        if replace_whole(parent, folder, rows):
            return
        if keys is not None:
            changed, _ = rows.hash_content()[1].find_changed(keys)
            is_right = np.ones(rows.n_rows, dtype=bool)
            is_right[rows.order[changed]] = False
            matrix[is_right] = found[is_right]
    replace_whole(parent, folder, join_vector_rows(name, tables, matrix))


def _find_vectors(
    parent: Path, folder: VectorFolder, ids: pa.Array, others: Iterable[Snapshot]
) -> Iterator[np.ndarray]:
    """Yield vectors of the rows from each place that may have them: float32 (n rows, dimensions), zeros if unknown."""
    named = [other.manifest.vectors.get(folder.name) for other in others]
    for source in dict.fromkeys([folder, *(other for other in named if other)]):
        if source.dimensions != folder.dimensions:
            continue
        for kind in (TABLE_ROWS, SEGMENT_ROWS):
            found = _read(partial(_place, kind, parent, source, ids))
            if found is not None:
                yield found


def _place(kind: str, parent: Path, source: VectorFolder, ids: pa.Array) -> np.ndarray:
    found = read_apart(kind, source.path(parent), source.name, source.dimensions).combine_chunks()
    placed = np.zeros((len(ids), source.dimensions), dtype=np.float32)
    if len(found):
        rows = positions(ids, found["id"].chunk(0))
        vectors = found["vector"].chunk(0).flatten().to_numpy().reshape(len(found), source.dimensions)
        placed[rows >= 0] = vectors[rows[rows >= 0]]
    return placed


def _read(read: Callable[[], T]) -> T | None:
    """Return what a reader of a damaged folder returns, None if it cannot; what changed rows hold may be wrong."""
    try:
        return read()
    except (NoSnapshotError, *_UNREADABLE):
        return None
