"""Assembles the Definitions of a root: assets, sources, checks, jobs, sensors, schedules, resources, executor."""

import dagster as dg

from graphrag_pipeline.defs.assets import bodies as _registered  # noqa: F401  (registers the bodies)
from graphrag_pipeline.defs.assets.checks import build_checks
from graphrag_pipeline.defs.assets.sources import build_sources
from graphrag_pipeline.defs.assets.stage_run import build_assets
from graphrag_pipeline.defs.automation.notifications import build_notification_sensors
from graphrag_pipeline.defs.automation.schedules import build_schedules
from graphrag_pipeline.defs.automation.sensors import build_input_sensor
from graphrag_pipeline.defs.jobs.answers_asset import build_answers_asset
from graphrag_pipeline.defs.jobs.build import build_jobs
from graphrag_pipeline.defs.runs.executor import build_executor
from graphrag_pipeline.defs.runs.resources import IndexRoot
from graphrag_pipeline.pipeline.root import Root


def build_definitions(root: Root) -> dg.Definitions:
    """Definitions of one root, with partitions and code versions as its files say now."""
    return dg.Definitions(
        assets=[*build_sources(root), *build_assets(root), build_answers_asset()],
        asset_checks=build_checks(),
        jobs=build_jobs(root),
        sensors=[build_input_sensor(root), *build_notification_sensors(root), *_automation_sensors(root)],
        schedules=build_schedules(root),
        resources=_resources(root),
        executor=build_executor(root),
    )


def build_index_definitions(root: Root) -> dg.Definitions:
    """What indexing from a process of our own needs: assets and checks, without retries."""
    return dg.Definitions(
        assets=[*build_sources(root), *build_assets(root, is_unattended=False)],
        asset_checks=build_checks(),
        resources=_resources(root),
        executor=build_executor(root),
    )


def _resources(root: Root) -> dict[str, IndexRoot]:
    return {"index_root": IndexRoot(path=str(root.path))}


def _automation_sensors(root: Root) -> list[dg.SensorDefinition]:
    """What evaluates the automation conditions; on, since somebody asked for them."""
    if not root.settings.schedule.follow_data:
        return []
    return [
        dg.AutomationConditionSensorDefinition(
            "data_sensor",
            target=dg.AssetSelection.all(),
            default_status=dg.DefaultSensorStatus.RUNNING,
            minimum_interval_seconds=root.settings.schedule.watch_interval_s,
        )
    ]
