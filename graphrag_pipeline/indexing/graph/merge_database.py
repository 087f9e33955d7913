"""DuckDB database of a merge: memory limits, hash macros, and results as Arrow tables.

Keep out: the aggregations (`merge.py`, `titles.py`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.tables import Table

if TYPE_CHECKING:
    import duckdb

MAX_ROWS_IN_MEMORY = 1_000_000
"""Up to this many mentions are merged in memory: 262,000 take 2.2 s of processor time, 3.0 s with tables in a file."""
_MAX_SPILL = "20GB"  # of temporary files; a merge that needs more has a faulty join and would fill the disk

# `identity.stable_hash` in SQL: the length (8 bytes) and the bytes of each part, in hexadecimal.
_HASH_MACROS = """
CREATE MACRO hash_part(s) AS printf('%016X', strlen(s)) || hex(encode(s));
CREATE MACRO hash_parts(l) AS array_to_string(list_transform(l, lambda s: hash_part(s)), '');
CREATE MACRO stable_hash(parts) AS substr(sha256(unhex(parts)), 1, 32);
CREATE MACRO sorted_distinct(l) AS list_sort(list_distinct(coalesce(l, []::VARCHAR[])));
"""


@contextmanager
def connect(max_memory: str, n_threads: int, is_small: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty database, in memory or in a temporary file.

    Raises:
        PipelineError: the merge needs more memory and temporary files than allowed.
    """
    import duckdb

    with tempfile.TemporaryDirectory(prefix="graphrag-merge-") as folder:
        connection = duckdb.connect(
            ":memory:" if is_small else f"{folder}/merge.duckdb",  # in a file, tables can leave memory
            config={
                "memory_limit": max_memory,
                "threads": n_threads,
                "temp_directory": folder,
                "max_temp_directory_size": _MAX_SPILL,
                "preserve_insertion_order": False,
            },
        )
        try:
            # Keep the written order of joins: the optimizer can start with "two titles differ", a cross product.
            connection.execute("SET disabled_optimizers = 'join_order'")
            connection.execute(_HASH_MACROS)
            yield connection
        except duckdb.OutOfMemoryException as error:
            raise PipelineError(
                f"graph: the merge needs more than {max_memory} of memory and {_MAX_SPILL} of temporary files in "
                f"{tempfile.gettempdir()} ({str(error).partition(chr(10))[0]}); raise graph.max_memory in settings.yaml"
            ) from error
        finally:
            connection.close()


def count_rows(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    """Count the rows of a table."""
    ((n_rows,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return n_rows


def read_text_unit_ids(connection: duckdb.DuckDBPyConnection) -> pa.ChunkedArray:
    """Return the ids of the text units in the order of their numbers."""
    return connection.sql("SELECT id FROM text_units ORDER BY text_unit_no").to_arrow_table()["id"]


def join_slices(slices: list[pa.Table], text_unit_ids: pa.ChunkedArray, table: Table) -> pa.Table:
    """Join slices in file order to one table with one chunk per column, and replace text unit numbers by ids.

    Columns are joined one at a time and removed from `slices`, to save memory.
    """
    columns = []
    for field in table.schema:
        chunks = [chunk for part in slices for chunk in part[field.name].chunks]
        slices[:] = [part.drop_columns(field.name) for part in slices]
        if field.name == "text_unit_ids":
            chunks = [_name_text_units(chunk, text_unit_ids) for chunk in chunks]
        cast = [chunk.cast(field.type) for chunk in chunks]
        columns.append(pa.concat_arrays(cast) if cast else pa.array([], field.type))
    return pa.Table.from_arrays(columns, schema=table.schema)


def _name_text_units(numbers: pa.ListArray, text_unit_ids: pa.ChunkedArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(_offsets(numbers), text_unit_ids.take(numbers.flatten()).combine_chunks())


def _offsets(lists: pa.ListArray) -> pa.Array:
    """Return the offsets of the flattened lists, from 0."""
    lengths = np.concatenate(([0], pc.list_value_length(lists).to_numpy(zero_copy_only=False)))
    return pa.array(np.cumsum(lengths), pa.int32())
