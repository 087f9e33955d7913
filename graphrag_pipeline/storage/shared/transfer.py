"""Transfer of files between a root and its shared store, by the names of their objects.

The name of an object is the path of its file in the root; an archive (`.tar`) holds the folder of that name. Keep out:
the choice of objects, and the current state.
"""

from __future__ import annotations

import logging
import os
import shutil
import tarfile
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.listed_folders import find_changed_files
from graphrag_pipeline.storage.arrays import find_changed_arrays
from graphrag_pipeline.storage.damage import find_changed_file
from graphrag_pipeline.storage.formats import check_names, foreign_name_error
from graphrag_pipeline.storage.manifests import Manifest, hash_path, mapped_name
from graphrag_pipeline.storage.shared.objects import ObjectStore
from graphrag_pipeline.storage.shared.state import OWNED, archive_names, manifest_name, table_names
from graphrag_pipeline.storage.snapshot_store import SnapshotStore


def pack(folder: Path, archive: Path) -> None:
    """Write all files of a folder into an archive; the same files give the same bytes.

    Raises:
        PipelineError: the disk is full or the archive cannot be written.
    """
    try:
        with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as packed:
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
                entry.size = path.stat().st_size
                with path.open("rb") as file:
                    packed.addfile(entry, file)
    except OSError as error:
        raise files.write_error(archive, error) from error


def unpack(archive: Path, folder: Path) -> None:
    """Replace `folder` by the content of an archive, in one step.

    Raises:
        NoSnapshotError: the file is not an archive, or the folder in it is not whole.
        PipelineError: the disk is full or the folder cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=files.TEMPORARY_PREFIX, dir=folder.parent) as working:
            made = Path(working) / "new"
            made.mkdir()
            with tarfile.open(archive) as packed:
                packed.extractall(made, filter="data")
            if damaged := find_changed_files(made):
                raise NoSnapshotError(f"`{folder.name}` is damaged in the shared store (`{damaged[0].name}`)")
            if folder.exists():  # it is damaged, or was rewritten in the store
                os.replace(folder, Path(working) / "old")
            os.replace(made, folder)
    except tarfile.TarError as error:
        raise NoSnapshotError(f"`{folder.name}` is damaged in the shared store ({error})") from error
    except OSError as error:
        raise files.write_error(folder, error) from error


_log = logging.getLogger(__name__)
UPLOAD_AGAIN = (
    "run `graphrag-pipeline verify --store --repair` on a machine that has the index, to upload it again, or "
    "`graphrag-pipeline index` where the documents are, to make it again"
)
"""The way out of a missing or damaged object, for messages."""
_N_READ = 16
"""Objects that are checked at once, as files of this machine."""
MissingObjects = set[str] | None
"""Collects the names of objects that the store lacks, for a writer that uploads them again; None: raise an error."""


class MissingObjectError(NoSnapshotError):
    """The store lacks an object that its last state names: it was pruned since, or it is lost."""


def _is_changed(folder: Path, is_fresh: bool = False) -> bool:
    find = find_changed_arrays if folder.parent.name in ("adjacency", "sentences") else find_changed_files
    return bool(find(folder, is_fresh))


def _is_whole(packed: Path, place: Path) -> bool:
    """Return whether a downloaded file or archive has the content that its name promises."""
    if packed == place:
        return not find_changed_file(place, is_fresh=True)
    try:
        unpack(packed, place)
    except NoSnapshotError:
        return False
    return not _is_changed(place, is_fresh=True)


def _warn_of_damage(places: Iterable[Path]) -> None:
    for place in places:
        if place.exists():
            _log.warning("`%s` is damaged; downloading it again", place)


class Transfer:
    """The files of a root, and the objects of its store.

    Args:
        folder: folder for archives during a transfer.
    """

    def __init__(self, root: Path, objects: ObjectStore, folder: Path) -> None:
        self._root = root
        self._objects = objects
        self._folder = folder

    def place(self, name: str) -> Path:
        """Return the path of an object in the root: a file, or the folder of an archive.

        Raises:
            PipelineError: the path would not be in a folder of the index.
        """
        folder, *parts = name.split("/")
        check_names((folder, *parts), self._objects.shown_url)
        if folder not in OWNED or not parts:
            raise foreign_name_error(name, self._objects.shown_url)
        return self._root / name.removesuffix(".tar")

    def is_whole(self, name: str) -> bool:
        """Return whether the root has the file or folder of an object, with the content that its name promises."""
        place = self.place(name)
        if name.endswith(".tar"):
            return not _is_changed(place)
        return not find_changed_file(place)

    def fetch(self, targets: Mapping[str, Path], missing: MissingObjects) -> None:
        """Download objects to paths.

        Raises:
            MissingObjectError: the store lacks an object, and `missing` is None.
        """
        absent = self._download(targets)
        if absent and missing is None:
            raise MissingObjectError(
                f"{self._objects.shown_url}: {absent[0]} is missing or damaged (and {len(absent) - 1} more), but the "
                f"store names it; {UPLOAD_AGAIN}"
            )
        if missing is not None:
            missing.update(absent)

    def fetch_manifests(self, ids: Collection[str], missing: MissingObjects) -> None:
        """Download manifests; each gets its place only if its content is that of its id.

        Raises:
            MissingObjectError: see `fetch`; a damaged one counts as missing.
            NewerFormatError: a newer release wrote one.
            PipelineError: one names a file outside its folder.
        """
        if not ids:
            return
        with self._working_folder() as working:
            self.fetch({manifest_name(i): working / i for i in ids}, missing)
            damaged = [manifest_name(i) for i in ids if (working / i).exists() and not self._put_manifest(i, working)]
        if damaged and missing is None:
            raise MissingObjectError(f"{self._objects.shown_url}: {damaged[0]} is damaged; {UPLOAD_AGAIN}")
        if missing is not None:
            missing.update(damaged)

    def _put_manifest(self, snapshot_id: str, folder: Path) -> bool:
        """Put a downloaded manifest in its place if it is whole; return whether it is."""
        data = (folder / snapshot_id).read_bytes()
        if self._parse_manifest(snapshot_id, data) is None:
            return False
        files.replace(self.place(manifest_name(snapshot_id)), data)
        return True

    def _parse_manifest(self, snapshot_id: str, data: bytes) -> Manifest | None:
        """Return a manifest; None if it is damaged."""
        try:
            return Manifest.from_json(data, snapshot_id, f"{self._objects.shown_url}/{manifest_name(snapshot_id)}")
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def fetch_snapshot(self, manifest: Manifest, snapshots: SnapshotStore, missing: MissingObjects) -> None:
        """Download the missing and damaged files of a snapshot, and make its mapped tables.

        Raises:
            MissingObjectError: see `fetch`.
        """
        self._fetch_tables(manifest, missing)
        for name, entry in manifest.tables.items():
            if self.place(table_names(manifest)[name]).exists():
                snapshots.map_table(name, entry)
        self._fetch_folders(manifest, missing)

    def _fetch_tables(self, manifest: Manifest, missing: MissingObjects) -> None:
        places = {name: self.place(object_name) for name, object_name in table_names(manifest).items()}
        cut = [name for name, path in places.items() if find_changed_file(path)]
        _warn_of_damage(places[name] for name in cut)
        self.fetch({table_names(manifest)[name]: places[name] for name in cut}, missing)

    def _fetch_folders(self, manifest: Manifest, missing: MissingObjects) -> None:
        archives = [name for name in archive_names(manifest) if _is_changed(self.place(name))]
        _warn_of_damage(self.place(name) for name in archives)
        with self._working_folder() as working:
            packed = {name: working / str(number) for number, name in enumerate(archives)}
            self.fetch(packed, missing)
            for name, archive in packed.items():
                if archive.exists():
                    self._unpack(name, archive, missing)

    def _unpack(self, name: str, archive: Path, missing: MissingObjects) -> None:
        try:
            unpack(archive, self.place(name))
            if _is_changed(self.place(name)):
                raise NoSnapshotError(f"`{name}` in {self._objects.shown_url} is not what its name promises")
        except NoSnapshotError:
            if missing is None:
                raise
            missing.add(name)

    def fetch_there(self, names: Iterable[str]) -> None:
        """Download files that are missing in the root, as far as the store has them."""
        self._download({name: self.place(name) for name in names if not self.place(name).is_file()})

    def _download(self, targets: Mapping[str, Path]) -> list[str]:
        """Download objects; return the names of those that do not exist, or whose content has another hash."""
        absent = self._objects.download(targets)
        arrived = [(name, path) for name, path in targets.items() if path.exists() and name.endswith(".parquet")]
        changed = [name for name, path in arrived if find_changed_file(path)]
        for name in changed:
            _log.warning(
                "%s/%s is damaged: its content is not the one that its name promises", self._objects.shown_url, name
            )
            targets[name].unlink()
        return [*absent, *changed]

    def read_manifests(self, ids: Iterable[str]) -> dict[str, Manifest]:
        """Return those manifests of the store that are whole, by id."""
        with self._working_folder() as working:
            self._objects.download({manifest_name(i): working / i for i in ids})
            read = {path.name: self._parse_manifest(path.name, path.read_bytes()) for path in working.iterdir()}
        return {snapshot_id: manifest for snapshot_id, manifest in read.items() if manifest}

    def find_damaged(self, names: Collection[str]) -> tuple[set[str], set[str]]:
        """Download files and archives and compare them with their names; nothing of them is kept.

        Returns:
            Names of the missing objects, and of the damaged ones.
        """
        missing, damaged = set[str](), set[str]()
        ordered = sorted(names)
        for start in range(0, len(ordered), _N_READ):
            with self._working_folder() as working:
                places = {n: working / self.place(n).relative_to(self._root) for n in ordered[start : start + _N_READ]}
                files_of = {name: working / name for name in places}
                absent = self._objects.download(files_of)
                missing.update(absent)
                damaged.update(n for n in places.keys() - set(absent) if not _is_whole(files_of[n], places[n]))
        return missing, damaged

    def put(self, names: Collection[str]) -> None:
        """Upload objects.

        Raises:
            NoSnapshotError: a file of an object is missing in the root.
            StoreError: the store fails; no state names the objects uploaded before.
        """
        with self._working_folder() as working:
            sources = {}
            for number, name in enumerate(sorted(names)):
                place = self.place(name)
                if not place.exists():
                    raise NoSnapshotError(
                        f"`{place}` was removed before its upload to the shared store; run `graphrag-pipeline index` "
                        "again"
                    )
                sources[name] = place
                if name.endswith(".tar"):
                    sources[name] = working / str(number)
                    pack(place, sources[name])
            self._objects.upload(sources)

    def remove(self, name: str) -> None:
        """Remove the file or folder of an object from the root."""
        place = self.place(name)
        if place.is_dir():
            shutil.rmtree(place, ignore_errors=True)
            return
        place.unlink(missing_ok=True)
        if name.startswith("snapshots/tables/"):
            mapped = place.with_name(mapped_name(place.name))
            mapped.unlink(missing_ok=True)
            hash_path(mapped).unlink(missing_ok=True)

    @contextmanager
    def _working_folder(self) -> Iterator[Path]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            working = tempfile.TemporaryDirectory(prefix=files.TEMPORARY_PREFIX, dir=self._folder)
        except OSError as error:
            raise files.write_error(self._folder, error) from error
        with working as folder:
            yield Path(folder)
