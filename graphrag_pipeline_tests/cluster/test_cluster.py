"""Three workers make the index of one machine, whatever dies in between (`make test-cluster`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from graphrag_pipeline.identity import bucket_keys
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.storage.shared.heartbeats import DEAD_AFTER_S
from graphrag_pipeline.storage.shared.objects import open_object_store
from graphrag_pipeline.storage.shared.state import StoreState
from graphrag_pipeline_tests.bench.articles import write_articles
from graphrag_pipeline_tests.cluster.hosts import URL, Cluster, find_faketime, running_cluster, why_not_here
from graphrag_pipeline_tests.support.machines import index
from graphrag_pipeline_tests.support.object_server import ObjectServer

N_WORKERS = 3
N_ARTICLES, N_BUCKETS = (int(os.environ.get(f"CLUSTER_{name}", n)) for name, n in (("ARTICLES", 160), ("BUCKETS", 8)))
PATIENCE = max(1, N_ARTICLES / 1000)
"""How many times longer than with a thousand articles or fewer a test waits."""
N_LOST = 6
"""Leases that are lost."""
TICK_S = 60.0
"""More than the sensor, the queue and the start of a run take together."""

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.thorough,
    pytest.mark.timeout(1800 * PATIENCE),
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
    state = cluster.wait_for(published, 400 * PATIENCE)
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


@contextmanager
def meanwhile(act: Callable[[], object], every_s: float) -> Iterator[list[object]]:
    """Do something again and again beside the block; give the list of what it returned."""
    is_over, done = Event(), []

    def repeat() -> None:
        while not is_over.wait(every_s):
            done.append(act())

    thread = Thread(target=repeat)
    thread.start()
    try:
        yield done
    finally:
        is_over.set()
        thread.join()


def test_prune_while_buckets_are_uploaded(cluster: Cluster) -> None:
    start_workers(cluster, "one", "two", "three")
    pruning = cluster.add("pruning")

    def prune() -> int:
        return pruning.call("graphrag-pipeline", "snapshots", "prune", "--keep", "1", "--grace-hours", "0").returncode

    with meanwhile(prune, 1) as pruned:
        state = cluster.wait_for(published, 500)
    assert of_cluster(state) == of_one_machine(cluster)
    assert pruned.count(0) >= 5, pruned


def test_a_lease_that_is_lost_between_upload_and_publication(cluster: Cluster, s3: ObjectServer) -> None:
    lost: list[str] = []

    def lose(method: str, path: str) -> None:
        """Take the lease from whoever got it, as if it had expired."""
        if method == "PUT" and path.endswith("/lease.json") and len(lost) < N_LOST:
            lost.append(path)
            urllib.request.urlopen(urllib.request.Request(f"{s3.endpoint}{path}", method="DELETE")).read()

    s3.fault_after = lose
    try:
        start_workers(cluster, "one", "two", "three")
        state = cluster.wait_for(published, 500)
    finally:
        s3.fault_after = None
    assert of_cluster(state) == of_one_machine(cluster)
    assert len(lost) == N_LOST


def test_a_worker_whose_disk_is_full(cluster: Cluster) -> None:
    start_workers(cluster, "two", "three")
    full = cluster.add("full")
    (full.root / "tables").mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(full.root / "tables")]
    if subprocess.run(mounted, capture_output=True).returncode:
        pytest.skip("this user may not mount a small disk")
    try:
        full.start_worker()
        state = cluster.wait_for(published, 500)
    finally:
        full.kill()
        subprocess.run(["umount", str(full.root / "tables")], check=True)
    assert of_cluster(state) == of_one_machine(cluster)
    assert "No space left on device" in (full.root / "log.txt").read_text(errors="replace")
