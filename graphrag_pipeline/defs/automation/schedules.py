"""The cron schedules: one indexes what is stale, one verifies files, one observes the files that the user edits.

All are off unless the settings turn them on.
"""

import dagster as dg

from graphrag_pipeline.defs.automation.sensors import say_why_not, why_busy, why_not_unattended
from graphrag_pipeline.defs.runs.executor import IndexRoot
from graphrag_pipeline.defs.runs.naming import OBSERVE_SOURCES, REINDEX_STALE, VERIFY_FILES, full_name
from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.pipeline.root import Root


def build_schedules(root: Root) -> list[dg.ScheduleDefinition]:
    """Return the schedules of a root; the observing one only under `schedule.follow_data`.

    Raises:
        SettingsError: `schedule.cron` is not a cron string.
    """
    settings = root.settings.schedule
    schedules = [build_schedule(root), build_verify_schedule(root)]
    if settings.follow_data:
        observing = dg.ScheduleDefinition(
            name=full_name(root, "observe_schedule"),
            job_name=full_name(root, OBSERVE_SOURCES),
            cron_schedule=settings.cron,
            execution_timezone=settings.timezone,
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description="Observes input folder and overrides at the times of schedule.cron; data_sensor acts on it.",
        )
        schedules.append(observing)
    return schedules


def build_verify_schedule(root: Root) -> dg.ScheduleDefinition:
    """Return the schedule that verifies all files, under the settings of a root.

    Raises:
        SettingsError: `schedule.verify_cron` is not a cron string.
    """
    settings = root.settings.schedule
    _check_cron("verify_cron", settings.verify_cron)
    status = dg.DefaultScheduleStatus.RUNNING if settings.run_verify else dg.DefaultScheduleStatus.STOPPED
    return dg.ScheduleDefinition(
        name=full_name(root, "verify_schedule"),
        job_name=full_name(root, VERIFY_FILES),
        cron_schedule=settings.verify_cron,
        execution_timezone=settings.timezone,
        default_status=status,
        description="Compares all files with their hashes and repairs them, at the times of schedule.verify_cron.",
    )


def _check_cron(option: str, cron: str) -> None:
    try:
        dg.ScheduleDefinition(name="checked", job_name="none", cron_schedule=cron)
    except dg.DagsterInvalidDefinitionError as error:
        raise SettingsError(
            f"schedule.{option}: {cron!r} is not a cron string; write five fields, such as 0 3 * * *"
        ) from error


def build_schedule(root: Root) -> dg.ScheduleDefinition:
    """Return the schedule that indexes, under the settings of a root.

    Raises:
        SettingsError: `schedule.cron` is not a cron string.
    """
    settings = root.settings.schedule
    _check_cron("cron", settings.cron)
    index_root = IndexRoot.of(root)

    @dg.schedule(
        name=full_name(root, "reindex_schedule"),
        job_name=full_name(root, REINDEX_STALE),
        cron_schedule=settings.cron,
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING if settings.run_cron else dg.DefaultScheduleStatus.STOPPED,
        description="Runs reindex_stale at the times that schedule.cron names.",
    )
    def reindex_schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        opened = index_root.open()
        if reason := why_busy(context.instance, opened):
            return dg.SkipReason(say_why_not(reason))
        opened.pull()
        if reason := why_not_unattended(opened):
            return dg.SkipReason(say_why_not(reason))
        return dg.RunRequest()

    return reindex_schedule
