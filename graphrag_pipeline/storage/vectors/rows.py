"""Ids, vectors and keys of the rows of a LanceDB table, in files beside it.

LanceDB finds row numbers fast, but reading rows by number takes longer than the search (measured: 3 of 6 ms for 80 of
100,000 vectors). So a folder also keeps its rows in `rows/<number>/`, one *segment* for each addition of rows:
    `row_ids.npy` uint64 ascending, all greater than those of earlier segments;
    `ids.arrow`: one column of strings, in an Arrow IPC file of one batch;
    `vectors.bin`: float32 (n, dimensions), in the machine's byte order.
A changed row gets a new number and so a place in a new segment. LanceDB never returns the old number again. Segments
never change, so that the next folder links them.

`row_keys.arrow` is an Arrow IPC file of one batch: `id` and `key` (a hash of text, attributes and vector) of each row.
It shows which rows changed without reading vectors. Keep out: searching, and the update of a folder.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from graphrag_pipeline.arrow_columns import positions
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.listed_folders import has_list, link_whole_files

MAX_SEGMENTS = 32
_FOLDER = "rows"
_BATCH_ROWS = 8_192


def write_segment(folder: Path, table: Any) -> None:
    """Write the rows of a LanceDB table that are in no segment yet; `MAX_SEGMENTS` segments become one.

    Args:
        folder: the folder of the table.
        table: the opened LanceDB table.
    """
    known = _segment_paths(folder)
    if len(known) >= MAX_SEGMENTS:
        shutil.rmtree(folder / _FOLDER)
        known = []
    last = int(np.load(known[-1] / "row_ids.npy", mmap_mode="r")[-1]) if known else -1
    query = table.search().select(["id", "vector"]).with_row_id(True).limit(table.count_rows() + 1)
    if known:
        query = query.where(f"_rowid > {last}")
    row_ids, ids = [np.zeros(0, dtype=np.uint64)], []
    target = folder / _FOLDER / f"{len(known):06d}"
    target.mkdir(parents=True)
    with (target / "vectors.bin").open("wb") as file:
        for batch in query.to_batches(batch_size=_BATCH_ROWS):
            row_ids.append(batch["_rowid"].to_numpy())
            ids.append(batch["id"])
            file.write(batch["vector"].flatten().to_numpy().tobytes())
    np.save(target / "row_ids.npy", np.concatenate(row_ids))
    strings = pa.table({"id": pa.chunked_array(ids, pa.string()).combine_chunks()})
    with pa.ipc.new_file(target / "ids.arrow", strings.schema) as writer:
        writer.write_table(strings)


def holds_rows(folder: Path) -> bool:
    """Return whether a folder has segments."""
    return (folder / _FOLDER).is_dir()


def _segment_paths(folder: Path) -> list[Path]:
    return sorted((folder / _FOLDER).glob("*"))


class MappedRows:
    """The rows of a folder, read by row numbers that its table has.

    Args:
        folder: a folder that `write_segment` wrote.
        dimensions: length of its vectors.
    """

    def __init__(self, folder: Path, dimensions: int) -> None:
        self._dimensions = dimensions
        self._segments = [_Segment(path, dimensions) for path in _segment_paths(folder)]
        self._firsts = np.array([segment.row_ids[0] for segment in self._segments], dtype=np.uint64)

    @classmethod
    def find(cls, folder: Path, dimensions: int) -> MappedRows | None:
        """Return the rows of a folder, or None if it has no segments."""
        return cls(folder, dimensions) if holds_rows(folder) else None

    def ids(self, row_ids: np.ndarray) -> list[str]:
        """Return the ids of rows, in the order of `row_ids`."""
        parts = [(which, segment.ids.take(pa.array(rows))) for which, segment, rows in self._locate(row_ids)]
        if len(parts) == 1:
            ids: list[str] = parts[0][1].to_pylist()
            return ids
        found = np.empty(len(row_ids), dtype=object)
        for which, part in parts:
            found[which] = part.to_pylist()
        return found.tolist()

    def vectors(self, row_ids: np.ndarray) -> np.ndarray:
        """Return the vectors of rows, in the order of `row_ids`: float32 (len(row_ids), dimensions)."""
        parts = [(which, segment.vectors(rows)) for which, segment, rows in self._locate(row_ids)]
        if len(parts) == 1:
            return parts[0][1]
        found = np.zeros((len(row_ids), self._dimensions), dtype=np.float32)
        for which, part in parts:
            found[which] = part
        return found

    def read_all(self) -> tuple[list[str], np.ndarray]:
        """Return all ids and their vectors, float32 (n, dimensions); an id may be in several segments."""
        ids = [i for segment in self._segments for i in segment.ids.to_pylist()]
        parts = [segment.vectors(np.arange(len(segment.ids))) for segment in self._segments]
        return ids, np.concatenate([np.zeros((0, self._dimensions), dtype=np.float32), *parts])

    def close(self) -> None:
        """Close the files; a later use opens them again."""
        for segment in self._segments:
            segment.close()

    def _locate(self, row_ids: np.ndarray) -> list[tuple[np.ndarray, _Segment, np.ndarray]]:
        """Return (positions in `row_ids`, the segment of those rows, their places in it) per segment."""
        if len(self._segments) == 1:
            return [(np.arange(len(row_ids)), self._segments[0], np.searchsorted(self._segments[0].row_ids, row_ids))]
        of_segment = np.searchsorted(self._firsts, row_ids, side="right") - 1
        groups = ((number, np.flatnonzero(of_segment == number)) for number in np.unique(of_segment))
        return [
            (which, self._segments[number], np.searchsorted(self._segments[number].row_ids, row_ids[which]))
            for number, which in groups
        ]


class _Segment:
    """One segment, each of its files opened at first use."""

    def __init__(self, path: Path, dimensions: int) -> None:
        self._path = path
        self._dimensions = dimensions

    @functools.cached_property
    def row_ids(self) -> np.ndarray:
        return np.load(self._path / "row_ids.npy", mmap_mode="r").view(np.ndarray)

    @functools.cached_property
    def ids(self) -> pa.Array:
        return pa.ipc.open_file(pa.memory_map(str(self._path / "ids.arrow"))).read_all()["id"].chunk(0)

    @functools.cached_property
    def _vectors(self) -> BinaryIO:
        return (self._path / "vectors.bin").open("rb", buffering=0)

    def close(self) -> None:
        """Close the files that are open."""
        for name in ("row_ids", "ids"):
            self.__dict__.pop(name, None)
        if file := self.__dict__.pop("_vectors", None):
            file.close()

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Read vectors from the file; a mapped row would load the 64 kB around it into memory."""
        size = 4 * self._dimensions
        number, read = self._vectors.fileno(), os.pread
        parts = [read(number, size, place) for place in (size * rows).tolist()]
        return np.frombuffer(b"".join(parts), dtype=np.float32).reshape(-1, self._dimensions)


KEYS_FILE = "row_keys.arrow"
_BYTES = 16
KEYS_SCHEMA = pa.schema([("id", pa.string()), ("key", pa.binary(_BYTES))])


@dataclass(frozen=True)
class RowKeys:
    """Keys of rows.

    Attributes:
        ids: (n,) strings.
        keys: uint64 (n, 2).
    """

    ids: pa.Array
    keys: np.ndarray

    def find_changed(self, old: RowKeys) -> tuple[np.ndarray, list[str]]:
        """Return the positions of new and changed rows, ascending, and the ids that only `old` has."""
        found = positions(self.ids, old.ids)
        is_same = found >= 0
        is_same[is_same] = (self.keys[is_same] == old.keys[found[is_same]]).all(axis=1)
        is_gone = np.ones(len(old.ids), dtype=bool)
        is_gone[found[found >= 0]] = False
        return np.flatnonzero(~is_same), sorted(old.ids.filter(pa.array(is_gone)).to_pylist())


def hash_rows(batch: pa.RecordBatch) -> np.ndarray:
    """Return the keys of the rows of a batch with the columns `text`, `attributes` and `vector`: uint64 (n, 2)."""
    vectors = batch["vector"]
    matrix = vectors.flatten().to_numpy().view(np.uint8).reshape(len(batch), 4 * vectors.type.list_size)
    texts, attributes = (batch[name].cast(pa.binary()).to_pylist() for name in ("text", "attributes"))
    digests = [
        hashlib.blake2b(b"%d;%b%b%b" % (len(encoded), encoded, vector, text), digest_size=_BYTES).digest()
        for text, encoded, vector in zip(texts, attributes, matrix, strict=True)
    ]
    return np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)


def write_row_keys(folder: Path, rows: RowKeys) -> None:
    """Save the keys of a folder's rows, replacing those of the folder that it was copied from."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(rows.keys))]
    keys = pa.Array.from_buffers(pa.binary(_BYTES), len(rows.ids), buffers)
    table = pa.table([rows.ids, keys], KEYS_SCHEMA)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    files.replace(folder / KEYS_FILE, memoryview(sink.getvalue()))


def read_row_keys(folder: Path) -> RowKeys:
    """Return the keys of a folder's rows."""
    return keys_of(pa.ipc.open_file(pa.memory_map(str(folder / KEYS_FILE))).read_all())


def keys_of(rows: pa.Table) -> RowKeys:
    """Return the keys in the columns of a file."""
    table = rows.combine_chunks()
    if not len(table):
        return RowKeys(pa.array([], pa.string()), np.zeros((0, 2), dtype=np.uint64))
    keys = np.frombuffer(table["key"].chunk(0).buffers()[1], dtype=np.uint64, count=2 * len(table)).reshape(-1, 2)
    return RowKeys(table["id"].chunk(0), keys)


_ERRORS = (OSError, EOFError, RuntimeError, ValueError, KeyError, pa.ArrowException)
_PANICS = ("PanicException", "RustPanic")
"""Errors of a crash inside the library. The first derives from `BaseException`, and no package offers either type."""


@contextmanager
def reporting_damage(path: Path) -> Iterator[None]:
    """Raise errors of reading a vector table as `NoSnapshotError`.

    Args:
        path: the folder of the table.

    Raises:
        NoSnapshotError: a file of the table is missing or damaged.
    """
    try:
        yield
    except _ERRORS as error:
        raise files.read_error(path, error) from error
    except BaseException as error:
        if type(error).__name__ not in _PANICS:
            raise
        raise files.read_error(path, RuntimeError(str(error))) from error


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
    """Return all rows of a vector folder that may be damaged; those of a folder without a list may be wrong.

    LanceDB and Arrow trust the offsets in a file: a changed one may end the process. So a file is read only if it has
    its hash. A folder that lost its list is read in a process of its own; the caller compares its rows with a hash.

    Args:
        kind: `TABLE_ROWS` of LanceDB; `SEGMENT_ROWS`, `id` and `vector` of the files beside it (`MappedRows`), each
            id once; `KEY_ROWS`, `id` and `key`.
        name: of the LanceDB table.
        dimensions: of the vectors; only segments need it.

    Raises:
        NoSnapshotError: a file is missing or damaged, so that the rows cannot be read.
    """
    with reporting_damage(folder):
        folder.stat()
        if not has_list(folder):
            command = [sys.executable, "-m", __name__, kind, str(folder), name, str(dimensions)]
            found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            try:
                done = subprocess.run(
                    command, env=found, stdin=subprocess.DEVNULL, capture_output=True, timeout=_MAX_S, check=True
                )
            except subprocess.SubprocessError as error:
                raise OSError(str(error)) from None
            return pa.ipc.open_stream(done.stdout).read_all()
        with tempfile.TemporaryDirectory(prefix=files.TEMPORARY_PREFIX, dir=folder.parent) as whole:
            link_whole_files(folder, Path(whole))
            return _READERS[kind](Path(whole), name, dimensions)


def main() -> None:
    """Write the rows that the arguments name to the standard output, as an Arrow stream."""
    kind, folder, name, dimensions = sys.argv[1:]
    rows = _READERS[kind](Path(folder), name, int(dimensions))
    rows.validate(full=True)
    with pa.ipc.new_stream(sys.stdout.buffer, rows.schema) as writer:
        writer.write_table(rows)


if __name__ == "__main__":
    main()
