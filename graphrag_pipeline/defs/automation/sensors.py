"""Sensors on the input folder and on changed data. Both are off unless the settings turn them on.

A look lists the folder. Files are read only if the listing differs from that of the last reading, and only once two
looks in a row agree, so that no file is half written. The versions read are compared with the heads, so failed runs and
runs by hand are taken into account. Each request has a unique key, because Dagster never runs a key twice: a reverted
edit, or input that failed before, would be lost. Keep out: notifications (`notifications.py`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta

import dagster as dg

from graphrag_pipeline.defs.assets.ledger import report_costs
from graphrag_pipeline.defs.assets.state_checks import report_versions
from graphrag_pipeline.defs.index_runs.missing_events import confirm_periodically
from graphrag_pipeline.defs.runs.executor import IndexRoot
from graphrag_pipeline.defs.runs.live import end_dead_runs
from graphrag_pipeline.defs.runs.naming import (
    ASSET_JOB,
    FINISHED,
    INDEXING_JOBS,
    REINDEX_STALE,
    STARTED_BY_TAG,
    asset_key,
    full_name,
    plain_job,
)
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import WHOLE, stable_hash
from graphrag_pipeline.inputs.files import fingerprint_input
from graphrag_pipeline.pipeline.code_changes import find_changed_code, find_version_changes
from graphrag_pipeline.pipeline.detected_input import detect_input, input_versions
from graphrag_pipeline.pipeline.prompt_texts import find_prompt_problem
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, CANDIDATE, STAGES, Stage
from graphrag_pipeline.pipeline.staleness import find_stale_versions
from graphrag_pipeline.settings.settings import OVERRIDES_FILE
from graphrag_pipeline.storage.locks import is_index_running
from graphrag_pipeline.storage.manifests import Manifest
from graphrag_pipeline.storage.table_store import code_version_of

UNFINISHED = [status for status in dg.DagsterRunStatus if status.value not in FINISHED]
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


def why_busy(instance: dg.DagsterInstance, root: Root, jobs: Collection[str] = INDEXING_JOBS) -> str | None:
    """Return why no run should be requested now: a run of some jobs is queued or under way; None if none is.

    Runs whose process died are first reported to Dagster as failed, and so to the webhook.
    """
    end_dead_runs(instance, root)
    if is_index_running(root.path):
        return "an index run is under way; the next tick looks again"
    for record in instance.get_run_records(dg.RunsFilter(statuses=UNFINISHED)):
        # A run of another machine holds no lock here; one without news for an hour died with its machine.
        is_alive = datetime.now(UTC) - record.update_timestamp.replace(tzinfo=UTC) < _LOST_AFTER
        run = record.dagster_run
        # A run that a job started is part of the job, which is listed itself.
        job = plain_job(root, run)
        if job in jobs and STARTED_BY_TAG not in run.tags and is_alive:
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


NOTHING_CHANGED = (
    "nothing changed: the index is up to date with the input folder, the overrides, the prompts and the settings"
)
_FIRST_WAIT_S = 300
"""Seconds before failed input is tried again; the wait doubles each time, up to `_MAX_WAIT_S`."""
_MAX_WAIT_S = 6 * 3600
_COMMUNITIES = "communities"


@dataclass(frozen=True)
class Watch:
    """The state of the sensor between looks; stored as its cursor.

    Attributes:
        seen: fingerprint of the folder and the overrides at the last look.
        read: fingerprint at which `versions` were read.
        versions: version of each bucket of the folder.
        asked: version of the input that was requested last; empty once it is indexed.
        generation: number of versions requested so far.
        n_attempts: number of requests for the version `asked`.
        asked_at: time of the last request, in seconds since 1970.
    """

    seen: str = ""
    read: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    asked: str = ""
    generation: int = 0
    n_attempts: int = 0
    asked_at: float = 0.0

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str | None) -> Watch:
        """Return the stored state; start over if the text is not a state of this release."""
        try:
            values = json.loads(text or "{}")
            return cls(**{f.name: values[f.name] for f in fields(cls) if f.name in values})
        except (ValueError, TypeError):
            return cls()


@dataclass(frozen=True)
class Look:
    """The result of one look.

    Attributes:
        watch: the new state.
        reason: why a run is requested, or why not.
        run_key: key of the run to request; None if none is requested.
    """

    watch: Watch
    reason: str
    run_key: str | None = None


def why_not_unattended(root: Root) -> str | None:
    """Return why only the user should index this root now; None if the daemon may."""
    if root.is_imported:
        return "the published index was imported; the input folder has no part in it"
    if problem := find_prompt_problem(root):
        return problem
    changed = [] if root.settings.schedule.run_code_changes else find_changed_code(root) or find_unfinished_work(root)
    if changed:
        return (
            "prompts, models or settings changed, or reclustering was begun, which may cost much; run "
            "reindex_stale or `graphrag-pipeline index` yourself, or set schedule.run_code_changes. Changed: "
            + " | ".join(changed)
        )
    return None


def find_unfinished_work(root: Root) -> list[str]:
    """Return stages that changed since the last candidate was joined, by work that only the user begins.

    Such work is a change of code, or `index --recluster`. While it is unfinished, the heads of that stage are new
    already, and the stages below are stale only by their data.
    """
    head = root.tables.head(CANDIDATE.name)
    manifest = root.snapshots.last_manifest(head.data_version if head else None)
    if manifest is None:
        return []
    changed = {stage.name: _changes_since(root, manifest, stage) for stage in STAGES.values()}
    if not changed[_COMMUNITIES] and _is_reclustered(root, manifest):
        changed[_COMMUNITIES] = ["clustered from cold (--recluster)"]
    return [f"{name} since the last candidate: {'; '.join(changes)}" for name, changes in changed.items() if changes]


def _is_reclustered(root: Root, manifest: Manifest) -> bool:
    """Return whether communities were clustered from cold, although a published snapshot could have been kept."""
    head, was = root.tables.head(_COMMUNITIES), manifest.heads.get(f"{_COMMUNITIES}/{WHOLE}")
    published = root.snapshots.current_manifest()
    made = published.heads.get(f"{_COMMUNITIES}/{WHOLE}") if published else None
    if head is None or was is None or made is None or head.based_on:
        return False
    return head.data_version != was["data_version"] and head.code_version == made["code_version"]


def _changes_since(root: Root, manifest: Manifest, stage: Stage) -> list[str]:
    code = root.code_of(stage)
    heads = [root.tables.head(table, key) for table in stage.tables for key in stage.partitions(root.settings)]
    pairs = ((head, manifest.heads.get(f"{head.table}/{head.partition}")) for head in heads if head)
    different = {was["code_version"] for head, was in pairs if was and was["data_version"] != head.data_version}
    changed = sorted(different - {code_version_of(code)})
    if not changed:
        return []
    made_by = manifest.code.get(changed[0])  # older manifests do not have it
    changes = find_version_changes(made_by, code) if made_by else []
    return [change.to_line() for change in changes] or ["made by other code"]


def look_at_input(root: Root, watch: Watch, now: float) -> Look:
    """Decide what to do about the present input.

    Args:
        now: seconds since 1970.

    Raises:
        PipelineError: the input folder does not exist or cannot be listed.
    """
    watch, reason = read_versions_of_input(root, watch)
    if reason:
        return Look(watch, reason)
    stale = find_stale_versions(root, watch.versions)
    if not stale:
        return Look(replace(watch, asked="", n_attempts=0), NOTHING_CHANGED)
    if obstacle := why_not_unattended(root):
        return Look(watch, obstacle)
    return _request(
        root, watch, now, f"{len(stale):,} partitions are stale, first {stale[0].stage} {stale[0].partition}"
    )


def read_versions_of_input(root: Root, watch: Watch) -> tuple[Watch, str]:
    """Return the state with the present versions of the input, or the reason to wait for the next look.

    Raises:
        PipelineError: the input folder does not exist or cannot be listed.
    """
    seen = _fingerprint(root)
    if seen != watch.seen:
        reason = (
            "the input folder changed since the last look" if watch.seen else "this is the first look at the folder"
        )
        return replace(watch, seen=seen), f"{reason}; the next look reads it if it is the same then"
    if seen != watch.read:
        versions = input_versions(detect_input(root))
        if _fingerprint(root) != seen:
            return watch, "the input folder changed while it was read; the next look reads it again"
        watch = replace(watch, read=seen, versions=versions)
    return watch, ""


def _request(root: Root, watch: Watch, now: float, reason: str) -> Look:
    wanted = stable_hash(*(watch.versions[bucket] for bucket in sorted(watch.versions)), _overrides_version(root))
    if wanted != watch.asked:
        watch = replace(watch, asked=wanted, generation=watch.generation + 1, n_attempts=0)
    wait_s = min(_FIRST_WAIT_S * 2 ** (watch.n_attempts - 1), _MAX_WAIT_S)
    left_s = watch.asked_at + wait_s - now
    if watch.n_attempts and left_s > 0:
        return Look(
            watch,
            f"a run was requested {watch.n_attempts} times without success; the next request is in {left_s:,.0f} s",
        )
    watch = replace(watch, n_attempts=watch.n_attempts + 1, asked_at=now)
    return Look(watch, reason, f"{watch.generation}-{watch.n_attempts}-{wanted[:16]}")


def _fingerprint(root: Root) -> str:
    return stable_hash(fingerprint_input(root.input_folder, root.settings.input), _overrides_version(root))


def _overrides_version(root: Root) -> str:
    return files.content_hash(root.read_file(OVERRIDES_FILE))
