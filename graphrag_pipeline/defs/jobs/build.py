"""Named jobs: selections of assets that Dagster can run at once, jobs that index everything, reports, and queries."""

from typing import Any

import dagster as dg

from graphrag_pipeline.defs.jobs.batch import build_batch_job
from graphrag_pipeline.defs.jobs.evaluation import build_evaluation_job
from graphrag_pipeline.defs.jobs.queries import build_query_jobs
from graphrag_pipeline.defs.jobs.reindex import build_reindex_jobs
from graphrag_pipeline.defs.jobs.stale_report import build_observe_sources, build_stale_report, build_verify_files
from graphrag_pipeline.defs.runs.executor import build_executor
from graphrag_pipeline.defs.runs.naming import (
    BUCKET_JOB,
    CORPUS_JOB,
    INDEX,
    KIND_TAG,
    REPORTS_JOB,
    asset_key,
    full_name,
)
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, CANDIDATE, SNAPSHOT


def build_jobs(root: Root) -> list[Any]:
    """Build all jobs."""
    others = [build_observe_sources(root), build_verify_files(root), build_batch_job(root), build_evaluation_job(root)]
    return [
        *build_asset_jobs(root),
        *build_reindex_jobs(root),
        build_stale_report(root),
        *build_query_jobs(root),
        *others,
    ]


def build_asset_jobs(root: Root) -> list[Any]:
    """Build the jobs over assets of one kind of partition: those of a bucket, or of the whole corpus."""
    bucket_stages = [stage.name for stage in ALL_STAGES.values() if stage.is_partitioned]
    corpus_stages = [stage.name for stage in ALL_STAGES.values() if not stage.is_partitioned]
    report_stages = ["community_reports", "report_embeddings", CANDIDATE.name, SNAPSHOT.name]
    return [
        _asset_job(
            root,
            BUCKET_JOB,
            bucket_stages,
            "Every stage of one bucket of documents. A backfill of all buckets is the first half of an index run.",
        ),
        _asset_job(
            root,
            CORPUS_JOB,
            corpus_stages,
            "From the graph to the published snapshot, after all buckets: the second half of an index run.",
        ),
        _asset_job(root, REPORTS_JOB, report_stages, "Community reports, their vectors and a snapshot with them."),
    ]


def _asset_job(root: Root, name: str, stages: list[str], description: str) -> Any:
    selection = dg.AssetSelection.assets(*(asset_key(root, stage) for stage in stages))
    return dg.define_asset_job(
        full_name(root, name),
        selection=selection,
        description=description,
        executor_def=build_executor(root),
        tags={KIND_TAG: INDEX},
    )
