"""A root as a working copy of a shared store: its content, and applying the store's state to it.

Files are written before the files that name them, so that a kill at any moment leaves a valid root. Keep out: transfer
of files (`transfer.py`), the time of updates (`shared_store.py`), and the comparison of both sides (`state.py`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.storage.locks import is_held
from graphrag_pipeline.storage.manifests import Manifest
from graphrag_pipeline.storage.shared.state import (
    SnapshotMarks,
    StoreState,
    archive_names,
    choose,
    find_conflicts,
    head_names,
    heads_to_take,
    named_objects,
    searched_names,
    stage_file_names,
)
from graphrag_pipeline.storage.shared.transfer import MissingObjects, Transfer
from graphrag_pipeline.storage.snapshot_store import SnapshotStore, clear_refusal, record_refusal, refusal_of
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.storage.table_store import Head, TableStore
from graphrag_pipeline.tables import INDEX_CANDIDATE

_log = logging.getLogger(__name__)


class WorkingCopy:
    """The part of an index that a root has.

    Args:
        snapshots: snapshots of the root, without a store behind them.
        transfer: transfer from and to the store.
    """

    def __init__(self, root: Path, snapshots: SnapshotStore, transfer: Transfer) -> None:
        self.root = root
        self._tables = TableStore(root)
        self._snapshots = snapshots
        self._transfer = transfer

    # ---------------------------------------------------------------------------------------------------- local content

    def heads(self) -> dict[str, Head]:
        """Return the heads whose files are whole, by "table/partition"."""
        paths = (self.root / "heads").glob("*/[!.]*.json")
        found = (self._tables.head(path.parent.name, path.stem) for path in paths)
        return {f"{head.table}/{head.partition}": head for head in found if head}

    def is_empty(self) -> bool:
        """Return whether the root has neither snapshots nor heads."""
        return not (self._snapshots.ids() or self.heads())

    def has_published(self, there: StoreState) -> bool:
        """Return whether the root has the pointer and all manifests; opening a snapshot checks its files."""
        is_pointed = self.current() is not None or there.current is None
        return is_pointed and all(self._snapshots.path_of(i).exists() for i in there.snapshots)

    def state(self, there: StoreState, n_buckets: int) -> StoreState:
        """Return the next state of the store: what remains of its state `there`, and the current state of the root.

        Any other snapshot of the root may be new, or removed in the store. So those are uploaded only to an empty
        store.
        """
        heads = {**there.heads, **self.heads()}
        current, pinned = self.current() or there.current, self._snapshots.pinned()
        wanted = set(self._snapshots.ids()) if there.is_empty else self.in_use(heads)
        ids = [i for i in self._snapshots.ids() if i in there.snapshots or (i in wanted and self.is_whole(i))]
        return StoreState(
            n_buckets=n_buckets if heads else there.n_buckets,
            heads=heads,
            snapshots={i: self._marks(i, there) for i in ids},
            current=current if current in ids else there.current,
            pinned=pinned,
            rewritten=there.rewritten,
            n_sweeps=there.n_sweeps,
        )

    def in_use(self, heads: Mapping[str, Head] | None = None) -> set[str | None]:
        """Return the ids that the pointer, the pin and the candidate of the root name."""
        candidate = (self.heads() if heads is None else heads).get(f"{INDEX_CANDIDATE}/{WHOLE}")
        return {self.current(), self._snapshots.pinned(), candidate.data_version if candidate else None}

    def current(self) -> str | None:
        """Return the id of the published snapshot of the root; None without one that can be read."""
        try:
            return self._snapshots.current()
        except NoSnapshotError:  # the pointer is damaged: the store's is used
            return None

    def restore_pin(self, known: str | None) -> None:
        """Replace a damaged pin, which else stops every writer, also `unpin`.

        Args:
            known: the pin of the last common state.
        """
        try:
            self._snapshots.pinned()
        except NoSnapshotError as error:
            _log.warning("%s. Taking the pin of the shared store: %s", error, known or "none")
            if known:
                self._snapshots.pin(known)
            else:
                self._snapshots.unpin()

    def _marks(self, snapshot_id: str, there: StoreState) -> SnapshotMarks:
        path = self._snapshots.path_of(snapshot_id)
        known = there.snapshots.get(snapshot_id)
        checked = path.with_suffix(".checked")
        return SnapshotMarks(
            created_ns=known.created_ns if known else self._snapshots.created_ns(snapshot_id),
            checked=checked.read_text() if checked.exists() else None,
            refusal=refusal_of(self._snapshots, snapshot_id),
        )

    def is_whole(self, snapshot_id: str) -> bool:
        """Return whether the root has the manifest of a snapshot and all files that a search needs."""
        # Without opening it: that waits for an exclusive lock, which the caller may hold.
        for manifest in self.manifests([snapshot_id]).values():
            store = self._snapshots
            return not Snapshot(store.folder, snapshot_id, manifest, store.vector_store).missing_parts()
        return False

    def manifests(self, ids: Iterable[str]) -> dict[str, Manifest]:
        """Return the manifests of the root that can be read, by id."""
        found = {}
        for snapshot_id in ids:
            try:
                found[snapshot_id] = self._snapshots.manifest(snapshot_id)
            except NoSnapshotError:
                continue
        return found

    def all_manifests(self, ids: Iterable[str]) -> dict[str, Manifest]:
        """Return the manifests of the root by id, before something is removed that they do not name.

        Raises:
            PipelineError: one of them cannot be read.
        """
        return {snapshot_id: self._snapshots.manifest(snapshot_id) for snapshot_id in ids}

    def searched_objects(self, snapshot_id: str) -> set[str]:
        """Return the objects that a search of a snapshot needs."""
        return searched_names(self._snapshots.manifest(snapshot_id))

    # --------------------------------------------------------------------------------------- applying the store's state

    def take_snapshots(self, base: StoreState, there: StoreState, missing: MissingObjects = None) -> StoreState:
        """Apply the store's manifests, published snapshot, pointer and pin, and drop snapshots removed there.

        Returns:
            The common state of copy and store without heads. A snapshot that was removed in the store but is open on
            this machine stays in it until it is closed.

        Raises:
            MissingObjectError: the store lacks an object that it names, and `missing` is None.
        """
        self._take_manifests(there, missing)
        here = self.current()
        current = choose(base.current, here, there.current) if here else there.current
        pinned = choose(base.pinned, self._snapshots.pinned(), there.pinned)
        if pinned != self._snapshots.pinned():  # the pin changed: a snapshot published here since does not count
            current = there.current
        rewritten = self._drop_rewritten(base, there)
        for snapshot_id in there.snapshots.keys() & {current, pinned}:
            self.fetch(snapshot_id, missing)
        if pinned != self._snapshots.pinned():
            if pinned:
                self._snapshots.pin(pinned)
            else:
                self._snapshots.unpin()
        if current and current != here:
            self._snapshots.point_at(current)
        held = self._drop_removed(base, there)
        kept = {i: base.snapshots[i] for i in held}
        return StoreState(
            snapshots={**there.snapshots, **kept}, current=there.current, pinned=there.pinned, rewritten=rewritten
        )

    def _take_manifests(self, there: StoreState, missing: MissingObjects) -> None:
        known = self.manifests(there.snapshots)
        new = [i for i in there.snapshots if i not in known]
        needed = {there.current, there.pinned}
        self._transfer.fetch_manifests([i for i in new if i in needed], missing)
        lost = set[str]() if missing is None else missing
        self._transfer.fetch_manifests([i for i in new if i not in needed], lost)
        if missing is None and lost:
            _log.warning("the shared store lists snapshots without %s; run `graphrag-pipeline index`", min(lost))
        for snapshot_id, marks in there.snapshots.items():
            path = self._snapshots.path_of(snapshot_id)
            if not path.exists():
                continue
            if snapshot_id in new:
                os.utime(path, ns=(marks.created_ns, marks.created_ns))
            if marks.checked is not None:
                files.put_new(path.with_suffix(".checked"), marks.checked.encode())
            if marks.refusal != refusal_of(self._snapshots, snapshot_id):
                if marks.refusal:
                    record_refusal(self._snapshots, snapshot_id, marks.refusal)
                else:
                    clear_refusal(self._snapshots, snapshot_id)

    def fetch(self, snapshot_id: str, missing: MissingObjects = None) -> None:
        """Download the missing and damaged files of a snapshot whose manifest is in the root.

        Raises:
            NoSnapshotError: its manifest is missing, and `missing` is None.
            MissingObjectError: the store lacks an object of it, and `missing` is None.
        """
        if missing is not None and snapshot_id not in self.manifests([snapshot_id]):
            return
        self._transfer.fetch_snapshot(self._snapshots.manifest(snapshot_id), self._snapshots, missing)

    def fetch_stages(self, snapshot_id: str) -> None:
        """Download the stage tables that a snapshot was joined from, as far as the store has them."""
        for manifest in self.manifests([snapshot_id]).values():
            self._transfer.fetch_there(stage_file_names(manifest))

    def take_heads(self, base: StoreState, there: StoreState, missing: MissingObjects = None) -> None:
        """Apply the store's heads with their files; a partition with a missing file is rebuilt later.

        Raises:
            MissingObjectError: see `take_snapshots`.
        """
        here = self.heads()
        taken = heads_to_take(base, here, there)
        if conflicts := find_conflicts(base, here, taken):
            _log.warning(
                "`%s`: %d partitions were built both here and elsewhere (such as %s); using the store's",
                self.root, len(conflicts), conflicts[0],
            )  # fmt: skip
        wanted = {
            name: self._transfer.place(name)
            for head in taken.values()
            for name, file in zip(head_names(head), head.files, strict=True)
            if not _has_size(self.root / name, file.n_bytes)
        }
        self._transfer.fetch(wanted, missing)
        for head in taken.values():
            self._tables.write_head(head)
        if there.n_buckets is not None:
            self._tables.check_layout(there.n_buckets)

    # ----------------------------------------------------------------------------------- snapshots removed in the store

    def _drop_removed(self, base: StoreState, there: StoreState) -> list[str]:
        """Remove the files of snapshots that the store removed; return the ids that are open on this machine."""
        gone = base.snapshots.keys() - there.snapshots.keys() - {self.current(), self._snapshots.pinned()}
        if not gone:
            return []
        known = self.manifests(base.snapshots)
        held = [i for i in gone if is_held(self._snapshots.path_of(i))]
        try:
            kept = self.all_manifests(i for i in self._snapshots.ids() if i in held or i not in gone)
        except PipelineError as error:
            _log.warning("files of snapshots that were removed elsewhere stay for now: %s", error)
            return list(gone)
        own = {key: head for key, head in self.heads().items() if head != base.heads.get(key)}
        named = named_objects(StoreState(heads={**there.heads, **own}), kept)
        for snapshot_id in gone - set(held):
            self._remove_manifest(snapshot_id)
        for name in named_objects(base, known) - named:
            self._transfer.remove(name)
        return held

    def _remove_manifest(self, snapshot_id: str) -> None:
        self._snapshots.remove_manifest(snapshot_id)
        clear_refusal(self._snapshots, snapshot_id)

    def drop_unshared(self, there: StoreState) -> set[str]:
        """Remove the snapshots that neither the store names nor this copy uses; only for the holder of the lease.

        They were removed in the store, or replaced here before their upload. They could hold documents that were
        forgotten on another machine. Snapshots that are open on this machine stay.

        Returns:
            Names of their objects; files that a head names stay for now.
        """
        if there.is_empty:
            return set()
        unshared = set(self._snapshots.ids()) - there.snapshots.keys() - self.in_use()
        free = [i for i in unshared if not is_held(self._snapshots.path_of(i))]
        names = named_objects(StoreState(), self.manifests(free))
        for snapshot_id in free:
            self._remove_manifest(snapshot_id)
        self.remove_unnamed(names)
        return names

    def remove_unnamed(self, names: Collection[str]) -> None:
        """Remove the files of those objects that neither heads nor snapshots of the root name."""
        if not names:
            return
        heads = StoreState(heads=self.heads())
        try:
            kept = self.all_manifests(self._snapshots.ids())
        except PipelineError as error:
            _log.warning("files of snapshots that were removed elsewhere stay for now: %s", error)
            return
        for name in set(names) - named_objects(heads, kept):
            self._transfer.remove(name)

    def remove_lost(self, snapshot_id: str) -> bool:
        """Remove the manifest of a snapshot whose files are gone; return whether no process has it open."""
        is_free = not is_held(self._snapshots.path_of(snapshot_id))
        if is_free:
            self._remove_manifest(snapshot_id)
        return is_free

    def _drop_rewritten(self, base: StoreState, there: StoreState) -> dict[str, int]:
        """Remove vectors that `forget` rewrote in the store; return the count of rewrites of the local vectors."""
        if not there.rewritten:
            return {}
        known = self.manifests(self._snapshots.ids())
        readers: dict[str, list[str]] = {}
        for snapshot_id, manifest in known.items():
            for name in archive_names(manifest):
                readers.setdefault(name, []).append(snapshot_id)
        counts = {}
        for name, count in there.rewritten.items():
            is_old = base.rewritten.get(name, 0) != count and self._transfer.place(name).exists()
            if is_old and any(is_held(self._snapshots.path_of(i)) for i in readers.get(name, ())):
                counts[name] = base.rewritten.get(name, 0)  # removed later, when no process reads it
                continue
            if is_old:
                self._transfer.remove(name)
            counts[name] = count
        return counts


def _has_size(path: Path, n_bytes: int) -> bool:
    try:
        return path.stat().st_size == n_bytes
    except FileNotFoundError:
        return False
