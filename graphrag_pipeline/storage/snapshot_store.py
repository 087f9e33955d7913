"""The snapshots of a root: writing their parts, the pointer to the published one, and opening them.

`snapshots/<id>.json` is a manifest (`manifests.py`); the content-named files it names are shared between snapshots
(`snapshots/tables`, `vectors`, `adjacency`, `sentences`). `snapshots/current.json` is the pointer, replaced atomically.
`snapshots/pinned.json` names the snapshot that a user rolled back to; while it exists nothing else is published. Keep
out: the join of contract tables, searching, and removal (`garbage.py`).
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.files import seal
from graphrag_pipeline.filesystem.listed_folders import hash_file
from graphrag_pipeline.settings.settings import VectorStoreSettings
from graphrag_pipeline.storage.arrays import write_arrays
from graphrag_pipeline.storage.damage import describe_damage, has_own_hash
from graphrag_pipeline.storage.formats import read_values
from graphrag_pipeline.storage.locks import is_held, one_writer
from graphrag_pipeline.storage.manifests import Manifest, hash_path, is_snapshot_id, mapped_name
from graphrag_pipeline.storage.snapshots import Snapshot, read_contract_file
from graphrag_pipeline.storage.table_store import put_parquet
from graphrag_pipeline.storage.vectors import open_vector_store
from graphrag_pipeline.storage.vectors.folders import VectorFolder, VectorRows
from graphrag_pipeline.tables import CONTRACT_TABLES

EVALUATIONS_FOLDER = "evaluations"
"""Folder of the root that holds the evaluation figures of each snapshot, in a folder named by its id."""
COPY_SUFFIX = ".manifest"
"""Ending of the copy of a manifest, for the case that the manifest is damaged."""
_COPIED_WITHIN_NS = 1_000_000_000
"""A copy that is older or younger by more than this than the manifest says may have changed."""
_LATER_NS = 1_000_000
"""The smallest time between two manifests, also if the clock is behind or stopped."""


class SnapshotStore:
    """The `snapshots/` folder of a root.

    Args:
        root: the project root.
        vector_store: where the vectors of new snapshots go.
        fetch: gets the missing files of a snapshot from a shared store, by the snapshot's id.
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

    # ---------------------------------------------------------------------------------------------------------- writing

    def write_table(self, name: str, rows: pa.Table) -> dict[str, Any]:
        """Save a contract table and return its entry for the manifest.

        The Parquet file is the contract. Beside it lies the same table in Arrow's own format. Searches map that copy,
        so that opening loads nothing and reading a few rows costs a few pages.
        """
        sorted_rows = CONTRACT_TABLES[name].sort(rows)
        file, _ = put_parquet(self.folder / "tables" / name, sorted_rows)
        mapped_file = self.folder / "tables" / name / mapped_name(file)
        if not has_own_hash(mapped_file):
            write_mapped(mapped_file, sorted_rows)
        return {"file": file, "n_rows": rows.num_rows}

    def map_table(self, name: str, entry: Mapping[str, Any]) -> None:
        """Make the memory-mapped copy of a contract table whose Parquet file was downloaded."""
        path = self.folder / "tables" / name / entry["file"]
        mapped_file = path.with_name(mapped_name(path.name))
        if not has_own_hash(mapped_file):
            write_mapped(mapped_file, read_contract_file(path, name))

    def write_adjacency(self, arrays: Mapping[str, np.ndarray]) -> str:
        """Save adjacency arrays and return the name of their folder."""
        return write_arrays(self.folder / "adjacency", arrays)

    def write_sentences(self, arrays: Mapping[str, np.ndarray]) -> str:
        """Save the arrays of the text units' sentences and return the name of their folder."""
        return write_arrays(self.folder / "sentences", arrays)

    def write_vectors(
        self, name: str, rows: VectorRows, has_full_text: bool, previous: Manifest | None
    ) -> VectorFolder:
        """Save a vector table, built from that of the previous candidate if that is cheaper."""
        is_same_store = previous is not None and previous.vector_store == self.vector_store.kind
        known = previous.vectors.get(name) if previous and is_same_store else None
        return open_vector_store(self.vector_store, self.folder / "vectors").build(name, rows, has_full_text, known)

    def write_manifest(self, manifest: Manifest) -> str:
        """Save a manifest with the time, and return the snapshot's id.

        An equal manifest stays, with its time, since readers share a lock on it.
        """
        try:
            self.manifest(manifest.id)
        except NoSnapshotError:
            newest = max((self.created_ns(i) for i in self.ids()), default=0)
            dated = replace(manifest, created_ns=max(time.time_ns(), newest + _LATER_NS))
            files.replace(self.path_of(manifest.id), dated.to_json())
        self.copy_manifest(manifest.id)
        return manifest.id

    def copy_manifest(self, snapshot_id: str) -> None:
        """Keep a copy of a manifest, since all its files are lost without it."""
        files.put_new(self.copy_path(snapshot_id), self.path_of(snapshot_id).read_bytes())

    def restore_manifest(self, snapshot_id: str) -> bool:
        """Replace a damaged or lost manifest by its copy if that can be read; return whether it was."""
        is_whole = self.is_copy_whole(snapshot_id)
        if is_whole:
            files.replace(self.path_of(snapshot_id), self.copy_path(snapshot_id).read_bytes())
        return is_whole

    def is_copy_whole(self, snapshot_id: str) -> bool:
        """Return whether the copy of a manifest exists and has the content of its id."""
        path = self.copy_path(snapshot_id)
        try:
            Manifest.from_json(path.read_bytes(), snapshot_id, path)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, PipelineError):
            return False
        return True

    def settle_copies(self, snapshot_id: str) -> None:
        """Make a manifest and its copy equal that differ in what the id does not cover.

        The copy was written at the time that it holds. If that is no longer so, the copy is the one that changed.
        """
        manifest, copy = self.path_of(snapshot_id), self.copy_path(snapshot_id)
        written = copy.stat().st_mtime_ns
        contents = [copy.read_bytes(), manifest.read_bytes()]
        late = [abs(json.loads(data).get("created_ns", 0) - written) for data in contents]
        right = contents[1] if late[0] > late[1] + _COPIED_WITHIN_NS else contents[0]
        files.replace(manifest, right)
        files.replace(copy, right)

    def remove_manifest(self, snapshot_id: str) -> None:
        """Remove the manifest of a snapshot and what belongs to it; the manifest last, since one without it is lost."""
        for suffix in (COPY_SUFFIX, ".checked", ".json"):
            self.path_of(snapshot_id).with_suffix(suffix).unlink(missing_ok=True)

    def copy_path(self, snapshot_id: str) -> Path:
        """Return the path of the copy of a manifest; an older release made none."""
        return self.path_of(snapshot_id).with_suffix(COPY_SUFFIX)

    # ------------------------------------------------------------------------------------------------- pointer, reading

    def current(self) -> str | None:
        """Return the id of the published snapshot, or None."""
        return self._named_by("current.json", "run `graphrag-pipeline index` to publish again")

    def pinned(self) -> str | None:
        """Return the id of the pinned snapshot, or None; while one is pinned, nothing else is published."""
        return self._named_by("pinned.json", "run `graphrag-pipeline snapshots unpin`")

    def _named_by(self, name: str, way_out: str) -> str | None:
        path = self.folder / name
        try:
            named = read_values(path.read_bytes(), path)["snapshot"]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError):
            named = None
        if not is_snapshot_id(named):
            raise NoSnapshotError(f"`{path}` is damaged; {way_out}")
        return str(named)

    def pin(self, snapshot_id: str) -> None:
        """Allow nothing but this snapshot to be published from now on."""
        files.replace_durably(self.folder / "pinned.json", _pointer_to(snapshot_id))

    def unpin(self) -> None:
        """Allow new candidates to be published again."""
        (self.folder / "pinned.json").unlink(missing_ok=True)

    def ids(self) -> list[str]:
        """Return the ids of all snapshots in the folder, oldest first."""
        found = self._ids_of("*.json")
        return sorted(found, key=lambda snapshot_id: (self._created_ns_or_0(snapshot_id), snapshot_id))

    def lost_ids(self) -> list[str]:
        """Return the ids of snapshots whose manifest is gone, while its copy or its passed checks are there, sorted.

        Who removes a snapshot removes its manifest last, so such a manifest was lost.
        """
        return sorted((self._ids_of(f"*{COPY_SUFFIX}") | self._ids_of("*.checked")) - self._ids_of("*.json"))

    def _ids_of(self, pattern: str) -> set[str]:
        return {path.stem for path in self.folder.glob(pattern) if is_snapshot_id(path.stem)}

    def _created_ns_or_0(self, snapshot_id: str) -> int:
        try:
            return self.created_ns(snapshot_id)
        except FileNotFoundError:  # removed since it was listed, or a link to nothing
            return 0

    def created_ns(self, snapshot_id: str) -> int:
        """Return when a snapshot was made, in ns since 1970: from its manifest, else the time of its file.

        Raises:
            FileNotFoundError: the manifest does not exist.
        """
        path = self.path_of(snapshot_id)
        found = path.stat()
        return _read_created_ns(path, found.st_mtime_ns, found.st_size) or found.st_mtime_ns

    def path_of(self, snapshot_id: str) -> Path:
        """Return the path of the manifest of a snapshot."""
        return self.folder / f"{snapshot_id}.json"

    def is_checked(self, snapshot_id: str) -> bool:
        """Return whether a snapshot has passed all its checks."""
        return (self.folder / f"{snapshot_id}.checked").exists()

    def point_at(self, snapshot_id: str) -> None:
        """Publish a snapshot that the caller has checked, by moving the pointer to it; then it survives a power cut."""
        self.folder.mkdir(parents=True, exist_ok=True)  # of a new copy whose store has only a damaged snapshot
        files.flush_to_disk(self.folder)
        files.replace_durably(self.folder / "current.json", _pointer_to(snapshot_id))

    def manifest(self, snapshot_id: str) -> Manifest:
        """Return the manifest of a snapshot.

        Raises:
            NoSnapshotError: the manifest is missing or damaged.
            NewerFormatError: a newer release wrote it.
            PipelineError: it names a file outside its folder.
        """
        path = self.path_of(snapshot_id)
        try:
            return Manifest.from_json(path.read_bytes(), snapshot_id, path)
        except FileNotFoundError:
            raise NoSnapshotError(f"manifest `{path}` is missing; run {self._way_back(snapshot_id)}") from None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise NoSnapshotError(f"manifest `{path}` is damaged ({error}); run `graphrag-pipeline index`") from None

    def _way_back(self, snapshot_id: str) -> str:
        has_copy = self.is_copy_whole(snapshot_id)
        if has_copy:
            return "`graphrag-pipeline verify --repair`, which has a copy"
        return "`graphrag-pipeline index`, or `import` again if the index was imported"

    def current_manifest(self) -> Manifest | None:
        """Return the manifest of the published snapshot, or None without one that can be read."""
        try:
            current = self.current()
            return self.manifest(current) if current else None
        except NoSnapshotError:
            return None

    def newest_manifest(self) -> Manifest | None:
        for snapshot_id in reversed(self.ids()):
            with suppress(PipelineError):
                return self.manifest(snapshot_id)
        return None

    def has_unnamed_files(self) -> bool:
        """Return whether there are files of snapshots, and no manifest that could name them."""
        return not self.ids() and any((self.folder / "tables").glob("*/*"))

    def last_manifest(self, candidate_id: str | None) -> Manifest | None:
        """Return the manifest of the last candidate if it is whole, else of the published snapshot, or None.

        The two differ after a rollback. Record numbers continue from the last candidate, so that none is given twice.
        """
        try:
            if candidate_id:
                return self.open(candidate_id).manifest
        except NoSnapshotError:
            pass
        return self.current_manifest()

    def record_numbers(self, manifest: Manifest | None) -> pa.Table | None:
        """Return the record numbers of a snapshot, else of the newest one whose table can be read, else None."""
        first = [manifest.id] if manifest else []
        for snapshot_id in (*first, *reversed(self.ids())):
            try:
                known = self.manifest(snapshot_id)
                return Snapshot(self.folder, snapshot_id, known, self.vector_store).checked_table("record_numbers")
            except NoSnapshotError:
                continue
        return None

    def find_damage(self, snapshot_id: str) -> str:
        """Return the damage of a snapshot in words, by names and sizes alone (`damage.py`); "" without damage."""
        try:
            damaged = self.open(snapshot_id).damaged_parts()
        except NoSnapshotError as error:
            return str(error)
        return f"snapshot {snapshot_id}: {describe_damage(damaged)}" if damaged else ""

    def whole_table(self, manifest: Manifest | None, name: str) -> pa.Table | None:
        """Return a contract table of a snapshot; None without a manifest, or if a file is missing."""
        try:
            return self.open(manifest.id).checked_table(name) if manifest else None
        except NoSnapshotError:
            return None

    def open(self, snapshot_id: str | None = None) -> Snapshot:
        """Open a snapshot (the published one if None).

        Raises:
            NoSnapshotError: nothing is published, or a file of the snapshot is missing.
        """
        snapshot_id = snapshot_id or self.current()
        if snapshot_id is None and (newest := self.newest_manifest()) and newest.origin == "import":
            raise NoSnapshotError(
                f"`{self.folder / 'current.json'}` is missing, which names the published snapshot; run "
                "`graphrag-pipeline verify --repair`"
            )
        if snapshot_id is None:
            raise NoSnapshotError(
                f"`{self.folder.parent}` has no published index; run `graphrag-pipeline index`, or `import` one, first"
            )
        snapshot = Snapshot(self.folder, snapshot_id, self.manifest(snapshot_id), self.vector_store)
        snapshot.hold()
        damaged = _find_unreadable(snapshot)
        if damaged and self._fetch:
            self._fetch(snapshot_id)
            damaged = _find_unreadable(snapshot)
        if damaged:
            snapshot.close()
            raise NoSnapshotError(
                f"snapshot {snapshot_id}: {describe_damage(damaged)}; run `graphrag-pipeline index`, or "
                "`graphrag-pipeline verify --repair`"
            )
        return snapshot


def _pointer_to(snapshot_id: str) -> bytes:
    return seal({"snapshot": snapshot_id})


def _find_unreadable(snapshot: Snapshot) -> list[Path | str]:
    """Return the missing files of a snapshot, else the changed ones among those that opening it checks."""
    return snapshot.missing_parts() or [*snapshot.changed_read_parts()]


def write_mapped(path: Path, rows: pa.Table) -> None:
    """Write the memory-mapped copy of a table, and its hash beside it."""
    hash_path(path).unlink(missing_ok=True)
    files.replace_by(path, functools.partial(_write_arrow, rows))
    files.replace(hash_path(path), hash_file(path).encode())


def _write_arrow(rows: pa.Table, sink: BinaryIO) -> None:
    """Write a table as an Arrow IPC file of one uncompressed record batch."""
    plain = rows.replace_schema_metadata(None).combine_chunks()
    with pa.ipc.new_file(sink, plain.schema) as writer:
        writer.write_table(plain)


@functools.lru_cache(maxsize=4096)
def _read_created_ns(path: Path, modified_ns: int, n_bytes: int) -> int:
    """Return the time in a manifest; 0 without one or if it is damaged. Time and size of the file are cache keys."""
    try:
        return int(json.loads(path.read_bytes()).get("created_ns", 0))
    except (ValueError, TypeError, AttributeError):
        return 0


@dataclass(frozen=True)
class SnapshotFacts:
    """The facts of one snapshot, for lists.

    Attributes:
        created: time when its manifest was first written, ISO 8601 in UTC.
        is_published: readers get this snapshot.
        is_pinned: a user rolled back to it, and nothing else is published.
        is_imported: it came from `import`, not from the input folder.
        is_read: a process has it open now.
        is_checked: it passed the checks that every published snapshot passes.
        is_waiting: it is published after `unpin`.
        refusal: the reason why the golden questions refused it as a candidate; "" if they did not.
        rows: number of rows by contract table.
        notes: repairs that an import made.
    """

    id: str
    created: str
    is_published: bool
    is_pinned: bool
    is_imported: bool
    is_read: bool
    is_checked: bool
    is_waiting: bool
    refusal: str
    rows: dict[str, int]
    notes: tuple[str, ...] = ()


def list_snapshots(store: SnapshotStore, waiting: str | None = None) -> list[SnapshotFacts]:
    """Return the facts of every snapshot whose manifest can be read, newest first.

    Args:
        waiting: id of the candidate that is published after `unpin`, if there is one.

    Raises:
        NoSnapshotError: the pointer or the pin is damaged.
    """
    found = []
    for snapshot_id in reversed(store.ids()):
        try:
            store.manifest(snapshot_id)
        except NoSnapshotError:
            continue
        found.append(describe_snapshot(store, snapshot_id, waiting))
    return found


def describe_snapshot(store: SnapshotStore, snapshot_id: str, waiting: str | None = None) -> SnapshotFacts:
    """Return the facts of one snapshot.

    Raises:
        NoSnapshotError: its manifest, the pointer or the pin is missing or damaged.
    """
    manifest = store.manifest(snapshot_id)
    path = store.path_of(snapshot_id)
    return SnapshotFacts(
        id=snapshot_id,
        created=datetime.fromtimestamp(store.created_ns(snapshot_id) / 1e9, UTC).isoformat(timespec="seconds"),
        is_published=snapshot_id == store.current(),
        is_pinned=snapshot_id == store.pinned(),
        is_imported=manifest.origin == "import",
        is_read=is_held(path),
        is_checked=store.is_checked(snapshot_id),
        is_waiting=snapshot_id == waiting,
        refusal=refusal_of(store, snapshot_id),
        rows={name: int(entry["n_rows"]) for name, entry in manifest.tables.items()},
        notes=manifest.notes,
    )


def find_snapshot(store: SnapshotStore, start: str) -> str:
    """Return the id that starts with `start`.

    Raises:
        NoSnapshotError: no id or more than one starts with it.
    """
    found = [snapshot_id for snapshot_id in store.ids() if start and snapshot_id.startswith(start)]
    if len(found) != 1:
        several = f"{len(found)} snapshots have an id that starts so ({', '.join(found)})"
        problem = several if found else "there is no such snapshot"
        raise NoSnapshotError(f"snapshot {start!r}: {problem}; run `graphrag-pipeline snapshots list` to see all ids")
    return found[0]


def roll_back(store: SnapshotStore, snapshot_id: str) -> None:
    """Publish a snapshot that was published before and pin it, so that nothing else is published until `unpin`.

    Raises:
        PipelineError: it never passed its checks, or the golden questions refused it.
        NoSnapshotError: a file of it is missing.
    """
    with one_writer(store.folder.parent):
        snapshot = store.open(snapshot_id)
        if not store.is_checked(snapshot_id):
            refusal = refusal_of(store, snapshot_id)
            problem = f"that the golden questions refused ({refusal})" if refusal else "that was never checked"
            raise PipelineError(f"snapshot {snapshot_id}: is a candidate {problem}; choose another")
        store.pin(snapshot_id)  # first: after a kill in between nothing new is published
        store.point_at(snapshot_id)
        snapshot.close()


def record_refusal(store: SnapshotStore, snapshot_id: str, reason: str) -> None:
    """Save the reason why a candidate is not published; it is removed with the snapshot."""
    files.replace(_refusal_path(store, snapshot_id), reason.encode())


def clear_refusal(store: SnapshotStore, snapshot_id: str) -> None:
    """Remove the refusal of a candidate."""
    _refusal_path(store, snapshot_id).unlink(missing_ok=True)


def refusal_of(store: SnapshotStore, snapshot_id: str) -> str:
    """Return the reason why the last attempt to publish a candidate was refused; "" if it was not refused."""
    path = _refusal_path(store, snapshot_id)
    return path.read_text(encoding="utf-8") if path.exists() else ""


_WAITS = "waits for review; see `graphrag-pipeline review show`"
_REJECTED = "rejected in review: "


def hold_for_review(store: SnapshotStore, snapshot_id: str) -> None:
    """Refuse a candidate until it is reviewed."""
    record_refusal(store, snapshot_id, _WAITS)


def reject_in_review(store: SnapshotStore, snapshot_id: str, reason: str) -> None:
    """Refuse a candidate for the reason of a reviewer."""
    record_refusal(store, snapshot_id, f"{_REJECTED}{' '.join(reason.split())}")


def read_review(store: SnapshotStore, snapshot_id: str) -> Literal["", "waiting", "rejected"]:
    """Return how far the review of a candidate is; "" if it needs none."""
    return review_in(refusal_of(store, snapshot_id))


def review_in(refusal: str) -> Literal["", "waiting", "rejected"]:
    """Return how far a review is by the refusal that it left."""
    return "waiting" if refusal == _WAITS else "rejected" if refusal.startswith(_REJECTED) else ""


def refuse_rejected(store: SnapshotStore, snapshot_id: str) -> None:
    """Refuse to publish a candidate that a reviewer rejected.

    Raises:
        PipelineError: it was rejected; says why, and how to publish it all the same.
    """
    if read_review(store, snapshot_id) == "rejected":
        raise PipelineError(
            f"candidate {snapshot_id} was {refusal_of(store, snapshot_id)}; change what is wrong and run `index`, or "
            f"publish it all the same with `graphrag-pipeline review publish {snapshot_id}`"
        )


def _refusal_path(store: SnapshotStore, snapshot_id: str) -> Path:
    return store.folder.parent / EVALUATIONS_FOLDER / snapshot_id / "refused.txt"
