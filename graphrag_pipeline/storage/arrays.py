"""Immutable folders of memory-mapped arrays in a snapshot: adjacency, and the sentences of the text units.

Each array is a `.npy` file. The folder is named after its content, so that snapshots share it. The arrays are defined
where they are built (`publishing/adjacency.py`, `indexing/sentence_embeddings.py`). Keep out: searching.
"""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.content_hashes import hash_file
from graphrag_pipeline.filesystem.listed_folders import (
    LIST_FILE,
    find_changed_files,
    is_hashed,
    read_file_list,
    write_file_list,
)

_MAX_SPARSITY = 64
"""Rows of a table for each row of a group, up to which marking them in an array is faster than sorting them."""
_MAX_READ_SHARE = 4
"""Sentences for each one that is read, up to which their vectors come from the map."""


def write_arrays(parent: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """Save arrays by name and return the name of their folder in `parent`; a damaged folder of that name is replaced.

    Raises:
        PipelineError: the disk is full or the folder cannot be written.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        working = Path(tempfile.mkdtemp(prefix=files.TEMPORARY_PREFIX, dir=parent))
        try:
            content = _save_arrays(working, arrays)
            if find_changed_arrays(parent / content) or not is_hashed(parent / content):
                write_file_list(working)
                working.chmod(0o755)
                shutil.rmtree(parent / content, ignore_errors=True)
                os.replace(working, parent / content)
        finally:
            shutil.rmtree(working, ignore_errors=True)
    except OSError as error:
        raise files.write_error(parent, error) from error
    return content


def _save_arrays(folder: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """Write a file for each array, straight to disk since it may be large, and return the hash of them all."""
    hashes = {}
    for name in sorted(arrays):
        path = folder / f"{name}.npy"
        np.save(path, arrays[name], allow_pickle=False)
        hashes[name] = hash_file(path)
    return _name_of(hashes)


def _name_of(hashes: Mapping[str, str]) -> str:
    """Return the name of a folder of arrays with these hashes."""
    return files.content_hash("".join(f"{name}:{hashes[name]};" for name in sorted(hashes)).encode())


def find_changed_arrays(folder: Path, is_fresh: bool = False) -> list[Path]:
    """Return the files of a folder that are missing, or whose content is not the one that its name promises.

    Args:
        is_fresh: see `find_changed_files`.
    """
    is_listed = (folder / LIST_FILE).exists()  # a folder of an old release has no list, but the same name
    if is_listed and (changed := find_changed_files(folder, is_fresh)):
        return changed
    known = {name: file.sha256 for name, file in read_file_list(folder).items()} if is_listed else {}
    names = list(known) or [path.name for path in folder.glob("*.npy")]
    hashes = {Path(name).stem: known.get(name) or hash_file(folder / name, is_fresh) for name in names}
    return [] if _name_of(hashes) == folder.name else [folder]


class ArrayFolder:
    """A folder of arrays, each mapped at first use.

    Args:
        folder: a folder that `write_arrays` made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._arrays: dict[str, np.ndarray] = {}

    def array(self, name: str) -> np.ndarray:
        """Return one array.

        Raises:
            NoSnapshotError: its file is missing or damaged, or an older release made the folder without this array.
        """
        if name not in self._arrays:
            path = self._folder / f"{name}.npy"
            try:
                mapped = np.load(path, mmap_mode="r", allow_pickle=False)
                self._arrays[name] = mapped.view(np.ndarray)  # a plain array is indexed faster than a `memmap`
            except ValueError:  # its text advises to load objects that the file may hold
                raise files.read_error(path, ValueError("it is no array")) from None
            except (OSError, EOFError) as error:
                raise files.read_error(path, error) from None
        return self._arrays[name]

    def close(self) -> None:
        """Unmap the arrays once no caller has one; a later use maps them again."""
        self._arrays.clear()

    def has(self, name: str) -> bool:
        """Return whether the folder has an array."""
        return name in self._arrays or (self._folder / f"{name}.npy").is_file()


class Adjacency(ArrayFolder):
    """Memory-mapped adjacency of a snapshot, in row numbers of the contract tables.

    Each `<a>_<b>s` relation (listed in `publishing/adjacency.py`) is a pair of arrays in compressed sparse row form:
    `indptr` int64 (n_a + 1) and `indices` int32; the rows of b that belong to row i of a are
    `indices[indptr[i]:indptr[i + 1]]`, ascending.
    """

    def of(self, relation: str, row: int) -> np.ndarray:
        """Return the rows related to one row, such as `of("entity_relationships", 3)`: int32, ascending."""
        indptr = self.array(f"{relation}_indptr")
        return self.array(f"{relation}_indices")[indptr[row] : indptr[row + 1]]

    def of_all(self, relation: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows related to several rows as (position in `rows`, related row) pairs, sorted in that order."""
        positions, places = expand_rows(self.array(f"{relation}_indptr"), rows)
        return positions, self.array(f"{relation}_indices").take(places)

    def counts(self, relation: str) -> np.ndarray:
        """Return the number of related rows of each row, int64."""
        return np.diff(self.array(f"{relation}_indptr"))


class Sentences(ArrayFolder):
    """Memory-mapped sentences of a snapshot's text units, in text unit row order, then in reading order.

    The sentences of text unit row i are rows `indptr[i]:indptr[i + 1]` of every other array.
    """

    @property
    def indptr(self) -> np.ndarray:
        """int64 (n text units + 1)."""
        return self.array("text_unit_sentences_indptr")

    @property
    def starts(self) -> np.ndarray:
        """int32, character offset inside the text unit's text."""
        return self.array("sentence_starts")

    @property
    def ends(self) -> np.ndarray:
        """int32, character offset inside the text unit's text."""
        return self.array("sentence_ends")

    @property
    def vectors(self) -> np.ndarray:
        """int8 (n sentences, dimensions): the direction of a sentence's vector; zeros if it has no known word."""
        return self.array("sentence_vectors")

    def read_vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of some sentences, int8 (len(rows), dimensions), read from the file run by run.

        These vectors are the largest array. A mapped row would load the 64 kB around it into memory, so that a server
        would soon hold all of them. If the rows are a large part, they are read from the map.

        Args:
            rows: in few ascending runs, such as the sentences of some text units.

        Raises:
            NoSnapshotError: the file is missing or damaged.
        """
        if not len(rows) or len(rows) * _MAX_READ_SHARE > len(self.vectors):
            return self.vectors[rows]
        found = np.empty((len(rows), self.vectors.shape[1]), dtype=np.int8)
        size, starts = found.shape[1], np.flatnonzero(np.diff(rows, prepend=-2) != 1)
        buffer, ends = found.data.cast("B"), [*starts[1:].tolist(), len(rows)]
        file, before = self._vector_file
        number, read, wholes = file.fileno(), os.preadv, (before + size * rows[starts]).tolist()
        for start, end, place in zip((size * starts).tolist(), [size * end for end in ends], wholes, strict=True):
            if read(number, [buffer[start:end]], place) < end - start:
                raise files.read_error(Path(file.name), EOFError("it ends too early"))
        return found

    def close(self) -> None:
        """Also close the file of the vectors."""
        super().close()
        if opened := self.__dict__.pop("_vector_file", None):
            opened[0].close()

    @functools.cached_property
    def _vector_file(self) -> tuple[BinaryIO, int]:
        """The file of the vectors, and the bytes before the first one."""
        path = self._folder / "sentence_vectors.npy"
        try:
            return path.open("rb", buffering=0), np.load(path, mmap_mode="r", allow_pickle=False).offset
        except (OSError, ValueError) as error:
            raise files.read_error(path, error) from None

    @property
    def scales(self) -> np.ndarray:
        """float32: `vectors * scales` has the length of the sentence in characters (0 for a zero vector)."""
        return self.array("sentence_scales")

    @property
    def window_scales(self) -> np.ndarray:
        """float32: 1 / length of (scaled vector + that of the next sentence of the text unit); 0 without a next one."""
        return self.array("window_scales")


def expand_rows(indptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (position in `rows`, place in the values) of each value of some compressed sparse rows, both int64."""
    starts = indptr.take(rows)  # `take` reads many rows in half the time of an index array
    lengths = indptr.take(np.asarray(rows) + 1) - starts
    positions = np.repeat(np.arange(len(rows)), lengths)
    # Value i of the result is at place i + (start of its row - number of values before the row).
    offsets = starts - (np.cumsum(lengths) - lengths)
    return positions, np.arange(len(positions)) + np.repeat(offsets, lengths)


def group_rows(rows: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct row numbers, ascending, and the position of each of `rows` among them, int64.

    Args:
        rows: int (n,), from 0 to n_rows - 1.
    """
    if n_rows > _MAX_SPARSITY * len(rows):
        order = np.argsort(rows, kind="stable")  # fast for rows in a few ascending runs, unlike `np.unique`
        ordered = rows[order].astype(np.int64)
        is_first = _firsts(ordered)
        positions = np.empty(len(rows), dtype=np.int64)
        positions[order] = np.cumsum(is_first) - 1
        return ordered[is_first], positions
    is_in = np.zeros(n_rows, dtype=bool)
    is_in[rows] = True
    found = np.flatnonzero(is_in)
    position_of = np.empty(n_rows, dtype=np.int64)
    position_of[found] = np.arange(len(found))
    return found, position_of[rows]


def distinct(values: np.ndarray) -> np.ndarray:
    """Return the distinct integers of a few ascending runs, ascending, such as the rows related to several rows.

    A stable sort merges the runs: 0.05 ms for 50,000 rows of a hub entity, where a sort that ignores runs takes 1 ms.
    """
    ordered = np.sort(values, kind="stable")
    return ordered[_firsts(ordered)]


def nth_largest(values: np.ndarray, n: int) -> int:
    """Return the n-th largest of some integers, 1 <= n <= len(values).

    The n-th largest of a sample is a lower bound, so of very many values only those that reach it are compared.
    """
    step = len(values) // (4 * n)
    if step > 1:
        values = values[values >= nth_largest(values[::step], n)]
    return int(np.partition(values, len(values) - n)[len(values) - n])


def _firsts(ordered: np.ndarray) -> np.ndarray:
    """Return which values of an ordered array differ from the one before, bool."""
    is_first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return is_first
