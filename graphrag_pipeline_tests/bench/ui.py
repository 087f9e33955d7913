"""The bench `ui`: index the sample from an empty root by clicks in Dagster's asset graph, and where the time goes.

Dagster's processes and headless Chromium are real. Needs Debian's `chromium` and `chromium-driver`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.bench.measuring import CommandFailedError, Figure
from graphrag_pipeline_tests.support.dagster.live_browser import materialize_all, running_chromium
from graphrag_pipeline_tests.support.dagster.live_dagster import graphql, latest_backfill, running_dagster, wait_until

_PATIENCE_S = 480
_ENDS = ("COMPLETED_SUCCESS", "COMPLETED_FAILED", "COMPLETED", "FAILED", "CANCELED")
_RUNS = """{ runsOrError { ... on Runs { results { creationTime stats { ... on RunStatsSnapshot {
    launchTime startTime endTime } } } } } }"""


@dataclass(frozen=True)
class RunTimes:
    """When a run was created, launched, started and ended, in seconds since 1970."""

    created: float
    launched: float
    started: float
    ended: float


def run(root: Root) -> list[Figure]:
    """Return clicks, seconds until the snapshot is published, and the parts of that time.

    Raises:
        CommandFailedError: the backfill failed.
    """
    with running_dagster(root) as server, running_chromium() as browser:
        begun = time.time()
        n_clicks = materialize_all(browser, server)
        clicked_s = time.time() - begun
        published = wait_until(lambda: _when(bool(root.snapshots.current()) or _has_ended(server)), _PATIENCE_S)
        completed = wait_until(lambda: _when(_has_ended(server)), _PATIENCE_S)
        status, runs = latest_backfill(server)["status"], _runs(server)
    if status != "COMPLETED_SUCCESS" or root.snapshots.current() is None:
        raise CommandFailedError(f"the backfill ended as {status}")
    starting_s = sum(run.started - run.launched for run in runs)
    working_s = sum(run.ended - run.started for run in runs)
    waiting_s = completed - begun - clicked_s - starting_s - working_s
    return [
        Figure("clicks in the asset graph that index the sample", n_clicks, "clicks", 3),
        Figure("from opening the asset graph to the published snapshot, sample", published - begun, "s", 90),
        Figure("ui: until the backfill is completed", completed - begun, "s"),
        Figure("ui: runs", len(runs), "runs", 2),
        Figure("ui: pages and clicks", clicked_s, "s"),
        Figure("ui: starting the processes of the runs", starting_s, "s"),
        Figure("ui: work of the runs", working_s, "s"),
        Figure("ui: daemon and queue", max(0.0, waiting_s), "s"),
    ]


def _when(is_true: bool) -> float | None:
    return time.time() if is_true else None


def _has_ended(server: str) -> bool:
    return latest_backfill(server).get("status", "") in _ENDS


def _runs(server: str) -> list[RunTimes]:
    """Return the times of all runs, oldest first."""
    rows: list[dict[str, Any]] = graphql(server, _RUNS)["runsOrError"]["results"]
    times = [
        (row["creationTime"], *(row["stats"][f"{name}Time"] for name in ("launch", "start", "end"))) for row in rows
    ]
    return sorted((RunTimes(*values) for values in times), key=lambda run: run.created)
