"""Array folders: named by content, mapped when read, related rows by compressed sparse rows."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.storage.arrays import (
    Adjacency,
    ArrayFolder,
    Sentences,
    expand_rows,
    group_rows,
    nth_largest,
    write_arrays,
)


def test_equal_arrays_share_a_folder_and_other_arrays_have_their_own(tmp_path: Path) -> None:
    arrays = {"b": np.arange(3), "a": np.zeros((0, 4), dtype=np.int8)}
    name = write_arrays(tmp_path, arrays)
    assert write_arrays(tmp_path, dict(reversed(arrays.items()))) == name
    assert write_arrays(tmp_path, {**arrays, "b": np.arange(3, dtype=np.int32)}) != name
    assert len(list(tmp_path.iterdir())) == 2, "no temporary folder is left"
    read = ArrayFolder(tmp_path / name)
    assert isinstance(read.array("b").base, np.memmap), "mapped, not loaded"
    assert read.array("b").tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        read.array("b")[0] = 1


def test_expand_rows_names_each_value_with_the_position_of_its_row() -> None:
    indptr = np.array([0, 2, 2, 5])
    positions, places = expand_rows(indptr, np.array([2, 1, 0]))
    assert positions.tolist() == [0, 0, 0, 2, 2]
    assert places.tolist() == [2, 3, 4, 0, 1]


def test_related_rows_are_read_one_by_one_or_together(tmp_path: Path) -> None:
    name = write_arrays(tmp_path, {"x_ys_indptr": np.array([0, 2, 3]), "x_ys_indices": np.array([4, 7, 5])})
    adjacency = Adjacency(tmp_path / name)
    assert adjacency.of("x_ys", 0).tolist() == [4, 7]
    assert [part.tolist() for part in adjacency.of_all("x_ys", np.array([1, 0]))] == [[0, 1, 1], [5, 4, 7]]
    assert adjacency.counts("x_ys").tolist() == [2, 1]


@given(st.lists(st.integers(0, 99)), st.sampled_from([100, 100_000]))
def test_rows_are_grouped_alike_in_small_and_in_large_tables(rows: list[int], n_rows: int) -> None:
    found, positions = group_rows(np.array(rows, dtype=np.int32), n_rows)
    expected, places = np.unique(np.array(rows, dtype=np.int32), return_inverse=True)
    assert found.tolist() == expected.tolist() and positions.tolist() == places.tolist()


@given(st.lists(st.integers(-5, 40), min_size=1, max_size=200), st.integers(1, 200))
def test_the_nth_largest_is_that_of_all_values(values: list[int], n: int) -> None:
    n = min(n, len(values))
    assert nth_largest(np.array(values), n) == sorted(values, reverse=True)[n - 1]


@given(st.lists(st.integers(0, 39), max_size=12, unique=True).map(sorted))
def test_sentence_vectors_are_read_from_the_file_as_they_are_mapped(sentences: Sentences, rows: list[int]) -> None:
    wanted = np.array(rows, dtype=np.int64)
    assert np.array_equal(sentences.read_vectors(wanted), sentences.vectors[wanted])
    back = wanted[::-1]
    assert np.array_equal(sentences.read_vectors(back), sentences.vectors[back])


def test_a_file_of_sentence_vectors_that_ends_too_early_is_an_error(tmp_path: Path) -> None:
    made = write_sentences(tmp_path)
    made.read_vectors(np.array([35]))
    os.truncate(tmp_path / "sentence_vectors.npy", 5_000)
    with pytest.raises(NoSnapshotError, match="ends too early"):
        made.read_vectors(np.array([35]))


def write_sentences(folder: Path) -> Sentences:
    np.save(folder / "sentence_vectors.npy", np.random.default_rng(1).integers(-127, 128, (40, 256), dtype=np.int8))
    return Sentences(folder)


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Sentences:
    return write_sentences(tmp_path_factory.mktemp("sentences"))
