"""Removal of deleted rows from the files of a LanceDB folder.

A folder built by difference (`folders.py`) only marks deleted rows. Their text and vector stay in the data files, and
their words in the full-text index, until the table is built whole. No search finds them. `forget` rewrites such folders
to erase them. Keep out: the choice of folders.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.storage.vectors.folders import VectorFolder, build_vector_folder, connect, vector_rows


def holds_deleted(parent: Path, folder: VectorFolder) -> bool:
    """Return whether the files of a folder hold deleted rows."""
    return any((folder.path(parent) / f"{folder.name}.lance" / "_deletions").glob("*"))


def rewrite_whole(parent: Path, folder: VectorFolder) -> None:
    """Build a folder whole and replace the old one, which no process may have open.

    After a kill between the two moves the folder is missing, and the next `index` rebuilds it.

    Raises:
        PipelineError: the disk is full, or the content of the folder does not match its name.
    """
    rows = connect(folder.path(parent)).open_table(folder.name).to_arrow().combine_chunks()
    matrix = np.asarray(rows["vector"].combine_chunks().flatten()).reshape(rows.num_rows, folder.dimensions)
    content = vector_rows(rows["id"], rows["text"], matrix, rows["attributes"])
    try:
        with tempfile.TemporaryDirectory(prefix=files.TEMPORARY_PREFIX, dir=parent) as working:
            rebuilt = build_vector_folder(Path(working), folder.name, content, folder.has_full_text)
            if rebuilt.content != folder.content:
                raise PipelineError(
                    f"`{folder.path(parent)}` is damaged; run `graphrag-pipeline index`, then this again"
                )
            os.replace(folder.path(parent), Path(working) / "old")
            os.replace(rebuilt.path(Path(working)), folder.path(parent))
    except OSError as error:
        raise files.write_error(folder.path(parent), error) from error
