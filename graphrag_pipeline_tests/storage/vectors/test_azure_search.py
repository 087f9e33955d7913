"""Azure AI Search as a vector store beyond the contract: limits of the service, keys, and errors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.storage.vectors.azure_search import KEY_NAME, AzureSearchStore
from graphrag_pipeline.storage.vectors.folders import vector_rows
from graphrag_pipeline.storage.vectors.stores import VectorRecord, collection_of
from graphrag_pipeline_tests.support.azure_search_server import KEY, AzureSearchServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureSearchServer]:
    monkeypatch.setenv(KEY_NAME, KEY)
    with AzureSearchServer() as running:
        yield running


@pytest.fixture
def store(server: AzureSearchServer) -> AzureSearchStore:
    return AzureSearchStore(server.url)


def test_a_build_of_more_rows_than_a_page_is_counted_listed_and_dropped(
    store: AzureSearchStore, server: AzureSearchServer
) -> None:
    ids = [f"id{i:04d}" for i in range(1_200)]
    vectors = np.random.default_rng(1).normal(size=(1_200, 4)).astype(np.float32)
    kept, dropped = (store.build(name, vector_rows(ids, ids, vectors, ["{}"] * 1_200), True, None) for name in "ab")
    assert sorted(store.ids(collection_of(kept))) == ids
    assert np.array_equal(store.open(kept).vectors(ids), vectors)
    store.drop(collection_of(dropped))
    assert (store.count(collection_of(kept)), store.count(collection_of(dropped))) == (1_200, 0)
    assert {name: len(index.found) for name, index in server.indexes.items()} == {"graphrag-0": 1, "graphrag-4": 1_200}


def test_a_long_text_and_long_attributes_are_stored(store: AzureSearchStore) -> None:
    long = "word " * 20_000
    store.create("books", 2, True)
    store.upsert("books", [VectorRecord("a", long, np.ones(2, np.float32), {"title": long})])
    assert store.get("books", ["a"])[0].text == store.get("books", ["a"])[0].attributes["title"] == long
    assert store.search_text("books", "words", 1) != []


def test_a_store_that_holds_nothing_is_read_without_making_an_index(
    store: AzureSearchStore, server: AzureSearchServer
) -> None:
    assert (store.count("books"), store.ids("books")) == (0, []) and server.indexes == {}
    store.drop("books")


def test_a_collection_that_another_process_dropped_is_made_again(server: AzureSearchServer) -> None:
    here, there = AzureSearchStore(server.url), AzureSearchStore(server.url)
    here.create("books", 2, True)
    there.drop("books")
    here.create("books", 3, True)
    with pytest.raises(ValueError):
        AzureSearchStore(server.url).upsert("books", [VectorRecord("a", "words", np.ones(2, np.float32))])


def test_more_dimensions_than_the_service_takes_are_an_error(store: AzureSearchStore) -> None:
    with pytest.raises(PipelineError, match=r"4097 dimensions, and Azure AI Search takes 4096; set another model"):
        store.create("books", 4_097, True)


def test_no_message_shows_a_key(server: AzureSearchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, "k3y-of-azure")
    with pytest.raises(PipelineError, match=rf"access denied for \*\*\*.*check the URL, {KEY_NAME}"):
        AzureSearchStore(server.url).count("books")
    monkeypatch.delenv(KEY_NAME)
    with pytest.raises(SettingsError, match=f"set the key of https://example.search.windows.net in {KEY_NAME}"):
        AzureSearchStore("https://example.search.windows.net")
