"""Rows beside a LanceDB table: a search reads the same there as from LanceDB, after any change."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.storage.vectors import folders as vectors
from graphrag_pipeline.storage.vectors import lance as vector_tables
from graphrag_pipeline.storage.vectors import rows as mapped_rows
from graphrag_pipeline.storage.vectors.folders import VectorFolder, build_vector_folder, connect, vector_rows
from graphrag_pipeline.storage.vectors.lance import VectorTable
from graphrag_pipeline.storage.vectors.rows import (
    KEYS_FILE,
    MappedRows,
    RowKeys,
    hash_rows,
    read_row_keys,
    write_row_keys,
)

NAME = "default-text_unit-text"
N_ROWS = 400


@pytest.fixture(autouse=True)
def index_from_256_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (vectors, vector_tables):
        monkeypatch.setattr(module, "ANN_MIN_ROWS", 256)


def make_matrix() -> np.ndarray:
    matrix = np.random.default_rng(7).normal(size=(N_ROWS, 16)).astype(np.float32)
    matrix[5] = 0
    return matrix


def build(parent: Path, matrix: np.ndarray, previous: VectorFolder | None = None) -> VectorFolder:
    ids = [f"id{row:03d}" for row in range(len(matrix))]
    texts = [f"words of {record_id}" for record_id in ids]
    return build_vector_folder(parent, NAME, vector_rows(ids, texts, matrix, ["{}"] * len(ids)), True, previous)


def change(matrix: np.ndarray) -> np.ndarray:
    """Return folders before and after a change of two rows and the deletion of the last one."""
    changed = matrix[:-1].copy()
    changed[[3, 17]] = changed[[200, 201]] * 2
    return changed


@pytest.fixture
def folders(tmp_path: Path) -> tuple[VectorFolder, VectorFolder]:
    first = build(tmp_path, make_matrix())
    return first, build(tmp_path, change(make_matrix()), first)


def test_every_row_of_the_lancedb_table_is_mapped(tmp_path: Path, folders: tuple[VectorFolder, VectorFolder]) -> None:
    for folder, matrix in zip(folders, (make_matrix(), change(make_matrix())), strict=True):
        rows = MappedRows(folder.path(tmp_path), 16)
        table = connect(folder.path(tmp_path)).open_table(NAME).search().select(["id"]).with_row_id(True)
        stored = table.limit(N_ROWS).to_arrow()
        ids = rows.ids(stored["_rowid"].to_numpy())
        assert ids == stored["id"].to_pylist() and len(ids) == len(matrix)
        assert np.array_equal(rows.vectors(stored["_rowid"].to_numpy()), matrix[[int(i[2:]) for i in ids]])


def test_a_changed_table_links_the_rows_it_had(tmp_path: Path, folders: tuple[VectorFolder, VectorFolder]) -> None:
    old, new = (sorted((folder.path(tmp_path) / "rows").glob("*/vectors.bin")) for folder in folders)
    assert (len(old), len(new)) == (1, 2)
    assert old[0].stat().st_ino == new[0].stat().st_ino
    assert new[1].stat().st_size == 2 * 16 * 4


def test_many_segments_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_rows, "MAX_SEGMENTS", 1)
    folder = build(tmp_path, change(make_matrix()), build(tmp_path, make_matrix()))
    assert [path.name for path in (folder.path(tmp_path) / "rows").iterdir()] == ["000000"]
    assert VectorTable(tmp_path, folder).search(make_matrix()[200], 1)[0][0] == "id003"


@pytest.mark.parametrize("which", [0, 1])
def test_a_search_finds_the_same_as_without_mapped_rows(
    tmp_path: Path, folders: tuple[VectorFolder, VectorFolder], which: int
) -> None:
    folder, matrix = folders[which], (make_matrix(), change(make_matrix()))[which]
    mapped = VectorTable(tmp_path, folder)
    answers = [mapped.search(vector, 7) for vector in matrix[:20]]
    by_words = mapped.search_text("words of id003", N_ROWS)
    shutil.rmtree(folder.path(tmp_path) / "rows")
    plain = VectorTable(tmp_path, folder)
    assert by_words == plain.search_text("words of id003", N_ROWS) and by_words[0][0] == "id003"
    for vector, found in zip(matrix[:20], answers, strict=True):
        expected = plain.search(vector, 7)
        assert [record_id for record_id, _ in found] == [record_id for record_id, _ in expected]
        assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in expected], abs=1e-5)


def test_searches_that_run_at_the_same_time_find_the_same_as_one_after_the_other(
    tmp_path: Path, folders: tuple[VectorFolder, VectorFolder]
) -> None:
    table, matrix = VectorTable(tmp_path, folders[1]), make_matrix()
    begun = [(table.begin_search(vector, 7), table.begin_search_text("words of id003", 1)) for vector in matrix[:20]]
    found = [(near(), by_words()) for near, by_words in reversed(begun)]
    assert found[::-1] == [(table.search(vector, 7), table.search_text("words of id003", 1)) for vector in matrix[:20]]


def test_the_index_finds_the_nearest_in_order(tmp_path: Path, folders: tuple[VectorFolder, VectorFolder]) -> None:
    matrix = change(make_matrix())
    table = VectorTable(tmp_path, folders[1])
    assert [record_id for record_id, _ in table.search(matrix[200], 3)][:2] == ["id003", "id200"]
    only = table.search(matrix[200], 3, ids=["id200", "id017", "unknown"])
    assert [record_id for record_id, _ in only] == ["id200", "id017"]
    assert np.array_equal(table.vectors(["id017", "id399", "id004"]), [matrix[17], np.zeros(16), matrix[4]])
    assert "id005" not in {record_id for record_id, _ in table.search(matrix[0], N_ROWS)}


def test_rows_tied_with_the_last_one_are_cut_by_id(tmp_path: Path) -> None:
    matrix = make_matrix()
    matrix[20:32] = matrix[7]
    table = VectorTable(tmp_path, build(tmp_path, matrix))
    assert [record_id for record_id, _ in table.search(matrix[7], 5)] == ["id007", "id020", "id021", "id022", "id023"]


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
    write_row_keys(tmp_path, keys_of(rows))
    found = read_row_keys(tmp_path)
    assert found.ids.to_pylist() == sorted(rows) and np.array_equal(found.keys, keys_of(rows).keys)


def build_numbered(
    parent: Path, n_rows: int, texts: Mapping[int, str], previous: VectorFolder | None = None
) -> VectorFolder:
    vectors = np.random.default_rng(7).normal(size=(100, 8)).astype(np.float32)[:n_rows]
    ids, words = [f"id{i:02}" for i in range(n_rows)], [texts.get(i, f"number {i}") for i in range(n_rows)]
    return build_vector_folder(parent, NAME, vector_rows(ids, words, vectors, ["{}"] * n_rows), True, previous)


def test_the_keys_of_the_folder_before_stay_its_own(tmp_path: Path) -> None:
    first = build_numbered(tmp_path, 100, {})
    before = (first.path(tmp_path) / KEYS_FILE).read_bytes()
    second = build_numbered(tmp_path, 99, {3: "xylophone"}, first)
    third = build_numbered(tmp_path, 100, {}, second)
    assert (first.path(tmp_path) / KEYS_FILE).read_bytes() == before
    assert third.content == first.content
    assert [VectorTable(tmp_path, folder).count() for folder in (first, second, third)] == [100, 99, 100]
