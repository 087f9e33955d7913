"""Ids and vectors of a LanceDB table by LanceDB's row numbers, in files beside it.

LanceDB finds row numbers fast; reading a few rows by them costs it more than the search did (3 of 6 ms for 80 vectors
of 100,000, measured). So a folder keeps its rows in `rows/<number>/` too, a *segment* for each time rows were added:
    `row_ids.npy` uint64 ascending, and above all of the segments before;
    `ids.arrow`: one column of strings, in an Arrow IPC file of one batch;
    `vectors.bin`: float32 (n, dimensions), in the machine's byte order.
A changed row gets a new number and so a place in a new segment; the old place is never found again. Segments never
change, so that the next folder links them. Keep out: searching.
"""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

MAX_SEGMENTS = 32
_FOLDER = "rows"
_BATCH_ROWS = 8_192


def write_segment(folder: Path, table: Any) -> None:
    """Add the rows of a LanceDB table that are in no segment yet; too many segments become one.

    Args:
        folder: that holds the table.
        table: LanceDB's, opened.
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
    """Whether a folder has its rows mapped; one of an older release has not."""
    return (folder / _FOLDER).is_dir()


def _segment_paths(folder: Path) -> list[Path]:
    return sorted((folder / _FOLDER).glob("*"))


class MappedRows:
    """The rows of a folder; every row number asked for must be one that its table has.

    Args:
        folder: as `write_segment` left it.
        dimensions: of its vectors.
    """

    def __init__(self, folder: Path, dimensions: int) -> None:
        self._dimensions = dimensions
        self._segments = [_Segment(path, dimensions) for path in _segment_paths(folder)]
        self._firsts = np.array([segment.row_ids[0] for segment in self._segments], dtype=np.uint64)

    @classmethod
    def find(cls, folder: Path, dimensions: int) -> MappedRows | None:
        """The rows of a folder, or None if it was made without."""
        return cls(folder, dimensions) if holds_rows(folder) else None

    def ids(self, row_ids: np.ndarray) -> list[str]:
        """Ids of rows, in that order."""
        found = np.empty(len(row_ids), dtype=object)
        for which, segment, rows in self._locate(row_ids):
            found[which] = segment.ids.take(pa.array(rows)).to_pylist()
        return found.tolist()

    def vectors(self, row_ids: np.ndarray) -> np.ndarray:
        """Vectors of rows, in that order, float32 (len(row_ids), dimensions)."""
        found = np.zeros((len(row_ids), self._dimensions), dtype=np.float32)
        for which, segment, rows in self._locate(row_ids):
            found[which] = segment.vectors(rows)
        return found

    def _locate(self, row_ids: np.ndarray) -> list[tuple[np.ndarray, _Segment, np.ndarray]]:
        """(which of `row_ids`, the segment that has them, their places in it)."""
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

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Read, not mapped: a mapped row would take the 64 kB around it into the process's memory."""
        size = 4 * self._dimensions
        parts = [os.pread(self._vectors.fileno(), size, row * size) for row in rows.tolist()]
        return np.frombuffer(b"".join(parts), dtype=np.float32).reshape(-1, self._dimensions)
