"""One writer of a shared store at work: what the store says, and putting there what is here.

First goes what is named by its content, then the state that names it, under the number after the one that was taken:
if another writer was faster, the store has that number, and refuses. Keep out: taking the lease, and taking from the
store (`shared_store.py`).
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
"""Folders of the store that are ours alone."""
_N_REMOVED = 500
"""Objects that go at once: so many a store takes in one request or few."""
_log = logging.getLogger(__name__)


@dataclass
class WriteSession:
    """Somebody writing in this process.

    Attributes:
        there: what the store says.
        missing: objects that it names and lacks.
        n_buckets: of the stage tables here.
        doomed: objects whose files go from here once nothing here names them: the store never had what they belong to.
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
        """Make the store say what is here.

        Raises:
            LeaseLostError: the lease is another's; the store says what it said.
            StoreError: the store fails; it says what it said, or what is here.
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
            self.lease.check()  # for those stores that create what is there already
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
        """What the store should say; archives that are put there again are counted."""
        counts = {name: self.there.rewritten.get(name, 0) + 1 for name in again}
        here = self.copy.state(self.there, self.n_buckets)
        return replace(here, rewritten={**self.there.rewritten, **counts})

    def _known(self) -> set[str]:
        """Objects that the store has: of a snapshot whose manifest it lost nothing else was asked for."""
        whole = [i for i in self.there.snapshots if manifest_name(i) not in self.missing]
        return named_objects(self.there, self.copy.manifests(whole)) - self.missing

    def push_finished(self) -> None:
        """Put there what was finished before an error, which is what the caller has to hear of."""
        try:
            self.push()
        except PipelineError as error:
            _log.warning("what was finished is kept here, and not in the shared store yet: %s", error)

    def remove_unnamed(self, removed: Collection[str], is_dry_run: bool) -> list[str]:
        """Remove what nothing names in the store, and put back what it names and lacks.

        There is no grace time: only who writes puts objects there, and a reader that finds one gone looks again.

        Args:
            removed: snapshots that count as removed, for a dry run.

        Returns:
            Names of the objects that went, or would go.
        """
        if not is_dry_run:
            self.push()
        named = named_objects(self.there, self.copy.manifests(self.there.snapshots.keys() - set(removed)))
        found = {name for folder in _OWNED for name in self.objects.names(folder)}
        unnamed = sorted(found - named)
        if not is_dry_run:
            for start in range(0, len(unnamed), _N_REMOVED):
                self.lease.check()  # right before, since another writer may need what nothing named until now
                self.objects.remove(unnamed[start : start + _N_REMOVED])
            self.transfer.put(named - found)
            NumberedStates(self.objects).remove_before(self.there.number)
        return unnamed
