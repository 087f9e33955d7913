"""The snapshots of a root over time: listing them, finding one by a prefix of its id, rolling back, refusals.

The time of a snapshot is in its manifest alone. It is not part of the id, and no table holds a time. Keep out:
comparing snapshots, removing them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.storage.garbage import EVALUATIONS_FOLDER
from graphrag_pipeline.storage.locks import is_held, one_writer
from graphrag_pipeline.storage.snapshot_store import SnapshotStore


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

    Args:
        waiting: see `list_snapshots`.

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


def _refusal_path(store: SnapshotStore, snapshot_id: str) -> Path:
    return store.folder.parent / EVALUATIONS_FOLDER / snapshot_id / "refused.txt"
