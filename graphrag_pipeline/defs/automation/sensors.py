"""Sensors on the input folder and on changed data. Both are off unless the settings turn them on.

Keep out: the decision of one look at the folder (`input_watch.py`), and notifications (`notifications.py`).
"""

import time
from datetime import UTC, datetime, timedelta

import dagster as dg

from graphrag_pipeline.defs.assets.ledger import report_costs
from graphrag_pipeline.defs.assets.state_checks import report_versions
from graphrag_pipeline.defs.automation.input_watch import NOTHING_CHANGED, Watch, look_at_input
from graphrag_pipeline.defs.index_runs.confirmation import confirm_periodically
from graphrag_pipeline.defs.runs.live import end_dead_runs
from graphrag_pipeline.defs.runs.names import ASSET_JOB, FINISHED, REINDEX_STALE, STARTED_BY_TAG
from graphrag_pipeline.defs.runs.naming import INDEXING_JOBS, asset_key, full_name, plain_job
from graphrag_pipeline.defs.runs.resources import IndexRoot
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.storage.locks import is_index_running

_UNFINISHED = [status for status in dg.DagsterRunStatus if status.value not in FINISHED]
_LOST_AFTER = timedelta(hours=1)


def build_input_sensor(root: Root) -> dg.SensorDefinition:
    """Return the sensor on the input folder, under the settings of a root."""
    settings, index_root = root.settings.schedule, IndexRoot.of(root)

    @dg.sensor(
        name=full_name(root, "input_folder_sensor"),
        job_name=full_name(root, REINDEX_STALE),
        minimum_interval_seconds=settings.watch_interval_s,
        default_status=dg.DefaultSensorStatus.RUNNING if settings.watch_input else dg.DefaultSensorStatus.STOPPED,
        description="Runs reindex_stale once added, edited or deleted documents no longer change.",
    )
    def input_folder_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        opened = index_root.open()
        if reason := why_busy(context.instance, opened):
            return dg.SensorResult(skip_reason=say_why_not(reason))
        try:
            opened.pull()
            look = look_at_input(opened, Watch.from_json(context.cursor), time.time())
        except PipelineError as error:  # the input folder was moved away or cannot be reached
            return dg.SensorResult(skip_reason=say_why_not(str(error)))
        cursor = look.watch.to_json()
        if look.watch.versions:
            report_versions(context.instance, opened, look.watch.versions)
        report_costs(context.instance, opened)
        if look.reason == NOTHING_CHANGED:
            confirm_periodically(context.instance, opened, time.time())
        if look.run_key is None:
            return dg.SensorResult(skip_reason=say_why_not(look.reason), cursor=cursor)
        context.log.info(look.reason)
        return dg.SensorResult(run_requests=[dg.RunRequest(run_key=look.run_key)], cursor=cursor)

    return input_folder_sensor


def say_why_not(reason: str) -> str:
    """Return the words of a tick that requests nothing."""
    return f"No run requested: {reason}."


def why_busy(instance: dg.DagsterInstance, root: Root) -> str | None:
    """Return why no run should be requested now: a run is queued or under way; None if none is.

    Runs whose process died are first reported to Dagster as failed, and so to the webhook.
    """
    end_dead_runs(instance, root)
    if is_index_running(root.path):
        return "an index run is under way; the next tick looks again"
    for record in instance.get_run_records(dg.RunsFilter(statuses=_UNFINISHED)):
        # A run of another machine holds no lock here; one without news for an hour died with its machine.
        is_alive = datetime.now(UTC) - record.update_timestamp.replace(tzinfo=UTC) < _LOST_AFTER
        run = record.dagster_run
        # A run that a job started is part of the job, which is listed itself.
        job = plain_job(root, run)
        if job in INDEXING_JOBS and STARTED_BY_TAG not in run.tags and is_alive:
            name = "assets" if job == ASSET_JOB else run.job_name
            return f"run {run.run_id} of {name} is queued or under way; the next tick looks again"
    return None


def build_data_sensors(root: Root) -> list[dg.SensorDefinition]:
    """Return the sensor that evaluates automation conditions, on, if `schedule.follow_data` is set."""
    if not root.settings.schedule.follow_data:
        return []
    return [
        dg.AutomationConditionSensorDefinition(
            full_name(root, "data_sensor"),
            target=dg.AssetSelection.assets(*(asset_key(root, name) for name in ALL_STAGES)),
            default_status=dg.DefaultSensorStatus.RUNNING,
            minimum_interval_seconds=root.settings.schedule.watch_interval_s,
        )
    ]
