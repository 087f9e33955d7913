"""Whether what Dagster has loaded is what settings and prompts on disk say now.

A run's process reads the files anew, so it cannot see from its own definitions that the UI shows older ones. What was
loaded when the run was launched is in the tags of the run's job, which Dagster stores with the run.
"""

import dagster as dg

from graphrag_pipeline.defs.runs.names import LOADED_TAG
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, Stage, all_upstream_of
from graphrag_pipeline.storage.table_store import code_version_of

RELOAD = (
    "settings.yaml (or a prompt) changed since these definitions were loaded; choose Reload definitions in the Dagster "
    "UI (Deployment page)"
)


class OldDefinitionsError(PipelineError):
    """Dagster loaded other settings or prompts than are on disk; running again is no cure."""


def code_version_of_all(root: Root) -> str:
    """One version of all stages, as settings and prompts on disk say."""
    return stable_hash(*(code_version_of(root.code_of(stage)) for stage in ALL_STAGES.values()))


def version_with_above(root: Root, stage: Stage) -> str:
    """One version of a stage and all above it: below a changed stage nothing is made of what that made before."""
    return stable_hash(*(code_version_of(root.code_of(part)) for part in (*all_upstream_of(stage), stage)))


def has_old_definitions(context: dg.OpExecutionContext, root: Root) -> bool:
    """Whether a job that was tagged with `code_version_of_all` was loaded from other settings or prompts."""
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
    """The code version that whoever launched the run had loaded; None for a run of our own process."""
    run = context.run
    if run.remote_job_origin is None or run.job_snapshot_id is None:
        return None
    ops = context.instance.get_job_snapshot(run.job_snapshot_id).node_defs_snapshot.op_def_snaps
    return next((op.tags.get(LOADED_TAG) for op in ops if op.name == stage), None)
