"""A live Dagster of a root for tests: webserver, daemon and code server as real processes, and its GraphQL."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.command_line import environment

LOCATION = "graphrag_pipeline.definitions"
REPOSITORY = {"repositoryLocationName": LOCATION, "repositoryName": "__repository__"}
"""The location of the definitions, as Dagster's GraphQL selects them."""

_STOP_S = 15
_RUN_S = 240


@contextmanager
def running_dagster(root: Root, *options: str, **changes: str) -> Iterator[str]:
    """Address of `graphrag-pipeline dev` on a root; its log is dev.log there.

    Args:
        options: more of the command's.
        changes: environment variables of its processes.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = [sys.executable, "-m", "graphrag_pipeline", "dev", "--root", str(root.path), "--port", str(port)]
    with (
        (root.path / "dev.log").open("wb") as log,
        subprocess.Popen(
            [*program, *options], stdout=log, stderr=log, start_new_session=True, env=environment(**changes)
        ) as process,
    ):
        address = f"http://127.0.0.1:{port}"
        try:
            wait_until(lambda: "dagster_webserver_version" in fetch(f"{address}/server_info"), 120)
            yield address
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S)
            with contextlib.suppress(ProcessLookupError):  # a process that still runs hangs
                os.killpg(process.pid, signal.SIGKILL)


def fetch(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=5) as reply:
            return str(reply.read().decode())
    except OSError:
        return ""


def graphql(server: str, query: str, **variables: Any) -> dict[str, Any]:
    """The data of a reply.

    Raises:
        ValueError: it holds errors.
    """
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(f"{server}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        answer = json.loads(reply.read())
    if answer.get("errors"):
        raise ValueError(answer["errors"])
    return dict(answer["data"])


def launch_job(server: str, job: str, config: Mapping[str, Any] | None = None, partition: str | None = None) -> str:
    """Launch a job as the Launchpad does; returns the id of its run."""
    query = """mutation($params: ExecutionParams!) { launchPipelineExecution(executionParams: $params) {
        __typename ... on LaunchRunSuccess { run { runId } } } }"""
    tags = [{"key": "dagster/partition", "value": partition}] if partition else []
    selector = {**REPOSITORY, "pipelineName": job}
    metadata = {"tags": tags}
    params = {"selector": selector, "runConfigData": config or {}, "mode": "default", "executionMetadata": metadata}
    reply = graphql(server, query, params=params)["launchPipelineExecution"]
    assert reply["__typename"] == "LaunchRunSuccess", reply
    return str(reply["run"]["runId"])


def wait_for_run(server: str, run_id: str) -> str:
    """Return the final status of a run."""
    query = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"

    def ended() -> str | None:
        status = str(graphql(server, query, id=run_id)["runOrError"]["status"])
        return status if status in ("SUCCESS", "FAILURE", "CANCELED") else None

    return str(wait_until(ended, _RUN_S))


def latest_backfill(server: str) -> dict[str, str]:
    """Id and status of the backfill that was launched last; empty if there was none."""
    query = "{ partitionBackfillsOrError(limit: 1) { ... on PartitionBackfills { results { id status } } } }"
    found = graphql(server, query)["partitionBackfillsOrError"]["results"]
    return dict(found[0]) if found else {}


def wait_for_backfill(server: str) -> str:
    """Return the final status of the backfill that was launched last."""

    def ended() -> str | None:
        status = latest_backfill(server).get("status", "")
        return status if status.startswith("COMPLETED") or status in ("FAILED", "CANCELED") else None

    return str(wait_until(ended, 2 * _RUN_S))


def wait_until(is_done: Callable[[], Any], timeout_s: float) -> Any:
    """Return the first true value of `is_done`, called twice a second."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if value := is_done():
            return value
        time.sleep(0.5)
    raise TimeoutError(f"not so within {timeout_s} s")
