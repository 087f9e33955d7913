"""Jobs that index stale stages, all stages or one kind of stage, and the report of stale stages."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.tags import HIDDEN_TAG_PREFIX, SYSTEM_TAG_PREFIX

from graphrag_pipeline.defs.assets.definitions import BODIES
from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.errors import calls_endpoint, retrying
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.loaded_code import RELOAD
from graphrag_pipeline.defs.runs.naming import CHANGED_TAG, HOST_TAG, KIND_TAG, ONLY_STALE_TAG, STARTED_BY_TAG
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.spending import BudgetExceededError
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import ROOT_VARIABLE, Root, find_root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline.settings.presets import settings_for_model
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.model_server import ReceivedRequest
from graphrag_pipeline_tests.support.models.model_roots import ModelIndex
from graphrag_pipeline_tests.support.roots import make_root, put

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def run(root: Root, job: str, definitions: dg.Definitions | None = None) -> tuple[dict[str, Any], list[dg.DagsterRun]]:
    """Return the metadata of the last op of a job, and the asset runs that the job started."""
    definitions = definitions or build_definitions(root)
    with open_instance(root) as instance:
        result = definitions.resolve_job_def(job).execute_in_process(instance=instance, run_config=QUIET)
        started = instance.get_runs(dg.RunsFilter(tags={STARTED_BY_TAG: result.run_id}))
    shown = [event.step_output_data.metadata for event in result.all_events if event.is_successful_output]
    return {name: value.value for name, value in shown[-1].items()}, list(started)


def stale(root: Root) -> list[Any]:
    opened = Root(root.path)
    return find_stale(opened, detect_input(opened))


def test_the_report_names_stale_stages_and_reasons(indexed_root: Root) -> None:
    put(indexed_root.path, "four.txt", "They say that Scrooge saw the fog.")
    before = indexed_root.snapshots.current()
    shown, started = run(indexed_root, "stale_report")
    assert started == [] and indexed_root.snapshots.current() == before, "nothing ran"
    assert shown["stale partitions"] == len(stale(indexed_root))
    assert "| corpus_manifest | " in shown["stale"] and "input folder changed" in shown["stale"]
    assert "no model calls" in shown["estimate"]
    assert shown["definitions"] == "as on disk"


def test_every_job_has_its_kind(tmp_path: Path) -> None:
    kinds: dict[str, set[str]] = {}
    for job in build_definitions(make_root(tmp_path)).resolve_all_job_defs():
        if not job.name.startswith("__"):
            kinds.setdefault(job.tags[KIND_TAG], set()).add(job.name)
    assert kinds["inspect"] == {"stale_report", "verify_files", "observe_sources"}
    assert kinds["evaluate"] == {"evaluation_job"} and kinds["ask"] > {"batch_job", "local_search_job"}
    assert kinds["index"] > {"reindex_stale", "index_bucket", "graph_and_later"} and len(kinds) == 4


def test_the_report_estimates_the_cost(tmp_path: Path) -> None:
    settings = settings_for_model("gpt-4o-mini", None, "http://127.0.0.1:9/v1", "NO_KEY_NEEDED")
    (tmp_path / "root").mkdir()
    from graphrag_pipeline.settings.rendering import render_settings

    shown, _ = run(make_root(tmp_path / "root", settings=render_settings(settings)), "stale_report")
    assert shown["estimated calls"] > 0
    assert "extracted_graph" in shown["estimate"]


def test_definitions_of_older_settings_ask_for_a_reload(indexed_root: Root) -> None:
    definitions = build_definitions(indexed_root)
    (indexed_root.path / "settings.yaml").write_text("storage: {n_buckets: 2}\nreports: {max_input_tokens: 4000}\n")
    shown, _ = run(indexed_root, "stale_report", definitions)
    assert shown["definitions"] == RELOAD
    assert "reports.max_input_tokens: 8000 -> 4000" in shown["stale"], "staleness is read from disk"


def test_reindex_stale_runs_exactly_the_stale_stages(indexed_root: Root) -> None:
    put(indexed_root.path, "four.txt", "They say that Scrooge saw the fog.")
    expected = {(item.stage, item.partition) for item in stale(indexed_root)}
    shown, started = run(indexed_root, "reindex_stale")
    assert shown["documents"] == 4 and shown["snapshot"] == indexed_root.snapshots.current()
    assert "- document added: four.txt" in shown["difference to the snapshot before"].splitlines()
    assert shown["run that published the snapshot"] in {run.run_id for run in started}
    assert shown["asset of the snapshot"] == dg.AssetKey("index_snapshot")
    assert not stale(indexed_root)
    with open_instance(indexed_root) as instance:
        published = instance.get_latest_materialization_event(dg.AssetKey("index_snapshot"))
    assert published and published.asset_materialization
    assert published.asset_materialization.metadata["published by"].value == "job reindex_stale"
    assert {run.tags[ONLY_STALE_TAG] for run in started} == {"true"}
    named = {run.tags.get("dagster/partition"): run.tags.get(CHANGED_TAG) for run in started}
    assert named.pop(None) == "four.txt" and set(named.values()) == {None}, "Dagster names the bucket"
    unseen = (SYSTEM_TAG_PREFIX, HIDDEN_TAG_PREFIX)
    visible = {name for run in started for name in run.tags if not name.startswith(unseen)}
    assert visible == {STARTED_BY_TAG, CHANGED_TAG}
    assert all(run.parent_run_id is None and run.root_run_id is None for run in started), "no re-execution"
    own = {name: tag for run in started for name, tag in run.tags.items() if "graphrag" in name}
    assert max(map(len, own.values())) <= 64 and HOST_TAG in own
    ran = {(key.to_user_string(), run.tags.get("dagster/partition", "all")) for run in started
           for key in run.asset_selection or ()}  # fmt: skip
    assert ran == expected
    n_equal = shown["partitions not computed, as what they read came out equal"]
    assert shown["partitions computed"] + n_equal == len(expected)
    shown, started = run(indexed_root, "reindex_stale")
    assert (shown["computed"], started) == ("nothing", [])


def test_a_freshness_policy_is_that_of_the_published_snapshot_alone(indexed_root: Root) -> None:
    settings = "storage: {n_buckets: 2}\nschedule: {fresh_within_hours: 12}\n"
    (indexed_root.path / "settings.yaml").write_text(settings)
    definitions = build_definitions(Root(indexed_root.path))
    policies = {spec.key.to_user_string(): spec.freshness_policy for spec in definitions.resolve_all_asset_specs()}
    assert [name for name, policy in policies.items() if policy] == ["index_snapshot"]


def test_a_job_over_buckets_and_corpus_runs_both_and_makes_the_same_index(indexed_root: Root) -> None:
    before = indexed_root.snapshots.current()
    _, started = run(indexed_root, "embeddings_only")
    ran = {key.to_user_string() for run in started for key in run.asset_selection or ()}
    embedding = {stage.name for stage in STAGES.values() if stage.group == "embeddings"}
    assert ran == {*embedding, "index_candidate", "index_snapshot"}
    assert indexed_root.snapshots.current() == before


@pytest.mark.thorough
def test_reports_only_writes_reports_and_publishes(indexed_root: Root) -> None:
    (indexed_root.path / "settings.yaml").write_text("storage: {n_buckets: 2}\nreports: {max_input_tokens: 5000}\n")
    before = indexed_root.snapshots.current()
    run(Root(indexed_root.path), "reports_only")
    assert not stale(indexed_root)
    assert indexed_root.snapshots.current() != before


def job_of_this_root() -> dg.JobDefinition:
    return build_definitions(Root(find_root())).resolve_job_def("graph_and_later")


def reindex_stale_of_this_root() -> dg.JobDefinition:
    return build_definitions(Root(find_root())).resolve_job_def("reindex_stale")


def test_reindex_stale_has_a_step_for_each_stage_and_resumes_at_the_one_that_failed(
    indexed_root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(indexed_root.path, "four.txt", "They say that Scrooge saw the fog.")
    monkeypatch.setenv(ROOT_VARIABLE, str(indexed_root.path))
    job, stages = dg.reconstructable(reindex_stale_of_this_root), [*ALL_STAGES]
    n_above = stages.index("communities")

    def steps(result: dg.ExecuteJobResult) -> list[str]:
        return [str(event.step_key) for event in result.all_events if event.is_step_success]

    def fail(run: object) -> None:
        raise PipelineError("the disk is full")

    with open_instance(indexed_root) as instance:
        monkeypatch.setitem(BODIES, "communities", fail)
        with dg.execute_job(job, instance, run_config=QUIET) as failed:
            assert steps(failed) == stages[:n_above]
            [failure] = failed.get_step_failure_events()
            assert failure.step_key == "communities" and "the disk is full" in str(failure.step_failure_data.error)
        monkeypatch.undo()
        monkeypatch.setenv(ROOT_VARIABLE, str(indexed_root.path))
        options = dg.ReexecutionOptions.from_failure(failed.run_id, instance)
        with dg.execute_job(job, instance, run_config=QUIET, reexecution_options=options) as again:
            assert again.success and steps(again) == stages[n_above:]
            outputs = {str(event.step_key): event.step_output_data.metadata["partitions computed"].value
                       for event in again.all_events if event.is_successful_output}  # fmt: skip
    assert outputs["communities"] == outputs["community_reports"] == 1 and not stale(indexed_root)


@pytest.mark.thorough
def test_a_failed_run_resumes_at_its_failure(indexed_root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROOT_VARIABLE, str(indexed_root.path))
    job = dg.reconstructable(job_of_this_root)

    def fail(run: object) -> None:
        raise PipelineError("the disk is full")

    with open_instance(indexed_root) as instance:
        monkeypatch.setitem(BODIES, "community_reports", fail)
        with dg.execute_job(job, instance, run_config=QUIET) as failed:
            assert not failed.success
        monkeypatch.undo()
        monkeypatch.setenv(ROOT_VARIABLE, str(indexed_root.path))
        options = dg.ReexecutionOptions.from_failure(failed.run_id, instance)
        with dg.execute_job(job, instance, run_config=QUIET, reexecution_options=options) as again:
            assert again.success
            ran = {str(event.step_key) for event in again.all_events if event.is_step_success}
    assert {"community_reports", "report_embeddings", "index_candidate", "index_snapshot"} <= ran
    assert not ran & {"graph", "communities", "summarized_descriptions"}


def test_stages_that_call_an_endpoint_are_retried() -> None:
    by_model = settings_for_model("m", "e", "http://127.0.0.1:9/v1")
    tried = {name for name, stage in ALL_STAGES.items() if calls_endpoint(stage, by_model)}
    assert {"extracted_graph", "community_reports", "entity_embeddings"} <= tried
    assert not tried & {"documents", "communities", "index_candidate", "index_snapshot"}
    assert not any(calls_endpoint(stage, Settings()) for stage in ALL_STAGES.values())


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def fail_with(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("end", "n_tries"),
    [
        (fail_with(BudgetExceededError("spent")), 1),
        (fail_with(PipelineError("the endpoint is down")), 3),
        (fail_with(ZeroDivisionError("a fault of ours")), 1),
        (terminate, 1),
    ],
)
def test_lasting_errors_and_terminated_runs_are_not_retried(end: Callable[[], None], n_tries: int) -> None:
    tries = []

    @dg.op
    def ask(context) -> None:  # Dagster reads annotations, which are text in this module
        tries.append(1)
        with retrying(context, dg.RetryPolicy(max_retries=2)):
            end()

    @dg.job
    def job() -> None:
        ask()

    assert not job.execute_in_process(raise_on_error=False, run_config=QUIET).success
    assert len(tries) == n_tries


@pytest.mark.parametrize(
    ("job", "section", "kinds"),
    [("reindex_all", "extraction", {"extraction", "gleaning"}), ("graph_and_later", "descriptions", {"summary"})],
)
def test_a_terminated_job_ends_at_once_and_keeps_paid_replies(
    model_index: ModelIndex, job: str, section: str, kinds: set[str]
) -> None:
    model_index.change_prompt("extract_graph")
    model_index.change_prompt("summarize_descriptions")
    root, server = Root(model_index.root.path), model_index.server
    before, _ = root.models.cache.mean_completion(section, "test-chat")

    def stop_at_third(request: ReceivedRequest) -> None:
        if request.kind in kinds and sum(server.count(kind) for kind in kinds) == 3:
            terminate()

    model_index.script = stop_at_third
    with open_instance(root) as instance:
        definition = build_definitions(root).resolve_job_def(job)
        result = definition.execute_in_process(instance=instance, run_config=QUIET, raise_on_error=False)
        types = {event.event_type_value for event in result.all_events}
    assert not result.success and not {"STEP_UP_FOR_RETRY", "STEP_RESTARTED"} & types
    after, _ = root.models.cache.mean_completion(section, "test-chat")
    n_answered = sum(call.status == 200 for call in server.calls if call.kind in kinds)
    assert n_answered == after - before > 0
