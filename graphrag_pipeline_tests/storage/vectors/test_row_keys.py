"""Keys of rows show the same changes of a vector table as a comparison of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.filesystem.listed_folders import write_file_list
from graphrag_pipeline.storage.vectors.folders import VectorFolder, build_vector_folder, vector_rows
from graphrag_pipeline.storage.vectors.row_keys import KEYS_FILE, RowKeys, hash_rows, read_row_keys, write_row_keys
from graphrag_pipeline.storage.vectors.tables import VectorTable

NAME = "default-text_unit-text"
contents = st.tuples(st.sampled_from(["", "1;", "{}"]), st.sampled_from(["", "{}", "{};", "é"]), st.integers(0, 2))
tables = st.dictionaries(st.sampled_from(["a", "b", "O'Brien", "d"]), contents)


def keys_of(rows: Mapping[str, tuple[str, str, int]]) -> RowKeys:
    """Return the keys of rows given as id -> (attributes, text, vector)."""
    ids = pa.array(sorted(rows), pa.string())
    matrix = np.array([[rows[i][2], 1] for i in sorted(rows)], dtype=np.float32).reshape(-1, 2)
    columns = {
        "text": pa.array([rows[i][1] for i in sorted(rows)], pa.string()),
        "attributes": pa.array([rows[i][0] for i in sorted(rows)], pa.string()),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), 2),
    }
    return RowKeys(ids, hash_rows(pa.RecordBatch.from_pydict(columns)))


@given(tables, tables)
def test_changes_by_keys_are_those_of_a_comparison(old: dict, new: dict) -> None:
    changed, deleted = keys_of(new).find_changed(keys_of(old))
    names = sorted(new)
    assert [names[position] for position in changed] == [i for i in names if old.get(i) != new[i]]
    assert deleted == sorted(old.keys() - new.keys())


@pytest.mark.parametrize("rows", [{}, {"a": ("{}", "text", 1), "b": ("{}", "other", 2)}])
def test_keys_come_back_unchanged(tmp_path: Path, rows: dict) -> None:
    assert read_row_keys(tmp_path) is None
    write_row_keys(tmp_path, keys_of(rows))
    found = read_row_keys(tmp_path)
    assert found is not None
    assert found.ids.to_pylist() == sorted(rows) and np.array_equal(found.keys, keys_of(rows).keys)


def build(parent: Path, n_rows: int, texts: Mapping[int, str], previous: VectorFolder | None = None) -> VectorFolder:
    vectors = np.random.default_rng(7).normal(size=(100, 8)).astype(np.float32)[:n_rows]
    ids, words = [f"id{i:02}" for i in range(n_rows)], [texts.get(i, f"number {i}") for i in range(n_rows)]
    return build_vector_folder(parent, NAME, vector_rows(ids, words, vectors, ["{}"] * n_rows), True, previous)


def test_a_folder_without_keys_is_updated_the_same_way(tmp_path: Path) -> None:
    with_keys, without = tmp_path / "with", tmp_path / "without"
    folders = [build(parent, 100, {}) for parent in (with_keys, without)]
    (folders[1].path(without) / KEYS_FILE).unlink()
    write_file_list(folders[1].path(without))
    after = [
        build(parent, 98, {3: "xylophone"}, folder)
        for parent, folder in zip((with_keys, without), folders, strict=True)
    ]
    assert after[0] == after[1] and after[0].n_unindexed == 3
    assert (after[1].path(without) / KEYS_FILE).is_file()


def test_the_keys_of_the_folder_before_stay_its_own(tmp_path: Path) -> None:
    first = build(tmp_path, 100, {})
    before = (first.path(tmp_path) / KEYS_FILE).read_bytes()
    second = build(tmp_path, 99, {3: "xylophone"}, first)
    third = build(tmp_path, 100, {}, second)
    assert (first.path(tmp_path) / KEYS_FILE).read_bytes() == before
    assert third.content == first.content
    assert [VectorTable(tmp_path, folder).count() for folder in (first, second, third)] == [100, 99, 100]
