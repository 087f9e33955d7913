"""The daemon of `dev`: it looks at a backfill that can go on at once, and leaves one with a run under way alone."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from graphrag_pipeline.defs.dev.daemon import ActiveBackfills, Outlook, PromptBackfillDaemon, WaitForWork, make_daemons
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.names import BACKFILL_TAG
from graphrag_pipeline.defs.runs.private_api import BulkActionStatus, create_daemons
from graphrag_pipeline_tests.support.roots import make_root


class Backfills:
    """An instance with active backfills, by id, and the statuses of their runs."""

    def __init__(self, **runs: list[str]) -> None:
        self.runs = runs
        self.status = BulkActionStatus.REQUESTED

    def get_backfills(self, filters: Any) -> list[Any]:
        assert BulkActionStatus.REQUESTED in filters.statuses
        return [SimpleNamespace(backfill_id=name, status=self.status) for name in self.runs]

    def get_runs_count(self, filters: dg.RunsFilter) -> int:
        statuses = {status.value for status in filters.statuses or dg.DagsterRunStatus}
        return sum(status in statuses for status in self.runs[filters.tags[BACKFILL_TAG]])


def test_a_look_is_due_when_a_backfill_is_new_and_when_a_run_of_it_ended() -> None:
    instance = Backfills()
    backfills = ActiveBackfills(instance)  # type: ignore[arg-type]
    assert backfills.outlook() is Outlook.NOTHING
    instance.runs["new"] = []
    assert backfills.outlook() is Outlook.DUE
    for status in ("QUEUED", "STARTING", "STARTED"):
        instance.runs["new"] = [status]
        assert backfills.outlook() is Outlook.WORKING, "another run would split the rest"
    instance.runs["new"] = ["SUCCESS"]
    assert backfills.outlook() is Outlook.DUE
    instance.runs |= {"new": ["SUCCESS", "STARTED"], "second": []}
    assert backfills.outlook() is Outlook.DUE


def test_a_backfill_that_cannot_go_on_is_left_to_the_looks_of_dagster() -> None:
    backfills = ActiveBackfills(Backfills(stuck=[]))  # type: ignore[arg-type]
    assert [backfills.outlook() for _ in range(5)] == [Outlook.DUE] * 3 + [Outlook.NOTHING] * 2


def test_a_canceled_backfill_does_not_wait_for_its_runs() -> None:
    backfills = Backfills(stopped=["STARTED"])
    backfills.status = BulkActionStatus.CANCELING
    assert ActiveBackfills(backfills).outlook() is Outlook.NOTHING  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outlook", "wait_s", "longer_s", "least_s"),
    [(Outlook.DUE, 600, 600, 0), (Outlook.NOTHING, 0.3, 600, 0.3), (Outlook.WORKING, 0.3, 0.4, 0.7)],
)
def test_a_wait_is_short_for_work_and_long_while_a_run_works(
    outlook: Outlook, wait_s: float, longer_s: float, least_s: float
) -> None:
    """A wait that is too long ends in the time limit of a test."""
    start = time.monotonic()
    assert not WaitForWork(Event(), lambda: outlook, look_s=0.01, most_s=longer_s).wait(wait_s)
    assert time.monotonic() - start >= least_s


def test_a_wait_ends_at_once_with_the_daemon() -> None:
    event = Event()
    event.set()
    waiting = WaitForWork(event, lambda: Outlook.WORKING)
    assert waiting.wait(60) and waiting.is_set()


def test_only_the_daemon_of_backfills_is_ours(tmp_path: Path) -> None:
    with open_instance(make_root(tmp_path)) as instance:
        ours, dagsters = list(make_daemons(instance)), list(create_daemons(instance))
    assert [daemon.daemon_type() for daemon in ours] == [daemon.daemon_type() for daemon in dagsters]
    replaced = {type(daemon).__name__ for daemon in ours} - {type(daemon).__name__ for daemon in dagsters}
    assert replaced == {PromptBackfillDaemon.__name__}
