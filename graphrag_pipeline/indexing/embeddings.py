"""Embedding stages: which text stands for a record, and vectors kept by the hash of that text.

The same `embedded_texts` serves the stages, the candidate and an import, so that a record always finds its vector.
Equal texts are embedded once; rows of an earlier run with the same model are reused. Keep out: the model itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.citations import strip_citations
from graphrag_pipeline.models.ports import Embedder
from graphrag_pipeline.tables import VECTOR_TABLES, Table, entity_text, text_hash

_BATCH_TEXTS = 4096


def embedded_texts(vector_table: str, rows: pa.Table) -> list[str]:
    """The text embedded for each row of the contract table behind a vector table (see `tables.VECTOR_TABLES`)."""
    if vector_table == "default-text_unit-text":
        return rows["text"].to_pylist()
    if vector_table == "default-entity-description":
        pairs = zip(rows["title"].to_pylist(), rows["description"].to_pylist(), strict=True)
        return [entity_text(title, description) for title, description in pairs]
    if vector_table == "default-relationship-description":
        columns = (rows[name].to_pylist() for name in ("source", "target", "description"))
        return [description or f"{source} {target}" for source, target, description in zip(*columns, strict=True)]
    return [strip_citations(text) for text in rows["full_content"].to_pylist()]


def embed_texts(texts: Sequence[str], table: Table, embedder: Embedder, known: pa.Table | None = None) -> pa.Table:
    """One row per distinct text: its hash and its vector.

    Args:
        table: the embedding table to make.
        known: rows of an earlier run with the same model; what is found there is not embedded again.
    """
    text_of = {text_hash(text): text for text in texts}
    kept = (
        known.filter(pc.is_in(known["text_hash"], pa.array(list(text_of), pa.string()))) if known is not None else None
    )
    found = set(kept["text_hash"].to_pylist()) if kept is not None else set()
    fresh = sorted(key for key in text_of if key not in found)
    parts = [kept] if kept is not None else []
    for start in range(0, len(fresh), _BATCH_TEXTS):
        keys = fresh[start : start + _BATCH_TEXTS]
        vectors = embedder.embed([text_of[key] for key in keys])
        parts.append(pa.table({"text_hash": keys, "vector": _variable_lists(vectors)}, schema=table.schema))
    return table.sort(pa.concat_tables(parts)) if parts else table.empty()


def look_up_vectors(texts: Sequence[str], embeddings: pa.Table, dimensions: int) -> np.ndarray:
    """The vector of each text, float32 (len(texts), dimensions).

    Raises:
        KeyError: a text has no vector; the embedding stage is older than the table it embeds.
    """
    lists = embeddings["vector"].combine_chunks()
    matrix = np.asarray(lists.flatten(), dtype=np.float32).reshape(len(embeddings), dimensions)
    row_of = {key: row for row, key in enumerate(embeddings["text_hash"].to_pylist())}
    return matrix[[row_of[text_hash(text)] for text in texts]] if texts else matrix[:0]


def look_up_all_vectors(
    tables: Mapping[str, pa.Table], read: Callable[[str], pa.Table], dimensions: int
) -> dict[str, np.ndarray]:
    """Vector table -> a matrix with one row per row of its contract table.

    Args:
        tables: contract tables by name.
        read: gives a stage table of vectors by its name.
    """
    return {
        name: look_up_vectors(embedded_texts(name, tables[table]), read(embeddings), dimensions)
        for name, (table, embeddings) in VECTOR_TABLES.items()
    }


def _variable_lists(vectors: np.ndarray) -> pa.ListArray:
    n_rows, dimensions = vectors.shape
    offsets = np.arange(n_rows + 1, dtype=np.int32) * dimensions
    return pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel()))
