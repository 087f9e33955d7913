"""An index whose model calls go in batches: a job that ends, and a sensor that goes on once they are over."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from graphrag_pipeline.defs.automation.notifications import may_publish, only_waits
from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.naming import BATCHES_TAG, INDEX_IN_BATCHES
from graphrag_pipeline.models.endpoints import batching
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, make_model_root
from graphrag_pipeline_tests.support.roots import make_root

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def look(repository: dg.RepositoryDefinition, instance: dg.DagsterInstance) -> dg.RunRequest | dg.SkipReason:
    context = dg.build_sensor_context(instance, repository_def=repository)
    tick = repository.get_sensor_def("batch_sensor").evaluate_tick(context)
    [request] = tick.run_requests or [None]
    return request or dg.SkipReason(tick.skip_message)


def end_of(run: dg.DagsterRun, instance: dg.DagsterInstance) -> dg.RunFailureSensorContext:
    [logged] = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.RUN_FAILURE)
    context = dg.build_run_status_sensor_context("notify", logged.get_dagster_event(), instance, run)
    return context.for_run_failure()


def run(repository: dg.RepositoryDefinition, instance: dg.DagsterInstance) -> dg.DagsterRun:
    result = repository.get_job(INDEX_IN_BATCHES).execute_in_process(instance=instance, run_config=QUIET)
    found = instance.get_run_by_id(result.run_id)
    assert result.success and found
    return found


def test_runs_send_batches_and_the_sensor_goes_on_until_the_index_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setattr(batching, "QUIET_S", 0.1)
    with running_model_server() as server:
        root, api = make_model_root(tmp_path / "root", server.base_url, 2, storage={"n_buckets": 1}), server.batch_api
        definitions = build_definitions(root).get_repository_def()
        with open_instance(root) as instance:
            assert "no run of index_in_batches waits" in str(look(definitions, instance))
            for _ in range(6):
                api.batch_s = 1000.0
                ended = run(definitions, instance)
                if BATCHES_TAG not in ended.tags:
                    break
                assert not may_publish(root, ended) and root.snapshots.current() is None
                waits_for = ended.tags[BATCHES_TAG].split()
                assert set(waits_for) == {one["id"] for one in api.batches if one["status"] == "in_progress"}
                skipped = look(definitions, instance)
                assert isinstance(skipped, dg.SkipReason) and f"{waits_for[0]} is in_progress" in str(skipped)
                api.is_away = True
                assert "is not known now" in str(look(definitions, instance))
                api.is_away = False
                api.finish()
                request = look(definitions, instance)
                assert isinstance(request, dg.RunRequest) and request.run_key == ended.run_id
            waiting = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))
            assert waiting and all(only_waits(end_of(one, instance)) for one in waiting), "no webhook calls them failed"
        assert may_publish(root, ended) and root.snapshots.current()
        assert {one["status"] for one in api.batches} == {"completed"} and len(api.batches) >= 3
        keys = [call.key for call in server.calls if call.kind in ("extraction", "summary")]
        assert len(keys) == len(set(keys)), "nothing is paid twice"


def test_a_root_without_models_has_neither(tmp_path: Path) -> None:
    definitions = build_definitions(make_root(tmp_path / "root"))
    assert not [sensor for sensor in definitions.sensors or [] if sensor.name == "batch_sensor"]
    assert INDEX_IN_BATCHES not in [job.name for job in definitions.jobs or []]
