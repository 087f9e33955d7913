"""Assembles the Definitions of a root: assets, checks, jobs, resources, executor."""

import dagster as dg

from graphrag_pipeline.defs import assets as _registered  # noqa: F401  (registers the bodies)
from graphrag_pipeline.defs.checks import build_checks
from graphrag_pipeline.defs.jobs import build_jobs
from graphrag_pipeline.defs.resources import IndexRoot
from graphrag_pipeline.defs.stage_run import build_assets
from graphrag_pipeline.root import Root


def build_definitions(root: Root) -> dg.Definitions:
    """Definitions of one root, with partitions and code versions as its files say now."""
    return dg.Definitions(
        assets=build_assets(root),
        asset_checks=build_checks(),
        jobs=build_jobs(),
        resources={"index_root": IndexRoot(path=str(root.path))},
        # One process for all steps: a step costs milliseconds, not seconds; model calls are concurrent inside an asset.
        executor=dg.in_process_executor,
    )
