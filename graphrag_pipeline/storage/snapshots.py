"""Snapshots: immutable, checked sets of contract tables, vectors and arrays, and the pointer to the published one.

`snapshots/<id>.json` is a manifest (`manifests.py`); the content-named files it names are shared between snapshots
(`snapshots/tables`, `vectors`, `adjacency`, `sentences`). `snapshots/current.json` is the pointer, replaced atomically.
A reader opens one manifest, shares a lock on it, and never looks at the pointer again. `snapshots/pinned.json` names
the snapshot that somebody went back to: while it is there nothing else is published. Keep out: how contract tables are
joined, what a search does with them, and removing anything (`garbage.py`).
"""

from __future__ import annotations

import functools
import json
import os
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.settings.settings import VectorStoreSettings
from graphrag_pipeline.storage.arrays import Adjacency, Sentences, write_arrays
from graphrag_pipeline.storage.damage import find_damaged_parts, is_whole_arrow, tell_damage
from graphrag_pipeline.storage.locks import hold_for_reading
from graphrag_pipeline.storage.lookups import LOOKED_UP, find_rows
from graphrag_pipeline.storage.manifests import FORMAT, ID_DIGITS, Manifest
from graphrag_pipeline.storage.mentions import Mentions
from graphrag_pipeline.storage.table_store import put_parquet
from graphrag_pipeline.storage.vectors.folders import VectorFolder, VectorRows
from graphrag_pipeline.storage.vectors.stores import (
    VectorCollection,
    VectorStore,
    collection_of,
    open_vector_store,
)
from graphrag_pipeline.tables import CONTRACT_TABLES

_LATER_NS = 1_000_000
"""A manifest is at least so much later than the newest one, also where a clock lags or stands."""


def mapped_name(parquet_file: str) -> str:
    """Name of the memory-mapped form of a contract table, beside its Parquet file."""
    return parquet_file.removesuffix(".parquet") + ".arrow"


def _write_arrow(rows: pa.Table, sink: BinaryIO) -> None:
    """Write a table as an Arrow IPC file of one uncompressed record batch."""
    plain = rows.replace_schema_metadata(None).combine_chunks()
    with pa.ipc.new_file(sink, plain.schema) as writer:
        writer.write_table(plain)


class SnapshotStore:
    """The `snapshots/` folder of a root.

    Args:
        root: the project root.
        vector_store: where the vectors of new snapshots go.
        fetch: gets the files of a snapshot that is listed but not here, from a shared store.
    """

    def __init__(
        self,
        root: Path,
        vector_store: VectorStoreSettings | None = None,
        fetch: Callable[[str], None] | None = None,
    ) -> None:
        self.folder = root / "snapshots"
        self.vector_store = vector_store or VectorStoreSettings()
        self._fetch = fetch

    # ------------------------------------------------------------------------------------------------------ writing

    def write_table(self, name: str, rows: pa.Table) -> dict[str, Any]:
        """Save a contract table; returns its entry of the manifest.

        Beside the Parquet file, which is the contract, stands the same table in Arrow's own format: searches map that
        one, so that opening loads nothing and a few rows cost a few pages.
        """
        sorted_rows = CONTRACT_TABLES[name].sort(rows)
        file, _ = put_parquet(self.folder / "tables" / name, sorted_rows)
        mapped_file = self.folder / "tables" / name / mapped_name(file)
        if not is_whole_arrow(mapped_file, rows.num_rows):
            files.replace_by(mapped_file, functools.partial(_write_arrow, sorted_rows))
        return {"file": file, "n_rows": rows.num_rows}

    def map_table(self, name: str, entry: Mapping[str, Any]) -> None:
        """Make the memory-mapped copy of a contract table whose Parquet file came from elsewhere."""
        path = self.folder / "tables" / name / entry["file"]
        mapped_file = path.with_name(mapped_name(path.name))
        if not is_whole_arrow(mapped_file, entry["n_rows"]):
            files.replace_by(mapped_file, functools.partial(_write_arrow, _read_table(path, name)))

    def write_adjacency(self, arrays: Mapping[str, np.ndarray]) -> str:
        """Save adjacency arrays; returns the name of their folder."""
        return write_arrays(self.folder / "adjacency", arrays)

    def write_sentences(self, arrays: Mapping[str, np.ndarray]) -> str:
        """Save the arrays of the text units' sentences; returns the name of their folder."""
        return write_arrays(self.folder / "sentences", arrays)

    def write_vectors(
        self, name: str, rows: VectorRows, has_full_text: bool, previous: Manifest | None
    ) -> VectorFolder:
        """Save a vector table (see `vectors.vector_rows`), from the previous candidate's where that is cheaper."""
        is_same_store = previous is not None and previous.vector_store == self.vector_store.kind
        known = previous.vectors.get(name) if previous and is_same_store else None
        return open_vector_store(self.vector_store, self.folder / "vectors").build(name, rows, has_full_text, known)

    def write_manifest(self, manifest: Manifest) -> str:
        """Save a manifest and when that was; returns the snapshot's id.

        An equal one that is there stays, with its time: readers share a lock on it.
        """
        try:
            self.manifest(manifest.id)
        except NoSnapshotError:
            newest = max((self.created_ns(i) for i in self.ids()), default=0)
            dated = replace(manifest, created_ns=max(time.time_ns(), newest + _LATER_NS))
            files.replace(self.path_of(manifest.id), dated.to_json())
        return manifest.id

    # --------------------------------------------------------------------------------------------- pointer, reading

    def current(self) -> str | None:
        """Id of the published snapshot, or None."""
        return self._named_by("current.json", "run `graphrag-pipeline index` to publish again")

    def pinned(self) -> str | None:
        """Id of the snapshot that somebody went back to, or None; while there is one, nothing else is published."""
        return self._named_by("pinned.json", "run `graphrag-pipeline snapshots unpin`")

    def _named_by(self, name: str, way_out: str) -> str | None:
        path = self.folder / name
        try:
            return str(json.loads(path.read_bytes())["snapshot"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            raise NoSnapshotError(f"{path}: damaged; {way_out}") from None

    def pin(self, snapshot_id: str) -> None:
        """Let nothing but this snapshot be published from now on."""
        files.replace(self.folder / "pinned.json", json.dumps({"snapshot": snapshot_id}).encode())

    def unpin(self) -> None:
        """Let new candidates be published again."""
        (self.folder / "pinned.json").unlink(missing_ok=True)

    def ids(self) -> list[str]:
        """Ids of all snapshots that are there, the oldest first."""
        found = [path.stem for path in self.folder.glob("*.json") if len(path.stem) == ID_DIGITS]
        return sorted(found, key=lambda snapshot_id: (self.created_ns(snapshot_id), snapshot_id))

    def created_ns(self, snapshot_id: str) -> int:
        """When a snapshot was made, in ns since 1970: as its manifest says, else the time of the manifest's file.

        Raises:
            FileNotFoundError: it has no manifest.
        """
        path = self.path_of(snapshot_id)
        found = path.stat()
        return _read_created_ns(path, found.st_mtime_ns, found.st_size) or found.st_mtime_ns

    def path_of(self, snapshot_id: str) -> Path:
        """The manifest of a snapshot."""
        return self.folder / f"{snapshot_id}.json"

    def is_checked(self, snapshot_id: str) -> bool:
        """Whether a snapshot has passed all its checks."""
        return (self.folder / f"{snapshot_id}.checked").exists()

    def point_at(self, snapshot_id: str) -> None:
        """Publish: move the pointer. The caller has checked the snapshot."""
        files.flush_to_disk()
        files.replace(self.folder / "current.json", json.dumps({"snapshot": snapshot_id}).encode())

    def manifest(self, snapshot_id: str) -> Manifest:
        path = self.path_of(snapshot_id)
        try:
            manifest = Manifest.from_json(path.read_bytes())
        except FileNotFoundError:
            raise NoSnapshotError(f"snapshot {snapshot_id}: {path} is missing; run `graphrag-pipeline index`") from None
        except (ValueError, TypeError, KeyError) as error:
            raise NoSnapshotError(f"{path}: damaged manifest ({error}); run `graphrag-pipeline index`") from None
        if manifest.format != FORMAT:
            raise PipelineError(f"{path}: format {manifest.format} is not known here; upgrade graphrag-pipeline")
        return manifest

    def current_manifest(self) -> Manifest | None:
        """Manifest of the published snapshot, or None if nothing (whole) is published."""
        try:
            current = self.current()
            return self.manifest(current) if current else None
        except NoSnapshotError:
            return None

    def last_manifest(self, candidate_id: str | None) -> Manifest | None:
        """Manifest of the candidate made last if it is whole, else of the published snapshot, or None.

        They differ where somebody went back: a number that a later snapshot gave away is not given again.
        """
        try:
            if candidate_id:
                return self.open(candidate_id).manifest
        except NoSnapshotError:
            pass
        return self.current_manifest()

    def record_numbers(self, manifest: Manifest | None) -> pa.Table | None:
        """The record numbers of a snapshot, or of the newest that has a whole table of them; None without any."""
        if manifest is None:
            return None
        for snapshot_id in (manifest.id, *reversed(self.ids())):
            try:
                known = self.manifest(snapshot_id)
                return Snapshot(self.folder, snapshot_id, known, self.vector_store).table("record_numbers")
            except NoSnapshotError:
                continue
        return None

    def find_damage(self, snapshot_id: str) -> str:
        """What is gone from a snapshot or not whole, in words, cheaply (`damage.py`); "" if nothing is."""
        try:
            damaged = find_damaged_parts(self.open(snapshot_id))
        except NoSnapshotError as error:
            return str(error)
        return f"snapshot {snapshot_id}: {tell_damage(damaged)}" if damaged else ""

    def whole_table(self, manifest: Manifest | None, name: str) -> pa.Table | None:
        """A contract table of a snapshot; None without one, or if a file of it is gone."""
        try:
            return self.open(manifest.id).table(name) if manifest else None
        except NoSnapshotError:
            return None

    def open(self, snapshot_id: str | None = None) -> Snapshot:
        """Open a snapshot (the published one if None).

        Raises:
            NoSnapshotError: nothing is published, or a file of the snapshot is gone.
        """
        snapshot_id = snapshot_id or self.current()
        if snapshot_id is None:
            raise NoSnapshotError(
                f"{self.folder.parent}: no published index; run `graphrag-pipeline index`, or `import` one, first"
            )
        snapshot = Snapshot(self.folder, snapshot_id, self.manifest(snapshot_id), self.vector_store)
        snapshot.hold()
        missing = snapshot.missing_files()
        if missing and self._fetch:
            self._fetch(snapshot_id)
            missing = snapshot.missing_files()
        if missing:
            raise NoSnapshotError(f"snapshot {snapshot_id}: {tell_damage(missing)}; run `graphrag-pipeline index`")
        return snapshot


class Snapshot:
    """One immutable index, opened for reading; everything is loaded at first use and kept.

    Row numbers ("rows") are 0-based positions in a contract table in file order; adjacency arrays speak in them.

    Args:
        folder: the root's `snapshots` folder.
        id: the snapshot's id.
        vector_store: options of the store that holds its vectors, if it is the one that is set.
    """

    def __init__(self, folder: Path, id: str, manifest: Manifest, vector_store: VectorStoreSettings) -> None:
        self.folder = folder
        self.id = id
        self.manifest = manifest
        self._tables: dict[str, pa.Table] = {}
        self._id_sets: dict[tuple[str, str], pa.Array] = {}
        self._vectors: dict[str, VectorCollection] = {}
        self._vector_settings = vector_store
        self._release: Callable[[], object] = lambda: None

    def hold(self) -> None:
        """Keep its files from being removed as long as this object, or the process, lives."""
        try:
            descriptor = hold_for_reading(self.folder / f"{self.id}.json")
        except FileNotFoundError:
            raise NoSnapshotError(f"snapshot {self.id} was removed while it was opened; open it again") from None
        if descriptor is not None:
            self._release = weakref.finalize(self, os.close, descriptor)

    def close(self) -> None:
        """Let its files be removed; what was loaded stays usable, anything else may be gone."""
        self._release()

    def missing_files(self) -> list[Path | str]:
        """Files, and collections of vectors, that are not there or not whole."""
        paths = [self.table_path(name) for name in self.manifest.tables]
        paths.append(self.folder / "adjacency" / self.manifest.adjacency)
        if self.manifest.sentences:
            paths.append(self.folder / "sentences" / self.manifest.sentences)
        collections = [f for f in self.manifest.vectors.values() if not self.vector_store.is_whole(f)]
        lost = [f"vector collection {collection_of(folder)}" for folder in collections]
        return [*(path for path in paths if not path.exists()), *lost]

    def table_path(self, name: str) -> Path:
        """The Parquet file of a contract table."""
        return self.folder / "tables" / name / str(self.manifest.tables[name]["file"])

    def mapped_path(self, name: str) -> Path:
        """The memory-mapped copy of a contract table; a snapshot made before there were any has none."""
        path = self.table_path(name)
        return path.with_name(mapped_name(path.name))

    def n_rows(self, name: str) -> int:
        return int(self.manifest.tables[name]["n_rows"])

    def table(self, name: str) -> pa.Table:
        """A whole contract table (one chunk), in file order; memory-mapped, so what is not read costs nothing.

        Raises:
            NoSnapshotError: its file is gone or damaged.
        """
        if name not in self._tables:
            self._tables[name] = self._read(name)
        return self._tables[name]

    def _read(self, name: str) -> pa.Table:
        """From the mapped copy; where that is damaged, or the snapshot older than copies, from the contract itself."""
        path = self.table_path(name)
        try:
            return _map_table(self.mapped_path(name))
        except (OSError, pa.ArrowException):
            pass
        try:
            return _read_table(path, name)
        except (OSError, pa.ArrowException) as error:
            raise files.read_error(path, path, error) from None

    def rows_of(self, name: str, values: list[str] | pa.Array, column: str = "id") -> np.ndarray:
        """Row numbers of `values` in a key column, in their order; -1 where there is none. int64."""
        if column == "id" and isinstance(values, list) and name in LOOKED_UP and self.lookups.has(f"{name}_id_hashes"):
            arrays = self.lookups
            return find_rows(arrays.array(f"{name}_id_hashes"), arrays.array(f"{name}_id_rows"), values)
        key = (name, column)
        if key not in self._id_sets:
            self._id_sets[key] = self.table(name)[column].combine_chunks()
        found = pc.index_in(pa.array(values, pa.string()), value_set=self._id_sets[key])
        return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)

    def take(self, name: str, rows: np.ndarray | list[int], columns: list[str] | None = None) -> list[dict[str, Any]]:
        """Records of some rows, in that order."""
        table = self.table(name)
        return (table.select(columns) if columns else table).take(pa.array(rows, pa.int64())).to_pylist()

    @functools.cached_property
    def vector_store(self) -> VectorStore:
        """The store that holds its vectors, whatever the settings say now."""
        return open_vector_store(self._vector_settings, self.folder / "vectors", self.manifest.vector_store)

    def vectors(self, name: str) -> VectorCollection:
        """A vector table by its name (see `tables.VECTOR_TABLES`)."""
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
        """Arrays that find rows by id and by name (`storage/lookups.py`); they lie in the adjacency's folder."""
        return self.adjacency

    @functools.cached_property
    def mentions(self) -> Mentions:
        """Which text unit mentions which entity, and where."""
        return Mentions(self.adjacency)

    @functools.cached_property
    def sentences(self) -> Sentences:
        """The text units' sentences and their vectors."""
        if not self.manifest.sentences:
            raise NoSnapshotError(f"snapshot {self.id} has no sentence vectors; run `graphrag-pipeline index`")
        return Sentences(self.folder / "sentences" / self.manifest.sentences)


@functools.lru_cache(maxsize=4096)
def _read_created_ns(path: Path, modified_ns: int, n_bytes: int) -> int:
    """The time that a manifest says; 0 if it says none or is damaged. The file's time and size are of the cache."""
    try:
        return int(json.loads(path.read_bytes()).get("created_ns", 0))
    except (ValueError, TypeError, AttributeError):
        return 0


def _map_table(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def _read_table(path: Path, name: str) -> pa.Table:
    return pq.read_table(path, schema=CONTRACT_TABLES[name].schema, memory_map=True).combine_chunks()
