"""One opened snapshot: contract tables, vectors and arrays, loaded at first use.

A reader opens one manifest and shares a lock on it, so that its files stay. It never looks at the pointer again. Keep
out: the published snapshot (`snapshot_store.py`), and searching.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphrag_pipeline.arrow_columns import join_rows, one_chunk
from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.settings.settings import VectorStoreSettings
from graphrag_pipeline.storage.arrays import Adjacency, Mentions, SentenceMeans, Sentences
from graphrag_pipeline.storage.damage import (
    MAPPED_TABLE,
    READ_CHECK_BYTES,
    TABLE,
    StoredPart,
    check_file,
    find_changed_file,
    find_changed_parts,
    find_damaged_parts,
    find_missing_parts,
    has_own_hash,
    parts_of,
)
from graphrag_pipeline.storage.locks import hold_for_reading
from graphrag_pipeline.storage.lookups import LOOKED_UP, find_rows
from graphrag_pipeline.storage.manifests import Manifest
from graphrag_pipeline.storage.vectors import open_vector_store
from graphrag_pipeline.storage.vectors.stores import SnapshotVectors, VectorCollection
from graphrag_pipeline.tables import CONTRACT_TABLES


class Snapshot:
    """One immutable index, opened for reading; every part is loaded at first use and kept.

    Row numbers ("rows") are 0-based positions in a contract table, in file order; adjacency arrays use them.

    Args:
        folder: the root's `snapshots` folder.
        id: the snapshot's id.
        vector_store: settings of vector stores; their options count if the kind is that of the snapshot.
    """

    def __init__(self, folder: Path, id: str, manifest: Manifest, vector_store: VectorStoreSettings) -> None:
        self.folder = folder
        self.id = id
        self.manifest = manifest
        self._tables: dict[str, pa.Table] = {}
        self._unmapped: set[Path] = set()
        self._columns: dict[tuple[str, str], pa.Array] = {}
        self._numbers: dict[tuple[str, str], np.ndarray | None] = {}
        self._vectors: dict[str, VectorCollection] = {}
        self._vector_settings = vector_store
        self._release: Callable[[], object] = lambda: None

    def hold(self) -> None:
        """Protect its files from removal until `close`, or until this object or the process ends.

        Raises:
            NoSnapshotError: the snapshot was removed before it was locked.
        """
        try:
            descriptor = hold_for_reading(self.folder / f"{self.id}.json")
        except FileNotFoundError:
            raise NoSnapshotError(f"snapshot {self.id} was removed while it was opened; open it again") from None
        if descriptor is not None:
            self._release = weakref.finalize(self, os.close, descriptor)

    def close(self) -> None:
        """Close its files and allow them to be removed; a part that is used later is opened again, or is missing.

        Not left to the garbage collector, which may come after many publications: until then a server would hold the
        files of every snapshot that it read, and the space of those that are removed.
        """
        for loaded in (self._tables, self._columns, self._numbers):
            loaded.clear()
        while self._vectors:
            self._vectors.popitem()[1].close()
        for name in ("mentions", "sentence_means"):
            self.__dict__.pop(name, None)
        for name in ("adjacency", "sentences"):
            if arrays := self.__dict__.pop(name, None):
                arrays.close()
        self._release()

    def missing_parts(self) -> list[Path | str]:
        """Return its files and vector collections that are missing or incomplete (`damage.find_missing_parts`)."""
        return find_missing_parts(self.folder, self.manifest, self.vector_store)

    def damaged_parts(self) -> list[Path | str]:
        """Return the missing parts and the files that are not whole (`damage.find_damaged_parts`)."""
        return find_damaged_parts(self.folder, self.manifest, self.vector_store)

    def parts(self) -> list[StoredPart]:
        """Return its immutable files and folders (`damage.parts_of`)."""
        return parts_of(self.folder, self.manifest, self.vector_store)

    def changed_parts(self) -> list[Path]:
        """Return its files whose content has another hash than when they were written; all are read."""
        return [path for _, paths in find_changed_parts(self.parts()) for path in paths]

    def changed_read_parts(self) -> list[Path]:
        """Return the changed files among the smallest parts that searches read (`damage.READ_CHECK_BYTES`).

        A mapped copy that changed is not read; its Parquet file is, if it is unchanged.
        """
        read = [part for part in self.parts() if part.kind != TABLE]
        changed: list[Path] = []
        for part, paths in find_changed_parts(read, READ_CHECK_BYTES):
            if part.kind == MAPPED_TABLE:
                self._unmapped.add(part.path)
            else:
                changed += paths
        tables = [self.table_path(name) for name in self.manifest.tables if self.mapped_path(name) in self._unmapped]
        return [*changed, *(path for table in tables for path in find_changed_file(table))]

    def table_path(self, name: str) -> Path:
        """Return the path of the Parquet file of a contract table."""
        return self.manifest.table_path(self.folder, name)

    def mapped_path(self, name: str) -> Path:
        """Return the path of the memory-mapped copy of a contract table; snapshots of old releases have no copy."""
        return self.manifest.mapped_path(self.folder, name)

    def n_rows(self, name: str) -> int:
        """Return the number of rows of a contract table."""
        return int(self.manifest.tables[name]["n_rows"])

    def table(self, name: str) -> pa.Table:
        """Return a contract table as one chunk, in file order; it is memory-mapped, so unread parts cost nothing.

        Raises:
            NoSnapshotError: its file is missing or damaged.
        """
        if name not in self._tables:
            self._tables[name] = self._read(name)
        return self._tables[name]

    def checked_table(self, name: str) -> pa.Table:
        """Return a contract table whose file was read and has the hash that it was written with.

        Raises:
            NoSnapshotError: its file is missing or damaged.
        """
        if not has_own_hash(self.mapped_path(name)):
            self._unmapped.add(self.mapped_path(name))
            self._tables.pop(name, None)
        return self.table(name)

    def _read(self, name: str) -> pa.Table:
        """Read the mapped copy; if it is damaged, or an old release made none, read the Parquet file."""
        path = self.table_path(name)
        try:
            if self.mapped_path(name) not in self._unmapped:
                return map_table(self.mapped_path(name))
        except (OSError, pa.ArrowException):
            pass
        check_file(path)
        try:
            return read_contract_file(path, name)
        except (OSError, pa.ArrowException) as error:
            raise files.read_error(path, error) from None

    def rows_of(self, name: str, values: list[str] | pa.Array, column: str = "id") -> np.ndarray:
        """Return the row number of each of `values` in a key column, -1 for an unknown value: int64."""
        if column == "id" and isinstance(values, list) and name in LOOKED_UP:
            arrays = self.lookups
            return find_rows(arrays.array(f"{name}_id_hashes"), arrays.array(f"{name}_id_rows"), values)
        found = pc.index_in(pa.array(values, pa.string()), value_set=self._column(name, column))
        return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)

    def take(self, name: str, rows: np.ndarray | list[int], columns: list[str] | None = None) -> list[dict[str, Any]]:
        """Return the records of some rows, in the order of `rows`."""
        names = columns or self.table(name).schema.names
        values = self.take_columns(name, rows, names)
        return [dict(zip(names, record, strict=True)) for record in zip(*values, strict=True)]

    def take_columns(self, name: str, rows: np.ndarray | list[int], columns: list[str]) -> list[list[Any]]:
        """Return the values of some rows, in the order of `rows`: a list for each of `columns`.

        Raises:
            IndexError: a row is negative or behind the last one.
        """
        wanted = np.asarray(rows, dtype=np.int64)
        if not len(wanted):
            return [[] for _ in columns]
        n_rows = len(self._column(name, columns[0]))
        if wanted.min() < 0 or wanted.max() >= n_rows:  # NumPy would count a negative row from the end
            raise IndexError(f"{name}: rows {wanted.min()} to {wanted.max()} are wanted of {n_rows}")
        indices = pa.array(wanted)
        return [self._take(name, column, wanted, indices) for column in columns]

    def _take(self, name: str, column: str, rows: np.ndarray, indices: pa.Array) -> list[Any]:
        """Return values of a column; numbers by NumPy, which takes a tenth of the time of Arrow."""
        key = (name, column)
        if key not in self._numbers:
            self._numbers[key] = _as_numbers(self._column(name, column))
        numbers = self._numbers[key]
        values: list[Any]
        values = self._column(name, column).take(indices).to_pylist() if numbers is None else numbers[rows].tolist()
        return values

    def _column(self, name: str, column: str) -> pa.Array:
        key = (name, column)
        if key not in self._columns:
            table, field = self.table(name), CONTRACT_TABLES[name].schema.field(column)
            is_later = field.nullable and column not in table.schema.names  # an earlier version made the snapshot
            self._columns[key] = pa.nulls(len(table), field.type) if is_later else one_chunk(table[column])
        return self._columns[key]

    @functools.cached_property
    def vector_store(self) -> SnapshotVectors:
        """The store that holds its vectors, which may be another kind than the settings name now."""
        return open_vector_store(self._vector_settings, self.folder / "vectors", self.manifest.vector_store)

    def vectors(self, name: str) -> VectorCollection:
        """Return a vector table by its name (see `tables.VECTOR_TABLES`), opened."""
        if name not in self._vectors:
            if name not in self.manifest.vectors:
                raise NoSnapshotError(f"snapshot {self.id} has no vector table {name!r}; run `graphrag-pipeline index`")
            self._vectors[name] = self.vector_store.open(self.manifest.vectors[name])
        return self._vectors[name]

    @functools.cached_property
    def adjacency(self) -> Adjacency:
        return Adjacency(self.folder / "adjacency" / self.manifest.adjacency)

    @property
    def lookups(self) -> Adjacency:
        """Arrays that find rows by id and by name (`lookups.py`), in the folder of the adjacency."""
        return self.adjacency

    @functools.cached_property
    def mentions(self) -> Mentions:
        """The mention graph: entities of each text unit, with places."""
        return Mentions(self.adjacency)

    @functools.cached_property
    def sentences(self) -> Sentences:
        """The text units' sentences and their vectors."""
        if not self.manifest.sentences:
            raise NoSnapshotError(f"snapshot {self.id} has no sentence vectors; run `graphrag-pipeline index`")
        return Sentences(self.folder / "sentences" / self.manifest.sentences)

    @functools.cached_property
    def sentence_means(self) -> SentenceMeans:
        """The mean vectors of the text units' sentences."""
        return SentenceMeans(self.sentences)


def _as_numbers(column: pa.Array) -> np.ndarray | None:
    """Return a column of numbers as an array; None if it has other values or nulls."""
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return column.to_numpy() if is_number and not column.null_count else None


def map_table(path: Path) -> pa.Table:
    """Map the Arrow copy of a contract table."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def read_contract_file(path: Path, name: str) -> pa.Table:
    """Read the Parquet file of a contract table whole, as one chunk."""
    schema = CONTRACT_TABLES[name].schema
    return join_rows([pq.read_table(path, schema=schema, memory_map=True)], schema)
