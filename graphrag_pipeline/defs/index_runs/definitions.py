"""The Dagster definitions of an index run: assets, sources and checks, without jobs, sensors and retries."""

import dagster as dg

from graphrag_pipeline.defs.assets.checks import build_checks, build_quality_checks
from graphrag_pipeline.defs.assets.definitions import build_assets
from graphrag_pipeline.defs.assets.sources import build_sources
from graphrag_pipeline.defs.runs.executor import build_executor
from graphrag_pipeline.defs.runs.session import IndexSession
from graphrag_pipeline.pipeline.root import Root


def build_index_definitions(root: Root, session: IndexSession) -> dg.Definitions:
    """Return what an index run in this process needs; its stages share a session."""
    return dg.Definitions(
        assets=[*build_sources(root), *build_assets(root, session)],
        asset_checks=[*build_checks(root), build_quality_checks(root)],
        executor=build_executor(root),
    )
