"""Jobs that index as the command line does: everything stale, everything, or all embeddings.

A Dagster run has one partition, and these jobs need all buckets and the whole corpus. So the first step starts the
functions of `graphrag-pipeline index`. They materialize the assets in separate runs, one per bucket and one for the
corpus, which carry this run's id as a tag. Their definitions are made from the files on disk, not from the loaded code.
A step a stage waits for them (`index_runs/followed_run.py`); a step that is tried again goes on with what is stale.
"""

from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.assets.pages.metadata import as_table, of_calls
from graphrag_pipeline.defs.assets.published import link_difference
from graphrag_pipeline.defs.index_runs.followed_run import FollowedRun
from graphrag_pipeline.defs.index_runs.index_run import IndexReport, run_index, run_stages
from graphrag_pipeline.defs.jobs.stale_report import describe_definitions
from graphrag_pipeline.defs.runs.errors import RETRY_POLICY, in_words, retrying
from graphrag_pipeline.defs.runs.executor import job_options
from graphrag_pipeline.defs.runs.loaded_code import RELOAD, code_version_of_all, has_old_definitions
from graphrag_pipeline.defs.runs.naming import (
    BATCHES_TAG,
    EMBEDDINGS_ONLY,
    INDEX,
    INDEX_IN_BATCHES,
    KIND_TAG,
    LOADED_TAG,
    REINDEX_ALL,
    REINDEX_STALE,
    STARTED_BY_TAG,
    full_name,
)
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.models.endpoints.batching import BatchesUnderWayError, sending_batches
from graphrag_pipeline.pipeline.progress import RunObserver
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import asks_any_model
from graphrag_pipeline.pipeline.stages import ALL_STAGES, CANDIDATE, SNAPSHOT, Stage

Body = Callable[[dg.OpExecutionContext, Root, RunObserver], dict[str, Any]]
"""Indexes a root and returns the metadata that the UI shows."""


def build_reindex_jobs(root: Root) -> list[dg.JobDefinition]:
    """Build the jobs of a root, tagged with the definitions that are loaded now."""
    jobs = [
        _build_job(root, REINDEX_STALE, _index_stale, "Runs exactly what is stale, checks and publishes."),
        _build_job(root, REINDEX_ALL, _index_all, "Runs every stage of every bucket again, checks and publishes."),
        _build_job(root, EMBEDDINGS_ONLY, _embed_all, "Runs every embedding stage again, checks and publishes."),
    ]
    if asks_any_model(root.settings):
        description = (
            "Runs what is stale with model calls at half price: sends them as batches and ends; batch_sensor starts it "
            "again once they are over."
        )
        jobs.append(_build_job(root, INDEX_IN_BATCHES, _index_in_batches, description))
    return jobs


@dg.resource(description="The index run that the steps of a job follow; it is interrupted if the job ends first.")
def _followed_run(_context: dg.InitResourceContext) -> Iterator[FollowedRun]:
    run = FollowedRun()
    try:
        yield run
    finally:
        run.stop()


def _build_job(root: Root, name: str, body: Body, description: str) -> dg.JobDefinition:
    options = job_options(root)
    options["resource_defs"] = {**options["resource_defs"], "followed_run": _followed_run}
    steps = [_build_step(root, full_name(root, name), stage, body) for stage in ALL_STAGES.values()]

    @dg.job(
        name=full_name(root, name),
        description=description,
        tags={LOADED_TAG: code_version_of_all(root), KIND_TAG: INDEX},
        **options,
    )
    def job() -> None:
        before = steps[0]()
        for step in steps[1:]:
            before = step(before)

    return job


def _build_step(root: Root, job: str, stage: Stage, body: Body) -> dg.PendingNodeInvocation[Any]:
    """Return the step that waits for a stage; the first one starts the index run, the last one waits for its end."""
    is_first, is_last = stage.name == next(iter(ALL_STAGES)), stage is SNAPSHOT
    is_retried = asks_any_model(root.settings)

    @dg.op(
        name=f"{job}__{stage.name}",  # unique among all jobs
        description=stage.description,
        ins={} if is_first else {"before": dg.In(dg.Nothing)},
        out=dg.Out(dg.Nothing),
        required_resource_keys={"index_root", "followed_run"},
    )
    def step(context: dg.OpExecutionContext) -> None:
        followed: FollowedRun = context.resources.followed_run
        opened = context.resources.index_root.open()
        if is_first and has_old_definitions(context, opened):
            context.log.warning(f"{RELOAD}: this run uses the files on disk; the UI still shows older definitions")
        account = CallStats()

        def index(observer: RunObserver) -> dict[str, Any]:
            shown = body(context, opened.counted_in(account), observer)
            published = opened.snapshots.current()
            links = link_difference(context.instance, opened, published) if published else {}
            return links | shown | of_calls(account) | describe_definitions(context, opened)

        with retrying(context, RETRY_POLICY) if is_retried else in_words():
            followed.start(index)
            followed.wait_for(None if is_last else stage.name, context.log.info)
        shown = {"partitions computed": followed.computed[stage.name]}
        context.add_output_metadata({**(followed.result or {}), "computed": _count(followed)} if is_last else shown)

    return step.alias(stage.name)


def _tags_of_children(context: dg.OpExecutionContext) -> dict[str, str]:
    """Return the tags of the runs that this run starts."""
    return {STARTED_BY_TAG: context.run_id}


def _index_stale(context: dg.OpExecutionContext, root: Root, observer: RunObserver) -> dict[str, Any]:
    return _describe(run_index(root, observer, tags=_tags_of_children(context)))


def _index_in_batches(context: dg.OpExecutionContext, root: Root, observer: RunObserver) -> dict[str, Any]:
    with sending_batches(root.models.database, observer.progress, is_waiting=False) as desk:
        try:
            return _index_stale(context, root, observer)
        except BatchesUnderWayError as error:
            context.instance.add_run_tags(context.run_id, {BATCHES_TAG: " ".join(sorted(desk.under_way))})
            return {"waits for": str(error), "batches under way": len(desk.under_way)}


def _index_all(context: dg.OpExecutionContext, root: Root, observer: RunObserver) -> dict[str, Any]:
    return _rebuild(context, root, observer, list(ALL_STAGES))


def _embed_all(context: dg.OpExecutionContext, root: Root, observer: RunObserver) -> dict[str, Any]:
    embedding = [stage.name for stage in ALL_STAGES.values() if stage.group == "embeddings"]
    return _rebuild(context, root, observer, [*embedding, CANDIDATE.name, SNAPSHOT.name])


def _rebuild(context: dg.OpExecutionContext, root: Root, observer: RunObserver, stages: list[str]) -> dict[str, Any]:
    chosen = [name for name in stages if name != SNAPSHOT.name or root.snapshots.pinned() is None]
    run_stages(root, chosen, observer, tags=_tags_of_children(context))
    return {"snapshot": root.snapshots.current() or "none published"}


def _describe(report: IndexReport) -> dict[str, Any]:
    shown = {
        "documents": report.n_documents,
        "documents not readable": len(report.problems),
        "partitions computed": len(report.ran),
        "partitions not computed, as what they read came out equal": len(report.reused),
        "snapshot": report.snapshot,
    }
    return shown | ({"waiting for unpin": report.waiting} if report.waiting else {})


def _count(followed: FollowedRun) -> dg.MetadataValue:
    rows = [(name, followed.computed[name]) for name in ALL_STAGES if followed.computed[name]]
    return dg.MetadataValue.md(as_table(("asset", "partitions"), rows) if rows else "nothing")
