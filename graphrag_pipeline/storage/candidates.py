"""The candidate: contract tables, vectors and arrays frozen into one content-named snapshot, not yet published.

Both the pipeline and an import end here, so every search sees one layout. Publishing is `publish`, and only of a
candidate whose checks pass. Keep out: how the tables are made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.indexing.adjacency import build_adjacency
from graphrag_pipeline.indexing.embeddings import embedded_texts
from graphrag_pipeline.indexing.sentence_embeddings import embed_sentences, stack_sentences
from graphrag_pipeline.models.static_embeddings import load_static_embeddings
from graphrag_pipeline.storage import files
from graphrag_pipeline.storage.checks import CheckResult, check_snapshot
from graphrag_pipeline.storage.snapshots import Manifest, Snapshot, SnapshotStore
from graphrag_pipeline.storage.vectors import vector_rows
from graphrag_pipeline.tables import VECTOR_TABLES

_FULL_TEXT = {"default-text_unit-text"}
_ATTRIBUTES = {
    "default-text_unit-text": ("document_id",),
    "default-entity-description": ("title", "type"),
    "default-relationship-description": ("source", "target"),
    "default-community-full_content": ("community", "level", "title"),
}


def freeze_candidate(
    store: SnapshotStore,
    tables: Mapping[str, pa.Table],
    vectors: Mapping[str, np.ndarray],
    embedding_fingerprint: str,
    sentences: pa.Table | None = None,
    heads: Mapping[str, dict[str, Any]] | None = None,
    previous: Manifest | None = None,
    origin: str = "pipeline",
    notes: tuple[str, ...] = (),
) -> str:
    """Write a candidate; returns the snapshot's id.

    Args:
        tables: all contract tables, in file order.
        vectors: vector table -> float32 matrix with one row per row of its contract table.
        sentences: rows of `sentence_embeddings`; made here where there are none, as for an imported index.
        heads: data version, code version and inputs of every stage partition, by "table/partition".
        previous: the last candidate, whose LanceDB folders are reused.
        notes: what an import mended.
    """
    static_embeddings = load_static_embeddings()
    if sentences is None:
        sentences = embed_sentences(tables["text_units"], static_embeddings)
    folders = {}
    for name, (table, _) in VECTOR_TABLES.items():
        rows = tables[table]
        attributes = [json.dumps(row, ensure_ascii=False) for row in rows.select(_ATTRIBUTES[name]).to_pylist()]
        content = vector_rows(rows["id"].to_pylist(), _searched_texts(name, tables), vectors[name], attributes)
        folders[name] = store.write_vectors(name, content, name in _FULL_TEXT, previous)
    manifest = Manifest(
        origin=origin,
        heads=dict(heads or {}),
        tables={name: store.write_table(name, rows) for name, rows in tables.items()},
        vectors=folders,
        adjacency=store.write_adjacency(build_adjacency(tables)),
        embedding_fingerprint=embedding_fingerprint,
        notes=notes,
        sentences=store.write_sentences(stack_sentences(tables["text_units"], sentences)),
        sentence_fingerprint=static_embeddings.fingerprint,
    )
    return store.write_manifest(manifest)


def _searched_texts(vector_table: str, tables: Mapping[str, pa.Table]) -> list[str]:
    """The `text` column of a vector table: what is embedded, under the document's title where full text is searched.

    People ask by title, and a passage that says "the film" is found by the title of its document alone.
    """
    rows = tables[VECTOR_TABLES[vector_table][0]]
    texts = embedded_texts(vector_table, rows)
    if vector_table not in _FULL_TEXT:
        return texts
    documents = tables["documents"]
    title_of = dict(zip(documents["id"].to_pylist(), documents["title"].to_pylist(), strict=True))
    titles = [title_of[document_id] for document_id in rows["document_id"].to_pylist()]
    return [f"{title}\n{text}" for title, text in zip(titles, texts, strict=True)]


def verify(store: SnapshotStore, snapshot: Snapshot) -> list[CheckResult]:
    """Run every check on a snapshot; a pass is remembered, since a snapshot never changes."""
    passed = store.folder / f"{snapshot.id}.checked"
    if passed.exists() and not snapshot.missing_files():
        return [CheckResult(name, []) for name in json.loads(passed.read_bytes())]
    results = check_snapshot(snapshot)
    if all(result.passed for result in results):
        files.put_new(passed, json.dumps([result.name for result in results]).encode())
    return results


def publish(store: SnapshotStore, snapshot_id: str) -> None:
    """Point readers at a snapshot, if all its checks pass.

    Raises:
        PipelineError: a check failed; the published snapshot stays what it was.
    """
    snapshot = store.open(snapshot_id)
    failed = [result for result in verify(store, snapshot) if not result.passed]
    if failed:
        reasons = "; ".join(f"{result.name}: {result.problems[0]}" for result in failed)
        raise PipelineError(f"candidate {snapshot_id} is not published, {len(failed)} checks failed: {reasons}")
    store.point_at(snapshot_id)
