"""What Dagster's storage holds of past runs: missing events are reported from the heads, old runs are dropped.

Keep out: running anything.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.defs.runs.instance import dagster_home, open_instance
from graphrag_pipeline.defs.runs.live import end_dead_runs
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, SNAPSHOT, STAGES, Stage, upstream_of
from graphrag_pipeline.pipeline.staleness import stage_data_version

if TYPE_CHECKING:
    from dagster import DagsterInstance

_REPORTED = "graphrag_reported.json"
"""In the Dagster home: data versions whose events it has. It goes with the home, and events are reported again."""

_DAY_S = 86_400
_DROPPED_AT_ONCE = 200


def report_missing_events(root: Root) -> int:
    """Tell Dagster of every materialization whose event it does not have; nothing runs. Returns how many."""
    versions = {
        f"{stage.name}/{partition}": version
        for stage in ALL_STAGES.values()
        for partition in stage.partitions(root.settings)
        if (version := stage_data_version(root, stage, partition))
    }
    marker, content = dagster_home(root) / _REPORTED, json.dumps(versions).encode()
    if marker.exists() and marker.read_bytes() == content:
        return 0
    with open_instance(root) as instance:
        n_reported = sum(_report_stage(root, instance, stage_name, versions) for stage_name in ALL_STAGES)
    files.replace(marker, content)
    return n_reported


def _report_stage(root: Root, instance: DagsterInstance, stage_name: str, versions: Mapping[str, str]) -> int:
    import dagster as dg

    from graphrag_pipeline.defs.assets.published import published_event
    from graphrag_pipeline.defs.assets.sources import observe_what_was_read

    stage, key = ALL_STAGES[stage_name], dg.AssetKey(stage_name)
    version_tag, code_tag = "dagster/data_version", "dagster/code_version"
    known: dict[str, str | None] = {}
    if stage.is_partitioned:
        found = instance.event_log_storage.get_latest_tags_by_partition(
            key, dg.DagsterEventType.ASSET_MATERIALIZATION, tag_keys=[version_tag]
        )
        known = {partition: tags.get(version_tag) for partition, tags in found.items()}
    elif record := instance.get_latest_data_version_record(key):
        event = record.asset_materialization
        known = {WHOLE: (event.tags or {}).get(version_tag) if event else None}
    n_reported = 0
    for partition in stage.partitions(root.settings):
        version = versions.get(f"{stage.name}/{partition}")
        if version is None or known.get(partition) == version:
            continue
        code_version = _head_code_version(root, stage_name, partition)
        tags = {
            version_tag: version,
            code_tag: code_version,
            **observe_what_was_read(instance, root, stage, partition),
            **_provenance(instance, stage, versions),
        }
        if stage is SNAPSHOT:
            event = published_event(root, version, "Published outside of a run of Dagster, as a rollback is.", tags)
        else:
            told = "Reported from the heads: the table was there, Dagster's event was not."
            key_of_event = partition if stage.is_partitioned else None
            event = dg.AssetMaterialization(stage.name, partition=key_of_event, tags=tags, description=told)
        instance.report_runless_asset_event(event)
        n_reported += 1
    return n_reported


def _provenance(instance: DagsterInstance, stage: Stage, versions: Mapping[str, str]) -> dict[str, str]:
    """Tags that name what is above a stage as Dagster has it now; without them it would take all of that for new."""
    import dagster as dg

    tags = {}
    for above in upstream_of(stage):
        record = instance.get_latest_data_version_record(dg.AssetKey(above.name))
        tags[f"dagster/input_event_pointer/{above.name}"] = str(record.storage_id) if record else "NULL"
        # Of a partitioned one Dagster compares the events, not this.
        tags[f"dagster/input_data_version/{above.name}"] = versions.get(f"{above.name}/{WHOLE}", "")
    return tags


def _head_code_version(root: Root, stage_name: str, partition: str) -> str:
    from graphrag_pipeline.storage.table_store import code_version_of

    stage = ALL_STAGES[stage_name]
    table = stage.tables[0] if stage_name in STAGES else stage_name
    head = root.tables.head(table, partition)
    return head.code_version if head else code_version_of(root.code_of(stage))


def prune_runs(root: Root, now: float | None = None) -> int:
    """Drop the records of finished runs older than `schedule.keep_runs_days`; returns how many.

    A run that made what a partition is now stays, however old: with it would go the asset's last materialization.

    Args:
        now: seconds since 1970; the clock's if None.
    """
    days = root.settings.schedule.keep_runs_days
    if days is None:
        return 0
    from dagster import DagsterRunStatus, RunsFilter
    from dagster._core.storage.dagster_run import FINISHED_STATUSES

    ended = [status for status in DagsterRunStatus if status in FINISHED_STATUSES]
    before = datetime.fromtimestamp((time.time() if now is None else now) - days * _DAY_S, UTC)
    with open_instance(root) as instance:
        end_dead_runs(instance, root)
        kept = set(_last_runs(root, instance))
        runs = instance.get_runs(RunsFilter(statuses=ended, created_before=before), limit=_DROPPED_AT_ONCE + len(kept))
        old = [run.run_id for run in runs if run.run_id not in kept]
        for run_id in old:
            _drop_run(instance, run_id)
    return len(old)


def _drop_run(instance: DagsterInstance, run_id: str) -> None:
    from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage

    instance.delete_run(run_id)
    storage = instance.event_log_storage
    if isinstance(storage, SqliteEventLogStorage):  # Dagster empties the run's database and leaves the file
        Path(storage.path_for_shard(run_id)).unlink(missing_ok=True)
    shutil.rmtree(Path(instance.storage_directory()) / run_id, ignore_errors=True)  # what went from op to op, logs


def _last_runs(root: Root, instance: DagsterInstance) -> Iterator[str]:
    """Ids of the runs that made what every partition is now."""
    import dagster as dg

    for stage in ALL_STAGES.values():
        for partition in stage.partitions(root.settings):
            key = partition if stage.is_partitioned else None
            record = instance.get_latest_data_version_record(dg.AssetKey(stage.name), partition_key=key)
            if record:
                yield record.run_id
