"""Ids and vectors of a LanceDB table by LanceDB's row numbers, in files beside it.

LanceDB finds row numbers fast, but reading rows by number takes longer than the search (measured: 3 of 6 ms for 80 of
100,000 vectors). So a folder also keeps its rows in `rows/<number>/`, one *segment* for each addition of rows:
    `row_ids.npy` uint64 ascending, all greater than those of earlier segments;
    `ids.arrow`: one column of strings, in an Arrow IPC file of one batch;
    `vectors.bin`: float32 (n, dimensions), in the machine's byte order.
A changed row gets a new number and so a place in a new segment. LanceDB never returns the old number again. Segments
never change, so that the next folder links them. Keep out: searching.
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
    """Return whether a folder has segments; a folder of an older release has none."""
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
