"""Events that Dagster lacks, reported from the heads: the tables are there, Dagster's events are not.

This happens after a crash, a rollback, or when the Dagster home was removed. An event of an earlier release that does
not name a source is reported again with what it shows. Keep out: running anything, and Dagster at import: an index run
that finds nothing to do does not need it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphrag_pipeline.defs.runs.instance import dagster_home, open_instance
from graphrag_pipeline.defs.runs.names import WHOLE_INPUT
from graphrag_pipeline.defs.runs.naming import asset_key, full_name
from graphrag_pipeline.defs.runs.provenance import DATA_VERSION_TAG, version_tags
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import WHOLE, stable_hash
from graphrag_pipeline.pipeline.data_versions import owned_tables, stage_data_version
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, SNAPSHOT, Stage, all_upstream_of

if TYPE_CHECKING:
    from dagster import AssetMaterialization, DagsterInstance

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
    content = json.dumps({**versions, "sources": [WHOLE_INPUT]}).encode()
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
        if f"dagster/input_data_version/{asset_key(root, WHOLE_INPUT).to_user_string()}" not in tags:
            incomplete = last
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
            event = published_event(root, version, "Published outside of a run of Dagster, as by a rollback.", tags)
        else:
            reason = "Reported from the heads: the table exists, Dagster's event was missing."
            key_of_event = partition if stage.is_partitioned else None
            event = dg.AssetMaterialization(key, partition=key_of_event, tags=tags, description=reason)
        instance.report_runless_asset_event(event)
        n_reported += 1
    return n_reported


def _completed(event: AssetMaterialization, tags: Mapping[str, str]) -> AssetMaterialization:
    from dagster import AssetMaterialization

    return AssetMaterialization(event.asset_key, event.description, event.metadata, tags={**(event.tags or {}), **tags})


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
