"""Loaded code: a check that Dagster's loaded definitions agree with settings and prompts on disk.

A run's process reads the files again, so its own definitions do not show that the UI has older ones. The code version
that was loaded at launch is in the tags of the run's job, which Dagster stores with the run.
"""

import dagster as dg

from graphrag_pipeline.defs.runs.naming import LOADED_TAG
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, Stage, all_upstream_of
from graphrag_pipeline.storage.table_store import code_version_of

RELOAD = (
    "settings.yaml (or a prompt) changed since these definitions were loaded; choose Reload definitions in the Dagster "
    "UI (Lineage page)"
)
_TAG_DIGITS = 12
"""Digits of a version in the tag of a run, which the UI shows in full."""


class OldDefinitionsError(PipelineError):
    """Dagster loaded other settings or prompts than are on disk. A retry fails again."""


def code_version_of_all(root: Root) -> str:
    """Return one version of all stages, from settings and prompts on disk."""
    return stable_hash(*(code_version_of(root.code_of(stage)) for stage in ALL_STAGES.values()))[:_TAG_DIGITS]


def version_with_above(root: Root, stage: Stage) -> str:
    """Return one version of a stage and all stages above: below a changed stage no older result is used."""
    return stable_hash(*(code_version_of(root.code_of(part)) for part in (*all_upstream_of(stage), stage)))


def has_old_definitions(context: dg.OpExecutionContext, root: Root) -> bool:
    """Return whether a job tagged with `code_version_of_all` was loaded from other settings or prompts."""
    return context.run.tags.get(LOADED_TAG) not in (None, code_version_of_all(root))


def check_loaded_code(context: dg.AssetExecutionContext, root: Root, stage: Stage) -> None:
    """Refuse to run a stage if its code version, or that of a stage above it, is not the one that was loaded.

    Raises:
        OldDefinitionsError: definitions have to be loaded again.
    """
    version = version_with_above(root, stage)
    here = context.op_def.tags.get(LOADED_TAG)
    if here != version or _launched_version(context, stage.name) not in (None, version):
        raise OldDefinitionsError(f"{stage.name}: {RELOAD}, then launch the run again")


def _launched_version(context: dg.AssetExecutionContext, stage: str) -> str | None:
    """Return the code version that was loaded where the run was launched; None for a run of an index run."""
    run = context.run
    if run.remote_job_origin is None or run.job_snapshot_id is None:
        return None
    ops = context.instance.get_job_snapshot(run.job_snapshot_id).node_defs_snapshot.op_def_snaps
    return next((op.tags.get(LOADED_TAG) for op in ops if op.name == stage), None)
