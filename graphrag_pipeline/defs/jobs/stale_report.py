"""Jobs that index nothing: report what is stale, verify the files, observe the sources."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa

from graphrag_pipeline.defs.assets.ledger import report_costs
from graphrag_pipeline.defs.assets.pages.metadata import COST, as_table
from graphrag_pipeline.defs.assets.sources import observe_sources_now
from graphrag_pipeline.defs.assets.state_checks import report_state
from graphrag_pipeline.defs.runs.executor import IndexRoot, job_options
from graphrag_pipeline.defs.runs.loaded_code import RELOAD, code_version_of_all, has_old_definitions
from graphrag_pipeline.defs.runs.naming import (
    INSPECT,
    KIND_TAG,
    LOADED_TAG,
    OBSERVE_SOURCES,
    STALE_REPORT,
    VERIFY_FILES,
    full_name,
)
from graphrag_pipeline.defs.runs.records import prune_runs
from graphrag_pipeline.inspection.costs import render_estimates
from graphrag_pipeline.inspection.estimates import estimate_index
from graphrag_pipeline.pipeline.detected_input import detect_input, list_problems
from graphrag_pipeline.pipeline.open_work import find_unpublished_candidate
from graphrag_pipeline.pipeline.prompt_texts import find_prompt_problem
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.staleness import StalePartition, find_stale, group_stale
from graphrag_pipeline.pipeline.verification import Verification, verify_root

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


_MAX_CELL = 400  # characters


@dg.op(description="Compare every file of the index with its hash, and repair what is damaged.")
def verify_all_files(context: dg.OpExecutionContext, index_root: IndexRoot) -> None:
    found = verify_root(index_root.open(), is_repairing=True)
    context.add_output_metadata(describe_verification(found))
    if not found.is_whole:
        lost = [finding for finding in found.findings if not finding.is_repaired]
        raise dg.Failure(f"{lost[0].path} is damaged: {lost[0].outcome}", describe_verification(found))


def describe_verification(found: Verification) -> dict[str, Any]:
    """Return counts and the damaged files as metadata of an op's output."""
    rows = [(finding.path, finding.kind, finding.outcome) for finding in found.findings]
    listed = as_table(("file", "kind", "what was done"), rows, _MAX_CELL) if rows else "no file is damaged"
    return {
        "files and folders": found.n_parts,
        "bytes": found.n_bytes,
        "damaged": len(rows),
        "damaged files": dg.MetadataValue.md(listed),
    }


def build_verify_files(root: Root) -> dg.JobDefinition:
    """Build the job of a root."""

    @dg.job(
        name=full_name(root, VERIFY_FILES),
        description="Compares every file of the index with its hash, and repairs damaged ones.",
        tags={KIND_TAG: INSPECT},
        **job_options(root),
    )
    def verify_files() -> None:
        verify_all_files()

    return verify_files


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
