"""Moving the files of a root from and to its shared store, by the names of their objects.

An object belongs where its name says; an archive (`.tar`) holds the folder of that name. Keep out: which objects are
wanted, and what is current.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.listed_folders import find_damaged_files
from graphrag_pipeline.storage.damage import is_whole_parquet
from graphrag_pipeline.storage.manifests import Manifest, mapped_name
from graphrag_pipeline.storage.shared.folders import pack, unpack
from graphrag_pipeline.storage.shared.objects import ObjectStore
from graphrag_pipeline.storage.shared.state import archive_names, table_names
from graphrag_pipeline.storage.snapshot_store import SnapshotStore

MissingObjects = set[str] | None
"""Gets the names of objects that the store lacks, for somebody who makes them again; None: that is an error."""


class MissingObjectError(NoSnapshotError):
    """The store lacks an object that the state read last named: it was pruned meanwhile, or lost."""


class Transfer:
    """The files of a root, and the objects of its store.

    Args:
        folder: for archives on their way.
    """

    def __init__(self, root: Path, objects: ObjectStore, folder: Path) -> None:
        self._root = root
        self._objects = objects
        self._folder = folder

    def place(self, name: str) -> Path:
        """Where an object belongs: a file, or the folder that an archive holds."""
        return self._root / name.removesuffix(".tar")

    def fetch(self, targets: Mapping[str, Path], missing: MissingObjects) -> None:
        """Put objects where they are to go.

        Raises:
            MissingObjectError: the store lacks one, and `missing` is None.
        """
        absent = self._objects.download(targets)
        if absent and missing is None:
            raise MissingObjectError(
                f"{self._objects.url}: {absent[0]} is not there (and {len(absent) - 1} more), although the store "
                "names it; run `graphrag-pipeline snapshots prune` where the index was made, which puts it back"
            )
        if missing is not None:
            missing.update(absent)

    def fetch_snapshot(self, manifest: Manifest, snapshots: SnapshotStore, missing: MissingObjects) -> None:
        """Fetch what is not whole here of a snapshot; its mapped tables are made here.

        Raises:
            MissingObjectError: as for `fetch`.
        """
        self._fetch_tables(manifest, missing)
        for name, entry in manifest.tables.items():
            if self.place(table_names(manifest)[name]).exists():
                snapshots.map_table(name, entry)
        self._fetch_folders(manifest, missing)

    def _fetch_tables(self, manifest: Manifest, missing: MissingObjects) -> None:
        places = {name: self.place(object_name) for name, object_name in table_names(manifest).items()}
        cut = [name for name, path in places.items() if not is_whole_parquet(path, manifest.tables[name]["n_rows"])]
        self.fetch({table_names(manifest)[name]: places[name] for name in cut}, missing)

    def _fetch_folders(self, manifest: Manifest, missing: MissingObjects) -> None:
        archives = [name for name in archive_names(manifest) if find_damaged_files(self.place(name))]
        with self._working_folder() as working:
            packed = {name: working / str(number) for number, name in enumerate(archives)}
            self.fetch(packed, missing)
            for name, archive in packed.items():
                if archive.exists():
                    self._unpack(name, archive, missing)

    def _unpack(self, name: str, archive: Path, missing: MissingObjects) -> None:
        try:
            unpack(archive, self.place(name))
        except NoSnapshotError:
            if missing is None:
                raise
            missing.add(name)

    def fetch_there(self, names: Iterable[str]) -> None:
        """Fetch those of some files that are not here and that the store has."""
        self._objects.download({name: self.place(name) for name in names if not self.place(name).is_file()})

    def put(self, names: Collection[str]) -> None:
        """Put some objects into the store.

        Raises:
            NoSnapshotError: what one holds is gone from here.
            StoreError: the store fails; nothing names what was put until then.
        """
        with self._working_folder() as working:
            sources = {}
            for number, name in enumerate(sorted(names)):
                place = self.place(name)
                if not place.exists():
                    raise NoSnapshotError(
                        f"{place}: was removed meanwhile, so the shared store cannot have it; run "
                        "`graphrag-pipeline index` again"
                    )
                sources[name] = place
                if name.endswith(".tar"):
                    sources[name] = working / str(number)
                    pack(place, sources[name])
            self._objects.upload(sources)

    def remove(self, name: str) -> None:
        """Remove what an object holds from the root."""
        place = self.place(name)
        if place.is_dir():
            shutil.rmtree(place, ignore_errors=True)
            return
        place.unlink(missing_ok=True)
        if name.startswith("snapshots/tables/"):
            place.with_name(mapped_name(place.name)).unlink(missing_ok=True)

    @contextmanager
    def _working_folder(self) -> Iterator[Path]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=files.TEMPORARY_PREFIX, dir=self._folder) as working:
            yield Path(working)
