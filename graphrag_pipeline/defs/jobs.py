"""Named jobs: the index in the two selections Dagster can run at once, and the query jobs."""

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from graphrag_pipeline.defs.query_jobs import QUERY_JOBS
from graphrag_pipeline.stages import ALL_STAGES

BUCKET_JOB = "index_bucket"
CORPUS_JOB = "index_corpus"


def build_jobs() -> list[dg.JobDefinition | UnresolvedAssetJobDefinition]:
    """All jobs."""
    bucket_stages = [stage.name for stage in ALL_STAGES.values() if stage.is_partitioned]
    corpus_stages = [stage.name for stage in ALL_STAGES.values() if not stage.is_partitioned]
    return [
        dg.define_asset_job(
            BUCKET_JOB,
            selection=dg.AssetSelection.assets(*bucket_stages),
            description="Every stage of one bucket of documents: run it for each bucket (or as a backfill) first.",
        ),
        dg.define_asset_job(
            CORPUS_JOB,
            selection=dg.AssetSelection.assets(*corpus_stages),
            description="From the graph to the published snapshot: run it when all buckets are there.",
        ),
        *QUERY_JOBS,
    ]
