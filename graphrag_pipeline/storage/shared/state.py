"""The state of a shared store as one object: heads, snapshots, the pointer and the pin.

Objects are in the store before a state names them. `heads_to_take` and `choose` compare the store's state with a
working copy by their last common state (`base`). A change on one side wins. If both sides changed, the store wins,
since the local result can be made again from stored replies. Keep out: transfer of files.
"""

from __future__ import annotations

import gzip
import json
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from graphrag_pipeline.errors import NewerFormatError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.storage.formats import ANY_KEY, FORMAT, check_names, check_shape, read_values
from graphrag_pipeline.storage.manifests import Manifest, is_snapshot_id
from graphrag_pipeline.storage.shared.objects import ObjectStore
from graphrag_pipeline.storage.table_store import Head
from graphrag_pipeline.storage.vectors import LANCEDB
from graphrag_pipeline.storage.vectors.folders import VectorFolder

OWNED = ("tables", "snapshots")
"""Folders of a root and of the store whose files and objects belong to the index."""
_T = TypeVar("_T")
_OPTIONAL_TEXT = (str, type(None))
_SHAPE = {
    "n_buckets?": (int, type(None)),
    "heads": {ANY_KEY: {ANY_KEY: object}},
    "snapshots": {ANY_KEY: {"created_ns": int, "checked": _OPTIONAL_TEXT, "refusal": str}},
    "current?": _OPTIONAL_TEXT,
    "pinned?": _OPTIONAL_TEXT,
    "rewritten?": {ANY_KEY: int},
    "n_sweeps?": int,
}
"""Types of a state (`check_shape`)."""


@dataclass(frozen=True)
class SnapshotMarks:
    """The facts of a snapshot outside its manifest.

    Attributes:
        created_ns: time of its manifest, in ns since 1970.
        checked: content of its file of passed checks; None if it did not pass yet.
        refusal: the reason why the golden questions refused it; "" if they did not.
    """

    created_ns: int
    checked: str | None
    refusal: str


class DamagedStateError(PipelineError):
    """A state that cannot be read."""


@dataclass(frozen=True)
class StoreState:
    """The current heads and snapshots of a store or a working copy.

    Attributes:
        n_buckets: number of buckets of the stage tables; None without stage tables.
        heads: heads by "table/partition".
        snapshots: marks by snapshot id.
        current, pinned: ids of the published and the pinned snapshot, or None.
        rewritten: archive of vectors -> how often `forget` rewrote it without deleted rows.
        n_sweeps: raised before objects are removed, and again when that is done: it is odd in between.
        number: its number in the store; 0 for a state of a working copy.
    """

    n_buckets: int | None = None
    heads: Mapping[str, Head] = field(default_factory=dict)
    snapshots: Mapping[str, SnapshotMarks] = field(default_factory=dict)
    current: str | None = None
    pinned: str | None = None
    rewritten: Mapping[str, int] = field(default_factory=dict)
    n_sweeps: int = 0
    number: int = field(default=0, compare=False)

    @property
    def is_empty(self) -> bool:
        return not (self.heads or self.snapshots)

    @property
    def published(self) -> tuple[Any, ...]:
        """The part that readers use: all but the heads."""
        return (self.snapshots, self.current, self.pinned, self.rewritten)

    def to_bytes(self) -> bytes:
        values = {"format": FORMAT, **asdict(self)}
        del values["number"]
        return gzip.compress(json.dumps(values, sort_keys=True, ensure_ascii=False).encode(), mtime=0)

    @classmethod
    def from_bytes(cls, data: bytes, place: str, number: int = 0) -> StoreState:
        """Read a state.

        Args:
            place: path or URL of the state, for messages.

        Raises:
            NewerFormatError: a newer release wrote it.
            DamagedStateError: the state is damaged, or names a file outside its folder.
        """
        try:
            values = read_values(gzip.decompress(data), place)
            check_shape(values, _SHAPE)
            values["heads"] = {key: Head.from_values(head, place) for key, head in values["heads"].items()}
            values["snapshots"] = {key: SnapshotMarks(**facts) for key, facts in values["snapshots"].items()}
            state = cls(**values, number=number)
            state._check_names(place)
            return state
        except (OSError, EOFError, zlib.error, ValueError, TypeError, KeyError, AttributeError) as error:
            raise DamagedStateError(
                f"{place} is damaged ({error}); remove it. On the machine with the newest copy of the index, remove "
                "also cache/store of the root and run `graphrag-pipeline index`"
            ) from None

    def _check_names(self, place: object) -> None:
        """Check that its names cannot lead out of the folders of a root."""
        pointers = (pointer for pointer in (self.current, self.pinned) if pointer is not None)
        check_names((*self.snapshots, *pointers), place, is_snapshot_id)
        check_names((part for name in self.rewritten for part in name.split("/")), place)
        if any(key != f"{head.table}/{head.partition}" for key, head in self.heads.items()):
            raise ValueError("a head has the name of another one")


def is_swept_since(then: StoreState, now: StoreState) -> bool:
    """Return whether objects that no state names may have been removed since an earlier state was current."""
    return then.n_sweeps != now.n_sweeps or now.n_sweeps % 2 == 1


def choose(base: _T, here: _T, there: _T) -> _T:
    """Return the side that differs from `base`; the store's if both differ."""
    return here if there == base else there


def heads_to_take(base: StoreState, here: Mapping[str, Head], there: StoreState) -> dict[str, Head]:
    """Return the heads to take: those missing in the working copy, and those changed in the store."""
    return {
        key: head
        for key, head in there.heads.items()
        if key not in here or choose(base.heads.get(key), here[key], head) != here[key]
    }


def find_conflicts(base: StoreState, here: Mapping[str, Head], taken: Iterable[str]) -> list[str]:
    """Return those of the taken heads that the working copy changed, too."""
    return [key for key in taken if key in here and here[key] != base.heads.get(key)]


# ----------------------------------------------------------------------------------------------------- names of objects


def manifest_name(snapshot_id: str) -> str:
    """Return the object of a manifest."""
    return f"snapshots/{snapshot_id}.json"


def is_manifest_name(name: str) -> bool:
    """Return whether an object is a manifest."""
    return name.count("/") == 1 and name.startswith("snapshots/")


def searched_names(manifest: Manifest) -> set[str]:
    """Return the objects that a search of a snapshot needs, and its manifest."""
    return {manifest_name(manifest.id), *table_names(manifest).values(), *archive_names(manifest)}


def table_names(manifest: Manifest) -> dict[str, str]:
    """Return the object of each contract table."""
    return {name: f"snapshots/tables/{name}/{entry['file']}" for name, entry in manifest.tables.items()}


def archive_names(manifest: Manifest) -> Iterator[str]:
    """Yield the objects of a snapshot's folders: arrays, and vectors that lie in the root."""
    yield f"snapshots/adjacency/{manifest.adjacency}.tar"
    if manifest.sentences:
        yield f"snapshots/sentences/{manifest.sentences}.tar"
    if manifest.vector_store == LANCEDB:
        for folder in manifest.vectors.values():
            yield vectors_name(folder)


def vectors_name(folder: VectorFolder) -> str:
    """Return the object of a vector folder."""
    return f"snapshots/vectors/{folder.name}/{folder.content}.tar"


def head_names(head: Head) -> Iterator[str]:
    """Yield the objects of the files of a head."""
    for file in head.files:
        yield f"tables/{head.table}/{head.partition}/{file.name}"


def stage_file_names(manifest: Manifest) -> Iterator[str]:
    """Yield the objects of the stage tables that a snapshot was joined from; searches do not need them."""
    for key, head in manifest.heads.items():
        for file in head.get("files", ()):
            yield f"tables/{key}/{file['name']}"


def named_objects(state: StoreState, manifests: Mapping[str, Manifest]) -> set[str]:
    """Return the names of all objects that a state names.

    Args:
        manifests: manifests of its snapshots, by id.
    """
    names = needed_objects(state, manifests)
    for manifest in manifests.values():
        names |= {*stage_file_names(manifest)}
    return names


def needed_objects(state: StoreState, manifests: Mapping[str, Manifest]) -> set[str]:
    """Return the objects of a state without which an index run or a search fails: all but old stage tables."""
    names = {name for head in state.heads.values() for name in head_names(head)}
    for manifest in manifests.values():
        names |= searched_names(manifest)
    return names


STATES = "states"
_NAME = re.compile(rf"{STATES}/(\d+)\.json\.gz")
_N_KEPT = 2
"""States that are kept, so that a reader that listed one still finds it."""
_N_READS, _READ_AGAIN_S = 3, 0.3
"""A state counts as damaged if it cannot be read this often, with this pause: a transfer may have been cut off."""


def state_name(number: int) -> str:
    """Return the name of the object of a state."""
    return f"{STATES}/{number:09d}.json.gz"


class NumberedStates:
    """The states of one store as numbered objects: `states/000000017.json.gz` is current if no number is higher.

    Publishing creates the next number, and only one of two writers can create it. A writer that lost its lease and
    wakes up later creates nothing, or a number that is not the highest.
    """

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def latest(self) -> StoreState | None:
        """Return the current state of the store; None if it has no state.

        Raises:
            StoreError: the store fails.
            DamagedStateError: the state is damaged.
        """
        for _ in range(_N_READS - 1):
            try:
                return self._read_latest()
            except DamagedStateError:
                time.sleep(_READ_AGAIN_S)
        return self._read_latest()

    def _read_latest(self) -> StoreState | None:
        while numbers := self._numbers():
            name = state_name(numbers[-1])
            data = self._objects.read(name)
            if data is not None:  # else a newer state replaced it since it was listed
                return StoreState.from_bytes(data, f"{self._objects.shown_url}/{name}", numbers[-1])
        return None

    def publish(self, state: StoreState) -> bool:
        """Publish a state, unless another writer published one of its number; return whether it is published.

        Raises:
            StoreError: the store fails; the state may be published or not.
        """
        self.remove_before(state.number - _N_KEPT)  # first, so that its error publishes nothing
        name, data = state_name(state.number), state.to_bytes()
        self._objects.flush()  # after a power cut, a state that is there names only objects that are there
        # A request that the client repeated finds the object of its first attempt.
        is_published = self._objects.create(name, data) or self._objects.read(name) == data
        self._objects.flush()
        return is_published

    def remove_before(self, number: int) -> None:
        """Remove the states of lower numbers, since they may name forgotten documents."""
        self._objects.remove([state_name(old) for old in self._numbers() if old < number])

    def _numbers(self) -> list[int]:
        found = (_NAME.fullmatch(name) for name in self._objects.names(STATES))
        return sorted(int(match[1]) for match in found if match)


class StoreNotes:
    """The notes of a working copy about its store, in `cache/store/`.

    The last state read from the store is the common base of both sides: it separates local changes from changes in the
    store. Removing the notes loses nothing; the store's state then wins.

    Args:
        folder: the folder of all notes.
    """

    def __init__(self, folder: Path, url: str) -> None:
        name = stable_hash(url)[:16]
        self._state_path = folder / f"{name}.json.gz"
        self._joined_path = folder / f"{name}.joined"
        self._pending_path = folder / f"{name}.again.json"

    def state(self) -> StoreState | None:
        """Return the last state read from the store; None if it is unknown.

        Raises:
            NewerFormatError: a newer release wrote it.
        """
        try:
            return StoreState.from_bytes(self._state_path.read_bytes(), str(self._state_path))
        except NewerFormatError:
            raise
        except (FileNotFoundError, PipelineError):  # a damaged note counts as missing
            return None

    def write_state(self, state: StoreState) -> None:
        """Save the last common state of copy and store."""
        files.replace(self._state_path, state.to_bytes())

    @property
    def is_joined(self) -> bool:
        """Return whether a run confirmed that the documents of the root are those of the store."""
        return self._joined_path.exists()

    def join(self) -> None:
        """Record that the documents of the root are those of the store."""
        files.replace(self._joined_path, b"")

    def pending_uploads(self) -> list[str]:
        """Return the archives to upload again although the store has them, sorted."""
        return list(json.loads(self._pending_path.read_bytes())) if self._pending_path.exists() else []

    def write_pending_uploads(self, names: Iterable[str]) -> None:
        """Save the archives to upload again."""
        files.replace(self._pending_path, json.dumps(sorted(names)).encode())
