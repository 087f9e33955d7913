"""Vector tables: search, quoting, and folders that never change after they got their name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.storage.vectors import folders as vectors_module
from graphrag_pipeline.storage.vectors.folders import (
    VectorFolder,
    build_vector_folder,
    holds_deleted,
    rewrite_whole,
    vector_rows,
)
from graphrag_pipeline.storage.vectors.lance import VectorTable
from graphrag_pipeline_tests.support.damage import flip_bit

NAME = "default-text_unit-text"
N_ROWS = 200


@pytest.fixture
def vectors() -> np.ndarray:
    matrix = np.random.default_rng(7).normal(size=(N_ROWS, 16)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix[5] = 0
    return matrix


def build(parent: Path, vectors: np.ndarray, texts: dict[int, str] | None = None, previous: VectorFolder | None = None):
    ids = [f"id{i:03d}" for i in range(len(vectors))]
    ids[7] = "O'Brien"
    words = [(texts or {}).get(i, f"plain words number {i}") for i in range(len(vectors))]
    return build_vector_folder(parent, NAME, vector_rows(ids, words, vectors, ["{}"] * len(ids)), True, previous)


def test_search_finds_by_cosine_and_keeps_ties_in_order(tmp_path: Path, vectors: np.ndarray) -> None:
    table = VectorTable(tmp_path, build(tmp_path, vectors))
    found = table.search(vectors[3] * 5, 10)
    expected = np.argsort(-(vectors @ vectors[3]), kind="stable")[:10]
    assert [i for i, _ in found] == [f"id{i:03d}" if i != 7 else "O'Brien" for i in expected]
    assert found[0][1] == pytest.approx(1)


def test_a_zero_vector_matches_nothing_and_is_never_matched(tmp_path: Path, vectors: np.ndarray) -> None:
    table = VectorTable(tmp_path, build(tmp_path, vectors))
    assert table.search(np.zeros(16, np.float32), 5) == []
    assert "id005" not in {i for i, _ in table.search(vectors[3], N_ROWS)}
    assert table.count() == N_ROWS == len(table.ids())


def test_ids_are_data_not_syntax(tmp_path: Path, vectors: np.ndarray) -> None:
    table = VectorTable(tmp_path, build(tmp_path, vectors))
    assert [i for i, _ in table.search(vectors[7], 5, ids=["O'Brien", "x') OR ('1'='1"])] == ["O'Brien"]
    assert table.search(vectors[7], 5, ids=[]) == []
    assert np.array_equal(table.vectors(["O'Brien", "unknown"])[0], vectors[7])


@pytest.mark.parametrize("query", ["dogs", 'DOG (AND "', "dog*'; DROP TABLE x --"])
def test_full_text_takes_words_as_words(tmp_path: Path, vectors: np.ndarray, query: str) -> None:
    table = VectorTable(tmp_path, build(tmp_path, vectors, {3: "the dogs barked"}))
    assert [i for i, _ in table.search_text(query, 3)] == ["id003"]


def test_full_text_finds_words_of_scripts_without_spaces(tmp_path: Path, vectors: np.ndarray) -> None:
    table = VectorTable(tmp_path, build(tmp_path, vectors, {3: "萧炎修炼斗气", 4: "a café opened"}))
    assert table.search_text("萧炎是谁？", 1)[0][0] == "id003"
    assert table.search_text("cafe", 1)[0][0] == "id004"
    assert table.search_text("?!", 3) == []


def test_equal_scores_of_a_search_by_words_are_cut_by_id(tmp_path: Path, vectors: np.ndarray) -> None:
    first = build(tmp_path, vectors, dict.fromkeys(range(10, 150), "the dogs barked"))
    second = build(tmp_path, vectors, dict.fromkeys(range(40, 190), "the dogs barked"), previous=first)
    for folder, start in ((first, 10), (second, 40)):
        table = VectorTable(tmp_path, folder)
        for k in (1, 5, 40):
            assert [i for i, _ in table.search_text("dogs", k)] == [f"id{i:03d}" for i in range(start, start + k)]


def test_equal_rows_share_a_folder_and_other_rows_leave_it_alone(tmp_path: Path, vectors: np.ndarray) -> None:
    first = build(tmp_path, vectors)
    assert build(tmp_path, vectors, previous=first) == first
    second = build(tmp_path, vectors[:-1], {3: "xylophone"}, previous=first)
    assert second.content != first.content
    assert second.n_unindexed == 2
    new, old = VectorTable(tmp_path, second), VectorTable(tmp_path, first)
    assert new.search_text("xylophone", 3)[0][0] == "id003"
    assert old.search_text("xylophone", 3) == []
    assert (new.count(), old.count()) == (N_ROWS - 1, N_ROWS)
    assert new.search(vectors[3], 1)[0][0] == "id003"


def test_many_changes_build_the_folder_whole(tmp_path: Path, vectors: np.ndarray) -> None:
    first = build(tmp_path, vectors)
    second = build(tmp_path, vectors, dict.fromkeys(range(50), "changed"), previous=first)
    assert second.n_unindexed == 0
    assert VectorTable(tmp_path, second).count() == N_ROWS


def test_batches_leave_no_trace(tmp_path: Path, vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "_BATCH_ROWS", 64)
    first = build(tmp_path, vectors)
    table = VectorTable(tmp_path, first)
    assert np.array_equal(table.vectors(["id003", "O'Brien", "id199"]), vectors[[3, 7, 199]])
    second = build(tmp_path, vectors[:-3], {100: "xylophone"}, previous=first)
    assert second.n_unindexed == 4
    assert VectorTable(tmp_path, second).search_text("xylophone", 1)[0][0] == "id100"


def test_every_error_of_the_library_about_a_damaged_table_names_its_folder(tmp_path: Path, vectors: np.ndarray) -> None:
    built = build(tmp_path, vectors)
    folder = built.path(tmp_path)
    path = next((folder / f"{NAME}.lance" / "_versions").glob("*.manifest"))
    data, n_named = path.read_bytes(), 0
    for bit in np.random.default_rng(1).integers(8 * len(data), size=150).tolist():  # some of them crash the library
        path.write_bytes(data)
        flip_bit(path, bit)
        try:
            VectorTable(tmp_path, built).vectors(["id003"])
        except NoSnapshotError as error:
            n_named += str(folder) in str(error)
    assert n_named > 20


N_DELETED_FROM = 40


def build_table(parent: Path, first: int, previous: VectorFolder | None = None) -> VectorFolder:
    """Build a folder of the rows from `first` on, by difference from `previous`."""
    rows = range(first, N_DELETED_FROM)
    vectors = np.random.default_rng(0).normal(size=(N_DELETED_FROM, 8)).astype(np.float32)[first:]
    texts = [f"a passage of number{row:02}" for row in rows]
    content = vector_rows([f"id{row:02}" for row in rows], texts, vectors, ["{}"] * len(rows))
    return build_vector_folder(parent, NAME, content, True, previous)


def files_that_say(folder: Path, word: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word in path.read_bytes()]


def test_rows_deleted_by_difference_lie_in_the_files_until_a_rewrite(tmp_path: Path) -> None:
    whole = build_table(tmp_path, 0)
    smaller = build_table(tmp_path, 1, whole)
    assert [holds_deleted(tmp_path, folder) for folder in (whole, smaller)] == [False, True]
    assert files_that_say(smaller.path(tmp_path), b"number00")

    rewrite_whole(tmp_path, smaller)

    assert not holds_deleted(tmp_path, smaller)
    assert not files_that_say(smaller.path(tmp_path), b"number00")
    table = VectorTable(tmp_path, smaller)
    assert table.count() == N_DELETED_FROM - 1
    assert [record_id for record_id, _ in table.search_text("number07", 5)] == ["id07"]
    assert [path.name for path in tmp_path.iterdir()] == [NAME], "nothing half done is left"
