"""The bench `ui`: index the sample from an empty root by clicks in Dagster's asset graph.

Dagster's processes and headless Chromium are real. Needs Debian's `chromium` and `chromium-driver`.
"""

from __future__ import annotations

import time

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.bench.measuring import CommandFailedError, Figure
from graphrag_pipeline_tests.support.dagster.live_browser import materialize_all, running_chromium
from graphrag_pipeline_tests.support.dagster.live_dagster import latest_backfill, running_dagster, wait_until

_PATIENCE_S = 480
_ENDS = ("COMPLETED_SUCCESS", "COMPLETED_FAILED", "COMPLETED", "FAILED", "CANCELED")


def run(root: Root) -> list[Figure]:
    """Return the clicks, and the seconds until the snapshot is published.

    Raises:
        CommandFailedError: the backfill failed.
    """
    with running_dagster(root) as server, running_chromium() as browser:
        begun = time.time()
        n_clicks = materialize_all(browser, server)
        wait_until(lambda: bool(root.snapshots.current()) or _has_ended(server), _PATIENCE_S)
        published_s = time.time() - begun
        wait_until(lambda: _has_ended(server), _PATIENCE_S)
        status = latest_backfill(server)["status"]
    if status != "COMPLETED_SUCCESS" or root.snapshots.current() is None:
        raise CommandFailedError(f"the backfill ended as {status}")
    return [
        Figure("clicks in the asset graph that index the sample", n_clicks, "clicks", 3),
        Figure("from opening the asset graph to the published snapshot, sample", published_s, "s", 90),
    ]


def _has_ended(server: str) -> bool:
    return latest_backfill(server).get("status", "") in _ENDS
