"""Tar archives of immutable folders (arrays, LanceDB), so that a store has a whole folder as one object.

The same files give the same bytes. An archive is unpacked beside its place. The folder is moved to its place if it is
whole by its own list of files. Keep out: the places of folders and archives.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
from pathlib import Path

from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.listed_folders import find_changed_files


def pack(folder: Path, archive: Path) -> None:
    """Write all files of a folder into an archive.

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
