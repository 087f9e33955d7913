"""The contract of vector stores, tested on LanceDB and on a store in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.settings.settings import VectorStoreSettings
from graphrag_pipeline.storage.vectors import open_vector_store, register_vector_store, registered_vector_stores
from graphrag_pipeline.storage.vectors.folders import vector_rows
from graphrag_pipeline.storage.vectors.lance import LanceStore
from graphrag_pipeline.storage.vectors.stores import VectorRecord, VectorStore, collection_of
from graphrag_pipeline_tests.support.memory_vectors import KIND, MemoryVectorStore

NAME = "default-entity-description"
ODD_IDS = ("O'Brien", "x') OR ('1'='1", 'a"b', "50%_", "back\\slash", "萧炎", "", "; DROP TABLE rows --")
KINDS = ("lancedb", KIND)


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> VectorStore:
    return open_vector_store(VectorStoreSettings(kind=request.param), tmp_path)


def unit(*places: int) -> np.ndarray:
    """Return a vector of four dimensions with ones at some places."""
    vector = np.zeros(4, dtype=np.float32)
    vector[list(places)] = 1
    return vector


def record(record_id: str, *places: int, text: str = "words", **attributes) -> VectorRecord:
    return VectorRecord(record_id, text, unit(*places), attributes)


@pytest.fixture
def books(store: VectorStore) -> VectorStore:
    store.create("books-1", 4, True)
    store.upsert(
        "books-1",
        [
            record("a", 0, text="the dog barked", level=1, title="O'Brien"),
            record("b", 0, 1, text="a cat slept", level=12, title='says "level": 1, twice'),
            record("c", 1, text="dog and cat", level=1, title=None),
            record("d", 2, text="silence", level=2, is_open=True),
            record("e", text="no vector, one dog", level=1.5, title="1"),
        ],
    )
    return store


def test_search_is_by_cosine_nearest_first_ties_by_id(books: VectorStore) -> None:
    found = books.search("books-1", 5 * unit(0), 3)
    assert [record_id for record_id, _ in found] == ["a", "b", "c"]
    assert [cosine for _, cosine in found] == pytest.approx([1, 0.5**0.5, 0], abs=1e-6)
    assert [record_id for record_id, _ in books.search("books-1", unit(3), 9)] == ["a", "b", "c", "d"]
    assert books.search("books-1", np.zeros(4, np.float32), 3) == books.search("books-1", unit(0), 0) == []


def test_search_keeps_to_ids_and_attributes(books: VectorStore) -> None:
    def found(**options) -> list[str]:
        return [record_id for record_id, _ in books.search("books-1", unit(0, 1, 2), 9, **options)]

    assert found(ids=["b", "d", "unknown"]) == ["b", "d"] and found(ids=[]) == []
    assert sorted(found(where={"level": 1})) == ["a", "c"]
    assert sorted(found(where={"level": [12, 2]})) == ["b", "d"] and found(where={"level": []}) == []
    assert found(where={"title": "O'Brien"}) == ["a"] and found(where={"title": None}) == ["c"]
    assert found(where={"is_open": True}) == ["d"] and found(where={"is_open": 1}) == []
    assert found(where={"level": 1, "title": "O'Brien"}) == ["a"] and found(where={"nothing": 1}) == []
    assert found(where={"level": 1}, ids=["b", "c"]) == ["c"]
    assert len(found(where={})) == 4


def test_full_text_takes_words_as_words(books: VectorStore) -> None:
    def found(query: str, **options) -> list[str]:
        return sorted(record_id for record_id, _ in books.search_text("books-1", query, 9, **options))

    assert found("dog") == ["a", "c", "e"] and found("dog*'; DROP TABLE x -- (AND") == ["a", "c", "e"]
    assert found("dog", where={"level": 1}) == ["a", "c"] and found("dog", ids=["c", "d"]) == ["c"]
    assert found("?!") == found("") == []


def test_rows_are_found_by_id_counted_replaced_and_removed(books: VectorStore) -> None:
    assert [row.id for row in books.get("books-1", ["d", "unknown", "a"])] == ["d", "a"]
    (row,) = books.get("books-1", ["b"])
    assert (row.text, dict(row.attributes)) == ("a cat slept", {"level": 12, "title": 'says "level": 1, twice'})
    assert row.vector.dtype == np.float32 and np.array_equal(row.vector, unit(0, 1))
    assert (books.count("books-1"), books.count("books-1", {"level": 1})) == (5, 2)
    books.upsert("books-1", [record("a", 3), record("f", 2), record("f", 3, text="the last one counts")])
    books.delete("books-1", ["b", "unknown"])
    assert sorted(books.ids("books-1")) == ["a", "c", "d", "e", "f"] and books.count("books-1") == 5
    assert [record_id for record_id, _ in books.search("books-1", unit(3), 2)] == ["a", "f"]
    assert books.get("books-1", ["f"])[0].text == "the last one counts"
    assert [record_id for record_id, _ in books.search_text("books-1", "last counts", 2)] == ["f"]


def test_collections_are_apart_and_made_once(books: VectorStore) -> None:
    books.create("books-2", 4, False)
    books.create("books-1", 4, True)
    assert (books.count("books-1"), books.count("books-2"), books.count("books-3")) == (5, 0, 0)
    books.drop("books-1")
    books.drop("books-1")
    assert books.count("books-1") == 0 and books.ids("books-1") == []
    with pytest.raises(KeyError):
        books.search("books-1", unit(0), 1)


def test_a_vector_of_another_length_is_refused(books: VectorStore) -> None:
    with pytest.raises(ValueError):
        books.upsert("books-1", [VectorRecord("x", "", np.ones(5, dtype=np.float32))])
    assert books.count("books-1") == 5


def test_ids_are_data_not_syntax(store: VectorStore) -> None:
    store.create("odd-1", 4, False)
    store.upsert("odd-1", [record(odd, number % 4, name=odd) for number, odd in enumerate(ODD_IDS)])
    for odd in ODD_IDS:
        assert [row.id for row in store.get("odd-1", [odd])] == [odd]
        assert [found for found, _ in store.search("odd-1", unit(0, 1, 2, 3), 9, ids=[odd])] == [odd]
        assert store.count("odd-1", {"name": odd}) == 1
    store.delete("odd-1", ODD_IDS[:3])
    assert sorted(store.ids("odd-1")) == sorted(ODD_IDS[3:])


texts = st.text("ab'\"\\%_{}:, 1é", max_size=6)
rows = st.builds(record, texts, st.integers(0, 3), name=texts | st.integers(0, 2) | st.none() | st.booleans())
steps = st.lists(
    st.tuples(st.just("upsert"), st.lists(rows, max_size=4)) | st.tuples(st.just("delete"), st.lists(texts))
)


def stores() -> Iterator[VectorStore]:
    yield MemoryVectorStore()
    with tempfile.TemporaryDirectory() as folder:
        yield LanceStore(Path(folder))


@settings(deadline=None, max_examples=20)
@given(steps, texts)
def test_every_store_agrees_with_a_dictionary(steps: list[tuple[str, list]], name: str) -> None:
    expected: dict[str, VectorRecord] = {}
    for step, items in steps:
        if step == "upsert":
            expected |= {item.id: item for item in items}
        for item in items if step == "delete" else []:
            expected.pop(item, None)
    near = sorted(expected.values(), key=lambda row: (-float(row.vector[0]), row.id))
    for store in stores():
        store.create("c-1", 4, False)
        for step, items in steps:
            getattr(store, step)("c-1", items)
        assert sorted(store.ids("c-1")) == sorted(expected) and store.count("c-1") == len(expected)
        assert [row.attributes for row in store.get("c-1", list(expected))] == [r.attributes for r in expected.values()]
        assert [found for found, _ in store.search("c-1", unit(0), 99)] == [row.id for row in near]
        assert store.count("c-1", {"name": name}) == sum(row.attributes["name"] == name for row in expected.values())


# ------------------------------------------------------------------------------------------------- a snapshot's vectors


def rows_of(n: int):
    vectors = np.random.default_rng(n).normal(size=(n, 4)).astype(np.float32)
    return vector_rows([f"id{i}" for i in range(n)], [f"text {i}" for i in range(n)], vectors, ['{"level": 1}'] * n)


def test_equal_rows_are_one_collection_and_other_rows_another(store: VectorStore) -> None:
    first = store.build(NAME, rows_of(7), True, None)
    assert store.build(NAME, rows_of(7), True, first) == first
    second = store.build(NAME, rows_of(6), True, first)
    assert first.content != second.content and store.is_whole(first) and store.is_whole(second)
    assert (store.open(first).count(), store.open(second).count({"level": 1})) == (7, 6)
    assert store.count(collection_of(second)) == 6
    opened = store.open(first)
    assert opened.vectors(["id3", "unknown"])[1].tolist() == [0, 0, 0, 0]
    assert opened.search(opened.vectors(["id3"])[0], 1, where={"level": 1})[0][0] == "id3"
    assert opened.search_text("text", 9, ids=["id2"])[0][0] == "id2" and opened.get(["id4"])[0].text == "text 4"


def test_an_empty_collection_answers_nothing(store: VectorStore) -> None:
    empty = store.open(store.build(NAME, rows_of(0), True, None))
    assert empty.search(unit(0), 3) == empty.search_text("text", 3) == empty.ids() == empty.get(["a"]) == []
    assert empty.count() == 0


def test_a_build_that_was_killed_is_finished_by_the_next() -> None:
    class Killed(MemoryVectorStore):
        is_alive = False

        def upsert(self, collection, records):
            super().upsert(collection, records if self.is_alive else records[:3])

    store = Killed()
    with pytest.raises(PipelineError, match=f"{NAME}-[0-9a-f]+ holds 3 rows after 7 were written"):
        store.build(NAME, rows_of(7), False, None)
    store.is_alive = True
    assert store.open(store.build(NAME, rows_of(7), False, None)).count() == 7


# ------------------------------------------------------------------------------------------------------------- registry


def test_an_unregistered_kind_is_an_error_that_names_the_registered_ones(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no store 'qdrant' is registered; there are lancedb, memory"):
        open_vector_store(VectorStoreSettings(kind="qdrant"), tmp_path)
    with pytest.raises(SettingsError, match=r"vector_store.module: 'no_such_module' cannot be imported"):
        open_vector_store(VectorStoreSettings(kind="qdrant", module="no_such_module"), tmp_path)


def test_a_module_registers_its_kind_and_gets_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_vector_store.py").write_text(
        "from graphrag_pipeline.storage.vectors.stores import register_vector_store\n"
        "from graphrag_pipeline_tests.support.memory_vectors import MemoryVectorStore\n"
        "class Mine(MemoryVectorStore):\n"
        "    def __init__(self, endpoint='nowhere'):\n"
        "        super().__init__()\n"
        "        self.endpoint = endpoint\n"
        "register_vector_store('mine', lambda folder, options: Mine(**options))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    named = VectorStoreSettings(kind="mine", module="my_vector_store", options={"endpoint": "there"})
    assert open_vector_store(named, tmp_path).endpoint == "there"
    assert "mine" in registered_vector_stores()
    register_vector_store("mine", lambda folder, options: MemoryVectorStore())
    assert type(open_vector_store(named, tmp_path)) is MemoryVectorStore
