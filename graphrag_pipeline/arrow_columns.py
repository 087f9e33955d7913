"""Arrow columns as NumPy arrays: row positions, list elements as pairs of rows, compressed sparse rows.

Pure and vectorized, without a loop over rows. It is below every step, so that indexing, storage and publishing share
it. Keep out: tables and their column names.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def positions(values: pa.ChunkedArray | pa.Array, keys: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """Return the row of each value among `keys`, -1 for an unknown value: int64."""
    found = pc.fill_null(pc.index_in(values, value_set=one_chunk(keys)), -1)
    return np.asarray(found).astype(np.int64)


def one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array; unlike `combine_chunks`, without a copy if it has one chunk."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def list_pairs(lists: pa.ChunkedArray, keys: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Return (row of the list, row of the key) for every list element that is a key, both int64."""
    column = one_chunk(lists)
    parents = np.asarray(pc.list_parent_indices(column)).astype(np.int64)
    values = positions(pc.list_flatten(column), keys)
    return parents[values >= 0], values[values >= 0]


def compress(rows: np.ndarray, values: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return compressed sparse rows of pairs: int64 (n_rows + 1), and int32, distinct and ascending in each row."""
    order = np.lexsort((values, rows))
    rows, values = rows[order], values[order]
    fresh = np.ones(len(rows), dtype=bool)
    fresh[1:] = (rows[1:] != rows[:-1]) | (values[1:] != values[:-1])
    rows, values = rows[fresh], values[fresh]
    indptr = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=n_rows), out=indptr[1:])
    return indptr, values.astype(np.int32)
