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
from graphrag_pipeline.storage.shared.state import StoreState, manifest_name, named_objects
from graphrag_pipeline.storage.shared.transfer import Transfer
from graphrag_pipeline.storage.shared.working_copy import WorkingCopy

_OWNED = ("tables", "snapshots")
"""Folders of the store whose objects belong to the index."""
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

    def push(self) -> None:
        """Upload the objects of the root and publish its state.

        Raises:
            LeaseLostError: another process has the lease; the state of the store is unchanged.
            StoreError: the store fails; its state is the old one or the new one.
        """
        with one_store_sync(self.copy.root):
            base, again = self.notes.state() or StoreState(), self.notes.pending_uploads()
            here = self._state(again)
            named = named_objects(here, self.copy.manifests(here.snapshots))
            wanted = (named - self._known()) | (named & set(again))
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
            if again:
                self.notes.write_pending_uploads(())
            self.there = here
            self.missing.clear()

    def _state(self, again: Collection[str]) -> StoreState:
        """Return the state to publish; it counts the archives that are uploaded again."""
        counts = {name: self.there.rewritten.get(name, 0) + 1 for name in again}
        here = self.copy.state(self.there, self.n_buckets)
        return replace(here, rewritten={**self.there.rewritten, **counts})

    def _known(self) -> set[str]:
        """Return the objects in the store; those of a snapshot whose manifest is missing were not checked."""
        whole = [i for i in self.there.snapshots if manifest_name(i) not in self.missing]
        return named_objects(self.there, self.copy.manifests(whole)) - self.missing

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
        """
        if not is_dry_run:
            self.push()
        named = named_objects(self.there, self.copy.manifests(self.there.snapshots.keys() - set(removed)))
        found = {name for folder in _OWNED for name in self.objects.names(folder)}
        unnamed = sorted(found - named)
        if not is_dry_run:
            for start in range(0, len(unnamed), _N_REMOVED):
                self.lease.check()  # right before, since another writer may name an object that was unnamed until now
                self.objects.remove(unnamed[start : start + _N_REMOVED])
            self.transfer.put(named - found)
            NumberedStates(self.objects).remove_before(self.there.number)
        return unnamed
