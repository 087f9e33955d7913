"""Arrow columns as NumPy arrays: row positions, list elements as pairs of rows, compressed sparse rows.

Pure and vectorized, without a loop over rows. It is below every step, so that indexing, storage and publishing share
it. Keep out: tables and their column names.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def positions(values: pa.ChunkedArray | pa.Array, keys: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """Return the row of each value among `keys`, -1 for an unknown value: int64."""
    found = pc.fill_null(pc.index_in(values, value_set=one_chunk(keys)), -1)
    return np.asarray(found).astype(np.int64)


MAX_BYTES = 2**31 - 1
"""Bytes of texts or list elements in one array of a narrow type, whose offsets have 32 bits."""


def wide_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the same values with offsets of 64 bits, for texts and lists."""
    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_binary(kind):
        return pa.large_binary()
    if pa.types.is_list(kind):
        return pa.large_list(kind.value_field.with_type(wide_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(wide_type(field.type)) for field in kind])
    return kind


def narrow_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of which `wide_type` is the wide one: that of files."""
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(narrow_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(narrow_type(field.type)) for field in kind])
    return kind


def one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array, of a wide type if it needs one; without a copy if it has one chunk."""
    if isinstance(column, pa.Array):
        return column
    return _concat(column.chunks, column.type)


def take(column: pa.ChunkedArray | pa.Array, rows: np.ndarray) -> pa.Array:
    """Return the values of some rows, of a wide type if they need one; the rows have values of about average length."""
    values = one_chunk(column)
    if len(values) and values.nbytes / len(values) * len(rows) > MAX_BYTES // 2:
        values = values.cast(wide_type(values.type))
    return values.take(pa.array(rows))


def join_rows(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Return the rows of tables one after the other, in one chunk; a column has a wide type if it needs one.

    Raises:
        ValueError: a column that must have values has a null.
    """
    columns = []
    for field in schema:
        chunks = [chunk for table in tables for chunk in table[field.name].chunks]
        if not field.nullable and any(chunk.null_count for chunk in chunks):
            raise ValueError(f"column {field.name!r} must not have a null")
        columns.append(_concat(chunks, field.type))
    fields = [field.with_type(column.type) for field, column in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _concat(chunks: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    if chunks and narrow_type(chunks[0].type).equals(kind):
        kind = narrow_type(chunks[0].type)  # its lists keep the name of their elements, which a file holds
    if sum(chunk.nbytes for chunk in chunks) > MAX_BYTES:
        kind = wide_type(kind)
    cast = [chunk if chunk.type.equals(kind) else chunk.cast(kind) for chunk in chunks]
    return pa.concat_arrays(cast) if len(cast) > 1 else cast[0] if cast else pa.array([], kind)


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
