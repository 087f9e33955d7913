"""The sweep of a root: expired snapshots, and files that no head and no kept snapshot names.

The sweep never removes the published snapshot, the pinned one, the candidate, and those that a reader has open. It also
keeps everything younger than the grace time, since a stage may have written a file that no head names yet. Manifests go
first, so that every listed snapshot has its files; a kill in between leaves files for the next sweep.

A sweep removes what nothing names. So it removes nothing while a manifest, a head or a pointer cannot be read, since
that file may name any other (`check_readable`). The caller keeps writers out. Keep out: the policy which snapshots to
keep, replies of models, and objects of a shared store.
"""

from __future__ import annotations

import itertools
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem.files import TEMPORARY_PREFIX
from graphrag_pipeline.storage.locks import hold_alone
from graphrag_pipeline.storage.manifests import Manifest, hash_path
from graphrag_pipeline.storage.snapshot_store import COPY_SUFFIX, EVALUATIONS_FOLDER, SnapshotStore
from graphrag_pipeline.storage.table_store import TableStore
from graphrag_pipeline.storage.vectors import LANCEDB, open_vector_store
from graphrag_pipeline.storage.vectors.folders import VectorFolder
from graphrag_pipeline.storage.vectors.stores import collection_of
from graphrag_pipeline.tables import INDEX_CANDIDATE, VECTOR_TABLES

DAMAGED_FOLDER = "damaged"
"""Folder in `cache/` for files that nothing can make again; `verify --repair` moves them there."""
_OWNED_FOLDERS = ("tables", "heads", "snapshots", EVALUATIONS_FOLDER, "cache", "dagster")
_Collection = tuple[str, VectorFolder]
"""Kind of vector store, and the collection in it."""


@dataclass(frozen=True)
class SweepReport:
    """The snapshots and files that a sweep removed, or would remove in a dry run.

    Attributes:
        snapshots: ids of removed snapshots, oldest first.
        held: ids of expired snapshots that stay, since a reader has them open.
        paths: files and folders, sorted.
        collections: names of vector collections.
        n_bytes: size of the files that have no other hard link.
        objects: names of the objects removed from the shared store.
    """

    snapshots: tuple[str, ...]
    held: tuple[str, ...]
    paths: tuple[Path, ...]
    collections: tuple[str, ...]
    n_bytes: int
    objects: tuple[str, ...] = ()


def check_readable(tables: TableStore, store: SnapshotStore) -> None:
    """Check that every manifest, head and pointer of the root, and its layout, can be read and are of this release.

    Raises:
        PipelineError: one cannot; the message names each one.
    """
    problems = [
        *_find_layout_problem(tables), *_find_unreadable_heads(tables), *_find_unreadable_snapshots(store),
        *_find_lost_manifests(tables, store),
    ]  # fmt: skip
    if problems:
        raise PipelineError(
            f"nothing was removed, since files that name other files cannot be read: {'; '.join(problems)}. Upgrade "
            "graphrag-pipeline if a newer release wrote them. Else run `graphrag-pipeline verify --repair`, then "
            "`graphrag-pipeline index` (or `import` again), then this again. If a file is still named, it is lost, and "
            "so is what only it names: delete it, then run this again"
        )


def _find_layout_problem(tables: TableStore) -> Iterator[str]:
    """Yield why the layout cannot be read; with a newer one, files may be in places that this release does not know."""
    try:
        if tables.is_layout_damaged():
            yield f"`{tables.layout_path}` is damaged"
    except PipelineError as error:
        yield str(error)


def _find_unreadable_heads(tables: TableStore) -> Iterator[str]:
    for path in tables.head_paths():
        try:
            tables.read_stored_head(path)
        except PipelineError as error:
            yield str(error)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            yield f"head `{path}` is damaged ({error})"


def _find_unreadable_snapshots(store: SnapshotStore) -> Iterator[str]:
    ids = store.ids()
    for snapshot_id in ids:
        try:
            store.manifest(snapshot_id)
        except PipelineError as error:
            yield str(error)
    for name, read in (("current.json", store.current), ("pinned.json", store.pinned)):
        try:
            if (named := read()) not in (None, *ids):
                yield f"`{store.folder / name}` names snapshot {named}, which does not exist"
        except PipelineError as error:
            yield str(error)


def _find_lost_manifests(tables: TableStore, store: SnapshotStore) -> Iterator[str]:
    """Yield each manifest that is gone although no sweep removed it; nothing can make the files of an import again."""
    for snapshot_id in store.lost_ids():
        copy = store.copy_path(snapshot_id)
        left = copy if copy.exists() else copy.with_suffix(".checked")
        yield f"manifest `{store.path_of(snapshot_id)}` is missing, but `{left}` is there"
    if store.has_unnamed_files() and not tables.head_paths():
        yield (
            f"`{store.folder}` has files of snapshots, but no manifest that names them (`graphrag-pipeline import` of "
            "the same index names them again; to give them up, delete the folder)"
        )


def find_old_snapshots(tables: TableStore, store: SnapshotStore, n_kept: int, before: float) -> list[str]:
    """Return the ids of expired snapshots, oldest first.

    Args:
        n_kept: number of newest snapshots that never expire.
        before: seconds since 1970; a snapshot expires if the next one was made before that time.
    """
    ids = store.ids()
    protected = {store.current(), store.pinned(), _candidate_of(tables), *ids[max(len(ids) - n_kept, 0) :]}
    followed_at = {old: store.created_ns(new) / 1e9 for old, new in itertools.pairwise(ids)}
    return [i for i in ids if i not in protected and i in followed_at and followed_at[i] < before]


def _candidate_of(tables: TableStore) -> str | None:
    head = tables.head(INDEX_CANDIDATE)
    return head.data_version if head else None


def sweep(
    tables: TableStore,
    store: SnapshotStore,
    doomed: Sequence[str],
    before: float,
    others: Iterable[Path] = (),
    is_dry_run: bool = False,
    unlist: Callable[[Sequence[str]], object] = lambda gone: None,
) -> SweepReport:
    """Remove snapshots, and every file older than `before` that no head and no other snapshot names.

    Args:
        doomed: ids of the snapshots to remove; a snapshot that a reader has open stays, with its files.
        before: seconds since 1970.
        others: more files to remove if they are older than `before`.
        is_dry_run: report what would be removed, and remove nothing.
        unlist: called with the snapshots that are removed, while no reader can open them and before a file is removed.

    Raises:
        PipelineError: a manifest, a head or a pointer cannot be read (`check_readable`).
    """
    check_readable(tables, store)
    with ExitStack() as locks:
        gone = [i for i in doomed if locks.enter_context(hold_alone(store.path_of(i)))]
        kept = [store.manifest(i) for i in store.ids() if i not in gone]
        named = _named_paths(tables, store, kept)
        collections = _unnamed_collections(store, [store.manifest(i) for i in gone], kept, before)
        places = {folder.path(store.folder / "vectors") for kind, folder in collections if kind == LANCEDB}
        unnamed = [path for path in (*_owned_paths(tables, store), *others) if path not in named]
        paths = sorted({path for path in unnamed if _modified(path) < before} - places)
        n_bytes = sum(map(_size_of, (*paths, *places)))
        if not is_dry_run:
            unlist(gone)
            for snapshot_id in gone:
                store.remove_manifest(snapshot_id)
            for kind, folder in collections:
                open_vector_store(store.vector_store, store.folder / "vectors", kind).drop(collection_of(folder))
            for path in sorted(paths, key=lambda path: path.parent.parent == tables.root / "tables" / "documents"):
                _remove(path)  # documents last: after a kill `forget` still finds the document in them
    held = tuple(i for i in doomed if i not in gone)
    return SweepReport(
        tuple(gone), held, tuple(paths), tuple(collection_of(folder) for _, folder in collections), n_bytes
    )


def _named_paths(tables: TableStore, store: SnapshotStore, kept: Sequence[Manifest]) -> set[Path]:
    """Return all paths that a head or a kept snapshot names, except vectors in another store than LanceDB."""
    heads = map(tables.read_stored_head, tables.head_paths())
    named = {path for head in heads for path in tables.paths(head)}
    for manifest in kept:
        named |= {store.path_of(manifest.id).with_suffix(suffix) for suffix in (".json", ".checked", COPY_SUFFIX)}
        for key, head in manifest.heads.items():
            named |= {tables.root / "tables" / key / file["name"] for file in head.get("files", ())}
        for name in manifest.tables:
            mapped = manifest.mapped_path(store.folder, name)
            named |= {manifest.table_path(store.folder, name), mapped, hash_path(mapped)}
        named.update(manifest.array_folders(store.folder))
        named.add(tables.root / EVALUATIONS_FOLDER / manifest.id)
        if manifest.vector_store == LANCEDB:
            named |= {folder.path(store.folder / "vectors") for folder in manifest.vectors.values()}
    return named


def _owned_paths(tables: TableStore, store: SnapshotStore) -> Iterator[Path]:
    """Yield every immutable file and folder of the root, and the temporary files of killed processes."""
    yield from (tables.root / "tables").glob("*/*/*")
    yield from (store.folder / "tables").glob("*/*")
    for name in ("adjacency", "sentences"):
        yield from (store.folder / name).glob("*")
    for suffix in (".checked", COPY_SUFFIX):
        yield from store.folder.glob(f"*{suffix}")
    yield from (tables.root / "cache" / DAMAGED_FOLDER).glob("*")
    yield from (tables.root / EVALUATIONS_FOLDER).glob("*")
    for name in _OWNED_FOLDERS:
        yield from (tables.root / name).rglob(f"{TEMPORARY_PREFIX}*")


def _unnamed_collections(
    store: SnapshotStore, gone: Sequence[Manifest], kept: Sequence[Manifest], before: float
) -> list[_Collection]:
    """Return the collections that only removed snapshots name, and the LanceDB folders that no snapshot names."""
    named = {(m.vector_store, collection_of(folder)) for m in kept for folder in m.vectors.values()}
    found = {(m.vector_store, collection_of(folder)): folder for m in gone for folder in m.vectors.values()}
    for name in VECTOR_TABLES:
        for path in (store.folder / "vectors" / name).glob("[!.]*"):
            if _modified(path) < before:
                folder = VectorFolder(name, path.name, 0, 0, False, 0)
                found.setdefault((LANCEDB, collection_of(folder)), folder)
    return [(key[0], folder) for key, folder in sorted(found.items()) if key not in named]


def _modified(path: Path) -> float:
    """Return seconds since 1970; infinity for a file that was removed since it was listed, so that it counts as new."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return math.inf


def _size_of(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    infos = [file.stat() for file in files if file.is_file()]
    return sum(info.st_size for info in infos if info.st_nlink == 1)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
