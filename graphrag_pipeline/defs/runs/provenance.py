"""Dagster's tags of a materialization that this package reports itself: its versions, and the events that it read.

Dagster adds these tags to the result of an asset. Keep out: the versions of sources (`assets/sources.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.defs.runs.naming import asset_key
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.data_versions import stage_data_version
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import Stage, upstream_of

if TYPE_CHECKING:
    from dagster import DagsterInstance

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
    for above in upstream_of(stage):
        key = asset_key(root, above.name)
        record = instance.get_latest_data_version_record(key)
        tags[f"dagster/input_event_pointer/{key.to_user_string()}"] = str(record.storage_id) if record else "NULL"
        # For a partitioned asset Dagster compares events and ignores this tag.
        version = None if above.is_partitioned else stage_data_version(root, above, WHOLE)
        tags[f"dagster/input_data_version/{key.to_user_string()}"] = version or ""
    return tags
