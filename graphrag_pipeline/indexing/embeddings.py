"""Embedding stages: the text that is embedded for a record, and vectors stored by the hash of that text.

The stages, the candidate and an import all use `embedded_texts`, so that a record always finds its vector. Equal texts
are embedded once. Rows of an earlier run with the same model are reused. Keep out: the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from graphrag_pipeline.arrow_columns import one_chunk, positions
from graphrag_pipeline.citations import strip_citations
from graphrag_pipeline.identity import entity_text, text_hash
from graphrag_pipeline.models.ports import Embedder, Failure
from graphrag_pipeline.tables import VECTOR_TABLES, Table
from graphrag_pipeline.text.structure import read_structure

if TYPE_CHECKING:
    import pyarrow.dataset as ds

VectorReader: TypeAlias = "Callable[[str], pa.Table | ds.Dataset]"

BATCH_TEXTS = 4096
"""Texts that the embedder gets at once; it packs them into requests."""
_BATCH_VECTORS = 8192
_SLICE_ROWS = 16_384


def embedded_texts(vector_table: str, rows: pa.Table) -> list[str]:
    """Return the text to embed for each row of the contract table of a vector table (see `tables.VECTOR_TABLES`)."""
    if vector_table == "default-text_unit-text":
        return embedded_unit_texts(rows)
    if vector_table == "default-entity-description":
        pairs = zip(rows["title"].to_pylist(), rows["description"].to_pylist(), strict=True)
        return [entity_text(title, description) for title, description in pairs]
    if vector_table == "default-relationship-description":
        columns = (rows[name].to_pylist() for name in ("source", "target", "description"))
        return [description or f"{source} {target}" for source, target, description in zip(*columns, strict=True)]
    return [strip_citations(text) for text in rows["full_content"].to_pylist()]


def embedded_unit_texts(units: pa.Table) -> list[str]:
    """Return the text to embed for each text unit: without marks if it was cut along the structure of its document.

    Args:
        units: needs `text`; a text unit without `heading_path` is embedded as it is, as in Microsoft GraphRAG.
    """
    texts = units["text"].to_pylist()
    if "heading_path" not in units.schema.names:
        return texts
    are_plain = units["heading_path"].is_null().to_pylist()
    return [
        text if is_plain else read_structure(text).readable.text or text
        for text, is_plain in zip(texts, are_plain, strict=True)
    ]


def embed_texts(
    texts: Sequence[str],
    table: Table,
    embedder: Embedder,
    known: pa.Table | None = None,
    progress: Callable[[int, int], None] | None = None,
    beside: Sequence[str] = (),
) -> tuple[pa.Table, list[Failure]]:
    """Embed texts: one row per distinct text with its hash and its vector, zeros where the model failed.

    Args:
        table: the embedding table to make.
        known: rows of an earlier run with the same model. Their texts are not embedded again, except those with a zero
            vector: a model behind an endpoint gives zeros only for failures and blank texts.
        progress: receives the number of finished and of all requests, for each batch of 4,096 texts.
        beside: texts that are sent in the requests of the first batch and get no row; the embedder stores them.

    Returns:
        Rows of `table`, and the failures.
    """
    if not texts:
        return table.empty(), []
    text_of = {text_hash(text): text for text in dict.fromkeys(texts)}
    keys = pa.array(sorted(text_of), pa.string())
    known_rows, known_vectors = _find_known(keys, known)
    fresh = np.flatnonzero(known_rows < 0)
    matrix: np.ndarray | None = None  # allocated when the length of a vector is known, since asking costs a request
    failures: list[Failure] = []
    for start in range(0, len(fresh), BATCH_TEXTS):
        rows = fresh[start : start + BATCH_TEXTS]
        batch = [text_of[key] for key in keys.take(pa.array(rows)).to_pylist()]
        vectors, failed = embedder.try_embed([*batch, *(() if start else beside)], progress)
        matrix = np.empty((len(keys), vectors.shape[1]), dtype=np.float32) if matrix is None else matrix
        matrix[rows] = vectors[: len(batch)]
        failures += [failure for failure in failed if failure.record in text_of]
    if matrix is None:
        matrix = np.empty((len(keys), known_vectors.shape[1]), dtype=np.float32)
    kept = np.flatnonzero(known_rows >= 0)
    for start in range(0, len(kept), _BATCH_VECTORS):  # few at a time: vectors are the largest data of an index
        here = kept[start : start + _BATCH_VECTORS]
        matrix[here] = known_vectors[known_rows[here]]
    return pa.table({"text_hash": keys, "vector": _variable_lists(matrix)}, schema=table.schema), failures


def _find_known(keys: pa.Array, known: pa.Table | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the row of each text among the known vectors, int64 (n,), and these vectors, float32 (n_known, d).

    The row is -1 for a text without a vector, or with one of zeros.
    """
    if known is None or not known.num_rows:
        return np.full(len(keys), -1, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
    rows, vectors = positions(keys, known["text_hash"]), _matrix_of(known, len(known["vector"][0]))
    return np.where(np.asarray(vectors.any(axis=1))[rows], rows, -1), vectors


@dataclass(frozen=True)
class SharedVectors:
    """A matrix that holds each distinct vector once; indexed by rows like an array.

    Attributes:
        matrix: (n_distinct, dimensions) float32.
        rows: (n,) row of `matrix` for each row.
    """

    matrix: np.ndarray
    rows: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.matrix.shape[1]

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self.matrix[self.rows[rows]]


def look_up_vectors(
    vector_table: str, rows: pa.Table, embeddings: pa.Table | ds.Dataset, dimensions: int
) -> SharedVectors:
    """Look up the vector of each row of a contract table.

    Args:
        vector_table: name of the vector table in LanceDB.
        embeddings: the stage table of vectors.

    Raises:
        KeyError: a row has no vector, because the embedding stage ran before the table was rebuilt.
    """
    keys, matrix = _read_vectors(embeddings, dimensions)
    found = [np.zeros(0, dtype=np.int64)]
    for start in range(0, len(rows), _SLICE_ROWS):
        texts = embedded_texts(vector_table, rows.slice(start, _SLICE_ROWS))
        hash_of = {
            text: text_hash(text) for text in dict.fromkeys(texts)
        }  # relationships often have equal descriptions
        found.append(positions(pa.array([hash_of[text] for text in texts], pa.string()), keys))
    shared = np.concatenate(found)
    if (shared < 0).any():
        n_missing = int((shared < 0).sum())
        raise KeyError(f"`{vector_table}`: {n_missing} rows have no vector; the embeddings are older than the rows")
    return SharedVectors(matrix, shared)


class StoredVectors(Mapping[str, Any]):
    """Vector table -> `SharedVectors` with one row per row of its contract table, looked up at each access.

    Args:
        tables: contract tables by name.
        read: returns a stage table of vectors by name, or a dataset of it, which is read in batches.
    """

    def __init__(self, tables: Mapping[str, pa.Table], read: VectorReader, dimensions: int) -> None:
        self._tables = tables
        self._read = read
        self._dimensions = dimensions

    def __getitem__(self, name: str) -> SharedVectors:
        pa.default_memory_pool().release_unused()  # memory of the previous vector table
        table, embeddings = VECTOR_TABLES[name]
        return look_up_vectors(name, self._tables[table], self._read(embeddings), self._dimensions)

    def __iter__(self) -> Iterator[str]:
        return iter(VECTOR_TABLES)

    def __len__(self) -> int:
        return len(VECTOR_TABLES)


def look_up_all_vectors(tables: Mapping[str, pa.Table], read: VectorReader, dimensions: int) -> Mapping[str, Any]:
    """Return all vector tables of a candidate, one in memory at a time (`StoredVectors`)."""
    return StoredVectors(tables, read, dimensions)


def _read_vectors(embeddings: pa.Table | ds.Dataset, dimensions: int) -> tuple[pa.Array, np.ndarray]:
    """Return the text hashes and vectors of a stage table; a dataset is read in batches to hold vectors only once."""
    if isinstance(embeddings, pa.Table):
        return one_chunk(embeddings["text_hash"]), _matrix_of(embeddings, dimensions)
    matrix = np.empty((embeddings.count_rows(), dimensions), dtype=np.float32)
    keys, start = [pa.array([], pa.string())], 0
    # Small batches without readahead: the scanner's defaults take 1 GB more for 600 MB of vectors.
    for batch in embeddings.to_batches(
        batch_size=_BATCH_VECTORS, use_threads=False, fragment_readahead=0, batch_readahead=0
    ):
        matrix[start : start + len(batch)] = batch["vector"].flatten().to_numpy().reshape(len(batch), dimensions)
        keys.append(batch["text_hash"])
        start += len(batch)
    pa.default_memory_pool().release_unused()
    return pa.concat_arrays(keys), matrix


def _matrix_of(embeddings: pa.Table, dimensions: int) -> np.ndarray:
    """Return the vectors of a stage table as a matrix that shares its memory."""
    return np.asarray(one_chunk(embeddings["vector"]).flatten(), dtype=np.float32).reshape(len(embeddings), dimensions)


def _variable_lists(vectors: np.ndarray) -> pa.ListArray:
    n_rows, dimensions = vectors.shape
    offsets = np.arange(n_rows + 1, dtype=np.int32) * np.int32(dimensions)
    return pa.ListArray.from_arrays(offsets, pa.array(vectors.ravel()))
