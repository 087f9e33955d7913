"""Dagster's events of a partition: the run that made a version, and the tags of an event that this package reports."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.naming import asset_key
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.data_versions import stage_data_version
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import Stage, drawn_upstream_of

if TYPE_CHECKING:
    from dagster import AssetKey, DagsterInstance


_LOOKED_AT = 200
"""Number of a partition's materializations that are searched, newest first."""


@contextmanager
def finding_runs(root: Root) -> Iterator[Callable[[str, str, str], str | None]]:
    """Give a function (stage, partition, data version) -> id of the run that made it.

    The id is None if Dagster has no event of that version, or one that was reported from the heads. A run that found
    the partition fresh did not make it.

    Raises:
        PipelineError: Dagster's records cannot be read.
    """
    if not (os.environ.get("DAGSTER_HOME") or (root.path / "dagster" / "history").exists()):
        yield lambda stage, partition, data_version: None
        return
    with open_instance(root) as instance:
        yield lambda stage, partition, data_version: _find_run(
            instance, asset_key(root, stage), partition, data_version
        )


def _find_run(instance: DagsterInstance, key: AssetKey, partition: str, data_version: str) -> str | None:
    import dagster as dg

    partitions = None if partition == WHOLE else [partition]
    wanted = dg.AssetRecordsFilter(key, asset_partitions=partitions)
    found = [
        record
        for record in instance.fetch_materializations(wanted, limit=_LOOKED_AT).records
        if (event := record.asset_materialization) and (event.tags or {}).get("dagster/data_version") == data_version
    ]
    made = [record for record in found if "reused" not in record.asset_materialization.metadata]  # type: ignore[union-attr]
    return next((record.run_id for record in made or found), None) or None


DATA_VERSION_TAG = "dagster/data_version"


def version_tags(
    root: Root, instance: DagsterInstance, stage: Stage, data_version: str, code_version: str
) -> dict[str, str]:
    """Return the tags of a materialization of a stage: its versions, and the upstream events that Dagster has now.

    Without the latter, Dagster would treat all upstream as new.

    Args:
        code_version: as Dagster compares it, see `version_with_above`.
    """
    tags = {
        DATA_VERSION_TAG: data_version,
        "dagster/data_version_is_user_provided": "true",
        "dagster/code_version": code_version,
    }
    for above in drawn_upstream_of(stage):
        key = asset_key(root, above.name)
        record = instance.get_latest_data_version_record(key)
        tags[f"dagster/input_event_pointer/{key.to_user_string()}"] = str(record.storage_id) if record else "NULL"
        # For a partitioned asset Dagster compares events and ignores this tag.
        version = None if above.is_partitioned else stage_data_version(root, above, WHOLE)
        tags[f"dagster/input_data_version/{key.to_user_string()}"] = version or ""
    return tags
