"""The session of the writer of a shared store: uploading the root's objects and publishing its state.

Content-named objects go first. Then follows the state that names them, under the number after the last state. If
another writer was faster, that number exists and the store refuses. Keep out: acquiring the lease, and downloads
(`shared_store.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.storage.locks import one_store_sync
from graphrag_pipeline.storage.shared.lease import Lease
from graphrag_pipeline.storage.shared.notes import StoreNotes
from graphrag_pipeline.storage.shared.numbered_states import NumberedStates
from graphrag_pipeline.storage.shared.objects import ObjectStore
from graphrag_pipeline.storage.shared.state import (
    OWNED,
    StoreState,
    is_manifest_name,
    manifest_name,
    named_objects,
    needed_objects,
)
from graphrag_pipeline.storage.shared.transfer import Transfer
from graphrag_pipeline.storage.shared.working_copy import WorkingCopy

_N_REMOVED = 500
"""Objects that are removed at once; a store removes that many in one or few requests."""
_log = logging.getLogger(__name__)


@dataclass
class WriteSession:
    """The writer of this process.

    Attributes:
        there: the state of the store.
        missing: objects that the store names and lacks.
        n_buckets: number of buckets of the local stage tables.
        doomed: objects of dropped local snapshots; their files are removed once no head and no snapshot names them.
    """

    copy: WorkingCopy
    transfer: Transfer
    objects: ObjectStore
    notes: StoreNotes
    lease: Lease
    n_buckets: int
    there: StoreState = field(default_factory=StoreState)
    missing: set[str] = field(default_factory=set)
    doomed: set[str] = field(default_factory=set)

    def push(self, removed: Collection[str] = ()) -> None:
        """Upload the objects of the root and publish its state.

        Args:
            removed: snapshots that the state lists no more; their files are still in the root.

        Raises:
            LeaseLostError: another process has the lease; the state of the store is unchanged.
            StoreError: the store fails; its state is the old one or the new one.
        """
        with one_store_sync(self.copy.root):
            base, again = self.notes.state() or StoreState(), self.notes.pending_uploads()
            here = self._state(again, removed)
            manifests = self.copy.manifests(here.snapshots)
            named = named_objects(here, manifests)
            lost = self._lost(named & self.missing)
            wanted = ((named - self._known()) | (named & set(again))) - lost
            lost |= self._lost(wanted - needed_objects(here, manifests))
            wanted -= lost
            here = replace(here, rewritten={name: n for name, n in here.rewritten.items() if name in named})
            if here == self.there and not wanted:
                return
            self.transfer.put(wanted)
            self.lease.check()  # for stores that overwrite an existing state
            here = replace(here, number=self.there.number + 1)
            if not NumberedStates(self.objects).publish(here):
                raise self.lease.lost_error()
            held = {i: marks for i, marks in base.snapshots.items() if i not in self.there.snapshots}
            self.notes.write_state(replace(here, snapshots={**held, **here.snapshots}))
            if self.there.is_empty:
                self.notes.join()
            if again:
                self.notes.write_pending_uploads(())
            self.there = here
            self.missing = lost

    def _state(self, again: Collection[str], removed: Collection[str]) -> StoreState:
        """Return the state to publish, without removed snapshots; it counts the archives that are uploaded again."""
        counts = {name: self.there.rewritten.get(name, 0) + 1 for name in again}
        here = self.copy.state(self.there, self.n_buckets)
        listed = {i: marks for i, marks in here.snapshots.items() if i not in removed}
        return replace(here, snapshots=listed, rewritten={**self.there.rewritten, **counts})

    def _known(self) -> set[str]:
        """Return the objects in the store; those of a snapshot whose manifest is missing were not checked."""
        whole = [i for i in self.there.snapshots if manifest_name(i) not in self.missing]
        return named_objects(self.there, self.copy.manifests(whole)) - self.missing

    def _lost(self, missing: Collection[str]) -> set[str]:
        """Return those of the missing objects that this machine cannot upload, either; only `index` makes them."""
        lost = {name for name in missing if not self.transfer.is_whole(name)}
        if lost:
            _log.warning(
                "%s: %s is missing or damaged (and %d more), and no copy of it is here; `graphrag-pipeline index` "
                "makes it again", self.objects.shown_url, min(lost), len(lost) - 1,
            )  # fmt: skip
        return lost

    def repair_listing(self) -> None:
        """Repair the list of snapshots that an interrupted removal left: the store lists one and lacks its manifest.

        A snapshot that is whole here is uploaded again. Any other one is listed no more, since no machine can open it.
        Snapshots in use are not looked at: the stages rebuild them.
        """
        others = self.there.snapshots.keys() - self.copy.in_use()
        if not others:
            return
        present = set(self.objects.names("snapshots"))
        for snapshot_id in sorted(others):
            # A list may lack an object after a fault, so the object itself is asked for.
            if manifest_name(snapshot_id) in present or self.objects.read(manifest_name(snapshot_id)) is not None:
                continue
            if self.copy.is_whole(snapshot_id):
                self.missing |= self.copy.searched_objects(snapshot_id) - present
            elif self.copy.remove_lost(snapshot_id):
                _log.warning(
                    "%s: snapshot %s was listed, but its files are gone, as after an interrupted removal; it is "
                    "listed no more", self.objects.shown_url, snapshot_id,
                )  # fmt: skip

    def push_finished(self) -> None:
        """Upload the work finished before an error; only log a failure, since the caller raises that error."""
        try:
            self.push()
        except PipelineError as error:
            _log.warning("finished work is kept on this machine and not in the shared store yet: %s", error)

    def remove_unnamed(self, removed: Collection[str], is_dry_run: bool) -> list[str]:
        """Remove the objects that no state names, and upload those that the state names and the store lacks.

        No grace time is needed: only the writer uploads objects, and a reader that misses an object reads the state
        again.

        Args:
            removed: snapshots that count as removed, for a dry run.

        Returns:
            Names of the objects that were removed, or would be.

        Raises:
            PipelineError: a manifest of a listed snapshot cannot be read, so its objects are unknown.
        """
        if not is_dry_run:
            self.push()
        named = named_objects(self.there, self.copy.all_manifests(self.there.snapshots.keys() - set(removed)))
        found = {name for folder in OWNED for name in self.objects.names(folder)}
        # Manifests first: a snapshot whose manifest is gone counts as removed (`repair_listing`).
        unnamed = sorted(found - named, key=lambda name: (not is_manifest_name(name), name))
        if not is_dry_run:
            for start in range(0, len(unnamed), _N_REMOVED):
                self.lease.check()  # right before, since another writer may name an object that was unnamed until now
                self.objects.remove(unnamed[start : start + _N_REMOVED])
            self.transfer.put(named - found - self._lost(named - found))
            NumberedStates(self.objects).remove_before(self.there.number)
        return unnamed
