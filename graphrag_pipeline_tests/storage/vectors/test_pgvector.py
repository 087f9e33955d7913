"""PostgreSQL as a vector store beyond the contract: what is sent, indexes, rights, and errors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import psycopg
import pytest

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.settings.settings import VectorStoreSettings
from graphrag_pipeline.storage.vectors import open_vector_store, pgvector
from graphrag_pipeline.storage.vectors.folders import VectorRows, vector_rows
from graphrag_pipeline.storage.vectors.pgvector import PgVectorStore
from graphrag_pipeline.storage.vectors.postgres import URL_NAME, decode, encode, open_pool
from graphrag_pipeline.storage.vectors.stores import collection_of

NAME = "default-entity-description"


class CountedVectors:
    """Vectors that count which rows are read, and fail on demand."""

    def __init__(self, vectors: np.ndarray, fails_after: int = 10**9) -> None:
        self.vectors, self.shape, self.n_read, self.fails_after = vectors, vectors.shape, 0, fails_after

    def __getitem__(self, rows: Any) -> np.ndarray:
        self.n_read += len(rows)
        if self.n_read > self.fails_after:
            raise KeyboardInterrupt
        return self.vectors[rows]


def rows_of(vectors: np.ndarray | CountedVectors) -> VectorRows:
    ids = [f"id{i:05d}" for i in range(vectors.shape[0])]
    return vector_rows(ids, [f"text {i}" for i in ids], vectors, ["{}"] * len(ids))


@pytest.fixture
def url(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(URL_NAME, postgres_url)
    return postgres_url.replace("+psycopg", "")


@pytest.fixture
def store(url: str) -> PgVectorStore:
    return PgVectorStore()


def test_a_build_sends_only_the_rows_that_the_last_collection_lacks(store: PgVectorStore, url: str) -> None:
    vectors = np.random.default_rng(1).normal(size=(500, 8)).astype(np.float32)
    first = store.build(NAME, rows_of(vectors), True, None)
    vectors[[3, 77]] += 1
    counted = CountedVectors(vectors)
    second = store.build(NAME, rows_of(counted), True, first)
    assert counted.n_read == 500 + 2, "all rows are hashed, two are sent"
    store.drop(collection_of(first))
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'graphrag' ORDER BY 1"
        ).fetchall()
    assert found == [("collections",), ("rows_2",), ("words_2",)]
    assert store.open(second).search(vectors[77], 1)[0][0] == "id00077" and store.is_whole(second)


def test_a_killed_build_leaves_nothing_behind(store: PgVectorStore, url: str) -> None:
    vectors = np.ones((9, 4), np.float32)
    with pytest.raises(KeyboardInterrupt):
        store.build(NAME, rows_of(CountedVectors(vectors, fails_after=9)), True, None)
    with psycopg.connect(url) as connection:
        count = "SELECT count(*) FROM pg_tables WHERE schemaname = 'graphrag' AND tablename <> 'collections'"
        assert connection.execute(count).fetchone() == (0,)
    assert store.is_whole(store.build(NAME, rows_of(vectors), True, None))


def test_builds_of_one_collection_at_the_same_time_make_it_once(store: PgVectorStore, url: str) -> None:
    vectors = np.random.default_rng(1).normal(size=(300, 8)).astype(np.float32)
    with ThreadPoolExecutor(6) as threads:
        built = set(threads.map(lambda _: store.build(NAME, rows_of(vectors), True, None), range(6)))
        [folder] = built
        found = list(threads.map(lambda vector: store.open(folder).search(vector, 1)[0][0], vectors))
    assert found == [f"id{i:05d}" for i in range(300)]
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*), max(number) FROM graphrag.collections").fetchone() == (1, 1)


def test_an_index_finds_98_percent_of_the_exact_nearest_rows(store: PgVectorStore, url: str) -> None:
    random = np.random.default_rng(1)
    centers = random.normal(size=(200, 32)).astype(np.float32)
    vectors = centers[random.integers(200, size=20_000)] + random.normal(size=(20_000, 32)).astype(np.float32)
    opened = store.open(store.build(NAME, rows_of(vectors), False, None))
    lengths = np.linalg.norm(vectors, axis=1)
    shares = []
    for query in vectors[random.choice(20_000, 50)] + random.normal(size=(50, 32)).astype(np.float32) / 2:
        cosines = vectors @ query / lengths / np.linalg.norm(query)
        found = opened.search(query, 20)
        best = {f"id{i:05d}" for i in np.argsort(-cosines)[:20]}
        shares.append(len(best & {record_id for record_id, _ in found}) / 20)
        assert [cosine for _, cosine in found] == pytest.approx([cosines[int(i[2:])] for i, _ in found], abs=1e-5)
    assert np.mean(shares) >= 0.98
    for k in (1_000, 6_000):
        assert len(opened.search(vectors[0], k)) == k, "more rows than one pass over the index finds"
    with open_pool("", "graphrag").session() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
    with psycopg.connect(url) as connection:
        indexes = "pg_stat_all_indexes JOIN pg_indexes ON indexname = indexrelname"
        used = f"SELECT idx_scan FROM {indexes} WHERE indexdef LIKE '%hnsw%'"
        assert connection.execute(used).fetchone() == (51,)


@pytest.mark.parametrize(("dimensions", "is_indexed"), [(2_001, True), (4_000, True), (4_001, False)])
def test_long_vectors_are_indexed_at_half_precision_up_to_4000_dimensions(
    store: PgVectorStore, url: str, monkeypatch: pytest.MonkeyPatch, dimensions: int, is_indexed: bool
) -> None:
    monkeypatch.setattr(pgvector, "ANN_MIN_ROWS", 50)
    vectors = np.random.default_rng(1).normal(size=(50, dimensions)).astype(np.float32)
    opened = store.open(store.build(NAME, rows_of(vectors), False, None))
    assert opened.search(vectors[7], 1) == [("id00007", pytest.approx(1, abs=1e-6))]
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT is_indexed FROM graphrag.collections").fetchone() == (is_indexed,)


def test_texts_with_nul_keep_their_order_and_value() -> None:
    texts = sorted(["", "\0", "\0\0", "\0\1", "\1", "\1\0", "\1\1", "\1\2", "\2", "a\0b", "a\1b", "a", "ab"])
    assert [decode(encode(text)) for text in texts] == texts == sorted(texts, key=encode)
    assert not any("\0" in encode(text) for text in texts)


def test_a_reader_needs_no_right_to_make_anything(store: PgVectorStore, url: str, monkeypatch) -> None:
    folder = store.build(NAME, rows_of(np.eye(4, dtype=np.float32)), True, None)
    with psycopg.connect(url) as connection:
        connection.execute("CREATE ROLE h_reader LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA graphrag TO h_reader")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA graphrag TO h_reader")
    try:
        monkeypatch.setenv(URL_NAME, url.replace("postgres:@", "h_reader:@"))
        reader = PgVectorStore()
        assert reader.open(folder).search(np.ones(4, np.float32), 1)[0][0] == "id00000" and reader.is_whole(folder)
        with pytest.raises(PipelineError, match=r"permission denied for .*CREATE EXTENSION vector"):
            reader.build(NAME, rows_of(np.ones((2, 4), np.float32)), True, None)
        with pytest.raises(PipelineError, match=r"permission denied for .*grant CREATE"):
            PgVectorStore(schema="other").count("any")
    finally:
        with psycopg.connect(url) as connection:
            connection.execute("DROP OWNED BY h_reader")
            connection.execute("DROP ROLE h_reader")


def test_a_connection_that_the_server_closed_is_opened_again(store: PgVectorStore, url: str) -> None:
    folder = store.build(NAME, rows_of(np.eye(4, dtype=np.float32)), True, None)
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    assert store.is_whole(folder)


def test_a_server_without_the_extension_is_named_with_its_remedy(url: str) -> None:
    with (
        pytest.raises(PipelineError, match=r"no_such_extension.* is not available.*install pgvector 0\.8 or later"),
        open_pool("", "graphrag").session() as connection,
    ):
        connection.execute("CREATE EXTENSION no_such_extension")


def test_no_message_shows_a_password(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    with pytest.raises(SettingsError, match=r"postgresql://\*\*\*@h/d holds a password; set .* PGPASSWORD") as refused:
        PgVectorStore("postgresql://ann:s3cret@h/d")
    monkeypatch.delenv(URL_NAME, raising=False)
    with pytest.raises(SettingsError, match=f"no database is named; set `url: .*or {URL_NAME} in the environment"):
        PgVectorStore()
    monkeypatch.setenv(URL_NAME, "postgresql+psycopg://ann:s3cret@127.0.0.1:1/d?application_name=s3cret2")
    with pytest.raises(PipelineError, match=r"connection failed: .*check that the server runs") as unreachable:
        PgVectorStore().count("any")
    monkeypatch.setenv(URL_NAME, "postgresql://ann:s3cret@127.0.0.1:1/d?s3cret2=s3cret")
    with pytest.raises(PipelineError, match="invalid URI query parameter") as invalid:
        PgVectorStore().count("any")
    assert not any("s3cret" in str(error.value) for error in (refused, unreachable, invalid))
    with pytest.raises(SettingsError, match=r"vector_store.options: 'urk' is no option; there are url, schema"):
        open_vector_store(VectorStoreSettings(kind="pgvector", options={"urk": "x"}), tmp_path)
