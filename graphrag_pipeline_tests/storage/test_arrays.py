"""Array folders: named by content, mapped when read, related rows by compressed sparse rows."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.storage.arrays import (
    Adjacency,
    ArrayFolder,
    SentenceMeans,
    Sentences,
    expand_rows,
    find_names,
    group_rows,
    nth_largest,
    write_arrays,
)
from graphrag_pipeline_tests.support.corpora import small_index


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


N_UNITS = 30


@pytest.fixture(scope="module")
def many_sentences(tmp_path_factory: pytest.TempPathFactory) -> Sentences:
    random = np.random.default_rng(3)
    indptr = np.r_[0, np.cumsum(random.integers(0, 5, N_UNITS))]
    vectors = random.integers(-127, 128, (indptr[-1], 256), dtype=np.int8)
    vectors[indptr[4] : indptr[5]] = 0
    folder = tmp_path_factory.mktemp("many_sentences")
    scales = random.random(indptr[-1], dtype=np.float32)
    arrays = {"text_unit_sentences_indptr": indptr, "sentence_vectors": vectors, "sentence_scales": scales}
    return Sentences(folder / write_arrays(folder, arrays))


def mean_of(many_sentences: Sentences, row: int) -> np.ndarray:
    places = slice(*many_sentences.indptr[row : row + 2])
    total = (many_sentences.scales[places, None] * many_sentences.vectors[places].astype(np.float64)).sum(axis=0)
    return total / (np.linalg.norm(total) or 1)


@pytest.mark.parametrize("n_kept", [1, 7, N_UNITS, 10 * N_UNITS])
def test_a_mean_is_that_of_its_sentences_however_many_are_kept(many_sentences: Sentences, n_kept: int) -> None:
    means = SentenceMeans(many_sentences, max_bytes=n_kept * 4 * 256)
    expected = np.array([mean_of(many_sentences, row) for row in range(N_UNITS)])
    for rows in ([3, 4, 29, 0], [29, 3, 28, 21, 14, 7, 0], list(range(N_UNITS)), [], [5, 5]):
        found = means.read(np.array(rows, dtype=np.int64))
        assert found.dtype == np.float32 and found == pytest.approx(expected[rows], abs=1e-6)


def test_threads_that_share_places_read_their_own_rows(many_sentences: Sentences) -> None:
    means = SentenceMeans(many_sentences, max_bytes=7 * 4 * 256)
    alone = SentenceMeans(many_sentences).read(np.arange(N_UNITS))
    orders = [np.random.default_rng(seed).permutation(N_UNITS) for seed in range(200)]
    with ThreadPoolExecutor(4) as threads:
        for rows, found in zip(orders, threads.map(means.read, orders), strict=True):
            assert np.array_equal(found, alone[rows])


def test_names_are_found_as_whole_words_the_longest_of_a_place():
    text = "Bob Cratchit and Bobby met Bob."
    assert [text[start:end] for start, end in find_names(text, ["Bob", "Bob Cratchit"])] == ["Bob Cratchit", "Bob"]
    assert find_names("薰儿看见萧炎了", ["萧炎"]) == [(4, 6)]
    assert find_names("nobody", ["", "Bob"]) == []


def test_every_text_unit_of_an_entity_is_an_edge_with_its_places(tmp_path):
    snapshot = small_index.freeze(tmp_path)
    mentions = snapshot.mentions
    titles = snapshot.table("entities")["title"].to_pylist()
    texts = snapshot.table("text_units")["text"].to_pylist()
    found = {}
    for edge, (unit, entity) in enumerate(zip(mentions.text_units, mentions.entities, strict=True)):
        places = range(mentions.places_indptr[edge], mentions.places_indptr[edge + 1])
        found[texts[unit].split()[0], titles[entity]] = [
            texts[unit][mentions.starts[place] : mentions.ends[place]] for place in places
        ]
    assert found["Scrooge", "BOB CRATCHIT"] == ["Bob Cratchit", "Bob Cratchit"]
    assert found["Marley", "SCROOGE"] == ["Scrooge"]
    assert len(found) == sum(map(len, small_index.UNITS_OF.values()))
    assert not mentions.is_about.any()


def test_a_text_unit_is_about_the_entity_that_its_document_is_titled_by(tmp_path):
    tables = small_index.contract_tables()
    documents = tables["documents"]
    titles = ["Scrooge" if title == "b.txt" else title for title in documents["title"].to_pylist()]
    place = documents.column_names.index("title")
    snapshot = small_index.freeze(tmp_path, {**tables, "documents": documents.set_column(place, "title", [titles])})
    mentions = snapshot.mentions
    entity = int(snapshot.rows_of("entities", ["SCROOGE"], "title")[0])
    about = mentions.about_edges[mentions.about_indptr[entity] : mentions.about_indptr[entity + 1]]
    [unit] = mentions.text_units[about].tolist()
    assert snapshot.take("text_units", [unit], ["text"])[0]["text"] == small_index.TEXTS["b.txt"]
