"""Vectors of a snapshot are in the store named by `vector_store.kind`; another class gives the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_pipeline import GraphIndex
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline.storage.vectors.postgres import URL_NAME
from graphrag_pipeline.storage.vectors.stores import collection_of
from graphrag_pipeline.tables import VECTOR_TABLES
from graphrag_pipeline_tests.support.azure_search_server import KEY, AzureSearchServer
from graphrag_pipeline_tests.support.memory_vectors import open_memory_store
from graphrag_pipeline_tests.support.roots import CAROL, indexed_root
from graphrag_pipeline_tests.support.thoroughness import usually

BUCKETS = "storage:\n  n_buckets: 2\n"
IN_MEMORY = f"{BUCKETS}vector_store:\n  kind: memory\n  module: graphrag_pipeline_tests.memory_vectors\n"
QUESTION = "Who carried Tiny Tim home?"


@pytest.fixture(autouse=True)
def _own_dagster_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


def ask(path: Path, snapshot: str | None = None) -> dict:
    with GraphIndex.open(path, snapshot) as index:
        found = index.search(QUESTION, method="local")
    return {"answer": found.answer, "entities": [entity.title for entity in found.context.entities]}


def test_another_store_holds_the_vectors_and_answers_are_the_same(tmp_path: Path) -> None:
    root = indexed_root(tmp_path, CAROL, BUCKETS)
    in_lancedb, expected = root.snapshots.current(), ask(tmp_path)

    (tmp_path / "settings.yaml").write_text(IN_MEMORY, encoding="utf-8")
    moved = Root(tmp_path)
    folders = sorted((tmp_path / "snapshots" / "vectors").rglob("*"))
    assert next(item.stage for item in find_stale(moved, detect_input(moved))) == "index_candidate"
    assert [stage for stage, _ in run_index(moved).ran] == ["index_candidate", "index_snapshot"]
    snapshot = moved.snapshots.open()
    assert snapshot.manifest.vector_store == "memory" and ask(tmp_path) == expected
    assert sorted((tmp_path / "snapshots" / "vectors").rglob("*")) == folders, "no new vector is in LanceDB"
    collections = open_memory_store(tmp_path / "snapshots" / "vectors", {}).collections
    assert set(collections) == {collection_of(folder) for folder in snapshot.manifest.vectors.values()}
    assert len(collections) == len(VECTOR_TABLES)

    assert ask(tmp_path, in_lancedb) == expected, "the last snapshot stays readable in its store"
    next(iter(collections.values())).records.popitem()
    with pytest.raises(NoSnapshotError, match=r"vector collection default-.* is missing"):
        moved.snapshots.open()
    assert [stage for stage, _ in run_index(moved).ran] == ["index_candidate"], "equal content, so published already"
    assert ask(tmp_path) == expected


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AZURE_SEARCH_KEY", KEY)
    with AzureSearchServer() as server:
        yield f"{{kind: azure_search, options: {{url: '{server.url}'}}}}"


@pytest.fixture
def pgvector(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(URL_NAME, postgres_url)
    return "{kind: pgvector}"


@pytest.fixture
def qdrant() -> str:
    return "{kind: qdrant, options: {url: ':memory:'}}"


@pytest.mark.parametrize("kind", usually(["azure", "pgvector", "qdrant"], "pgvector"))
def test_a_service_holds_the_vectors_and_answers_are_those_of_lancedb(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    store = request.getfixturevalue(kind)
    indexed_root(tmp_path, CAROL, BUCKETS)
    expected = ask(tmp_path)
    (tmp_path / "settings.yaml").write_text(f"{BUCKETS}vector_store: {store}\n", encoding="utf-8")
    root = Root(tmp_path)
    run_index(root)
    first = root.snapshots.open().manifest
    assert first.vector_store != "lancedb" and ask(tmp_path) == expected

    (tmp_path / "input" / "more.txt").write_text("Topper courted the plump sister.", encoding="utf-8")
    run_index(root)
    current = root.snapshots.open()
    assert ask(tmp_path)["entities"] == expected["entities"]
    prune(root, n_kept=1, before=float("inf"))
    rows = {folder: current.vector_store.open(folder).count() for folder in (*first.vectors.values(),)}
    kept = {*current.manifest.vectors.values()}
    assert not kept <= {*rows} and all((n > 0) == (folder in kept) for folder, n in rows.items())
    assert all(current.vector_store.is_whole(folder) for folder in kept)
