"""Settings of unattended indexing: sensor, schedule, freshness, notifications, retention of Dagster's records.

No option here changes a result. Keep out: secrets; a webhook URL may name environment variables.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class _ScheduleSection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScheduleSettings(_ScheduleSection):
    """Automatic indexing by Dagster, and retention of its run records; all off by default."""

    watch_input: bool = Field(
        False, description="Whether the sensor on the input folder is on from the start; else switch it on in the UI."
    )
    watch_interval_s: int = Field(
        60, ge=5, description="Seconds between checks of the input folder; a change is indexed once two checks agree."
    )
    run_cron: bool = Field(
        False, description="Whether the cron schedule is on from the start; else switch it on in the UI."
    )
    cron: str = Field("0 3 * * *", description="Cron expression of the schedule.")
    timezone: str = Field("UTC", description="Time zone of the cron expressions, such as Europe/Berlin.")
    run_verify: bool = Field(
        False,
        description="Whether the schedule of the job verify_files is on from the start; else switch it on in the UI.",
    )
    verify_cron: str = Field("0 4 * * 0", description="Cron expression of the job verify_files.")
    run_code_changes: bool = Field(
        False,
        description="Whether sensor and schedule also run stages that a changed prompt, model or setting made "
        "stale; this may cost as much as a full build.",
    )
    follow_data: bool = Field(
        False,
        description="Whether assets have automation conditions: the input is observed at the times of the cron "
        "expression, and only assets below a changed result run.",
    )
    fresh_within_hours: float | None = Field(
        None, gt=0, description="Freshness policy of index_snapshot: hours after which it is late; null: no policy."
    )
    keep_runs_days: int | None = Field(
        None,
        ge=1,
        description="Days after which an indexing run deletes Dagster's records of old runs; null: keep all.",
    )


class NotificationsSettings(_ScheduleSection):
    """Notification at the end of an indexing run."""

    webhook: str = Field(
        "", description="URL that receives JSON by POST; $NAME is replaced by that environment variable; empty: off."
    )
