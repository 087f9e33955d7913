"""What a shared store says is current, as one object: heads, snapshots, the pointer and the pin.

Everything it names is in the store before it names it. `heads_to_take` and `choose` compare it with a working copy by
what both had last (`base`): what changed on one side is taken, what changed on both is taken from the store, since a
result can be made again from stored replies. Keep out: moving files.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.storage.manifests import Manifest
from graphrag_pipeline.storage.table_store import Head
from graphrag_pipeline.storage.vectors.folders import VectorFolder
from graphrag_pipeline.storage.vectors.registry import LANCEDB

_FORMAT = 1
_T = TypeVar("_T")


@dataclass(frozen=True)
class SnapshotMarks:
    """What is known of a snapshot besides its manifest.

    Attributes:
        created_ns: time of its manifest, in ns since 1970.
        checked: the checks it passed, as its file has them; None before it did.
        refusal: why the golden questions refused it; "" if they did not.
    """

    created_ns: int
    checked: str | None
    refusal: str


@dataclass(frozen=True)
class StoreState:
    """What is current.

    Attributes:
        n_buckets: of the stage tables; None if there are none.
        heads: by "table/partition".
        snapshots: by id.
        current, pinned: ids; None without.
        rewritten: archive of vectors -> how often it was written anew without rows that were to be forgotten.
        number: it has in the store; 0 if it is not from there.
    """

    n_buckets: int | None = None
    heads: Mapping[str, Head] = field(default_factory=dict)
    snapshots: Mapping[str, SnapshotMarks] = field(default_factory=dict)
    current: str | None = None
    pinned: str | None = None
    rewritten: Mapping[str, int] = field(default_factory=dict)
    number: int = field(default=0, compare=False)

    @property
    def is_empty(self) -> bool:
        return not (self.heads or self.snapshots)

    @property
    def published(self) -> tuple[Any, ...]:
        """What readers look at: all but the heads."""
        return (self.snapshots, self.current, self.pinned, self.rewritten)

    def to_bytes(self) -> bytes:
        values = {"format": _FORMAT, **asdict(self)}
        del values["number"]
        return gzip.compress(json.dumps(values, sort_keys=True, ensure_ascii=False).encode(), mtime=0)

    @classmethod
    def from_bytes(cls, data: bytes, place: str, number: int = 0) -> StoreState:
        """Read a state.

        Args:
            place: where it lies, for the message.

        Raises:
            PipelineError: it is damaged, or of a newer release.
        """
        try:
            values = json.loads(gzip.decompress(data))
            if values.pop("format") != _FORMAT:
                raise PipelineError(f"{place}: this format is not known here; upgrade graphrag-pipeline")
            values["heads"] = {key: Head.from_json(json.dumps(head).encode()) for key, head in values["heads"].items()}
            values["snapshots"] = {key: SnapshotMarks(**facts) for key, facts in values["snapshots"].items()}
            return cls(**values, number=number)
        except (OSError, EOFError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise PipelineError(
                f"{place}: damaged ({error}); remove it, and on the machine whose copy of the index is newest "
                "cache/store of the root, then run `graphrag-pipeline index` there"
            ) from None


def choose(base: _T, here: _T, there: _T) -> _T:
    """The side that changed since both were `base`; the store's where both did."""
    return here if there == base else there


def heads_to_take(base: StoreState, here: Mapping[str, Head], there: StoreState) -> dict[str, Head]:
    """Heads that the working copy gets from the store: what it lacks, and what was changed there."""
    return {
        key: head
        for key, head in there.heads.items()
        if key not in here or choose(base.heads.get(key), here[key], head) != here[key]
    }


def find_conflicts(base: StoreState, here: Mapping[str, Head], taken: Iterable[str]) -> list[str]:
    """Those of the heads taken that were changed here, too."""
    return [key for key in taken if key in here and here[key] != base.heads.get(key)]


# ------------------------------------------------------------------------------------------------- names of objects


def manifest_name(snapshot_id: str) -> str:
    return f"snapshots/{snapshot_id}.json"


def table_names(manifest: Manifest) -> dict[str, str]:
    """Object of each contract table."""
    return {name: f"snapshots/tables/{name}/{entry['file']}" for name, entry in manifest.tables.items()}


def archive_names(manifest: Manifest) -> Iterator[str]:
    """Objects of its folders: arrays, and vectors that lie in the root."""
    yield f"snapshots/adjacency/{manifest.adjacency}.tar"
    if manifest.sentences:
        yield f"snapshots/sentences/{manifest.sentences}.tar"
    if manifest.vector_store == LANCEDB:
        for folder in manifest.vectors.values():
            yield vectors_name(folder)


def vectors_name(folder: VectorFolder) -> str:
    return f"snapshots/vectors/{folder.name}/{folder.content}.tar"


def head_names(head: Head) -> Iterator[str]:
    """Objects of the files of a head."""
    for file in head.files:
        yield f"tables/{head.table}/{head.partition}/{file.name}"


def stage_file_names(manifest: Manifest) -> Iterator[str]:
    """Objects of the stage tables that a snapshot was joined from; it can be read without them."""
    for key, head in manifest.heads.items():
        for file in head["files"]:
            yield f"tables/{key}/{file['name']}"


def named_objects(state: StoreState, manifests: Mapping[str, Manifest]) -> set[str]:
    """Everything that a state consists of in the store, but for itself.

    Args:
        manifests: of its snapshots, by id.
    """
    names = {name for head in state.heads.values() for name in head_names(head)}
    for snapshot_id, manifest in manifests.items():
        names |= {manifest_name(snapshot_id), *table_names(manifest).values(), *archive_names(manifest)}
        names.update(stage_file_names(manifest))
    return names
