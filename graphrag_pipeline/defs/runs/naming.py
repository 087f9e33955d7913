"""Keys and names of a root's assets, jobs, schedules and sensors.

A deployment may hold several roots and assets of others, so all of them begin with the root's key prefix. Without one,
they are the plain names. Keep out: the plain names (`names.py`, `pipeline/stages.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.defs.runs.names import (
    ASSET_JOB,
    BUCKET_JOB,
    OTHER_JOBS,
    PUBLISHING_ASSET_JOBS,
    REINDEX_JOBS,
    SEARCH_JOB,
)
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES

if TYPE_CHECKING:
    from dagster import AssetKey, DagsterRun

INDEXING_JOBS = frozenset({*REINDEX_JOBS, *PUBLISHING_ASSET_JOBS, BUCKET_JOB, ASSET_JOB})
"""Plain names of jobs that change the index."""


def asset_key(root: Root, name: str) -> AssetKey:
    """Return the key of an asset of a root."""
    from dagster import AssetKey

    return AssetKey([*root.key_prefix, name])


def full_name(root: Root, name: str) -> str:
    """Return the name of a job, schedule or sensor of a root."""
    return "_".join([*root.key_prefix, name])


def group_of(root: Root, kind: str) -> str:
    """Return the group of a root's assets of one kind."""
    return root.group_name or full_name(root, kind)


def plain_job(root: Root, run: DagsterRun) -> str | None:
    """Return the plain name of a run's job; None if the run is of another root or of other assets."""
    if run.job_name == ASSET_JOB:
        keys = run.asset_selection
        is_of_root = keys is None or not keys.isdisjoint({asset_key(root, name) for name in ALL_STAGES})
        return ASSET_JOB if is_of_root else None
    beginning = full_name(root, "")
    name = run.job_name.removeprefix(beginning)
    is_of_root = name in INDEXING_JOBS or name in OTHER_JOBS or name.endswith(SEARCH_JOB)
    return name if is_of_root and run.job_name.startswith(beginning) else None
