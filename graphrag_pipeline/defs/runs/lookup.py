"""Lookup of the Dagster run that made a version of an asset's partition, from Dagster's events."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.naming import asset_key
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.root import Root

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
