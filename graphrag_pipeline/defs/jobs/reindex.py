"""Jobs that index as the command line does: everything stale, everything, or all embeddings.

A Dagster run has one partition, and these jobs need all buckets and the whole corpus. So one op calls the functions of
`graphrag-pipeline index`. They materialize the assets in separate runs, one per bucket and one for the corpus, which
carry this run's id as a tag. Their definitions are made from the files on disk, not from the loaded code.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.assets.pages.metadata import as_table, of_calls
from graphrag_pipeline.defs.assets.published import link_difference
from graphrag_pipeline.defs.index_runs.index_run import IndexReport, run_index, run_stages
from graphrag_pipeline.defs.jobs.stale_report import describe_definitions
from graphrag_pipeline.defs.runs.errors import RETRY_POLICY, in_words, retrying
from graphrag_pipeline.defs.runs.executor import IndexRoot, job_options
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
from graphrag_pipeline.pipeline.progress import LogObserver
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import asks_any_model
from graphrag_pipeline.pipeline.stages import ALL_STAGES, CANDIDATE, SNAPSHOT

Body = Callable[[dg.OpExecutionContext, Root], dict[str, Any]]
"""Indexes a root and returns the metadata that the UI shows."""


class _JobObserver(LogObserver):
    """Writes progress to the log of the job and records which stages ran."""

    def __init__(self, log: Callable[[str], None]) -> None:
        super().__init__(log)
        self.ran: list[tuple[str, str]] = []

    def finish(self, stage: str, partition: str, is_fresh: bool) -> None:
        self.ran.append((stage, partition))


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


def _build_job(root: Root, name: str, body: Body, description: str) -> dg.JobDefinition:
    is_retried = asks_any_model(root.settings)

    @dg.op(name=f"run_{full_name(root, name)}", description=description)
    def run(context: dg.OpExecutionContext, index_root: IndexRoot) -> None:
        opened = index_root.open()
        if has_old_definitions(context, opened):
            context.log.warning(f"{RELOAD}: this run uses the files on disk; the UI still shows older definitions")
        trying = retrying(context, RETRY_POLICY) if is_retried else in_words()
        account = CallStats()
        with trying:
            shown = body(context, opened.counted_in(account))
        published = opened.snapshots.current()
        links = link_difference(context.instance, opened, published) if published else {}
        context.add_output_metadata(links | shown | of_calls(account) | describe_definitions(context, opened))

    @dg.job(
        name=full_name(root, name),
        description=description,
        tags={LOADED_TAG: code_version_of_all(root), KIND_TAG: INDEX},
        **job_options(root),
    )
    def job() -> None:
        run()

    return job


def _tags_of_children(context: dg.OpExecutionContext) -> dict[str, str]:
    """Return the tags of the runs that this run starts."""
    return {STARTED_BY_TAG: context.run_id}


def _index_stale(context: dg.OpExecutionContext, root: Root) -> dict[str, Any]:
    return _describe(run_index(root, _JobObserver(context.log.info), tags=_tags_of_children(context)))


def _index_in_batches(context: dg.OpExecutionContext, root: Root) -> dict[str, Any]:
    with sending_batches(root.models.database, context.log.info, is_waiting=False) as desk:
        try:
            return _index_stale(context, root)
        except BatchesUnderWayError as error:
            context.instance.add_run_tags(context.run_id, {BATCHES_TAG: " ".join(sorted(desk.under_way))})
            return {"waits for": str(error), "batches under way": len(desk.under_way)}


def _index_all(context: dg.OpExecutionContext, root: Root) -> dict[str, Any]:
    return _rebuild(context, root, list(ALL_STAGES))


def _embed_all(context: dg.OpExecutionContext, root: Root) -> dict[str, Any]:
    embedding = [stage.name for stage in ALL_STAGES.values() if stage.group == "embeddings"]
    return _rebuild(context, root, [*embedding, CANDIDATE.name, SNAPSHOT.name])


def _rebuild(context: dg.OpExecutionContext, root: Root, stages: list[str]) -> dict[str, Any]:
    observer = _JobObserver(context.log.info)
    chosen = [name for name in stages if name != SNAPSHOT.name or root.snapshots.pinned() is None]
    run_stages(root, chosen, observer, tags=_tags_of_children(context))
    return {"computed": _count(observer.ran), "snapshot": root.snapshots.current() or "none published"}


def _describe(report: IndexReport) -> dict[str, Any]:
    shown = {
        "documents": report.n_documents,
        "documents not readable": len(report.problems),
        "partitions computed": len(report.ran),
        "partitions not computed, as what they read came out equal": len(report.reused),
        "computed": _count(report.ran),
        "snapshot": report.snapshot,
    }
    return shown | ({"waiting for unpin": report.waiting} if report.waiting else {})


def _count(ran: list[tuple[str, str]]) -> dg.MetadataValue:
    counts = Counter(stage for stage, _ in ran)
    rows = ((name, counts[name]) for name in ALL_STAGES if name in counts)
    return dg.MetadataValue.md(as_table(("asset", "partitions"), rows) if counts else "nothing")
