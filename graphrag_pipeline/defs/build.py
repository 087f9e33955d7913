"""The Dagster definitions of a root: assets, sources, checks, jobs, sensors, schedules, resources, executor.

This module is the top of `defs`: it imports every room, and no room imports it.
"""

import dagster as dg

from graphrag_pipeline.defs.assets.checks import build_checks, build_quality_checks
from graphrag_pipeline.defs.assets.definitions import build_assets
from graphrag_pipeline.defs.assets.ledger import build_costs_asset
from graphrag_pipeline.defs.assets.sources import build_sources
from graphrag_pipeline.defs.assets.state_checks import build_state_checks
from graphrag_pipeline.defs.automation.batches import build_batch_sensors
from graphrag_pipeline.defs.automation.fan_out import build_fan_out_sensors
from graphrag_pipeline.defs.automation.notifications import build_notification_sensors
from graphrag_pipeline.defs.automation.schedules import build_schedules
from graphrag_pipeline.defs.automation.sensors import build_data_sensors, build_input_sensor
from graphrag_pipeline.defs.jobs.build import build_jobs
from graphrag_pipeline.defs.jobs.queries import build_answers_asset
from graphrag_pipeline.defs.runs.executor import build_executor
from graphrag_pipeline.pipeline.root import Root


def build_definitions(root: Root, is_alone: bool = True) -> dg.Definitions:
    """Return the definitions of one root, with partitions and code versions as its files say now.

    Args:
        is_alone: whether the deployment has nothing else; else its executor runs the assets, outside of our jobs.
    """
    jobs = build_jobs(root)
    return dg.Definitions(
        assets=[*build_sources(root), *build_assets(root), build_answers_asset(root), build_costs_asset(root)],
        asset_checks=[*build_checks(root), build_quality_checks(root), build_state_checks(root)],
        jobs=jobs,
        sensors=[
            build_input_sensor(root),
            *build_fan_out_sensors(root, jobs),
            *build_batch_sensors(root, jobs),
            *build_notification_sensors(root),
            *build_data_sensors(root),
        ],
        schedules=build_schedules(root),
        executor=build_executor(root) if is_alone else None,
    )
