"""The shared store of a root: following the published snapshot, pulling, and writing under the lease.

`follow` is for readers (two requests if nothing changed), `pull` for callers that read heads. `adding` is for some
buckets (`bucket_session.py`). `writing` is for every other change: lease, pull, work, push, release. Keep out: the
choice of files to remove (`storage/garbage.py`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from graphrag_pipeline.errors import LeaseLostError, NoSnapshotError, PipelineError, StoreError
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.storage.locks import is_store_written, one_store_sync, one_store_writer
from graphrag_pipeline.storage.shared.bucket_session import BucketSession
from graphrag_pipeline.storage.shared.heartbeats import Heartbeats
from graphrag_pipeline.storage.shared.lease import Lease
from graphrag_pipeline.storage.shared.objects import ObjectStore, open_object_store
from graphrag_pipeline.storage.shared.state import (
    OWNED,
    NumberedStates,
    StoreNotes,
    StoreState,
    is_manifest_name,
    manifest_name,
    named_objects,
    needed_objects,
    vectors_name,
)
from graphrag_pipeline.storage.shared.transfer import MissingObjectError, Transfer
from graphrag_pipeline.storage.shared.working_copy import WorkingCopy
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.vectors.folders import VectorFolder
from graphrag_pipeline.tables import INDEX_CANDIDATE

_ALLOWED = "inputs/allowed.json"
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

    def remove_unnamed(self, removed: Collection[str], is_dry_run: bool) -> list[str]:
        """Remove the objects that no state names, and upload those that the state names and the store lacks.

        No grace time is needed: a session of buckets looks for its objects after a sweep, and a reader that misses an
        object reads the state again.

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
            if unnamed:
                self._count_sweep(1 + self.there.n_sweeps % 2)  # one that was killed left an odd number
            for start in range(0, len(unnamed), _N_REMOVED):
                self.lease.check()  # right before, since another writer may name an object that was unnamed until now
                self.objects.remove(unnamed[start : start + _N_REMOVED])
            if unnamed:
                self._count_sweep(1)
            self.transfer.put(named - found - self._lost(named - found))
            NumberedStates(self.objects).remove_before(self.there.number)
        return unnamed

    def _count_sweep(self, n: int) -> None:
        there = replace(self.there, n_sweeps=self.there.n_sweeps + n, number=self.there.number + 1)
        if not NumberedStates(self.objects).publish(there):
            raise self.lease.lost_error()
        self.there = there


def _listing_name(bucket: str) -> str:
    return f"inputs/{bucket}.json.gz"


_sessions: dict[tuple[Path, str], WriteSession] = {}
"""Write sessions of this process, by root and URL.

The lease belongs to the process, as a lock does. This registry makes it re-entrant: an index run holds the lease, and
the assets that Dagster runs for it in the same process open their own `Root`.
"""
_collected: dict[Path, dict[str, BucketSession]] = {}
"""Sessions of buckets of this process that go on until the end of `collecting`, by root and URL."""


@contextmanager
def collecting(root: Path) -> Iterator[None]:
    """Publish what `adding` builds in this root once, at the end of the block, also after an error.

    Raises:
        LeaseLostError, StoreError: see `BucketSession.publish`; an error of the block goes before.
    """
    root = root.resolve()
    if root in _collected:
        yield
        return
    sessions = _collected[root] = {}
    try:
        yield
    except BaseException:
        for session in sessions.values():
            _publish_finished(session.publish)
        raise
    finally:
        del _collected[root]
    for session in sessions.values():
        session.publish()


def _publish_finished(publish: Callable[[], None]) -> None:
    """Upload the work finished before an error; only log a failure, since the caller raises that error."""
    try:
        publish()
    except PipelineError as error:
        _log.warning("finished work is kept on this machine and not in the shared store yet: %s", error)


class SharedStore:
    """The store behind `storage.url`, and a root as its working copy.

    Args:
        root: the working copy.
        settings: settings of the root, with `storage.url`.

    Attributes:
        heartbeats: of the runs that work on the index.
    """

    def __init__(self, root: Path, settings: Settings) -> None:
        url = settings.storage.url or ""
        self.url = url
        self._root = root
        self._settings = settings.storage
        self._folder = root / "cache" / "store"
        self._notes = StoreNotes(self._folder, url)
        self._objects = open_object_store(url)
        self.shown_url = self._objects.shown_url
        self._transfer = Transfer(root, self._objects, self._folder)
        self.heartbeats = Heartbeats(self._objects, self._folder / "seen_runs.json")
        self._has_warned = False
        self._copy = WorkingCopy(root, SnapshotStore(root, settings.vector_store), self._transfer)

    # ---------------------------------------------------------------------------------------------------------- reading

    def follow(self) -> None:
        """Download pointer, pin, manifests and the published snapshot; two requests if nothing changed.

        Raises:
            StoreError: the store fails, unless `storage.allow_offline` is set and the root has a copy.
            PipelineError: the root holds another index.
        """
        if self._session is None:
            with self._as_set_offline():
                if not self._is_followed():
                    self._take(self._take_published)

    def pull(self) -> None:
        """Download the whole current state: what `follow` downloads, and heads with the files they name.

        Raises:
            StoreError: see `follow`.
            PipelineError: see `follow`; also if the store's index has another number of buckets.
        """
        if self._session is None:
            with self._as_set_offline():
                self._warn_of_difference(self._take(self._take_all))

    def fetch(self, snapshot_id: str, has_stages: bool = False) -> None:
        """Download the missing files of a snapshot whose manifest is in the root.

        Args:
            has_stages: download also the stage tables it was joined from, if the store still has them.

        Raises:
            StoreError: the store fails.
            NoSnapshotError: the store lacks the snapshot.
        """
        with one_store_sync(self._root):
            self._copy.fetch(snapshot_id)
            if has_stages:
                self._copy.fetch_stages(snapshot_id)

    def fetch_files(self, names: Iterable[str]) -> None:
        """Download files of stage tables that are missing in the root, as far as the store has them.

        Raises:
            StoreError: the store fails.
        """
        with one_store_sync(self._root):
            self._transfer.fetch_there(names)

    def fetch_all(self) -> None:
        """Download every listed snapshot with its stage tables; a snapshot that the store lacks stays damaged."""
        for snapshot_id in self._copy.state(self._read(), 1).snapshots:
            try:
                self.fetch(snapshot_id, has_stages=True)
            except NoSnapshotError as error:
                _log.warning("%s", error)

    def find_damaged_objects(self) -> tuple[list[str], list[str]]:
        """Download every object that the store names, and compare it with its name.

        Returns:
            Names of the missing objects without which a search or an `index` fails, and of all damaged ones; a
            manifest that cannot be read counts as damaged, and the objects that only it names are not looked at.

        Raises:
            StoreError: the store fails.
        """
        there: StoreState | None = None
        found: tuple[list[str], list[str]] = ([], [])
        while there != (current := self._read()):  # else another machine may have removed what was not found
            there, found = current, self._find_damaged(current)
            if not any(found):
                break
        return found

    def _find_damaged(self, there: StoreState) -> tuple[list[str], list[str]]:
        manifests = self._transfer.read_manifests(there.snapshots)
        unread = {manifest_name(i) for i in there.snapshots.keys() - manifests.keys()}
        names = {name for name in named_objects(there, manifests) if not is_manifest_name(name)}
        missing, damaged = self._transfer.find_damaged(names)
        return sorted(missing & needed_objects(there, manifests)), sorted(damaged | unread)

    def upload_whole(self, names: Collection[str]) -> list[str]:
        """Upload objects again that are whole in this root, inside `writing`; return their names."""
        manifests = {manifest_name(i) for i in self._copy.manifests(self._writer.there.snapshots)}
        whole = [n for n in names if (n in manifests if is_manifest_name(n) else self._transfer.is_whole(n))]
        self._writer.lease.check()
        self._transfer.put(whole)
        return whole

    @property
    def _session(self) -> WriteSession | None:
        return _sessions.get((self._root, self.url))

    @contextmanager
    def _as_set_offline(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            if not self._settings.allow_offline or self._copy.is_empty():
                raise
            _log.warning("%s. Using the copy of this machine, since storage.allow_offline is set", error)

    def _take(self, take: Callable[[StoreState], StoreState]) -> StoreState:
        """Apply the store's current state by `take`, again if the state changes during it; return that state."""
        tried: StoreState | None = None
        while True:
            # Read under the lock: a push by another process of this root would else look like a removal.
            with one_store_sync(self._root):
                there = self._read()
                if there.is_empty:
                    if self._session:
                        self._note_beginning()
                    return there
                try:
                    self._notes.write_state(take(there))
                    return there
                except MissingObjectError:
                    if there == tried:
                        raise
                    tried = there

    def _note_beginning(self) -> None:
        """Record that a writer without an index began at an empty store: what it makes belongs to that store.

        The store may only seem empty, as one that is not mounted. When its index is there again, this machine takes
        it, as it does whenever both sides changed.
        """
        if self._notes.state() is None and self._copy.is_empty():
            self._notes.write_state(StoreState())

    def _read(self) -> StoreState:
        there, note = NumberedStates(self._objects).latest(), self._notes.state()
        if there is None and note and not note.is_empty:
            raise StoreError(
                f"{self.shown_url}: the index that this root used there is missing; check the URL and that the place "
                f"is mounted. If it was emptied on purpose, remove `{self._folder}` and run `graphrag-pipeline index`, "
                "which fills it again"
            )
        return there or StoreState()

    def _is_followed(self) -> bool:
        """Return whether the root has the published state; without a lock, since the root may be read-only."""
        there, note = self._read(), self._notes.state()
        is_same = note is not None and note.published == there.published
        self._warn_of_difference(there)
        return there.is_empty or (is_same and self._copy.has_published(there))

    def _warn_of_difference(self, there: StoreState) -> None:
        """Log if readers of this root get another snapshot than readers of the store."""
        current = self._copy.current()
        if current is None or self._has_warned:
            return
        if there.is_empty:
            self._has_warned = True
            _log.warning(
                "%s: no index there, or the URL is wrong; using the copy in `%s`, which no other machine has. "
                "Run `graphrag-pipeline index` to upload it", self.shown_url, self._root,
            )  # fmt: skip
        elif self._is_only_here(there) and not is_store_written(self._root) and self._is_only_here(self._read()):
            self._has_warned = True
            _log.warning(
                "`%s`: snapshot %s was published here only, since its upload to %s failed; there %s is published. "
                "Run `graphrag-pipeline index` to upload it", self._root, current, self.shown_url, there.current,
            )  # fmt: skip

    def _is_only_here(self, there: StoreState) -> bool:
        """Return whether the published snapshot of the root is not in the store, as before the end of a push."""
        note = self._notes.state()
        return self._copy.current() not in there.snapshots and there.current == (note.current if note else None)

    def _take_published(self, there: StoreState) -> StoreState:
        base = self._base(there)
        taken = self._copy.take_snapshots(base, there)
        return replace(taken, heads=base.heads, n_buckets=base.n_buckets)

    def _take_all(self, there: StoreState) -> StoreState:
        self._check_buckets(there)
        base = self._base(there)
        missing = self._session.missing if self._session else None
        taken = self._copy.take_snapshots(base, there, missing)
        self._copy.take_heads(base, there, missing)
        head = self._copy.heads().get(f"{INDEX_CANDIDATE}/{WHOLE}")
        if head and head.data_version in there.snapshots:
            self._copy.fetch(head.data_version, missing)
        if self._session:
            self._session.doomed |= self._copy.drop_unshared(there)
        return replace(taken, heads=there.heads, n_buckets=there.n_buckets)

    def _check_buckets(self, there: StoreState) -> None:
        if there.n_buckets not in (None, self._settings.n_buckets):
            raise PipelineError(
                f"storage.n_buckets is {self._settings.n_buckets}, but the index in {self.shown_url} was built with "
                f"{there.n_buckets}; set it back, or name an empty place in storage.url for an index of "
                f"{self._settings.n_buckets}"
            )

    def _base(self, there: StoreState) -> StoreState:
        """Return the last common state of the copy and the store."""
        note = self._notes.state()
        self._copy.restore_pin((note or there).pinned)
        if note is not None:
            return note
        here = self._copy.state(StoreState(), 1)
        is_kin = bool(here.snapshots.keys() & there.snapshots.keys()) or any(
            head.n_rows and there.heads.get(key) == head for key, head in here.heads.items()
        )
        if not here.is_empty and not is_kin:
            raise PipelineError(
                f"`{self._root}` has one index, and {self.shown_url} has another one; name an empty place in "
                f"storage.url, or remove tables/, heads/ and snapshots/ of `{self._root}` to use the store's"
            )
        return StoreState()

    @property
    def is_joined(self) -> bool:
        """Whether a run confirmed that the documents of this root are those of the store."""
        return self._notes.is_joined

    def join(self) -> None:
        """Record that the documents of this root are those of the store."""
        self._notes.join()

    @property
    def has_index(self) -> bool:
        """Whether the store had an index when this writer began; only allowed inside `writing`."""
        return not self._writer.there.is_empty

    # ---------------------------------------------------------------------------------------------------------- writing

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lease: download the store's state at the start and upload the root's state at the end.

        Nested calls do nothing. Work finished before an error is uploaded, too.

        Raises:
            LeaseLostError: another process took over the lease; all work is kept in the root.
            StoreError, PipelineError: see `pull`.
        """
        if self._session:
            self._session.lease.raise_if_lost()
            yield
            return
        self._collected.publish()
        with self._as_holder() as session:
            session.there = self._take(self._take_all)
            session.repair_listing()
            try:
                yield
            except LeaseLostError:
                raise
            except BaseException:
                _publish_finished(session.push)
                raise
            session.push()
            with one_store_sync(self._root):
                self._copy.remove_unnamed(session.doomed)

    @contextmanager
    def adding(self, buckets: Collection[str]) -> Iterator[None]:
        """Build buckets in parallel to other machines, and publish them: at the end, or at that of `collecting`.

        Raises:
            StoreError, PipelineError: see `BucketSession.take` and `BucketSession.publish`.
        """
        if self._session:
            with self.writing():
                yield
            return
        with collecting(self._root):
            self._collected.take(buckets)
            yield

    @property
    def _collected(self) -> BucketSession:
        """The session of buckets of this process; a new one outside `collecting`."""
        leasing, n_buckets = self._leasing, self._settings.n_buckets
        new = BucketSession(self._copy, self._transfer, self._objects, self._notes, self._begin, leasing, n_buckets)
        return _collected.get(self._root.resolve(), {}).setdefault(self.url, new)

    def _begin(self) -> tuple[StoreState, StoreState]:
        there = self._read()
        if there.is_empty:
            self._note_beginning()
            return there, self._notes.state() or StoreState()
        self._check_buckets(there)
        return there, self._base(there)

    @contextmanager
    def _leasing(self) -> Iterator[Lease]:
        lease = Lease(self._objects, self._folder / "lease_token", self._settings.lease_s)
        with one_store_writer(self._root):
            lease.acquire()
            try:
                yield lease
            finally:
                lease.release()

    @contextmanager
    def _as_holder(self) -> Iterator[WriteSession]:
        with self._leasing() as lease:
            n_buckets = self._settings.n_buckets
            session = WriteSession(self._copy, self._transfer, self._objects, self._notes, lease, n_buckets)
            _sessions[self._root, self.url] = session
            try:
                yield session
            finally:
                del _sessions[self._root, self.url]

    def write_listing(self, bucket: str, data: bytes) -> None:
        """Write the list of the files of a bucket, in place of the last one."""
        self._objects.write(_listing_name(bucket), data)

    def read_listing(self, bucket: str) -> bytes | None:
        """Return the last list of the files of a bucket; None without one."""
        return self._objects.read(_listing_name(bucket))

    def read_state(self) -> StoreState:
        """Return the current state of the store; nothing is downloaded.

        Raises:
            StoreError: the store fails, or its state is gone.
            PipelineError: its index has another number of buckets.
        """
        there = self._read()
        self._check_buckets(there)
        return there

    def allow(self, code: str) -> None:
        """Record that the user wants the index made by this code, and once more what failed too often."""
        self._objects.write(_ALLOWED, json.dumps({"code": code, "number": self.read_allowed()[1] + 1}).encode())

    def read_allowed(self) -> tuple[str, int]:
        """Return the code that the user allowed last, and how often he allowed one; ("", 0) if never."""
        with suppress(ValueError, TypeError, KeyError):
            values = json.loads(self._objects.read(_ALLOWED) or b"")
            return str(values["code"]), int(values["number"])
        return "", 0

    def upload_again(self, folders: Iterable[VectorFolder]) -> None:
        """Mark vectors for another upload, since they were rewritten under their old names; survives a kill."""
        self._notes.write_pending_uploads({*self._notes.pending_uploads(), *map(vectors_name, folders)})

    def alone(self) -> AbstractContextManager[None]:
        """Keep other processes of this root from following, pulling and fetching."""
        return one_store_sync(self._root)

    def unlist(self, removed: Collection[str]) -> None:
        """Publish a state without some snapshots; only allowed inside `writing`."""
        self._writer.push(removed)

    def remove_unnamed(self, removed: Collection[str] = (), is_dry_run: bool = False) -> list[str]:
        """Call `WriteSession.remove_unnamed`; only allowed inside `writing`."""
        return self._writer.remove_unnamed(removed, is_dry_run)

    @property
    def _writer(self) -> WriteSession:
        if self._session is None:
            raise RuntimeError("call this inside `writing`")
        return self._session
