"""Sensor, schedule and automation conditions through Dagster: off by default, one run at a time, only when needed."""

from __future__ import annotations

import warnings

import dagster as dg
import pytest

from graphrag_pipeline.defs.automation.schedules import build_schedule
from graphrag_pipeline.defs.automation.sensors import Watch, build_input_sensor
from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.naming import REINDEX_STALE
from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.storage.locks import one_index_run
from graphrag_pipeline_tests.support.roots import make_root, put


def tick(root: Root, instance: dg.DagsterInstance, cursor: str | None) -> dg.SensorResult:
    """One evaluation of the sensor."""
    with dg.build_sensor_context(instance=instance, cursor=cursor) as context:
        result = build_input_sensor(root)(context)
    assert isinstance(result, dg.SensorResult)
    return result


def at_the_hour(root: Root, instance: dg.DagsterInstance) -> object:
    """One evaluation of the schedule."""
    with dg.build_schedule_context(instance=instance) as context:
        return build_schedule(root)(context)


def test_automation_is_off_by_default_and_on_where_set(indexed_root: Root) -> None:
    off = build_definitions(indexed_root)
    on_by_default = {sensor.name for sensor in off.sensors or () if sensor.default_status.value == "RUNNING"}
    assert on_by_default == {"killed_runs"}, "it only adds words to a page"
    assert {schedule.default_status for schedule in off.schedules or ()} == {dg.DefaultScheduleStatus.STOPPED}
    (indexed_root.path / "settings.yaml").write_text(
        "storage: {n_buckets: 2}\n"
        "schedule: {watch_input: true, watch_interval_s: 20, run_cron: true, cron: 30 4 * * 1, follow_data: true}\n"
        "notifications: {webhook: 'http://127.0.0.1:9/'}\n"
    )
    on = build_definitions(Root(indexed_root.path))
    assert {sensor.default_status for sensor in on.sensors or ()} == {dg.DefaultSensorStatus.RUNNING}
    assert on.resolve_sensor_def("input_folder_sensor").minimum_interval_seconds == 20
    assert on.resolve_schedule_def("observe_schedule").cron_schedule == "30 4 * * 1"
    schedule = on.resolve_schedule_def("reindex_schedule")
    assert (schedule.cron_schedule, schedule.default_status) == ("30 4 * * 1", dg.DefaultScheduleStatus.RUNNING)


def test_the_sensor_requests_one_run_and_waits_for_it(indexed_root: Root) -> None:
    put(indexed_root.path, "four.txt", "They say that Scrooge saw the fog.")
    with open_instance(indexed_root) as instance:
        first = tick(indexed_root, instance, None)
        second = tick(indexed_root, instance, first.cursor)
        assert not first.run_requests
        assert second.run_requests is not None and len(second.run_requests) == 1
        run = instance.create_run_for_job(
            build_definitions(indexed_root).resolve_job_def(REINDEX_STALE), status=dg.DagsterRunStatus.STARTED
        )
        third = tick(indexed_root, instance, second.cursor)
        assert run.run_id in str(third.skip_reason) and third.cursor is None, "nothing is forgotten"
        instance.delete_run(run.run_id)
        assert Watch.from_json(second.cursor).n_attempts == 1
        assert "without success" in str(tick(indexed_root, instance, second.cursor).skip_reason)


def test_the_sensor_reports_a_missing_input_folder_and_waits(indexed_root: Root) -> None:
    away = indexed_root.path / "away"
    (indexed_root.path / "input").rename(away)
    with open_instance(indexed_root) as instance:
        assert "no such input folder" in str(tick(indexed_root, instance, None).skip_reason)


def test_sensor_and_schedule_wait_while_a_command_line_indexes(indexed_root: Root) -> None:
    with open_instance(indexed_root) as instance, one_index_run(indexed_root.path):
        words = "'No run requested: an index run is under way; the next tick looks again.'"
        assert words in str(tick(indexed_root, instance, None).skip_reason)
        assert isinstance(at_the_hour(indexed_root, instance), dg.SkipReason)


def test_the_schedule_runs_unless_it_would_spend_on_changed_settings(indexed_root: Root) -> None:
    with open_instance(indexed_root) as instance:
        assert isinstance(at_the_hour(indexed_root, instance), dg.RunRequest)
        (indexed_root.path / "settings.yaml").write_text("storage: {n_buckets: 2}\nreports: {max_input_tokens: 4000}\n")
        skipped = at_the_hour(indexed_root, instance)
    assert isinstance(skipped, dg.SkipReason) and "reports.max_input_tokens: 8000 -> 4000" in str(skipped.skip_message)


def test_an_invalid_cron_string_is_a_clear_error(tmp_path) -> None:
    root = make_root(tmp_path, settings="schedule: {cron: at three}\n")
    with pytest.raises(SettingsError, match=r"schedule\.cron: 'at three' is not a cron string"):
        build_schedule(root)


def test_automation_follows_changed_data_and_stops_at_equal_data(indexed_root: Root) -> None:
    settings = "storage: {n_buckets: 2}\nschedule: {follow_data: true}\n"
    (indexed_root.path / "settings.yaml").write_text(settings)
    root = Root(indexed_root.path)
    definitions = build_definitions(root)
    with open_instance(root) as instance, warnings.catch_warnings():
        warnings.simplefilter("ignore")

        def requested(cursor: object) -> tuple[set[tuple[str, str | None]], object]:
            result = dg.evaluate_automation_conditions(definitions, instance, cursor=cursor)
            chosen = result.get_requested_partitions
            keys = list(definitions.resolve_asset_graph().materializable_asset_keys)
            return {(key.to_user_string(), part) for key in keys for part in chosen(key)}, result.cursor

        runs, cursor = requested(None)
        runs, cursor = requested(cursor)
        assert runs == set()
        version = {"dagster/data_version": "new", "dagster/data_version_is_user_provided": "true"}
        instance.report_runless_asset_event(dg.AssetObservation("input_folder", partition="001", tags=version))
        instance.report_runless_asset_event(dg.AssetObservation("whole_input", tags=version))
        runs, cursor = requested(cursor)
        assert runs == {("corpus_manifest", "001")}
        same = instance.get_latest_data_version_record(dg.AssetKey("corpus_manifest"), partition_key="001")
        assert same is not None and same.asset_materialization is not None
        instance.report_runless_asset_event(same.asset_materialization)
        runs, cursor = requested(cursor)
        assert runs == set(), "it came out equal: no later stage runs"
        tags = {"dagster/data_version": "other"}
        instance.report_runless_asset_event(dg.AssetMaterialization("corpus_manifest", partition="001", tags=tags))
        runs, cursor = requested(cursor)
        assert runs == {("documents", "001")}, "not all stages above index_candidate have run"
        instance.report_runless_asset_event(dg.AssetMaterialization("documents", partition="001", tags=tags))
        runs, cursor = requested(cursor)
        assert runs == {("text_units", "001")}, "extracted_graph waits for it"
        for stage in ("text_units", "extracted_graph"):
            same = instance.get_latest_data_version_record(dg.AssetKey(stage), partition_key="001")
            assert same is not None and same.asset_materialization is not None
            instance.report_runless_asset_event(same.asset_materialization)
            runs, cursor = requested(cursor)
            following = {"text_units": ("extracted_graph", "001"), "extracted_graph": ("index_candidate", None)}
            assert runs == {following[stage]}, "the candidate reads documents, and no edge to them is drawn"


def test_a_lost_run_does_not_stop_the_sensor_forever(indexed_root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import timedelta

    from graphrag_pipeline.defs.automation import sensors

    with open_instance(indexed_root) as instance:
        job = build_definitions(indexed_root).resolve_job_def(REINDEX_STALE)
        instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
        assert sensors.why_busy(instance, indexed_root)
        monkeypatch.setattr(sensors, "_LOST_AFTER", timedelta(seconds=-1))
        assert sensors.why_busy(instance, indexed_root) is None


def test_the_sensor_waits_for_assets_materialized_in_the_ui(indexed_root: Root) -> None:
    from graphrag_pipeline.defs.automation.sensors import why_busy
    from graphrag_pipeline.defs.runs.naming import STARTED_BY_TAG

    job = build_definitions(indexed_root).resolve_implicit_global_asset_job_def()
    with open_instance(indexed_root) as instance:
        of_ours = {STARTED_BY_TAG: "a run that is told of by itself"}
        instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=of_ours)
        assert why_busy(instance, indexed_root) is None
        run = instance.create_run_for_job(job, status=dg.DagsterRunStatus.NOT_STARTED)
        assert (
            why_busy(instance, indexed_root)
            == f"run {run.run_id} of assets is queued or under way; the next tick looks again"
        )
        assert isinstance(at_the_hour(indexed_root, instance), dg.SkipReason)


def test_sensor_ticks_alone_keep_an_unchanged_root_fresh(indexed_root: Root) -> None:
    (indexed_root.path / "settings.yaml").write_text("storage: {n_buckets: 2}\nschedule: {fresh_within_hours: 2}\n")
    root = Root(indexed_root.path)
    from graphrag_pipeline.defs.index_runs.missing_events import confirm_periodically

    with open_instance(root) as instance:

        def newest() -> float:
            event = instance.get_latest_materialization_event(dg.AssetKey("index_snapshot"))
            assert event is not None
            return event.timestamp

        published = newest()
        assert not confirm_periodically(instance, root, published + 29 * 60), "a quarter of the window"
        assert confirm_periodically(instance, root, published + 31 * 60)
        first = newest()
        assert first > published
        cursor = tick(root, instance, None).cursor
        assert "nothing changed" in str(tick(root, instance, cursor).skip_reason) and newest() == first
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("graphrag_pipeline.defs.index_runs.missing_events._HOUR_S", 0)
            tick(root, instance, cursor)
        assert newest() > first
    (root.path / "settings.yaml").write_text("storage: {n_buckets: 2}\n")
    with open_instance(root) as instance:
        assert not confirm_periodically(instance, Root(root.path), first + 10**6), "no check depends on it"
