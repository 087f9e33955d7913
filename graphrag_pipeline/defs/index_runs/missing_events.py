"""Events that no run makes, reported from the files: missing ones, the confirmation of a snapshot, checks of the state.

Events are missing after a crash, a rollback, or when the Dagster home was removed. Dagster shows only checks that were
evaluated after the last event of an asset, and only metadata of that event; so a confirmation repeats both. Keep out:
running anything, and Dagster at import: an index run that finds nothing to do does not need it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.defs.assets.published import published_event
from graphrag_pipeline.defs.runs.instance import dagster_home, open_instance
from graphrag_pipeline.defs.runs.lookup import DATA_VERSION_TAG, version_tags
from graphrag_pipeline.defs.runs.naming import SHOWN_STATE, WHOLE_INPUT, asset_key, full_name
from graphrag_pipeline.evaluation.index_quality.figures import FIGURES
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import WHOLE, stable_hash
from graphrag_pipeline.inspection.index_state import UP_TO_DATE, AssetState, find_state
from graphrag_pipeline.pipeline.data_versions import owned_tables, stage_data_version
from graphrag_pipeline.pipeline.detected_input import input_versions
from graphrag_pipeline.pipeline.open_work import find_unpublished_candidate
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, SNAPSHOT, Stage, all_upstream_of, drawn_upstream_of

if TYPE_CHECKING:
    import pyarrow as pa
    from dagster import AssetCheckEvaluation, AssetMaterialization, DagsterInstance


_INPUT_TAG = "dagster/input_data_version/"
_REPORTED = "graphrag_reported"
"""JSON file in the Dagster home: data versions whose events it has. Without the home, all events are reported again."""


def report_missing_events(root: Root) -> int:
    """Report every materialization whose event Dagster does not have. Returns how many; nothing runs."""
    versions = {
        f"{stage.name}/{partition}": version
        for stage in ALL_STAGES.values()
        for partition in stage.partitions(root.settings)
        if (version := stage_data_version(root, stage, partition))
    }
    marker = dagster_home(root) / f"{full_name(root, _REPORTED)}.json"
    edges = {stage.name: [above.name for above in drawn_upstream_of(stage)] for stage in ALL_STAGES.values()}
    content = json.dumps({**versions, "sources": [WHOLE_INPUT], "edges": edges}).encode()
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

    stage, key = ALL_STAGES[stage_name], asset_key(root, stage_name)
    known: dict[str, str | None] = {}
    incomplete = None
    if stage.is_partitioned:
        found = instance.event_log_storage.get_latest_tags_by_partition(
            key, dg.DagsterEventType.ASSET_MATERIALIZATION, tag_keys=[DATA_VERSION_TAG]
        )
        known = {partition: tags.get(DATA_VERSION_TAG) for partition, tags in found.items()}
    elif record := instance.get_latest_data_version_record(key):
        last = record.asset_materialization
        tags = (last.tags or {}) if last else {}
        known = {WHOLE: tags.get(DATA_VERSION_TAG)}
        if _name_inputs(root, stage) != sorted(name for name in tags if name.startswith(_INPUT_TAG)):
            incomplete = last  # an earlier release had other edges
    n_reported = 0
    for partition in stage.partitions(root.settings):
        version = versions.get(f"{stage.name}/{partition}")
        is_known = known.get(partition) == version
        if version is None or (is_known and incomplete is None):
            continue
        code_version = _head_code_version(root, stage, partition)
        tags = {
            **version_tags(root, instance, stage, version, code_version),
            **observe_what_was_read(instance, root, stage, partition),
        }
        if is_known and incomplete:
            event = _completed(incomplete, tags)
        elif stage is SNAPSHOT:
            event = published_event(
                instance, root, version, "Published outside of a run of Dagster, as by a rollback.", tags
            )
        else:
            reason = "Reported from the heads: the table exists, Dagster's event was missing."
            key_of_event = partition if stage.is_partitioned else None
            event = dg.AssetMaterialization(key, partition=key_of_event, tags=tags, description=reason)
        instance.report_runless_asset_event(event)
        n_reported += 1
    return n_reported


def _name_inputs(root: Root, stage: Stage) -> list[str]:
    """Return the tags of a stage's materialization that name its inputs, in the order of the alphabet."""
    from graphrag_pipeline.defs.assets.sources import sources_of

    names = [*(above.name for above in drawn_upstream_of(stage)), *sources_of(stage)]
    return sorted(f"{_INPUT_TAG}{asset_key(root, name).to_user_string()}" for name in names)


def _completed(event: AssetMaterialization, tags: Mapping[str, str]) -> AssetMaterialization:
    from dagster import AssetMaterialization

    kept = {name: value for name, value in (event.tags or {}).items() if not name.startswith(_INPUT_TAG)}
    return AssetMaterialization(event.asset_key, event.description, event.metadata, tags={**kept, **tags})


def _head_code_version(root: Root, stage: Stage, partition: str) -> str:
    """Return the code version that Dagster compares: of a stage and all above, as `version_with_above`."""
    return stable_hash(*(_made_by(root, stage, part, partition) for part in (*all_upstream_of(stage), stage)))


def _made_by(root: Root, stage: Stage, above: Stage, partition: str) -> str:
    """Return the version of the code that made a stage above for a partition; of all its partitions if they differ."""
    from graphrag_pipeline.storage.table_store import code_version_of

    keys = [partition] if stage.is_partitioned and above.is_partitioned else above.partitions(root.settings)
    tables = owned_tables(above)
    heads = [root.tables.head(tables[0], key) if tables else None for key in keys]
    versions = {head.code_version if head else code_version_of(root.code_of(above)) for head in heads}
    return " ".join(sorted(versions))


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
        event = published_event(instance, root, snapshot_id, _CONFIRMED)
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


_STATE_REPORTED = "graphrag_state_reported"
"""File in the Dagster home: a hash of the state at the last report of an index run, and of what was shown then."""


def report_changed_state(root: Root, manifests: Mapping[str, pa.Table]) -> None:
    """Report the checks of the state unless all is as the last index run reported it.

    Args:
        manifests: the present input folder, from `detect_input`.
    """
    marker = dagster_home(root) / full_name(root, _STATE_REPORTED)
    found = list(find_state(root, input_versions(manifests), manifests))
    if marker.exists() and marker.read_text(encoding="utf-8") == _hash_state(root, found):
        return
    from graphrag_pipeline.defs.assets.state_checks import report_found

    with open_instance(root) as instance:
        report_found(instance, root, found)
    files.replace(marker, _hash_state(root, found).encode())


def _hash_state(root: Root, found: Sequence[AssetState]) -> str:
    made = [
        stage_data_version(root, stage, key) or ""
        for stage in ALL_STAGES.values()
        for key in stage.partitions(root.settings)
    ]
    shown = dagster_home(root) / full_name(root, SHOWN_STATE)  # an observation may have shown another state since
    return stable_hash(*map(repr, found), *made, files.content_hash(shown.read_bytes() if shown.exists() else b""))
