"""Three workers make the index of one machine, whatever dies in between (`make test-cluster`)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_pipeline.identity import bucket_keys
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.storage.shared.heartbeats import DEAD_AFTER_S
from graphrag_pipeline.storage.shared.state import StoreState
from graphrag_pipeline_tests.bench.articles import write_articles
from graphrag_pipeline_tests.cluster.hosts import Cluster, find_faketime, running_cluster, why_not_here
from graphrag_pipeline_tests.support.machines import index
from graphrag_pipeline_tests.support.object_server import ObjectServer

N_ARTICLES, N_BUCKETS, N_WORKERS = 160, 8, 3
TICK_S = 60.0
"""More than the sensor, the queue and the start of a run take together."""

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.thorough,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("cluster"),
]


@pytest.fixture
def cluster(tmp_path: Path, s3: ObjectServer, s3_url: str) -> Iterator[Cluster]:
    if reason := why_not_here():
        pytest.skip(reason)
    write_articles(tmp_path / "cluster" / "documents", N_ARTICLES)
    with running_cluster(tmp_path / "cluster", N_BUCKETS, N_WORKERS, s3.port) as cluster:
        daemon = cluster.add("daemon")
        daemon.start("dagster-daemon", "run", "-m", "graphrag_pipeline.definitions")
        yield cluster
    from graphrag_pipeline.storage.shared.objects import open_object_store
    from graphrag_pipeline_tests.cluster.hosts import URL

    objects = open_object_store(URL)
    for folder in ("tables", "snapshots", "states", "inputs", "runs"):
        objects.remove(objects.names(folder))


def of_one_machine(cluster: Cluster) -> tuple[dict[str, str], str | None]:
    """Return data versions of all heads and the snapshot of the same documents by one machine without a store."""
    folder = cluster.folder / "alone"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "settings.yaml").write_text(cluster.settings(is_shared=False), encoding="utf-8")
    root = Root(folder)
    index(root)
    heads = [root.tables.read_stored_head(path) for path in root.tables.head_paths()]
    return {f"{head.table}/{head.partition}": head.data_version for head in heads}, root.snapshots.current()


def of_cluster(state: StoreState) -> tuple[dict[str, str], str | None]:
    return {key: head.data_version for key, head in state.heads.items()}, state.current


def published(state: StoreState) -> StoreState | None:
    return state if state.current else None


def start_workers(cluster: Cluster, *names: str) -> None:
    for name in names:
        cluster.add(name).start_worker()


def test_three_workers_make_the_index_of_one_machine(cluster: Cluster) -> None:
    start_workers(cluster, "one", "two", "three")
    state = cluster.wait_for(published, 400)
    assert of_cluster(state) == of_one_machine(cluster)
    # Each worker has only the tables of its buckets, unless it made the graph.
    held = [
        {path.name for path in (cluster.folder / name / "tables").glob("documents/*")}
        for name in ("one", "two", "three")
    ]
    assert sorted(len(buckets) == N_BUCKETS for buckets in held) == [False, False, True]
    # A state a bucket, and those of the stages over the whole corpus.
    assert state.number <= N_BUCKETS + 9


def has_all_buckets(state: StoreState) -> StoreState | None:
    return state if all(f"text_unit_embeddings/{key}" in state.heads for key in bucket_keys(N_BUCKETS)) else None


def test_the_bucket_of_a_killed_worker_is_taken_over(cluster: Cluster) -> None:
    start_workers(cluster, "one", "two", "three")
    cluster.hosts["one"].wait_for_run(200)
    cluster.hosts["one"].kill()
    killed_at = time.monotonic()
    cluster.wait_for(has_all_buckets, 500)
    print(f"all buckets {time.monotonic() - killed_at:.0f} s after the kill")
    assert time.monotonic() - killed_at < DEAD_AFTER_S + TICK_S + 100
    assert of_cluster(cluster.wait_for(published, 300)) == of_one_machine(cluster)


def test_a_worker_without_network_for_75_seconds(cluster: Cluster) -> None:
    start_workers(cluster, "one", "two", "three")
    cluster.hosts["one"].wait_for_run(200)
    cluster.hosts["one"].set_link("down")
    time.sleep(75)
    cluster.hosts["one"].set_link("up")
    assert of_cluster(cluster.wait_for(published, 500)) == of_one_machine(cluster)


def test_a_broker_that_loses_its_queue(cluster: Cluster) -> None:
    start_workers(cluster, "one", "two", "three")
    cluster.hosts["one"].wait_for_run(200)
    cluster.kill_redis()
    time.sleep(5)
    cluster.start_redis()
    assert of_cluster(cluster.wait_for(published, 500)) == of_one_machine(cluster)


def test_clocks_that_are_ten_minutes_apart(cluster: Cluster) -> None:
    if find_faketime() is None:
        pytest.skip("libfaketime is missing (Debian: libfaketime)")
    for name, ahead_s in (("one", 600), ("two", 0), ("three", -600)):
        cluster.add(name, ahead_s).start_worker()
    assert of_cluster(cluster.wait_for(published, 400)) == of_one_machine(cluster)
