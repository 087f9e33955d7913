"""The follower of a server starts a child that makes views: when, how often, and with which command.

That such a child makes the view, and that the server then reads it, is tested in `access/test_views.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from graphrag_pipeline.access.editing import add_key
from graphrag_pipeline.access.rules import FollowedRules
from graphrag_pipeline.access.view_guard import ViewNotReadyError
from graphrag_pipeline.access.view_settings import find_view
from graphrag_pipeline.serve import served_roots
from graphrag_pipeline.serve.errors import NotReadyError, error_of
from graphrag_pipeline.serve.served_roots import ServedRoots, access_build, building_views
from graphrag_pipeline_tests.support.damage import flip_bit, index_files

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
