"""The job `observe_sources`: records the versions of the input folder and entity_overrides.csv. Runs nothing else."""

import dagster as dg

from graphrag_pipeline.defs.assets.ledger import report_costs
from graphrag_pipeline.defs.assets.sources import observe_sources_now
from graphrag_pipeline.defs.assets.state_checks import report_state
from graphrag_pipeline.defs.runs.executor import job_options
from graphrag_pipeline.defs.runs.names import INSPECT, KIND_TAG, OBSERVE_SOURCES
from graphrag_pipeline.defs.runs.naming import full_name
from graphrag_pipeline.defs.runs.records import prune_runs
from graphrag_pipeline.defs.runs.resources import IndexRoot
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root


@dg.op(description="Read the input folder and entity_overrides.csv, and record the version of each bucket.")
def observe_all_sources(context: dg.OpExecutionContext, index_root: IndexRoot) -> None:
    root, changed = index_root.open(), []
    manifests = detect_input(root)
    for observation, is_changed in observe_sources_now(context.instance, root, manifests):
        context.log_event(observation)
        if is_changed:
            changed.append(f"{observation.asset_key.to_user_string()} {observation.partition or ''}".strip())
    report_state(context.instance, root, manifests)
    report_costs(context.instance, root)
    prune_runs(root)  # an index run does this, but under `schedule.follow_data` there may be no index run
    context.add_output_metadata({"changed": len(changed), "what changed": ", ".join(changed) or "nothing"})


def build_observe_sources(root: Root) -> dg.JobDefinition:
    """Build the job of a root."""

    @dg.job(
        name=full_name(root, OBSERVE_SOURCES),
        description="Observes the input folder and entity_overrides.csv, so that Unsynced is right. Runs nothing.",
        tags={KIND_TAG: INSPECT},
        **job_options(root),
    )
    def observe_sources() -> None:
        observe_all_sources()

    return observe_sources
