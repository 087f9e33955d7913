"""SQL queries over a published snapshot: its contract tables and the stage tables it was joined from, in DuckDB.

Tables: the contract tables by name (`entities`, `community_reports`, ...) and the stage tables as `stage_<name>`.
Queries only read. DuckDB gets these tables through Arrow and has no access to files, networks, extensions or settings,
so an untrusted statement can neither read nor write anything else.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.memory_limit import limited_memory
from graphrag_pipeline.storage.damage import check_file
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.tables import CONTRACT_TABLES, STAGE_TABLES

if TYPE_CHECKING:
    import duckdb

_READING = ("SELECT", "EXPLAIN", "MULTI")
"""DuckDB's reading statement types: WITH, FROM, VALUES, SHOW, DESCRIBE and SUMMARIZE are SELECT, PIVOT is MULTI."""

_CLOSED = (
    "temp_directory = ''", "enable_external_access = false", "python_enable_replacements = false",
    "lock_configuration = true",
)  # fmt: skip
_STAGE = "stage_"
"""Beginning of the name of a stage table, which may be that of a contract table, too."""
_MEGABYTE = 1_000_000
_BATCH_ROWS = 10_000
_OWN_BYTES = 256_000_000
"""Memory for threads and buffers of packages, beside the rows."""


def run_sql(snapshot: Snapshot, statement: str, max_s: float = 60.0, max_memory_mb: int = 2048) -> pa.Table:
    """Run one statement that only reads.

    Args:
        max_s: seconds after which it is stopped.
        max_memory_mb: memory that DuckDB may take, and size of the result, each. On Linux, this process gets no more
            than both and 256 MB while the statement runs.

    Returns:
        Its rows; columns of equal names get the suffixes `_1`, `_2`, ...

    Raises:
        NoSnapshotError: a file of a table that the statement reads is missing or damaged.
        PipelineError: the text is not one reading statement, it takes too long or too much memory, or DuckDB refuses
            it with the message given.
    """
    import duckdb

    sources = _table_files(snapshot)
    with duckdb.connect(":memory:") as connection:
        for name, paths in sources.items():
            connection.register(name, _dataset(name, paths))
        for setting in (f"memory_limit = '{max_memory_mb}MB'", *_CLOSED):
            connection.execute(f"SET {setting}")
        timer = threading.Timer(max_s, connection.interrupt)
        timer.start()
        try:
            _check_reading(connection, statement)
            # DuckDB counts neither long texts nor lists that a statement makes.
            with limited_memory(2 * max_memory_mb * _MEGABYTE + _OWN_BYTES):
                rows = _fetch(connection, statement, max_memory_mb)
        except duckdb.InterruptException:
            raise _too_slow(max_s) from None
        except (duckdb.OutOfMemoryException, MemoryError):
            raise _too_large(max_memory_mb) from None
        except OSError as error:  # of DuckDB, while Arrow reads its rows
            _check_files(sources, str(error))
            raise _error_of_rows(str(error), max_s, max_memory_mb) from None
        except duckdb.CatalogException as error:
            raise PipelineError(f"{error}\ntables: {', '.join(sorted(sources))}") from None
        except duckdb.Error as error:
            _check_files(sources, str(error))
            raise PipelineError(str(error)) from None
        finally:
            timer.cancel()
    return rows.rename_columns(_distinct(rows.schema.names))


def _dataset(name: str, paths: list[Path]) -> ds.Dataset:
    """Return a table whose files are opened when a statement reads it: a damaged file matters to no other one."""
    stage = name.removeprefix(_STAGE)
    schema = (CONTRACT_TABLES if stage == name else STAGE_TABLES)[stage].schema
    files_of = [str(path) for path in paths]
    return ds.FileSystemDataset.from_paths(files_of, schema, ds.ParquetFileFormat(), LocalFileSystem())


def _check_files(sources: Mapping[str, list[Path]], message: str) -> None:
    """Check the files of the tables that an error of DuckDB names."""
    for path in (path for name, paths in sources.items() if name in message for path in paths):
        check_file(path)


def _fetch(connection: duckdb.DuckDBPyConnection, statement: str, max_memory_mb: int) -> pa.Table:
    reader = connection.sql(statement).to_arrow_reader(_BATCH_ROWS)
    batches, n_bytes = [], 0
    for batch in reader:
        n_bytes += batch.nbytes
        if n_bytes > max_memory_mb * _MEGABYTE:
            raise _too_large(max_memory_mb)
        batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema)


def _error_of_rows(message: str, max_s: float, max_memory_mb: int) -> PipelineError:
    """Return the error for one that DuckDB had while its rows were read, of which Arrow passes on the text alone."""
    if "INTERRUPT" in message:
        return _too_slow(max_s)
    is_too_large = any(words in message for words in ("Out of Memory", "maximum total string size", "bad_alloc"))
    return _too_large(max_memory_mb) if is_too_large else PipelineError(message)


def _too_slow(max_s: float) -> PipelineError:
    return PipelineError(f"stopped after storage.sql_max_s = {max_s:g} seconds; add conditions or a LIMIT, or raise it")


def _too_large(max_memory_mb: int) -> PipelineError:
    return PipelineError(
        f"needs more memory than storage.sql_max_memory_mb = {max_memory_mb:,}; add conditions or a LIMIT, or raise it"
    )


def _check_reading(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    kinds = [found.type.name for found in connection.extract_statements(statement)]
    if len(kinds) != 1:
        raise PipelineError(f"expected one SQL statement, found {len(kinds)}")
    if kinds[0] not in _READING:
        raise PipelineError(
            f"{kinds[0]} is not possible, since a published snapshot is read-only; use SELECT, WITH, FROM, SHOW, "
            "DESCRIBE, SUMMARIZE, PIVOT or EXPLAIN"
        )


def _distinct(names: list[str]) -> list[str]:
    taken: list[str] = []
    for name in names:
        number, distinct = 0, name
        while distinct in taken or (number and distinct in names):
            number += 1
            distinct = f"{name}_{number}"
        taken.append(distinct)
    return taken


def _table_files(snapshot: Snapshot) -> dict[str, list[Path]]:
    """Return the Parquet files of every table but those of another release; some of a stage table may be missing."""
    tables = {name: [snapshot.table_path(name)] for name in snapshot.manifest.tables if name in CONTRACT_TABLES}
    store = snapshot.folder.parent / "tables"
    stages: dict[str, list[Path]] = {}
    for key, head in sorted(snapshot.manifest.heads.items()):
        table, partition = key.split("/")
        if table not in STAGE_TABLES:
            continue
        stages.setdefault(f"{_STAGE}{table}", []).extend(
            store / table / partition / file["name"] for file in head.get("files", ())
        )
    return tables | {name: paths for name, paths in stages.items() if paths}
