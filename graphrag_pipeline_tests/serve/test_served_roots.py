"""Served roots follow publications, and views are built for readers."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from graphrag_pipeline.access.access_file import add_key
from graphrag_pipeline.access.rules import FollowedRules
from graphrag_pipeline.access.view_guard import ViewNotReadyError
from graphrag_pipeline.access.view_settings import find_view
from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.serve import served_roots
from graphrag_pipeline.serve.errors import NotReadyError, error_of
from graphrag_pipeline.serve.served_roots import ServedRoots, access_build, building_views
from graphrag_pipeline.storage.snapshot_store import roll_back
from graphrag_pipeline_tests.support.damage import flip_bit, index_files
from graphrag_pipeline_tests.support.open_files import count_open_files
from graphrag_pipeline_tests.support.roots import build_tables, built_once, put
from graphrag_pipeline_tests.support.serving import running_server
from graphrag_pipeline_tests.support.thoroughness import repetitions

QUESTION = {"question": "Who is Bob Cratchit?"}
PATHS = ("/entities", "/documents", "/facets", "/reports")
REQUESTS: list[tuple[str, dict | None]] = [
    *(("/search", QUESTION | {"method": method}) for method in ("local", "global", "drift", "basic", "lazy")),
    ("/search", QUESTION | {"filters": ["id!=none"]}),
    *((f"/{kind}", None) for kind in ("entities", "documents", "reports", "relationships", "communities", "facets")),
]
"""Paths with the body of a POST, or None for a GET."""


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
            for snapshot in (second, first, second, first, second)[: repetitions(3, thorough=5)]:
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
    def build(folder: Path) -> None:
        shutil.copytree(served_root, folder)
        put(folder, "four.txt", "Bob Cratchit carved the goose.")
        build_tables(Root(folder), tuple(ALL_STAGES))

    return built_once(tmp_path / "carol", "carol, and a goose", build)


OPEN, OTHER = ("path=one.txt",), ("path=two.md",)
_WAIT_S = 60.0
_NOTE = "import os, pathlib, sys; out = open(sys.argv[1], 'a'); out.write(f'{os.getpid()}\\n'); out.close()\n"
_WAITING = "import time; time.sleep(600)"


class Child:
    """A small program in place of `access build`; each start adds a line with its process id to a file."""

    def __init__(self, folder: Path, then: str = "") -> None:
        self._log, self._program = folder / "starts.txt", _NOTE + then

    def command(self, rules: FollowedRules, served: ServedRoots) -> list[str]:
        return [sys.executable, "-S", "-c", self._program, str(self._log)]

    @property
    def starts(self) -> list[int]:
        return [int(line) for line in self._log.read_text().split()] if self._log.exists() else []


@pytest.fixture(autouse=True)
def _is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_roots, "_LOOK_S", 0.01)
    monkeypatch.setattr(served_roots, "_RETRY_S", 0.02)


@pytest.fixture
def root(served_root: Path, tmp_path: Path) -> Path:
    return shutil.copytree(served_root, tmp_path / "carol")


@pytest.fixture
def made(served_root: Path, root: Path) -> Path:
    """The view of `OPEN`; that of `OTHER` exists, too."""
    shutil.copytree(served_root, find_view(root, OTHER))
    return shutil.copytree(served_root, find_view(root, OPEN))


@pytest.fixture
def served(root: Path) -> Iterator[ServedRoots]:
    found = ServedRoots({"carol": root}, find_view)
    found.start()
    yield found
    found.close()


@pytest.fixture
def rules(tmp_path: Path) -> FollowedRules:
    add_key(tmp_path / "access.yaml", "reader", ["carol"], OPEN)
    return FollowedRules(tmp_path / "access.yaml")


@contextlib.asynccontextmanager
async def following(rules: FollowedRules, served: ServedRoots, child: Child) -> AsyncIterator[None]:
    async with asyncio.timeout(_WAIT_S), building_views(rules, served, child.command):
        yield


@pytest.fixture
def until_looked(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Awaitable[None]]:
    """Return a function that waits until the follower has looked so many times more."""
    n_looks, look = 0, served_roots._find_wanted

    def count_and_look(rules: FollowedRules, served: ServedRoots) -> object:
        nonlocal n_looks
        n_looks += 1
        return look(rules, served)

    monkeypatch.setattr(served_roots, "_find_wanted", count_and_look)

    async def wait(n: int) -> None:
        aim = n_looks + n
        await until(lambda: n_looks >= aim)

    return wait


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.01)


def test_a_view_that_is_not_made_is_refused_with_the_time_it_may_take(served):
    with pytest.raises(ViewNotReadyError, match="not ready") as refused, served.lease("carol", OPEN):
        pass
    assert error_of(refused.value).headers["retry-after"] == "60"


def test_views_are_made_once_and_again_after_a_change_of_the_rules(tmp_path, made, served, rules, until_looked):
    child = Child(tmp_path)

    async def follow() -> None:
        async with following(rules, served, child):
            await until(lambda: len(child.starts) == 1)
            await until_looked(30)
            assert len(child.starts) == 1
            add_key(rules.path, "other", ["carol"], OTHER)
            await until(lambda: len(child.starts) == 2)

    asyncio.run(follow())


@pytest.mark.parametrize("part", ["current.json", "tables", "vectors", "*"])
def test_a_view_that_is_damaged_or_gone_is_made_again_without_a_publication(
    tmp_path, served_root, made, served, rules, part, until_looked
):
    copying = f"shutil.rmtree({str(made)!r}, True); shutil.copytree({str(served_root)!r}, {str(made)!r})"
    child = Child(tmp_path, f"import shutil\nif len(open(sys.argv[1]).readlines()) > 1: {copying}")

    def is_made_again(before: object) -> bool:
        with contextlib.suppress(NotReadyError, ViewNotReadyError), served._view("carol", OPEN).lease() as after:
            return after.index is not before
        return False

    async def follow() -> None:
        async with following(rules, served, child):
            await until(lambda: len(child.starts) == 1)
            with served._view("carol", OPEN).lease() as before:
                assert before.index.snapshot.id
            if part == "*":  # as `forget` does
                shutil.rmtree(made)
            else:
                path = next(path for path in sorted((made / "snapshots").rglob(part)))
                flip_bit(path if path.is_file() else index_files(path, ["."])[-1], 8)
            await until(lambda: is_made_again(before.index))
            await until_looked(30)
            assert len(child.starts) == 2

    asyncio.run(follow())


def test_a_build_that_fails_is_logged_and_tried_again(tmp_path, served, rules, caplog):
    child = Child(tmp_path, "print('no room'); sys.exit(3)")

    async def follow() -> None:
        async with following(rules, served, child):
            await until(lambda: len(child.starts) == 3)

    asyncio.run(follow())
    assert "views are not up to date: no room" in caplog.text


def test_a_build_under_way_ends_with_the_server(tmp_path, served, rules):
    child = Child(tmp_path, _WAITING)

    async def follow() -> None:
        async with following(rules, served, child):
            await until(lambda: len(child.starts) == 1)

    asyncio.run(follow())
    assert not Path(f"/proc/{child.starts[0]}").exists()


def test_no_child_is_started_without_a_principal_with_filters(tmp_path, served, until_looked):
    add_key(tmp_path / "access.yaml", "editor", ["carol"], is_whole=True)
    child = Child(tmp_path)

    async def follow() -> None:
        async with following(FollowedRules(tmp_path / "access.yaml"), served, child):
            await until_looked(30)

    asyncio.run(follow())
    assert child.starts == []


def test_the_command_makes_the_views_of_the_served_roots(served, rules, monkeypatch):
    import typer.testing

    from graphrag_pipeline.access import views
    from graphrag_pipeline.cli import app

    made = []
    monkeypatch.setattr(views, "take_down_view", lambda root, filters: False)
    monkeypatch.setattr(views, "build_view", lambda name, root, filters, *_: made.append((name, root.path, filters)))
    program, flag, module, *arguments = access_build(rules, served)
    assert (program, flag, module) == (sys.executable, "-m", "graphrag_pipeline")
    typer.testing.CliRunner().invoke(app, arguments)
    assert made == [("carol", served.root("carol").path, OPEN)]
