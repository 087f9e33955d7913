"""The contract of vector stores, tested on every built-in store and on a store in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.settings.settings import VectorStoreSettings
from graphrag_pipeline.storage.vectors import open_vector_store, register_vector_store, registered_vector_stores
from graphrag_pipeline.storage.vectors.folders import vector_rows
from graphrag_pipeline.storage.vectors.postgres import URL_NAME
from graphrag_pipeline.storage.vectors.stores import SnapshotVectors, VectorRecord, VectorStore, collection_of
from graphrag_pipeline_tests.support import azure_search_server
from graphrag_pipeline_tests.support.azure_search_server import AzureSearchServer
from graphrag_pipeline_tests.support.memory_vectors import KIND, MemoryVectorStore

NAME = "default-entity-description"
ODD_IDS = (
    *(
        "O'Brien",
        "x') OR ('1'='1",
        'a"b',
        "50%_",
        "back\\slash",
        "萧炎",
        "",
        "; DROP TABLE rows --",
        "%s {rows} %(id)s",
    ),
    *("nul\0", "\0", "\1", "\1\1", "\0\1\2", '{"a",NULL}', "NULL"),
)
SERVICES = (KIND, "azure_search", "pgvector", "qdrant")
KINDS = ("lancedb", *SERVICES)


@pytest.fixture
def azure() -> Iterator[AzureSearchServer]:
    with AzureSearchServer() as server:
        yield server


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SnapshotVectors:
    return opened(request, tmp_path)


def opened(request: pytest.FixtureRequest, folder: Path) -> VectorStore:
    """Return an empty store of the kind that is the parameter of a fixture."""
    if request.param == "pgvector":
        request.getfixturevalue("monkeypatch").setenv(URL_NAME, request.getfixturevalue("postgres_url"))
    options = {"url": ":memory:", "prefix": folder.name} if request.param == "qdrant" else {}
    if request.param == "azure_search":
        request.getfixturevalue("monkeypatch").setenv("AZURE_SEARCH_KEY", azure_search_server.KEY)
        options = {"url": request.getfixturevalue("azure").url}
    return open_vector_store(VectorStoreSettings(kind=request.param, options=options), folder)


def unit(*places: int) -> np.ndarray:
    """Return a vector of four dimensions with ones at some places."""
    vector = np.zeros(4, dtype=np.float32)
    vector[list(places)] = 1
    return vector


def record(record_id: str, *places: int, text: str = "words", **attributes) -> VectorRecord:
    return VectorRecord(record_id, text, unit(*places), attributes)


@pytest.fixture(params=SERVICES)
def books(request: pytest.FixtureRequest, tmp_path: Path) -> VectorStore:
    store = opened(request, tmp_path)
    store.create("books-1", 4, True)
    store.upsert(
        "books-1",
        [
            record("a", 0, text="the dog barked", title="O'Brien"),
            record("b", 0, 1, text="a cat slept"),
            record("c", 1, text="dog and cat"),
            record("d", 2, text="silence"),
            record("e", text="no vector, one dog"),
        ],
    )
    return store


def test_search_is_by_cosine_nearest_first_ties_by_id(books: VectorStore) -> None:
    found = books.search("books-1", 5 * unit(0), 3)
    assert [record_id for record_id, _ in found] == ["a", "b", "c"]
    assert [cosine for _, cosine in found] == pytest.approx([1, 0.5**0.5, 0], abs=1e-6)
    assert [record_id for record_id, _ in books.search("books-1", unit(3), 9)] == ["a", "b", "c", "d"]
    assert books.search("books-1", np.zeros(4, np.float32), 3) == books.search("books-1", unit(0), 0) == []
    among = books.search("books-1", unit(0, 1, 2), 9, ids=["b", "d", "unknown"])
    assert [record_id for record_id, _ in among] == ["b", "d"] and books.search("books-1", unit(0), 9, ids=[]) == []


def test_full_text_takes_words_as_words(books: VectorStore) -> None:
    def found(query: str, **options) -> list[str]:
        return sorted(record_id for record_id, _ in books.search_text("books-1", query, 9, **options))

    assert found("dog") == found("dog*'; DROP TABLE x -- (AND") == ["a", "c", "e"]
    assert found("dog", ids=["c", "d"]) == ["c"] and found("?!") == found("") == []


def test_rows_are_found_by_id_counted_and_replaced(books: VectorStore) -> None:
    assert [row.id for row in books.get("books-1", ["d", "unknown", "a"])] == ["d", "a"]
    [row] = books.get("books-1", ["a"])
    assert (row.text, dict(row.attributes), row.vector.dtype) == ("the dog barked", {"title": "O'Brien"}, np.float32)
    books.upsert("books-1", [record("a", 3), record("f", 2), record("f", 3, text="the last one counts")])
    assert sorted(books.ids("books-1")) == ["a", "b", "c", "d", "e", "f"] and books.count("books-1") == 6
    assert [record_id for record_id, _ in books.search("books-1", unit(3), 2)] == ["a", "f"]
    assert books.get("books-1", ["f"])[0].text == "the last one counts"
    with pytest.raises(ValueError):
        books.upsert("books-1", [VectorRecord("x", "", np.ones(5, dtype=np.float32))])


def test_collections_are_apart_and_made_once(books: VectorStore) -> None:
    books.create("books-2", 4, False)
    books.create("books-1", 4, True)
    assert (books.count("books-1"), books.count("books-2"), books.count("books-3")) == (5, 0, 0)
    books.drop("books-1")
    books.drop("books-1")
    assert books.count("books-1") == 0 and books.ids("books-1") == []
    with pytest.raises(KeyError):
        books.search("books-1", unit(0), 1)


# ------------------------------------------------------------------------------------------------- a snapshot's vectors


def rows_of(n: int):
    vectors = np.random.default_rng(n).normal(size=(n, 4)).astype(np.float32)
    return vector_rows([f"id{i}" for i in range(n)], [f"text {i}" for i in range(n)], vectors, ['{"level": 1}'] * n)


def test_equal_rows_are_one_collection_and_other_rows_another(store: SnapshotVectors) -> None:
    first = store.build(NAME, rows_of(7), True, None)
    assert store.build(NAME, rows_of(7), True, first) == first
    second = store.build(NAME, rows_of(6), True, first)
    assert first.content != second.content and store.is_whole(first) and store.is_whole(second)
    assert (store.open(first).count(), store.open(second).count()) == (7, 6)
    opened = store.open(first)
    assert opened.vectors(["id3", "unknown"])[1].tolist() == [0, 0, 0, 0]
    assert opened.search(opened.vectors(["id3"])[0], 1)[0][0] == "id3"
    assert opened.search_text("text", 9, ids=["id2"])[0][0] == "id2"
    store.drop(collection_of(second))
    assert not store.is_whole(second) and store.is_whole(first)


def test_ids_are_data_not_syntax(store: SnapshotVectors) -> None:
    rows = vector_rows(ODD_IDS, ["words"] * len(ODD_IDS), np.ones((len(ODD_IDS), 4), np.float32), ["{}"] * len(ODD_IDS))
    opened = store.open(store.build(NAME, rows, True, None))
    for odd in ODD_IDS:
        assert [found for found, _ in opened.search(unit(0), 9, ids=[odd])] == [odd]
        assert opened.vectors([odd]).tolist() == [[1, 1, 1, 1]]
    assert sorted(opened.ids()) == sorted(ODD_IDS)


def test_values_of_rows_are_data_not_syntax(books: VectorStore) -> None:
    hostile = [VectorRecord(odd, f"words {odd}", unit(0), {"title": odd}) for odd in ODD_IDS]
    books.upsert("books-1", hostile)
    found = books.get("books-1", ODD_IDS)
    assert [(row.id, row.text, dict(row.attributes)) for row in found] == [
        (row.id, row.text, row.attributes) for row in hostile
    ]
    for odd in ODD_IDS:
        assert set(ODD_IDS) <= {record_id for record_id, _ in books.search_text("books-1", f"words {odd}", 99)}
        assert [record_id for record_id, _ in books.search_text("books-1", "words", 9, ids=[odd])] == [odd]
        books.create(odd, 4, True)
        books.upsert(odd, [record(odd, 0)])
        assert books.ids(odd) == [odd]
        books.drop(odd)
    assert books.count("books-1") == 5 + len(ODD_IDS)


def test_any_length_of_a_name_and_of_a_vector_is_a_collection(store: SnapshotVectors) -> None:
    for name, dimensions in (("n" * 150, 3), ("n" * 149 + "m", 2_500), (NAME, 4_050)):
        vectors = np.random.default_rng(1).normal(size=(9, dimensions)).astype(np.float32)
        ids = [f"id{i}" for i in range(9)]
        opened = store.open(store.build(name, vector_rows(ids, ids, vectors, ["{}"] * 9), True, None))
        assert np.array_equal(opened.vectors(ids), vectors)
        assert opened.search(vectors[3], 1) == [("id3", pytest.approx(1, abs=1e-6))]


def test_search_is_exact_and_cuts_ties_by_id(store: SnapshotVectors) -> None:
    vectors = np.random.default_rng(7).normal(size=(200, 16)).astype(np.float32)
    vectors[5], vectors[50:90] = 0, vectors[50]
    ids = [f"id{i:03d}" for i in range(200)]
    opened = store.open(store.build(NAME, vector_rows(ids, ids, vectors, ["{}"] * 200), True, None))
    for row in (3, 60):
        cosines = vectors @ vectors[row] / np.maximum(np.linalg.norm(vectors, axis=1), 1e-9)
        best = [i for i in np.argsort(-cosines.round(6), kind="stable") if i != 5]
        assert [record_id for record_id, _ in opened.search(vectors[row], 30)] == [ids[i] for i in best[:30]]
        among = ids[::3]
        found = [record_id for record_id, _ in opened.search(vectors[row], 9, ids=among)]
        assert found == [ids[i] for i in best if i % 3 == 0][:9]
    assert ids[5] not in {record_id for record_id, _ in opened.search(vectors[3], 200)}


def test_full_text_ranks_rare_words_first_and_cuts_ties_by_id(store: SnapshotVectors) -> None:
    texts = [f"plain words number {i}" for i in range(60)]
    texts[3], texts[4] = "萧炎修炼斗气", "a café opened"
    texts[20:50] = ["the dogs barked"] * 30
    texts[50] = "plain plain words words about one cat"
    ids = [f"id{i:02d}" for i in range(60)]
    rows = vector_rows(ids, texts, np.ones((60, 4), np.float32), ["{}"] * 60)
    opened = store.open(store.build(NAME, rows, True, None))
    for query, found in (("萧炎是谁？", ["id03"]), ("cafe", ["id04"]), ("plain words of a cat", ["id50"]), ("?!", [])):
        assert [record_id for record_id, _ in opened.search_text(query, 1)] == found
    for k in (1, 5, 20):
        assert [record_id for record_id, _ in opened.search_text("DOG (AND", k)] == ids[20 : 20 + k]


def test_a_collection_built_from_the_last_one_equals_one_built_alone(store: SnapshotVectors, tmp_path: Path) -> None:
    def rows(ids: range, changed: int):
        texts = [f"text {i}{' and cats' * (i == changed)}" for i in ids]
        vectors = np.stack([np.random.default_rng(i + (i == changed)).normal(size=4) for i in ids]).astype(np.float32)
        return vector_rows([f"id{i:02d}" for i in ids], texts, vectors, ["{}"] * len(ids))

    first = store.build(NAME, rows(range(40), 99), True, None)
    second = store.build(NAME, rows(range(2, 42), 7), True, first)
    opened, expected = store.open(second), rows(range(2, 42), 7)
    alone = store.open(store.build("another-name", expected, True, None))
    assert sorted(opened.ids()) == expected.ids.to_pylist()
    assert np.array_equal(opened.vectors(expected.ids.to_pylist()), expected.vectors[:])
    assert opened.search(unit(0, 1), 9) == alone.search(unit(0, 1), 9)
    assert opened.search_text("cats", 9) == alone.search_text("cats", 9) == [("id07", pytest.approx(3, rel=1))]
    assert store.open(first).count() == 40 and store.open(first).search_text("cats", 9) == []


def test_an_empty_collection_answers_nothing(store: SnapshotVectors) -> None:
    empty = store.open(store.build(NAME, rows_of(0), True, None))
    assert empty.search(unit(0), 3) == empty.search_text("text", 3) == empty.ids() == []
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
    with pytest.raises(
        SettingsError, match=r"no store 'milvus' is registered; there are azure_search, lancedb, memory, .*qdrant"
    ):
        open_vector_store(VectorStoreSettings(kind="milvus"), tmp_path)
    with pytest.raises(SettingsError, match=r"vector_store.module: 'no_such_module' cannot be imported"):
        open_vector_store(VectorStoreSettings(kind="milvus", module="no_such_module"), tmp_path)


@pytest.mark.parametrize(
    ("kind", "package", "extra"),
    [
        ("azure_search", "azure.search.documents", "azure"),
        ("pgvector", "psycopg", "postgres"),
        ("qdrant", "qdrant_client", "qdrant"),
    ],
)
def test_a_service_without_its_package_is_named_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, package: str, extra: str
) -> None:
    for module in ("azure_search", "pgvector", "postgres", "qdrant"):
        monkeypatch.delitem(sys.modules, f"graphrag_pipeline.storage.vectors.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SettingsError, match=rf"vector_store.kind: .*{package}.*\[{extra}\]"):
        open_vector_store(VectorStoreSettings(kind=kind), tmp_path)


def test_a_module_registers_its_kind_and_gets_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_vector_store.py").write_text(
        "from graphrag_pipeline import register_vector_store\n"
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
