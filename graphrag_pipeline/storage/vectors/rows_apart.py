"""All rows of a vector folder that may be damaged, read so that no damage ends this process.

LanceDB and Arrow trust the offsets in a file. A changed one is a wrong place in memory, and may end the process.
So a file is read only if it has its hash, and the others count as missing. A folder has no hashes if an older release
made it or its list was lost. It is read in a process of its own, which may end. Its rows may be wrong, so the caller
compares them with a hash. Keep out: repairs (`publishing/remaking.py`), and searches, which read published folders.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.listed_folders import is_hashed, link_whole_files
from graphrag_pipeline.storage.vectors.damaged_tables import reporting_damage
from graphrag_pipeline.storage.vectors.mapped_rows import MappedRows
from graphrag_pipeline.storage.vectors.row_keys import KEYS_FILE, KEYS_SCHEMA

_MAX_S = 600.0
"""Seconds after which the reading process is ended, since a damaged file may send it round in circles; the rows of a
million entities take less than a minute."""


def _read_table(folder: Path, name: str, dimensions: int) -> pa.Table:
    import lancedb

    return lancedb.connect(str(folder)).open_table(name).to_arrow()


def _read_segments(folder: Path, name: str, dimensions: int) -> pa.Table:
    ids, vectors = MappedRows(folder, dimensions).read_all()
    last = {record_id: row for row, record_id in enumerate(ids)}
    flat = pa.array(vectors[list(last.values())].ravel())
    return pa.table({"id": pa.array(last, pa.string()), "vector": pa.FixedSizeListArray.from_arrays(flat, dimensions)})


def _read_keys(folder: Path, name: str, dimensions: int) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(folder / KEYS_FILE))).read_all().cast(KEYS_SCHEMA)


TABLE_ROWS, SEGMENT_ROWS, KEY_ROWS = "table", "segments", "keys"
_READERS: Mapping[str, Callable[[Path, str, int], pa.Table]] = {
    TABLE_ROWS: _read_table,
    SEGMENT_ROWS: _read_segments,
    KEY_ROWS: _read_keys,
}


def read_apart(kind: str, folder: Path, name: str, dimensions: int = 0) -> pa.Table:
    """Return all rows of a vector folder; those of a folder without hashes may be wrong.

    Args:
        kind: `TABLE_ROWS` of LanceDB; `SEGMENT_ROWS`, `id` and `vector` of the files beside it (`mapped_rows.py`), each
            id once; `KEY_ROWS`, `id` and `key` (`row_keys.py`).
        name: of the LanceDB table.
        dimensions: of the vectors; only segments need it.

    Raises:
        NoSnapshotError: a file is missing or damaged, so that the rows cannot be read.
    """
    with reporting_damage(folder):
        folder.stat()
        if not is_hashed(folder):
            return _read_in_a_process(kind, folder, name, dimensions)
        with tempfile.TemporaryDirectory(prefix=files.TEMPORARY_PREFIX, dir=folder.parent) as whole:
            link_whole_files(folder, Path(whole))
            return _READERS[kind](Path(whole), name, dimensions)


def _read_in_a_process(kind: str, folder: Path, name: str, dimensions: int) -> pa.Table:
    command = [sys.executable, "-m", __name__, kind, str(folder), name, str(dimensions)]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(
            command, env=found, stdin=subprocess.DEVNULL, capture_output=True, timeout=_MAX_S, check=True
        )
    except subprocess.SubprocessError as error:
        raise OSError(str(error)) from None
    return pa.ipc.open_stream(done.stdout).read_all()


def main() -> None:
    """Write the rows that the arguments name to the standard output, as an Arrow stream."""
    kind, folder, name, dimensions = sys.argv[1:]
    rows = _READERS[kind](Path(folder), name, int(dimensions))
    rows.validate(full=True)
    with pa.ipc.new_stream(sys.stdout.buffer, rows.schema) as writer:
        writer.write_table(rows)


if __name__ == "__main__":
    main()
