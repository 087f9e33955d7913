"""A live Dagster follows edits: documents by the sensor, a prompt by a backfill after a reload of the definitions.

Daemon, webserver, code server and the model behind HTTP are real processes; run with `make test-ui`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline.storage.locks import is_index_running
from graphrag_pipeline_tests.model_server import ModelServer, running_model_server
from graphrag_pipeline_tests.support.dagster.live_dagster import (
    REPOSITORY,
    graphql,
    launch_job,
    running_dagster,
    wait_for_run,
    wait_until,
)
from graphrag_pipeline_tests.support.dagster.webhook import Hook, running_hook
from graphrag_pipeline_tests.support.roots import make_root, put

pytestmark = [pytest.mark.ui, pytest.mark.timeout(900)]

SETTINGS = """
storage: {{n_buckets: 2}}
extraction: {{engine: model}}
chat_model: {{model: test-chat, base_url: "{model}"}}
schedule: {{watch_input: true, watch_interval_s: 5}}
notifications: {{webhook: "{hook}"}}
"""
FOG = "They say that Ebenezer Scrooge saw the yellow fog."
RAIN = "They say that Ebenezer Scrooge saw the cold rain."
PATIENCE_S = 240
SLOW_S = 8.0


class Live:
    """A root, its live Dagster, and the webhook for its runs."""

    def __init__(self, root: Root, address: str, hook: Hook, model: ModelServer) -> None:
        self.path, self.address, self.hook, self.model = root.path, address, hook, model

    @property
    def root(self) -> Root:
        return Root(self.path)

    def texts(self) -> dict[str, str]:
        """Documents of the published snapshot, by path; empty without one."""
        if not self.root.snapshots.current():
            return {}
        rows = self.root.snapshots.open().table("documents").to_pylist()
        return {row["path"]: row["text"] for row in rows}

    def stale(self) -> list[Any]:
        return find_stale(self.root, detect_input(self.root))

    def wait_for_runs(self) -> None:
        wait_until(lambda: all(run["status"] in ("SUCCESS", "FAILURE") for run in self.runs()), PATIENCE_S)
        assert self.runs()[0]["status"] == "SUCCESS", self.runs()[0]

    def runs(self) -> list[dict[str, Any]]:
        query = "{ runsOrError { ... on Runs { results { runId jobName status } } } }"
        return list(graphql(self.address, query)["runsOrError"]["results"])

    def runs_of_reindexing(self) -> list[dict[str, Any]]:
        return [run for run in self.runs() if run["jobName"] == "reindex_stale"]

    def errors_of(self, run_id: str) -> str:
        query = """query($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events {
            ... on ExecutionStepFailureEvent { error { message causes { message } } } } } } }"""
        return str(graphql(self.address, query, id=run_id)["logsForRun"])

    def skipped(self) -> str:
        """Return the skip reasons of the sensor's last ticks."""
        query = """query($selector: SensorSelector!) { sensorOrError(sensorSelector: $selector) { ... on Sensor {
            sensorState { ticks(limit: 3) { skipReason } } } } }"""
        return str(graphql(self.address, query, selector={**REPOSITORY, "sensorName": "input_folder_sensor"}))

    def unsynced(self) -> set[str]:
        """Unpartitioned assets that the UI shows as not up to date."""
        nodes = graphql(self.address, "{ assetNodes { isPartitioned staleStatus assetKey { path } } }")["assetNodes"]
        wrong = [node for node in nodes if not node["isPartitioned"] and node["staleStatus"] == "STALE"]
        return {node["assetKey"]["path"][0] for node in wrong}

    def run(self, job: str) -> None:
        """Run a job of the whole corpus, as the Launchpad does; it must succeed."""
        assert wait_for_run(self.address, launch_job(self.address, job)) == "SUCCESS", job

    def terminate(self, run_id: str) -> str:
        """Terminate a run as the button does; return its final status."""
        graphql(self.address, "mutation($id: String!) { terminateRun(runId: $id) { __typename } }", id=run_id)
        return wait_for_run(self.address, run_id)

    def backfill(self, buckets: list[str]) -> None:
        """Launch a backfill of every stage of some buckets, as the UI does, and wait for its runs."""
        query = """mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
            __typename ... on LaunchBackfillSuccess { backfillId } } }"""
        stages = [{"path": [stage.name]} for stage in ALL_STAGES.values() if stage.is_partitioned]
        params = {"assetSelection": stages, "partitionNames": buckets, "title": "prompt"}
        launched = graphql(self.address, query, params=params)["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        state = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
            ... on PartitionBackfill { status } } }"""
        wait_until(lambda: "COMPLETED" in str(graphql(self.address, state, id=launched["backfillId"])), PATIENCE_S)

    def reload(self) -> None:
        query = "mutation($name: String!) { reloadRepositoryLocation(repositoryLocationName: $name) { __typename } }"
        reply = graphql(self.address, query, name=REPOSITORY["repositoryLocationName"])
        assert reply["reloadRepositoryLocation"]["__typename"] == "WorkspaceLocationEntry", reply


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with running_model_server() as model, running_hook() as hook:
        settings = SETTINGS.format(model=model.base_url, hook=hook.url)
        root = make_root(tmp_path_factory.mktemp("live") / "root", settings=settings)
        with running_dagster(root, "--no-reload", OPENAI_API_KEY="sk-test") as address:
            yield Live(root, address, hook, model)


def test_the_published_snapshot_follows_the_input_folder(live: Live) -> None:
    wait_until(lambda: len(live.texts()) == 3, PATIENCE_S)
    for text in (FOG, RAIN, FOG):
        put(live.path, "four.txt", text)
        wait_until(lambda text=text: live.texts().get("four.txt", "").strip() == text, PATIENCE_S)
    (live.path / "input" / "four.txt").unlink()
    wait_until(lambda: len(live.texts()) == 3, PATIENCE_S)
    live.wait_for_runs()
    assert live.stale() == [] and live.unsynced() == set()
    assert len(live.runs_of_reindexing()) == 5, "one run a change"
    wait_until(lambda: len(live.hook.messages) == 5, PATIENCE_S)
    assert live.hook.messages[-1]["snapshot"] == live.root.snapshots.current()
    assert {message["status"] for message in live.hook.messages} == {"success"}


def test_an_edited_prompt_is_fresh_again_after_a_reload_and_a_backfill(live: Live) -> None:
    prompt = live.path / "prompts" / "extract_graph.txt"
    prompt.write_text(prompt.read_text() + "\nName nobody twice.\n")
    assert {item.stage for item in live.stale()} >= {"extracted_graph", "graph", "index_snapshot"}
    wait_until(lambda: "prompt extract_graph" in live.skipped(), PATIENCE_S)

    run = launch_job(live.address, "index_bucket", partition="000")
    assert wait_for_run(live.address, run) == "FAILURE"
    assert "Reload definitions" in live.errors_of(run)

    live.reload()
    live.backfill(["000", "001"])
    live.wait_for_runs()
    live.run("graph_and_later")
    assert live.stale() == [] and live.unsynced() == set()
    live.run("stale_report")
    wait_until(
        lambda: any("Reload definitions" in message.get("error", "") for message in live.hook.messages), PATIENCE_S
    )


def test_a_terminated_run_of_the_sensor_is_not_retried_and_the_next_one_finishes(live: Live) -> None:
    n_messages, settings = len(live.hook.messages), live.model.settings
    n_calls, n_runs = len(live.model.calls), len(live.runs_of_reindexing())
    live.model.settings = replace(settings, latency_s=SLOW_S)
    put(live.path, "five.txt", "They say that Ebenezer Scrooge saw the warm lamp. Bob Cratchit lit it.")
    wait_until(lambda: len(live.model.calls) > n_calls, PATIENCE_S)
    run = live.runs_of_reindexing()[0]
    assert run["status"] == "STARTED" and is_index_running(live.path)
    assert live.terminate(run["runId"]) == "CANCELED" and not is_index_running(live.path)
    live.model.settings = settings
    wait_until(lambda: "requested 1 times without success" in live.skipped(), PATIENCE_S)
    assert len(live.runs_of_reindexing()) == n_runs + 1 and "five.txt" not in live.texts()
    live.run("reindex_stale")
    assert "five.txt" in live.texts() and live.stale() == []

    def statuses() -> list[str]:
        return [message["status"] for message in live.hook.messages[n_messages:] if message["job"] == "reindex_stale"]

    wait_until(statuses, PATIENCE_S)
    assert statuses() == ["success"], "a terminated run sends no message"
