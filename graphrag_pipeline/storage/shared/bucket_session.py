"""Buckets of a shared store that one process builds beside others: their bytes only, and one state for all stages.

A session downloads the heads and files of its buckets. At its end it uploads what changed without the lease, since
nothing names those objects yet. Then, under the lease, one new state changes the heads of these buckets and nothing
else. `StoreState.n_sweeps` shows whether objects were removed in between; if so, the uploaded ones are looked for.
Keep out: stages over the whole corpus, and snapshots (`shared_store.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from graphrag_pipeline.storage.locks import one_store_sync
from graphrag_pipeline.storage.shared.lease import Lease
from graphrag_pipeline.storage.shared.objects import ObjectStore
from graphrag_pipeline.storage.shared.state import NumberedStates, StoreNotes, StoreState, head_names, is_swept_since
from graphrag_pipeline.storage.shared.transfer import Transfer
from graphrag_pipeline.storage.shared.working_copy import WorkingCopy
from graphrag_pipeline.storage.table_store import Head

_log = logging.getLogger(__name__)


@dataclass
class BucketSession:
    """Buckets that this process builds.

    Attributes:
        begin: reads the store's state and returns it with the last common state; it refuses another index.
        leasing: holds the lease of the store.
        n_buckets: number of buckets of the index.
        buckets: those taken so far.
        there: the store's state when the first of them was taken.
    """

    copy: WorkingCopy
    transfer: Transfer
    objects: ObjectStore
    notes: StoreNotes
    begin: Callable[[], tuple[StoreState, StoreState]]
    leasing: Callable[[], AbstractContextManager[Lease]]
    n_buckets: int
    buckets: set[str] = field(default_factory=set)
    there: StoreState = field(default_factory=StoreState)

    def take(self, buckets: Collection[str]) -> None:
        """Download the heads of buckets and their files, once a session; a bucket with a missing file is rebuilt.

        Raises:
            StoreError: the store fails.
            PipelineError: the store holds another index, or one with another number of buckets.
        """
        new = set(buckets) - self.buckets
        if not new:
            return
        with one_store_sync(self.copy.root):
            there, base = self.begin()
            if not there.is_empty:
                heads = {key: head for key, head in there.heads.items() if head.partition in new}
                self.copy.take_heads(base, replace(there, heads=heads), set())
                self.notes.write_state(replace(base, n_buckets=there.n_buckets, heads={**base.heads, **heads}))
        if not self.buckets:
            self.there = there
        self.buckets |= new

    def publish(self) -> None:
        """Upload the objects of changed heads, and let one new state name these heads.

        Raises:
            LeaseLostError: another process took over the lease; the work is kept here.
            StoreError: the store fails; its state is the old one or the new one.
        """
        changed = self._changed((self.notes.state() or StoreState()).heads) if self.buckets else {}
        if not changed:
            return
        known = {name for head in self.there.heads.values() for name in head_names(head)}
        objects = {name for head in changed.values() for name in head_names(head)}
        self.transfer.put(objects - known)
        with self.leasing() as lease, one_store_sync(self.copy.root):
            there, base = self.begin()
            free = self._without_conflicts(changed, base, there)
            if is_swept_since(self.there, there):
                self._upload_again({name for head in free.values() for name in head_names(head)})
            state = replace(there, n_buckets=self.n_buckets, heads={**there.heads, **free}, number=there.number + 1)
            if free:
                if not lease.is_exclusive:
                    lease.check()
                if not NumberedStates(self.objects).publish(state):
                    raise lease.lost_error()
            self.notes.write_state(replace(base, n_buckets=self.n_buckets, heads={**base.heads, **free}))
            self.there = state

    def _changed(self, base: Mapping[str, Head]) -> dict[str, Head]:
        heads = self.copy.heads().items()
        return {key: head for key, head in heads if head.partition in self.buckets and base.get(key) != head}

    def _without_conflicts(self, changed: Mapping[str, Head], base: StoreState, there: StoreState) -> dict[str, Head]:
        """Return the changed heads without those of buckets that another machine changed otherwise."""
        others = {
            head.partition for key, head in changed.items() if there.heads.get(key) not in (head, base.heads.get(key))
        }
        if others:
            _log.warning(
                "`%s`: buckets %s were built both here and elsewhere; using the store's",
                self.copy.root, ", ".join(sorted(others)),
            )  # fmt: skip
        return {key: head for key, head in changed.items() if head.partition not in others}

    def _upload_again(self, objects: Collection[str]) -> None:
        """Upload those objects that another machine removed, since no state named them yet."""
        folders = {name.rpartition("/")[0] for name in objects}
        present = {name for folder in folders for name in self.objects.names(folder)}
        self.transfer.put(set(objects) - present)
