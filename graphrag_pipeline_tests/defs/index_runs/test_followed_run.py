"""An index run in a thread: waiting for its stages, its failure, another start, and its interruption."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from graphrag_pipeline.defs.index_runs.followed_run import FollowedRun
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.progress import RunObserver
from graphrag_pipeline.pipeline.staleness import StalePartition

PLAN = [StalePartition("documents", "0", ("new",)), StalePartition("documents", "1", ("new",)),
        StalePartition("graph", "all", ("new",))]  # fmt: skip


@pytest.fixture
def followed() -> Iterator[FollowedRun]:
    run = FollowedRun()
    yield run
    run.stop()


def test_a_stage_is_over_once_all_its_stale_partitions_are(followed: FollowedRun) -> None:
    gates = [threading.Event() for _ in range(3)]
    passed: list[str] = []

    def index(observer: RunObserver) -> dict[str, Any]:
        observer.plan(PLAN)
        for gate, item in zip(gates, PLAN, strict=True):
            gate.wait()
            observer.progress(f"{item.stage} {item.partition}")
            observer.finish(item.stage, item.partition, item.partition == "1")
        return {"snapshot": "s"}

    lines: list[str] = []

    def follow() -> None:
        for stage in ("documents", "text_units", "graph", None):
            followed.wait_for(stage, lines.append)
            passed.append(stage or "end")

    followed.start(index)
    follower = threading.Thread(target=follow)
    follower.start()
    gates[0].set()
    while len(lines) < 1:
        time.sleep(0.01)
    assert passed == [], "one of two buckets"
    gates[1].set()
    while len(passed) < 2:
        time.sleep(0.01)
    assert passed == ["documents", "text_units"] and followed.result is None, "what is not stale is over at once"
    gates[2].set()
    follower.join()
    assert lines == ["documents 0", "documents 1", "graph all"]
    assert followed.computed == {"documents": 1, "graph": 1} and followed.result == {"snapshot": "s"}
    followed.start(lambda observer: pytest.fail("it has ended well"))


def test_a_failure_is_that_of_the_stage_waited_for_and_another_start_goes_on(followed: FollowedRun) -> None:
    def fail(observer: RunObserver) -> dict[str, Any]:
        observer.plan(PLAN)
        observer.finish("documents", "0", False)
        observer.finish("documents", "1", False)
        raise PipelineError("the endpoint is down")

    followed.start(fail)
    followed.wait_for("documents", print)
    with pytest.raises(PipelineError, match="the endpoint is down"):
        followed.wait_for("graph", print)
    followed.start(lambda observer: {"documents": 2})
    followed.wait_for("graph", print)
    assert followed.result == {"documents": 2}


def test_files_that_change_while_they_are_read_make_another_plan(followed: FollowedRun) -> None:
    def index(observer: RunObserver) -> dict[str, Any]:
        observer.plan(PLAN)
        observer.finish("documents", "0", False)
        observer.plan(PLAN[1:])
        observer.finish("documents", "1", False)
        observer.finish("graph", "all", True)
        return {}

    followed.start(index)
    followed.wait_for(None, print)
    assert followed.computed == {"documents": 2, "graph": 0}


def test_a_stopped_run_is_interrupted_and_cleans_up(followed: FollowedRun) -> None:
    began, ended = threading.Event(), []

    def index(observer: RunObserver) -> dict[str, Any]:
        began.set()
        try:
            while True:
                time.sleep(0.01)
        except KeyboardInterrupt:
            ended.append("interrupted")
            raise

    followed.start(index)
    began.wait()
    followed.stop()
    assert ended == ["interrupted"]
    with pytest.raises(KeyboardInterrupt):
        followed.wait_for(None, print)
