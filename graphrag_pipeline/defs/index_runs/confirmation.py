"""The event that confirms the published snapshot as up to date, for its freshness policy.

Dagster shows only checks that were evaluated after the last event of an asset, and only metadata of that event. So a
confirmation shows what the event before it showed, and repeats the checks. Keep out: publishing, and Dagster at
import: an index run that finds nothing to do, without a freshness policy, never needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphrag_pipeline.defs.assets.published import published_event
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.naming import asset_key
from graphrag_pipeline.defs.runs.provenance import DATA_VERSION_TAG
from graphrag_pipeline.evaluation.index_quality.figures import FIGURES
from graphrag_pipeline.inspection.index_state import UP_TO_DATE
from graphrag_pipeline.pipeline.open_work import find_unpublished_candidate
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import SNAPSHOT

if TYPE_CHECKING:
    from dagster import AssetCheckEvaluation, AssetMaterialization, DagsterInstance

_HOUR_S = 3600
_CONFIRMED = "Confirmed: nothing changed since it was published."


def confirm_published(root: Root) -> None:
    """Report to Dagster that the published snapshot is up to date, if a freshness policy is set."""
    current = root.snapshots.current()
    if current is None or root.settings.schedule.fresh_within_hours is None:
        return
    with open_instance(root) as instance:
        _confirm(instance, root, current)


def confirm_periodically(instance: DagsterInstance, root: Root, now: float) -> bool:
    """Do as `confirm_published`, at most once per hour or quarter of the freshness window. Returns whether it did.

    Args:
        now: seconds since 1970.
    """
    current, hours = root.snapshots.current(), root.settings.schedule.fresh_within_hours
    if current is None or hours is None or find_unpublished_candidate(root):
        return False
    last = instance.get_latest_materialization_event(asset_key(root, SNAPSHOT.name))
    if last and now - last.timestamp < min(1.0, hours / 4) * _HOUR_S:
        return False
    _confirm(instance, root, current)
    return True


def _confirm(instance: DagsterInstance, root: Root, snapshot_id: str) -> None:
    from dagster import AssetMaterialization

    key = asset_key(root, SNAPSHOT.name)
    shown = list(_last_checks(instance, root))
    record = next(iter(instance.fetch_materializations(key, limit=1).records), None)
    last = record.asset_materialization if record else None
    if last and (last.tags or {}).get(DATA_VERSION_TAG) == snapshot_id:
        event = AssetMaterialization(key, _CONFIRMED, last.metadata, tags=last.tags)
    else:
        event = published_event(root, snapshot_id, _CONFIRMED)
    instance.report_runless_asset_event(event)
    _repeat_checks(instance, event, shown)


def _last_checks(instance: DagsterInstance, root: Root) -> Iterator[AssetCheckEvaluation]:
    """Yield the last result of each check of `index_snapshot`."""
    from dagster import AssetCheckKey

    key = asset_key(root, SNAPSHOT.name)
    for name in (UP_TO_DATE, *FIGURES):
        record = instance.get_latest_asset_check_evaluation_record(AssetCheckKey(key, name))
        event = record.event.dagster_event if record and record.event else None
        if event and event.event_type_value == "ASSET_CHECK_EVALUATION":
            yield event.asset_check_evaluation_data


def _repeat_checks(instance: DagsterInstance, event: AssetMaterialization, checks: list[AssetCheckEvaluation]) -> None:
    from dagster import AssetCheckEvaluation

    from graphrag_pipeline.defs.runs.private_api import AssetCheckEvaluationTargetMaterializationData

    [made] = instance.fetch_materializations(event.asset_key, limit=1).records
    target = AssetCheckEvaluationTargetMaterializationData(
        storage_id=made.storage_id, run_id=made.run_id, timestamp=made.timestamp
    )
    for check in checks:
        repeated = AssetCheckEvaluation(
            event.asset_key,
            check.check_name,
            check.passed,
            check.metadata,
            target_materialization_data=target,
            severity=check.severity,
            description=check.description,
            blocking=check.blocking,
        )
        instance.report_runless_asset_event(repeated)
