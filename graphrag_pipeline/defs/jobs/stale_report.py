"""The job `stale_report`: the stale stages, the reasons, and the estimated cost, as tables in the UI. It runs no stage.

Dagster's tags mark each partition that changed; this report lists all changes with their reasons.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa

from graphrag_pipeline.defs.assets.ledger import report_costs
from graphrag_pipeline.defs.assets.pages.metadata import COST, as_table
from graphrag_pipeline.defs.assets.state_checks import report_state
from graphrag_pipeline.defs.runs.executor import job_options
from graphrag_pipeline.defs.runs.loaded_code import RELOAD, code_version_of_all, has_old_definitions
from graphrag_pipeline.defs.runs.names import INSPECT, KIND_TAG, LOADED_TAG, STALE_REPORT
from graphrag_pipeline.defs.runs.naming import full_name
from graphrag_pipeline.defs.runs.resources import IndexRoot
from graphrag_pipeline.inspection.costs import render_estimates
from graphrag_pipeline.inspection.estimates import estimate_index
from graphrag_pipeline.pipeline.detected_input import detect_input, list_problems
from graphrag_pipeline.pipeline.open_work import find_unpublished_candidate
from graphrag_pipeline.pipeline.prompt_texts import find_prompt_problem
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.staleness import StalePartition, find_stale, group_stale

_MAX_REASON = 400  # characters


@dg.op(description="Compare the input folder, settings and prompts with the index, and estimate the cost.")
def report_stale(context: dg.OpExecutionContext, index_root: IndexRoot) -> None:
    root = index_root.open()
    root.pull()
    if has_old_definitions(context, root):
        context.log.warning(RELOAD)
    manifests = {} if root.is_imported else detect_input(root)
    context.add_output_metadata(describe_stale(root, manifests) | describe_definitions(context, root))
    if not root.is_imported:
        report_state(context.instance, root, manifests)
    report_costs(context.instance, root)


def describe_definitions(context: dg.OpExecutionContext, root: Root) -> dict[str, Any]:
    """Return whether the UI shows the definitions on disk."""
    return {"definitions": RELOAD if has_old_definitions(context, root) else "as on disk"}


def describe_stale(root: Root, manifests: Mapping[str, pa.Table]) -> dict[str, Any]:
    """Return what is stale, why, and the estimated cost, as metadata of an op's output."""
    if root.is_imported:
        return {"stale partitions": 0, "stale": "the published index was imported; the input folder is not used"}
    stale = find_stale(root, manifests)
    problem = find_prompt_problem(root)
    estimates = [] if problem else estimate_index(root, stale)
    costs = [estimate.cost for estimate in estimates]
    shown: dict[str, Any] = {
        "stale partitions": len(stale),
        "stale": dg.MetadataValue.md(_stale_table(stale)),
        "estimated calls": sum(estimate.n_calls for estimate in estimates),
        "estimate": f"not made: {problem}"
        if problem
        else dg.MetadataValue.md("\n".join(["```", *render_estimates(estimates), "```"])),
        "documents not readable": len(list_problems(manifests)),
        "snapshot": root.snapshots.current() or "none published",
    }
    if estimates and None not in costs:
        shown[f"estimated {COST}"] = round(sum(cost or 0.0 for cost in costs), 4)
    waiting = find_unpublished_candidate(root)
    return shown | ({"waiting for unpin": waiting} if waiting else {})


def _stale_table(stale: Sequence[StalePartition]) -> str:
    if not stale:
        return "everything is fresh"
    rows = ((stage, " ".join(keys), why) for (stage, why), keys in group_stale(stale).items())
    return as_table(("asset", "partitions", "why"), rows, _MAX_REASON)


def build_stale_report(root: Root) -> dg.JobDefinition:
    """Build the job, tagged with the definitions that are loaded now."""

    @dg.job(
        name=full_name(root, STALE_REPORT),
        **job_options(root),
        description="Shows what is stale and why, and what reindexing would cost. Runs nothing.",
        tags={LOADED_TAG: code_version_of_all(root), KIND_TAG: INSPECT},
    )
    def stale_report() -> None:
        report_stale()

    return stale_report
