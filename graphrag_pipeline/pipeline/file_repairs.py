"""Repairs of damaged files of a root.

A file that does not match its hash counts as never made. It is downloaded from the shared store, made again from the
other files of its snapshot (`publishing/candidates.py`), or removed, and then `index` makes it again from its inputs. A
file that nothing can make again, as of an imported index, is moved to `cache/damaged` and named. Keep out: when files
are checked (`verification.py`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import CANDIDATE
from graphrag_pipeline.publishing.candidates import read_passed, remake, verify
from graphrag_pipeline.storage.damage import (
    ARRAYS,
    MAPPED_TABLE,
    STAGE_TABLE,
    TABLE,
    VECTORS,
    StoredPart,
    find_changed_file,
)
from graphrag_pipeline.storage.garbage import DAMAGED_FOLDER
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.snapshots import Snapshot

_ORDER = (STAGE_TABLE, TABLE, MAPPED_TABLE, ARRAYS, VECTORS)
"""Kinds of parts in the order of repair: a part is made from parts of kinds before it."""
DOWNLOADED = "downloaded from the shared store"
_INDEX_MAKES = "removed; `index` makes it again"
_WITHOUT_REPAIR = "run `graphrag-pipeline verify --repair`"


@dataclass(frozen=True)
class DamagedFile:
    """One damaged file.

    Attributes:
        path: relative to the root.
        kind: kind of its part, such as "stage table".
        outcome: what was done about it, or how to repair it.
        is_repaired: nothing remains to be done but an `index`.
    """

    path: str
    kind: str
    outcome: str
    is_repaired: bool = False

    @classmethod
    def of(cls, root: Root, part: StoredPart, path: Path, outcome: str, is_repaired: bool = False) -> DamagedFile:
        """Return the finding about a file of a part."""
        return cls(path.relative_to(root.path).as_posix(), part.kind, outcome, is_repaired)


# ------------------------------------------------------------------------------------------------- immutable files


def list_parts(root: Root) -> list[StoredPart]:
    """Return every immutable file and folder of a root, each once.

    Of a snapshot that is neither published, pinned nor the candidate, only the existing ones: a working copy of a
    shared store need not have it.
    """
    stages = sorted((root.path / "tables").glob("*/*/[!.]*.parquet"))
    parts = {path: StoredPart(STAGE_TABLE, path, find_changed_file) for path in stages}
    needed = _needed_snapshots(root)
    for snapshot in _snapshots(root):
        for part in snapshot.parts():
            if snapshot.id in needed or part.path.exists():
                parts.setdefault(part.path, part)
    return list(parts.values())


def _snapshots(root: Root) -> list[Snapshot]:
    """Return the snapshots whose manifests can be read, newest first, without a lock on them."""
    store, found = root.snapshots, []
    for snapshot_id in reversed(store.ids()):
        try:
            found.append(Snapshot(store.folder, snapshot_id, store.manifest(snapshot_id), store.vector_store))
        except PipelineError:
            continue  # `check_records` names it
    return found


def _needed_snapshots(root: Root) -> set[str | None]:
    candidate = root.tables.head(CANDIDATE.name)
    named = {_read_pointer(root.snapshots.current), _read_pointer(root.snapshots.pinned)}
    return (named | {candidate.data_version if candidate else None}) - {None}


def repair_parts(root: Root, damaged: Sequence[tuple[StoredPart, list[Path]]]) -> list[DamagedFile]:
    """Repair damaged parts as far as possible.

    Args:
        damaged: parts with their damaged files.

    Returns:
        A finding for each damaged file.
    """
    if not damaged:
        return []
    snapshots = _snapshots(root)
    owners = {part.path: [s for s in snapshots if part.path in {p.path for p in s.parts()}] for part, _ in damaged}
    _fetch_again(root, damaged, owners)
    findings = []
    for part, paths in sorted(damaged, key=lambda pair: _ORDER.index(pair[0].kind)):
        outcome, is_repaired = _repair_part(root, part, owners[part.path], snapshots)
        findings += [DamagedFile.of(root, part, path, outcome, is_repaired) for path in paths]
    return findings


def _fetch_again(
    root: Root, damaged: Sequence[tuple[StoredPart, list[Path]]], owners: Mapping[Path, Sequence[Snapshot]]
) -> None:
    """Download damaged parts from the shared store, as far as it has them."""
    if not root.shared:
        return
    stages = [part.path for part, _ in damaged if part.kind == STAGE_TABLE]
    for path in stages:
        path.unlink(missing_ok=True)
    root.shared.fetch_files(path.relative_to(root.path).as_posix() for path in stages)
    for snapshot_id in dict.fromkeys(snapshot.id for found in owners.values() for snapshot in found):
        try:
            root.shared.fetch(snapshot_id)
        except NoSnapshotError:
            continue  # the store lacks a part of it


def _repair_part(
    root: Root, part: StoredPart, owners: Sequence[Snapshot], snapshots: Sequence[Snapshot]
) -> tuple[str, bool]:
    if not part.changed(is_fresh=True):
        return DOWNLOADED, True
    if part.kind == STAGE_TABLE:
        part.path.unlink(missing_ok=True)
        return _INDEX_MAKES, True
    for owner in owners:
        # Opened again: a part that was repaired before this one may be in the memory of `owner`.
        opened = Snapshot(owner.folder, owner.id, owner.manifest, root.snapshots.vector_store)
        if remake(root.snapshots, opened, part, snapshots):
            return "made again from the other files of its snapshot", True
    return _set_aside(root, part, owners)


def _set_aside(root: Root, part: StoredPart, owners: Sequence[Snapshot]) -> tuple[str, bool]:
    """Move away what nothing made again, or remove it if `index` will make it."""
    candidate = root.tables.head(CANDIDATE.name)
    if candidate and candidate.data_version in {owner.id for owner in owners if owner.manifest.origin != "import"}:
        _remove(part.path)
        return _INDEX_MAKES, True
    kept = root.path / "cache" / DAMAGED_FOLDER / part.path.relative_to(root.path)
    if part.path.exists():
        _remove(kept)
        kept.parent.mkdir(parents=True, exist_ok=True)
        os.replace(part.path, kept)
    named = ", ".join(owner.id for owner in owners)
    return f"cannot be made again, so snapshot {named} cannot be opened; {_way_out(root, owners)}", False


def _way_out(root: Root, owners: Sequence[Snapshot]) -> str:
    lost = {owner.id for owner in owners}
    whole = [s.id for s in _snapshots(root) if s.id not in lost and root.snapshots.is_checked(s.id)]
    needed = lost & _needed_snapshots(root)
    if not needed:
        return "run `graphrag-pipeline snapshots prune` to remove it"
    again = "run `graphrag-pipeline import` again"
    return f"{again}, or `graphrag-pipeline snapshots rollback {whole[0]}` for an older one" if whole else again


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# ------------------------------------------------------------------------------------------ heads, manifests, pointers


def check_records(root: Root, is_repairing: bool) -> list[DamagedFile]:
    """Return the damaged files that name others, heads, manifests, pointer and pin, repaired if asked for."""
    checks = (_check_layout, _check_heads, _check_manifests, _check_pointers, _check_unnamed)
    return [finding for check in checks for finding in check(root, is_repairing)]


def _check_layout(root: Root, is_repairing: bool) -> Iterator[DamagedFile]:
    if root.tables.is_layout_damaged():
        if is_repairing:
            root.tables.check_layout(root.settings.storage.n_buckets)
        yield DamagedFile(
            "tables/layout.json", "layout", "written again" if is_repairing else _WITHOUT_REPAIR, is_repairing
        )


def _check_heads(root: Root, is_repairing: bool) -> Iterator[DamagedFile]:
    for path in root.tables.head_paths():
        if not _is_head(root, path):
            if is_repairing:
                path.unlink()
            outcome = _INDEX_MAKES if is_repairing else _WITHOUT_REPAIR
            yield DamagedFile(path.relative_to(root.path).as_posix(), "head", outcome, is_repairing)


def _is_head(root: Root, path: Path) -> bool:
    try:
        root.tables.read_stored_head(path)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False
    return True


def _check_manifests(root: Root, is_repairing: bool) -> Iterator[DamagedFile]:
    store = root.snapshots
    for snapshot_id in [*store.ids(), *store.lost_ids()]:
        if _is_manifest(store, snapshot_id):
            yield from _check_copy(store, snapshot_id, is_repairing)
            continue
        outcome, is_repaired = _WITHOUT_REPAIR, False
        if is_repairing:
            is_repaired = store.restore_manifest(snapshot_id)
            if not is_repaired:
                _refuse_newer(store, snapshot_id)
            outcome = "restored from its copy" if is_repaired else _lost_manifest(root, snapshot_id)
        yield DamagedFile(f"snapshots/{snapshot_id}.json", "manifest", outcome, is_repaired)


def _check_copy(store: SnapshotStore, snapshot_id: str, is_repairing: bool) -> Iterator[DamagedFile]:
    """Compare a whole manifest with its copy, and write a missing copy."""
    copy = store.copy_path(snapshot_id)
    is_whole = store.is_copy_whole(snapshot_id)
    is_damaged = copy.exists() and not is_whole
    differs = is_whole and copy.read_bytes() != store.path_of(snapshot_id).read_bytes()  # in the time, beside the id
    if is_repairing:
        if differs:
            store.settle_copies(snapshot_id)
        store.copy_manifest(snapshot_id)
    outcome = "written again" if is_repairing else _WITHOUT_REPAIR
    if is_damaged:
        yield DamagedFile(f"snapshots/{copy.name}", "copy of a manifest", outcome, is_repairing)
    if differs:
        yield DamagedFile(
            f"snapshots/{snapshot_id}.json", "manifest, which differs from its copy", outcome, is_repairing
        )


def _is_manifest(store: SnapshotStore, snapshot_id: str) -> bool:
    try:
        store.manifest(snapshot_id)
    except PipelineError:
        return False
    return True


def _refuse_newer(store: SnapshotStore, snapshot_id: str) -> None:
    """Raise if a newer release wrote a manifest, which has no copy that this release can read."""
    try:
        store.manifest(snapshot_id)
    except NoSnapshotError:
        return


def _lost_manifest(root: Root, snapshot_id: str) -> str:
    if snapshot_id in _needed_snapshots(root) and root.tables.head(CANDIDATE.name):
        return "`index` writes it again"
    return "cannot be made again; run `graphrag-pipeline import` again, or roll back to another snapshot"


def _check_pointers(root: Root, is_repairing: bool) -> Iterator[DamagedFile]:
    store = root.snapshots
    for name, read in (("current.json", store.current), ("pinned.json", store.pinned)):
        named = _read_pointer(read)
        is_lost_import = name == "current.json" and root.is_imported  # `index` would publish documents in its place
        if not ((store.folder / name).exists() or is_lost_import) or (named and store.path_of(named).exists()):
            continue
        outcome, is_repaired = _WITHOUT_REPAIR, False
        if is_repairing:
            outcome, is_repaired = _point_again(root, name)
        yield DamagedFile(f"snapshots/{name}", "pointer", outcome, is_repaired)


def check_passed(root: Root, is_repairing: bool) -> Iterator[DamagedFile]:
    """Yield the damaged lists of checks that a snapshot passed; after the repair of parts, since they run again."""
    for snapshot in _snapshots(root):
        path = snapshot.folder / f"{snapshot.id}.checked"
        if read_passed(path) is not None:
            continue
        outcome, is_repaired = _WITHOUT_REPAIR, False
        if is_repairing:
            is_repaired = all(result.passed for result in verify(root.snapshots, snapshot))
            outcome = "the checks ran again" if is_repaired else "its snapshot does not pass its checks; run `index`"
        yield DamagedFile(path.relative_to(root.path).as_posix(), "list of passed checks", outcome, is_repaired)


def _check_unnamed(root: Root, is_repairing: bool) -> Iterator[DamagedFile]:
    """Yield the folder of snapshots if an import left files there that no manifest names."""
    if root.is_imported and not root.snapshots.ids():
        outcome = "no manifest names its files; run `graphrag-pipeline import` again"
        yield DamagedFile("snapshots", "folder of snapshots", outcome, False)


def _read_pointer(read: Callable[[], str | None]) -> str | None:
    try:
        return read()
    except NoSnapshotError:
        return None


def _point_again(root: Root, name: str) -> tuple[str, bool]:
    """Point at the newest snapshot that passed its checks; the pin names the published one."""
    store = root.snapshots
    if name == "pinned.json":
        current = _read_pointer(store.current)
        if current is None:
            return "run `graphrag-pipeline snapshots unpin`", False
        store.pin(current)
        return f"names the published snapshot {current} again", True
    checked = [i for i in store.ids() if store.is_checked(i) and _is_manifest(store, i)]
    pinned = _read_pointer(store.pinned)
    if not checked:
        if root.tables.head_paths():
            return "`index` publishes again", True
        return "no snapshot is left; run `graphrag-pipeline import` again", False
    chosen = pinned if pinned in checked else checked[-1]
    store.point_at(chosen or checked[-1])
    return f"names the newest snapshot that passed its checks again, {chosen}", True
