"""Removal of deleted rows from the files of a LanceDB folder.

A folder built by difference (`folders.py`) only marks deleted rows. Their text and vector stay in the data files, and
their words in the full-text index, until the table is built whole. No search finds them. `forget` rewrites such folders
to erase them. Keep out: the choice of folders.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.storage.vectors.folders import (
    VectorFolder,
    VectorRows,
    build_vector_folder,
    read_table,
)


def holds_deleted(parent: Path, folder: VectorFolder) -> bool:
    """Return whether the files of a folder hold deleted rows."""
    return any((folder.path(parent) / f"{folder.name}.lance" / "_deletions").glob("*"))


def rewrite_whole(parent: Path, folder: VectorFolder) -> None:
    """Build a folder whole and replace the old one, which no process may have open.

    After a kill between the two moves the folder is missing, and the next `index` rebuilds it.

    Raises:
        PipelineError: the disk is full, the folder is damaged, or its content does not match its name.
    """
    content = read_table(folder.path(parent), folder.name)
    if not replace_whole(parent, folder, content):
        raise PipelineError(f"`{folder.path(parent)}` is damaged; run `graphrag-pipeline index`, then this again")


def replace_whole(parent: Path, folder: VectorFolder, rows: VectorRows) -> bool:
    """Build a folder whole from these rows and replace the old one; return False if its name is not that of the rows.

    Raises:
        PipelineError: the disk is full or the folder cannot be written.
    """
    place = folder.path(parent)
    if stable_hash(folder.name, str(folder.has_full_text), rows.content_hash()) != folder.content:
        return False
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=files.TEMPORARY_PREFIX, dir=parent) as working:
            rebuilt = build_vector_folder(Path(working), folder.name, rows, folder.has_full_text)
            if place.exists():
                os.replace(place, Path(working) / "old")
            os.replace(rebuilt.path(Path(working)), place)
    except OSError as error:
        raise files.write_error(place, error) from error
    return True
