"""Records of past runs in Dagster's storage, and how old ones are dropped. Keep out: running anything."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.live import end_dead_runs
from graphrag_pipeline.defs.runs.naming import FINISHED, asset_key, plain_job
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.storage.dagster_home import databases_in

if TYPE_CHECKING:
    from dagster import DagsterInstance

_DAY_S = 86_400
_DROPPED_AT_ONCE = 200
_LOOKED_AT = 2_000  # runs of others with the same Dagster home are among them


def prune_runs(root: Root, now: float | None = None) -> int:
    """Drop the records of a root's finished runs older than `schedule.keep_runs_days`. Returns how many.

    A run that made the current version of a partition stays, however old: the asset's last materialization is in it.

    Args:
        now: seconds since 1970; the clock's if None.
    """
    days = root.settings.schedule.keep_runs_days
    if days is None:
        return 0
    from dagster import DagsterRunStatus, RunsFilter

    ended = [DagsterRunStatus(status) for status in FINISHED]
    before = datetime.fromtimestamp((time.time() if now is None else now) - days * _DAY_S, UTC)
    with open_instance(root) as instance:
        end_dead_runs(instance, root)
        kept = set(_last_runs(root, instance))
        runs = instance.get_runs(RunsFilter(statuses=ended, created_before=before), limit=_LOOKED_AT + len(kept))
        old = [run.run_id for run in runs if run.run_id not in kept and plain_job(root, run)][:_DROPPED_AT_ONCE]
        for run_id in old:
            _drop_run(instance, run_id)
    return len(old)


def _drop_run(instance: DagsterInstance, run_id: str) -> None:
    instance.delete_run(run_id)
    home = Path(instance.root_directory)
    if index := databases_in(home).get("event_log_storage"):  # Dagster empties the run's database but leaves the file
        index.with_name(f"{run_id}.db").unlink(missing_ok=True)
    shutil.rmtree(Path(instance.storage_directory()) / run_id, ignore_errors=True)  # values of ops, logs


def _last_runs(root: Root, instance: DagsterInstance) -> Iterator[str]:
    """Yield the ids of the runs that made the current version of every partition."""
    for stage in ALL_STAGES.values():
        for partition in stage.partitions(root.settings):
            key = partition if stage.is_partitioned else None
            record = instance.get_latest_data_version_record(asset_key(root, stage.name), partition_key=key)
            if record:
                yield record.run_id
