"""Rows deleted from a LanceDB folder are erased from its files by a rewrite."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from graphrag_pipeline.storage.vectors.folders import VectorFolder, build_vector_folder, vector_rows
from graphrag_pipeline.storage.vectors.purge import holds_deleted, rewrite_whole
from graphrag_pipeline.storage.vectors.tables import VectorTable

NAME = "default-text_unit-text"
N_ROWS = 40


def build(parent: Path, first: int, previous: VectorFolder | None = None) -> VectorFolder:
    """Build a folder of the rows from `first` on, by difference from `previous`."""
    rows = range(first, N_ROWS)
    vectors = np.random.default_rng(0).normal(size=(N_ROWS, 8)).astype(np.float32)[first:]
    texts = [f"a passage of number{row:02}" for row in rows]
    content = vector_rows([f"id{row:02}" for row in rows], texts, vectors, ["{}"] * len(rows))
    return build_vector_folder(parent, NAME, content, True, previous)


def files_that_say(folder: Path, word: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word in path.read_bytes()]


def test_rows_deleted_by_difference_lie_in_the_files_until_a_rewrite(tmp_path: Path) -> None:
    whole = build(tmp_path, 0)
    smaller = build(tmp_path, 1, whole)
    assert [holds_deleted(tmp_path, folder) for folder in (whole, smaller)] == [False, True]
    assert files_that_say(smaller.path(tmp_path), b"number00")

    rewrite_whole(tmp_path, smaller)

    assert not holds_deleted(tmp_path, smaller)
    assert not files_that_say(smaller.path(tmp_path), b"number00")
    table = VectorTable(tmp_path, smaller)
    assert table.count() == N_ROWS - 1
    assert [record_id for record_id, _ in table.search_text("number07", 5)] == ["id07"]
    assert [path.name for path in tmp_path.iterdir()] == [NAME], "nothing half done is left"
