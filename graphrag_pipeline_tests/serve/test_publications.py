"""Publishing, rolling back and pruning under load: no failed request, and every answer comes from one snapshot."""

from __future__ import annotations

import gc
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.serve.served_roots import ServedRoots
from graphrag_pipeline.storage.snapshot_store import roll_back
from graphrag_pipeline_tests.bench.publications import REQUESTS
from graphrag_pipeline_tests.support.open_files import count_open_files
from graphrag_pipeline_tests.support.roots import build_tables, put
from graphrag_pipeline_tests.support.serving import running_server

QUESTION = {"question": "Who is Bob Cratchit?"}
PATHS = ("/entities", "/documents", "/facets", "/reports")


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def comparable(answer: dict[str, Any]) -> Any:
    return answer["answer"], [one["quote"] for one in answer["citations"]], len(answer["context"]["text_units"])


class Load:
    """Clients that ask until the end, and what they got."""

    def __init__(self, url: str) -> None:
        self.failures: list[str] = []
        self.answers: dict[str, set[str]] = {}
        self.counts: Counter[str] = Counter()
        self._url = url
        self._is_over = threading.Event()
        self._clients = [threading.Thread(target=self._ask, args=(n,)) for n in range(3)]

    def __enter__(self) -> Load:
        for client in self._clients:
            client.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for client in self._clients:
            client.join()

    def _ask(self, n: int) -> None:
        with httpx.Client(base_url=self._url, timeout=60) as client:
            while not self._is_over.is_set():
                path = PATHS[n % len(PATHS)]
                n += 1
                for answer in (client.post("/search", json=QUESTION), client.get(path)):
                    if answer.status_code != 200:
                        self.failures.append(f"{answer.request.url}: {answer.status_code} {answer.text}")
                        continue
                    found = answer.json()
                    self.counts[found["snapshot"]] += 1
                    if "answer" in found:
                        self.answers.setdefault(found["snapshot"], set()).add(repr(comparable(found)))


@pytest.mark.thorough
def test_no_request_fails_while_snapshots_come_and_go(served_root: Path, tmp_path: Path) -> None:
    shutil.copytree(served_root, tmp_path / "carol")
    root = Root(tmp_path / "carol")
    expected: dict[str, str] = {}
    published: list[str] = []

    def publish(text: str) -> None:
        put(root.path, "four.txt", text)
        build_tables(root, tuple(ALL_STAGES))
        remember()

    def remember() -> None:
        with GraphIndex.open(root.path) as index:
            expected[index.snapshot.id] = repr(comparable(index.search(QUESTION["question"]).to_dict()))
            published.append(index.snapshot.id)

    remember()
    with running_server({"carol": root.path}) as server, Load(server.url) as load:
        follows = server.served.root("carol")
        for text in ("Bob Cratchit carved the goose.", "Bob Cratchit proposed a toast to Scrooge."):
            publish(text)
            wait_until(lambda: follows.snapshot == published[-1] and load.counts[published[-1]] > 3)
        roll_back(root.snapshots, published[1])
        wait_until(lambda: follows.snapshot == published[1])
        prune(root, 1, before=time.time() + 1)
        n_before = load.counts[published[1]]
        wait_until(lambda: load.counts[published[1]] > n_before + 6)
    assert load.failures == []
    assert len(load.answers) == 3 and len(set(published)) == 3
    assert load.answers == {snapshot: {expected[snapshot]} for snapshot in load.answers}


def test_a_lease_keeps_its_snapshot_while_another_is_published(two_versions: Root) -> None:
    root = two_versions
    first, second = root.snapshots.ids()
    served = ServedRoots({"carol": root.path})
    served.start()
    try:
        with served.lease("carol") as lease:
            assert lease.snapshot == second
            root.snapshots.point_at(first)
            wait_until(lambda: served.root("carol").snapshot == first)
            assert lease.index.search("Who is Fezziwig?").snapshot == second
            with served.lease("carol") as other:
                assert other.snapshot == first
            with served.lease("carol", snapshot=second[:6]) as earlier:
                assert earlier.snapshot == second
        assert served.root("carol").n_leases == 0
    finally:
        served.close()


def test_an_unexpected_error_ends_no_following(
    two_versions: Root, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = two_versions.snapshots.ids()
    served = ServedRoots({"carol": two_versions.path})
    served.start()
    try:
        with served.lease("carol") as lease:
            monkeypatch.setattr(lease.index, "close", lambda: 1 / 0)
        for snapshot in (first, second):
            two_versions.snapshots.point_at(snapshot)
            wait_until(lambda: served.root("carol").snapshot == snapshot)  # noqa: B023 - waits at once
        assert "ZeroDivisionError" in caplog.text
    finally:
        served.close()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="open files are counted in /proc")
def test_a_retired_snapshot_leaves_no_file_open(two_versions: Root) -> None:
    root = two_versions
    first, second = root.snapshots.ids()
    gc.collect()
    gc.disable()  # `serve` collects seldom
    try:
        with running_server({"carol": root.path}) as server:
            follows, counts = server.served.root("carol"), []
            for snapshot in (second, first, second, first, second):
                with server.served.lease("carol") as former:
                    root.snapshots.point_at(snapshot)
                    wait_until(lambda: follows.snapshot == snapshot)  # noqa: B023 - waits at once
                    former.index.search(QUESTION["question"])
                for path, body in REQUESTS:
                    answer = server.client.post(path, json=body) if body else server.client.get(path)
                    assert answer.json()["snapshot"] == snapshot
                counts.append(count_open_files(root.path))
            prune(root, 1, before=time.time() + 1)
            assert not root.snapshots.path_of(first).exists()
            assert count_open_files(root.path).removed_bytes == 0
    finally:
        gc.enable()
    assert counts[0].n_files and counts[-1].n_files <= counts[0].n_files and counts[-1].n_maps <= counts[0].n_maps


@pytest.fixture
def two_versions(served_root: Path, tmp_path: Path) -> Root:
    shutil.copytree(served_root, tmp_path / "carol")
    root = Root(tmp_path / "carol")
    put(root.path, "four.txt", "Bob Cratchit carved the goose.")
    build_tables(root, tuple(ALL_STAGES))
    return root
