"""Named jobs: selections of assets that Dagster can run at once, jobs that index everything, reports, and queries."""

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from graphrag_pipeline.defs.jobs.batch import batch_job
from graphrag_pipeline.defs.jobs.evaluation import evaluation_job
from graphrag_pipeline.defs.jobs.observe_sources import observe_sources
from graphrag_pipeline.defs.jobs.queries import QUERY_JOBS
from graphrag_pipeline.defs.jobs.reindex import build_reindex_jobs
from graphrag_pipeline.defs.jobs.stale_report import build_stale_report
from graphrag_pipeline.defs.jobs.verify_files import verify_files
from graphrag_pipeline.defs.runs.names import BUCKET_JOB, CORPUS_JOB, REPORTS_JOB
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, CANDIDATE, SNAPSHOT

Job = dg.JobDefinition | UnresolvedAssetJobDefinition


def build_jobs(root: Root) -> list[Job]:
    """Build all jobs."""
    others = [build_stale_report(root), observe_sources, verify_files, *QUERY_JOBS, batch_job, evaluation_job]
    return [*build_asset_jobs(), *build_reindex_jobs(root), *others]


def build_asset_jobs() -> list[UnresolvedAssetJobDefinition]:
    """Build the jobs over assets of one kind of partition: those of a bucket, or of the whole corpus."""
    bucket_stages = [stage.name for stage in ALL_STAGES.values() if stage.is_partitioned]
    corpus_stages = [stage.name for stage in ALL_STAGES.values() if not stage.is_partitioned]
    report_stages = ["community_reports", "report_embeddings", CANDIDATE.name, SNAPSHOT.name]
    return [
        _asset_job(
            BUCKET_JOB,
            bucket_stages,
            "Every stage of one bucket of documents. A backfill of all buckets is the first half of an index run.",
        ),
        _asset_job(
            CORPUS_JOB,
            corpus_stages,
            "From the graph to the published snapshot, after all buckets: the second half of an index run.",
        ),
        _asset_job(REPORTS_JOB, report_stages, "Community reports, their vectors and a snapshot with them."),
    ]


def _asset_job(name: str, stages: list[str], description: str) -> UnresolvedAssetJobDefinition:
    return dg.define_asset_job(name, selection=dg.AssetSelection.assets(*stages), description=description)
