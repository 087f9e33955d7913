"""A webhook gets a message for each ended run, over real HTTP; a failing one changes nothing and leaks no secret."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping

import dagster as dg
import pytest

from graphrag_pipeline.defs.automation import notifications
from graphrag_pipeline.defs.automation.notifications import build_notification_sensors, describe_published, post
from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.live import WAY_ON
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.settings.section import NotificationsSettings
from graphrag_pipeline_tests.support.dagster.webhook import Hook, running_hook
from graphrag_pipeline_tests.support.roots import make_root

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@pytest.fixture
def hook() -> Iterator[Hook]:
    with running_hook() as server:
        yield server


def end_run(root: Root, job_name: str, config: Mapping[str, object] = QUIET) -> None:
    """Run a job and evaluate the sensor that belongs to its end."""
    success, failure, _ = build_notification_sensors(root)
    with open_instance(root) as instance:
        job = build_definitions(root).resolve_job_def(job_name)
        result = job.execute_in_process(instance=instance, run_config=config, raise_on_error=False)
        event = result.get_run_success_event() if result.success else result.get_run_failure_event()
        context = dg.build_run_status_sensor_context(
            sensor_name="notify",
            dagster_instance=instance,
            dagster_run=result.dagster_run,
            dagster_event=event,
        )
        if result.success:
            success(context)
        else:
            failure(context.for_run_failure())


def with_webhook(root: Root, url: str) -> Root:
    (root.path / "settings.yaml").write_text(f"storage: {{n_buckets: 2}}\nnotifications: {{webhook: '{url}'}}\n")
    return Root(root.path)


def test_success_is_reported_with_snapshot_and_counts(indexed_root: Root, hook: Hook) -> None:
    root = with_webhook(indexed_root, hook.url)
    end_run(root, "reindex_stale")
    (message,) = hook.messages
    assert (message["status"], message["job"], message["snapshot"]) == (
        "success",
        "reindex_stale",
        root.snapshots.current(),
    )
    assert message["counts"]["documents"] == 3 and message["run_id"]
    end_run(root, "stale_report")
    end_run(root, "batch_job", {})  # fails: there are no questions
    assert len(hook.messages) == 1, "reports and answers are not index runs"


def test_failure_is_reported_with_its_reason(tmp_path, hook: Hook) -> None:
    root = with_webhook(make_root(tmp_path, {}), hook.url)
    end_run(root, "reindex_stale")
    (message,) = hook.messages
    assert (message["status"], message["snapshot"], message["counts"]) == ("failure", None, {})
    assert "no readable documents" in message["error"] and "\n" not in message["error"]


def test_a_run_with_a_killed_process_is_reported_with_the_signal(indexed_root: Root, hook: Hook) -> None:
    root = with_webhook(indexed_root, hook.url)
    _, failure, killed_runs = build_notification_sensors(root)
    with open_instance(root) as instance:
        job = build_definitions(root).resolve_job_def("reindex_stale")
        run = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
        killed = f"[DagsterApiServer] Run execution process for {run.run_id} was terminated by signal 9 (SIGKILL)."
        instance.report_engine_event(killed, run)  # as Dagster's code server does
        event = instance.report_run_failed(run)
        context = dg.build_run_status_sensor_context(
            sensor_name="notify",
            dagster_instance=instance,
            dagster_run=run,
            dagster_event=event,
        )
        failure(context.for_run_failure())
        killed_runs(context.for_run_failure())
        last = instance.all_logs(run.run_id)[-1]
    (message,) = hook.messages
    assert (message["status"], message["run_id"]) == ("failure", run.run_id) and "signal 9" in message["error"]
    assert last.dagster_event and last.dagster_event.message == WAY_ON, "the page of the run ends with the way out"


def test_a_run_of_assets_is_reported_with_their_names(indexed_root: Root, hook: Hook) -> None:
    root = with_webhook(indexed_root, hook.url)
    job = build_definitions(root).resolve_implicit_global_asset_job_def()
    (root.path / "settings.yaml").write_text((root.path / "settings.yaml").read_text() + "text_units: {size: 200}\n")
    with open_instance(root) as instance:
        result = job.execute_in_process(
            instance=instance,
            partition_key="000",
            asset_selection=[dg.AssetKey("text_units"), dg.AssetKey("documents")],
            run_config=QUIET,
            raise_on_error=False,
        )
        context = dg.build_run_status_sensor_context(
            sensor_name="notify",
            dagster_instance=instance,
            dagster_run=result.dagster_run,
            dagster_event=result.get_run_failure_event(),
        )
        _, failure, killed_runs = build_notification_sensors(root)
        failure(context.for_run_failure())
        assert isinstance(killed_runs(context.for_run_failure()), dg.SkipReason), "no line on the page of this run"
    (message,) = hook.messages
    assert (message["job"], message["assets"]) == ("assets", ["documents", "text_units"])
    assert message["error"].endswith("then launch the run again"), "the remedy, without a traceback"


def test_a_webhook_that_fails_fails_nothing_and_keeps_its_secret(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    hook.status = 500
    monkeypatch.setenv("OUR_HOOK", hook.url)
    assert post(NotificationsSettings(webhook="$OUR_HOOK"), {"status": "success"}) == "127.0.0.1 answered 500"
    assert hook.messages == [{"status": "success"}]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/s3cret"
        monkeypatch.setattr(notifications, "TIMEOUT_S", 0.05)
        problems = [post(NotificationsSettings(webhook=url), {})]
    problems += [post(NotificationsSettings(webhook=url), {}) for url in (url, "ftp://h/s3cret", "s3cret", "http://[")]
    assert all(problems) and "s3cret" not in str(problems)


def test_without_a_webhook_no_message_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications.urllib.request, "urlopen", lambda *a, **k: pytest.fail("sent a message"))
    assert post(NotificationsSettings(), {}) is None


def test_a_root_without_a_snapshot_reports_none(tmp_path) -> None:
    assert describe_published(make_root(tmp_path, {})) == {"snapshot": None, "counts": {}}
