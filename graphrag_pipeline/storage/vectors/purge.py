"""Vectors that are deleted, but still lie in a LanceDB folder.

A folder made from the last one by difference (`vectors.py`) only marks deleted rows: text and vector stay in the data
files, and its words in the full-text index, until the table is built whole. Nobody finds them by searching; whoever
must be sure that they are gone rewrites the folder. Keep out: which folders those are.
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
    """Whether deleted rows lie in the files of a folder."""
    return any((folder.path(parent) / f"{folder.name}.lance" / "_deletions").glob("*"))


def rewrite_whole(parent: Path, folder: VectorFolder) -> None:
    """Build a folder whole and put it in the place of the old one, which nobody may have open.

    Killed between the two moves, the folder is missing, and the next `index` makes it again.

    Raises:
        PipelineError: the disk is full, or what was read is not what the folder's name says.
    """
    rows = connect(folder.path(parent)).open_table(folder.name).to_arrow().combine_chunks()
    matrix = np.asarray(rows["vector"].combine_chunks().flatten()).reshape(rows.num_rows, folder.dimensions)
    content = vector_rows(rows["id"], rows["text"], matrix, rows["attributes"])
    try:
        with tempfile.TemporaryDirectory(prefix=files.TEMPORARY_PREFIX, dir=parent) as working:
            rebuilt = build_vector_folder(Path(working), folder.name, content, folder.has_full_text)
            if rebuilt.content != folder.content:
                raise PipelineError(f"{folder.path(parent)}: damaged; run `graphrag-pipeline index`, then this again")
            os.replace(folder.path(parent), Path(working) / "old")
            os.replace(rebuilt.path(Path(working)), folder.path(parent))
    except OSError as error:
        raise files.write_error(folder.path(parent), error) from error
