"""`up`: one command from a folder to a page that answers, which follows the folder and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from graphrag_pipeline.pipeline.live_status import read_live_status
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.command_line import Call, environment, program, started
from graphrag_pipeline_tests.support.dagster.live_dagster import wait_until
from graphrag_pipeline_tests.support.roots import CAROL, make_root

wait = partial(wait_until, timeout_s=90)


@contextmanager
def running_up(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[Any], Path]]:
    """Run `up` on a folder; give its process and what it prints."""
    log = folder.with_name("up.log")
    with (
        log.open("w") as printed,
        started(program("up", folder, *options), stdout=printed, stderr=printed, env=environment()) as process,
    ):
        try:
            yield process, log
        except BaseException:
            print(log.read_text())
            raise
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(30)


def write(folder: Path) -> Path:
    folder.mkdir()
    for name, text in CAROL.items():
        (folder / name).write_text(text)
    return folder


def test_a_folder_becomes_a_page_that_follows_it_and_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    folder, root = write(tmp_path / "docs"), tmp_path / "docs_index"
    with running_up(folder) as (process, log):
        address = wait(lambda: [line for line in log.read_text().splitlines() if line.startswith("ask: ")])
        url = address[0].split()[1]
        first = wait(lambda: httpx.get(f"{url}/roots").json()["roots"][0]["snapshot"])
        assert httpx.get(f"{url}/live").json()["state"] == "watching"
        (folder / "new.md").write_text("# Cornhill\n\nBob Cratchit skated on Cornhill with Amalia Eld.")
        second = wait(lambda: {httpx.get(f"{url}/roots").json()["roots"][0]["snapshot"]} - {first, None}).pop()
        found = httpx.get(f"{url}/entities", params={"search": "Amalia"}).json()
        assert (found["snapshot"], found["total"]) == (second, 1)
        wait(lambda: f"1 file changed: {len(CAROL) + 1} documents, snapshot {second}" in log.read_text())
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert log.read_text().endswith("stopped; what was indexed is kept\n")
    assert read_live_status(root).state == ""
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")
    assert Root(root).snapshots.current() == second
    assert sorted(path.name for path in tmp_path.iterdir()) == ["docs", "docs_index", "up.log"]


@pytest.mark.thorough
def test_an_empty_folder_and_an_unreadable_setting_are_said_and_watched(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    with running_up(folder) as (_, log):
        wait(lambda: "no readable documents" in log.read_text() and "ask: " in log.read_text())
        assert read_live_status(tmp_path / "docs_index").state == "failed"
        (folder / "one.md").write_text("# One\n\nMarley was dead.")
        wait(lambda: "1 file changed: 1 document, snapshot" in log.read_text())
        settings = tmp_path / "docs_index" / "settings.yaml"
        good = settings.read_text()
        settings.write_text("storage: [")
        wait(lambda: read_live_status(tmp_path / "docs_index").state == "failed")
        settings.write_text(good)
        wait(lambda: read_live_status(tmp_path / "docs_index").state == "watching")


@pytest.mark.thorough
def test_a_root_is_used_as_it_is_and_only_once(tmp_path: Path, call: Call) -> None:
    root = make_root(tmp_path / "own")
    with running_up(root.path) as (_, log):
        wait(lambda: "ask: " in log.read_text())
        assert Root(root.path).snapshots.current()
        outcome = call("up", root.path)
        assert outcome.status == 1 and "another `graphrag-pipeline up`" in outcome.err
    assert not [path for path in tmp_path.iterdir() if path.name not in ("own", "up.log")]


def test_what_is_in_the_way_is_said(tmp_path: Path, call: Call) -> None:
    outcome = call("up", tmp_path / "missing")
    assert outcome.status == 1 and "no such folder" in outcome.err
    folder = write(tmp_path / "docs")
    (tmp_path / "docs_index").mkdir()
    (tmp_path / "docs_index" / "mine.txt").write_text("mine")
    outcome = call("up", folder)
    assert outcome.status == 1 and "is no root and not empty" in outcome.err
    other = make_root(tmp_path / "other")
    outcome = call("up", folder, "--root", other.path)
    assert outcome.status == 1 and "is the root of" in outcome.err
    assert os.listdir(tmp_path / "docs_index") == ["mine.txt"]


@pytest.mark.thorough
def test_the_next_free_port_is_taken(tmp_path: Path) -> None:
    with running_up(write(tmp_path / "one")) as (_, log):
        wait(lambda: "ask: " in log.read_text())
        (tmp_path / "more").mkdir()
        with running_up(write(tmp_path / "more" / "two")) as (_, other):
            wait(lambda: "ask: " in other.read_text())
            assert (
                other.read_text().partition("ask: ")[2].split()[0] != log.read_text().partition("ask: ")[2].split()[0]
            )
