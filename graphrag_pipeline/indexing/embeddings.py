"""Embedding stages: which text stands for a record, and vectors kept by the hash of that text.

The same `embedded_texts` serves the stages, the candidate and an import, so that a record always finds its vector.
Equal texts are embedded once; rows of an earlier run with the same model are reused. Keep out: the model itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from graphrag_pipeline.citations import strip_citations
from graphrag_pipeline.indexing.adjacency import one_chunk, positions
from graphrag_pipeline.models.ports import Embedder
from graphrag_pipeline.tables import VECTOR_TABLES, Table, entity_text, text_hash

_BATCH_TEXTS = 4096
_SLICE_ROWS = 65_536


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
    keys = pa.array(sorted(text_of), pa.string())
    matrix = np.empty((len(keys), embedder.dimensions), dtype=np.float32)  # filled in place: it may be large
    known_rows = np.full(len(keys), -1) if known is None else positions(keys, known["text_hash"])
    found = np.flatnonzero(known_rows >= 0)
    if known is not None:
        matrix[found] = _matrix_of(known, embedder.dimensions)[known_rows[found]]
    fresh = np.flatnonzero(known_rows < 0)
    for start in range(0, len(fresh), _BATCH_TEXTS):
        rows = fresh[start : start + _BATCH_TEXTS]
        matrix[rows] = embedder.embed([text_of[key] for key in keys.take(pa.array(rows)).to_pylist()])
    return pa.table({"text_hash": keys, "vector": _variable_lists(matrix)}, schema=table.schema)


@dataclass(frozen=True)
class SharedVectors:
    """A matrix of which several rows may be one: indexed by rows like an array, each distinct vector held once.

    Attributes:
        matrix: float32 (n distinct, dimensions).
        rows: (n,) row of `matrix` for each row.
    """

    matrix: np.ndarray
    rows: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.matrix.shape[1]

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self.matrix[self.rows[rows]]


def look_up_vectors(vector_table: str, rows: pa.Table, embeddings: pa.Table, dimensions: int) -> SharedVectors:
    """The vector of each row of a contract table, in order.

    Args:
        vector_table: its name in LanceDB.
        embeddings: the stage table of vectors.

    Raises:
        KeyError: a row has no vector; the embedding stage is older than the table it embeds.
    """
    keys = one_chunk(embeddings["text_hash"])
    found = [np.zeros(0, dtype=np.int64)]
    for start in range(0, len(rows), _SLICE_ROWS):
        hashes = [text_hash(text) for text in embedded_texts(vector_table, rows.slice(start, _SLICE_ROWS))]
        found.append(positions(pa.array(hashes, pa.string()), keys))
    shared = np.concatenate(found)
    if (shared < 0).any():
        raise KeyError(f"{vector_table}: {int((shared < 0).sum())} rows have no vector: embeddings are older than they")
    return SharedVectors(_matrix_of(embeddings, dimensions), shared)


class StoredVectors(Mapping[str, Any]):
    """Vector table -> `SharedVectors` with one row per row of its contract table, looked up each time it is asked for.

    Args:
        tables: contract tables by name.
        read: gives a stage table of vectors by its name.
    """

    def __init__(self, tables: Mapping[str, pa.Table], read: Callable[[str], pa.Table], dimensions: int) -> None:
        self._tables = tables
        self._read = read
        self._dimensions = dimensions

    def __getitem__(self, name: str) -> SharedVectors:
        pa.default_memory_pool().release_unused()  # what the last one took
        table, embeddings = VECTOR_TABLES[name]
        return look_up_vectors(name, self._tables[table], self._read(embeddings), self._dimensions)

    def __iter__(self) -> Iterator[str]:
        return iter(VECTOR_TABLES)

    def __len__(self) -> int:
        return len(VECTOR_TABLES)


def look_up_all_vectors(
    tables: Mapping[str, pa.Table], read: Callable[[str], pa.Table], dimensions: int
) -> Mapping[str, Any]:
    """All vector tables of a candidate, one in memory at a time: see `StoredVectors`."""
    return StoredVectors(tables, read, dimensions)


def _matrix_of(embeddings: pa.Table, dimensions: int) -> np.ndarray:
    """The vectors of a stage table as a matrix that shares its memory."""
    return np.asarray(one_chunk(embeddings["vector"]).flatten(), dtype=np.float32).reshape(len(embeddings), dimensions)


def _variable_lists(vectors: np.ndarray) -> pa.ListArray:
    n_rows, dimensions = vectors.shape
    offsets = np.arange(n_rows + 1, dtype=np.int32) * np.int32(dimensions)
    return pa.ListArray.from_arrays(offsets, pa.array(vectors.ravel()))
