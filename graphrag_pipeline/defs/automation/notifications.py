"""Notifications about runs that index: of a webhook, and on the page of a killed run.

They are run status sensors, which also see killed runs.

A failing webhook is logged and changes nothing. Its address may hold a secret, so messages name only its host.
"""

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.assets.published import COUNTED
from graphrag_pipeline.defs.runs.errors import explain_error
from graphrag_pipeline.defs.runs.executor import IndexRoot
from graphrag_pipeline.defs.runs.live import WAY_ON
from graphrag_pipeline.defs.runs.naming import (
    ASSET_JOB,
    BATCHES_TAG,
    INDEXING_JOBS,
    OBSERVE_SOURCES,
    PUBLISHING_ASSET_JOBS,
    REINDEX_JOBS,
    asset_key,
    full_name,
    plain_job,
)
from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.models.endpoints.batching import BatchesUnderWayError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import SNAPSHOT
from graphrag_pipeline.settings.section import NotificationsSettings

TIMEOUT_S = 10.0
"""Seconds to wait for the webhook; a run ends without its message after that."""
_LOOK_FOR_KILLED_S = 60
"""Seconds between two looks for killed runs; each look is a line of the log of `dev`."""
_NOTIFIED_WITHIN_S = 10
_PROCESS = "Run execution process"
"""The beginning of Dagster's message about a run process that ended unexpectedly."""


def build_notification_sensors(root: Root) -> list[dg.SensorDefinition]:
    """Return sensors for runs that published and runs that failed, on if a webhook is set, and one for killed runs."""
    index_root = IndexRoot.of(root)
    has_webhook = bool(root.settings.notifications.webhook)
    status = dg.DefaultSensorStatus.RUNNING if has_webhook else dg.DefaultSensorStatus.STOPPED

    @dg.run_status_sensor(
        run_status=dg.DagsterRunStatus.SUCCESS,
        name=full_name(root, "notify_success"),
        minimum_interval_seconds=_NOTIFIED_WITHIN_S,
        default_status=status,
        description="Notifies notifications.webhook of runs that brought the published snapshot up to date.",
    )
    def notify_success(context: dg.RunStatusSensorContext) -> None:
        if may_publish(root, context.dagster_run):
            notify(context, index_root.open(), {"status": "success"})

    @dg.run_failure_sensor(
        name=full_name(root, "notify_failure"),
        minimum_interval_seconds=_NOTIFIED_WITHIN_S,
        default_status=status,
        description="Notifies notifications.webhook of failed runs of the index, with the reason.",
    )
    def notify_failure(context: dg.RunFailureSensorContext) -> None:
        if plain_job(root, context.dagster_run) in {*INDEXING_JOBS, OBSERVE_SOURCES} and not only_waits(context):
            notify(context, index_root.open(), {"status": "failure", "error": explain_failure(context)})

    @dg.run_failure_sensor(
        name=full_name(root, "killed_runs"),
        minimum_interval_seconds=_LOOK_FOR_KILLED_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Adds the way to go on to the page of a run whose process was killed.",
    )
    def killed_runs(context: dg.RunFailureSensorContext) -> dg.SkipReason | None:
        if plain_job(root, context.dagster_run) not in INDEXING_JOBS or not find_kill(context):
            return dg.SkipReason("the process of the run was not killed")  # else Dagster adds a line to its page
        context.instance.report_engine_event(WAY_ON, context.dagster_run)
        return None

    return [notify_success, notify_failure, killed_runs]


def may_publish(root: Root, run: dg.DagsterRun) -> bool:
    """Return whether a run ends with the published snapshot; one bucket of a backfill does not."""
    if BATCHES_TAG in run.tags:
        return False
    is_named = plain_job(root, run) in (*REINDEX_JOBS, *PUBLISHING_ASSET_JOBS)
    return is_named or asset_key(root, SNAPSHOT.name) in (run.asset_selection or ())


def only_waits(context: dg.RunFailureSensorContext) -> bool:
    """Return whether a run ended because its model calls are in batches that are not over."""
    errors = (explain_error("", event.step_failure_data.error) for event in context.get_step_failure_events())
    return any(isinstance(error, BatchesUnderWayError) for error in errors)


def explain_failure(context: dg.RunFailureSensorContext) -> str:
    """Return the first failed step and its cause in a line; else how the process ended, or Dagster's message."""
    for event in context.get_step_failure_events():
        return str(explain_error(str(event.step_key), event.step_failure_data.error))
    return find_kill(context) or context.failure_event.message or "failed without a reason"


def find_kill(context: dg.RunFailureSensorContext) -> str | None:
    """Return Dagster's words on a run whose process was killed, such as by the out-of-memory killer; else None."""
    logged = context.instance.all_logs(context.dagster_run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
    messages = (entry.dagster_event.message or "" for entry in reversed(logged) if entry.dagster_event)
    return next((message for message in messages if _PROCESS in message), None)


def notify(context: dg.RunStatusSensorContext, root: Root, status: Mapping[str, str]) -> None:
    """Send the outcome of a run, with the published snapshot."""
    run = context.dagster_run
    message = {**status, **describe_job(run), "run_id": run.run_id, **describe_published(root)}
    problem = post(root.settings.notifications, message)
    if problem:
        context.log.warning(f"the webhook was not notified: {problem}")


def describe_job(run: dg.DagsterRun) -> dict[str, Any]:
    """Return the name of the job, or "assets" with their names if they were chosen in the UI."""
    if run.job_name != ASSET_JOB:
        return {"job": run.job_name}
    return {"job": "assets", "assets": sorted(key.to_user_string() for key in run.asset_selection or ())}


def describe_published(root: Root) -> dict[str, Any]:
    """Return id and row counts of the published snapshot; null and no counts without one."""
    try:
        manifest = root.snapshots.current_manifest()
    except NoSnapshotError:
        manifest = None
    tables = manifest.tables if manifest else {}
    return {
        "snapshot": manifest.id if manifest else None,
        "counts": {name: int(tables[name]["n_rows"]) for name in COUNTED if name in tables},
    }


def post(settings: NotificationsSettings, message: Mapping[str, Any]) -> str | None:
    """Send a message as JSON. Returns the problem; None if it was sent or no webhook is set."""
    if not settings.webhook:
        return None
    url = os.path.expandvars(settings.webhook)
    try:
        host = urllib.parse.urlsplit(url).hostname
        body = json.dumps(message, ensure_ascii=False).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        if request.type not in ("http", "https"):
            return "notifications.webhook is not an http or https address"
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):
            return None
    except urllib.error.HTTPError as error:
        return f"{host} answered {error.code}"
    except OSError as error:
        return f"{host}: {getattr(error, 'reason', None) or error}"
    except ValueError:
        return "notifications.webhook is not an address"
