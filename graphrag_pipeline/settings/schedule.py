"""Settings of indexing unattended: sensor, schedule, freshness, notifications, retention of Dagster's records.

Nothing here changes a result. Keep out: secrets; a webhook's address may name environment variables.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScheduleSettings(_Section):
    """When Dagster indexes by itself, and how long it keeps what it recorded; all of it off at first."""

    watch_input: bool = Field(
        False, description="Whether the sensor that watches the input folder is on from the start (else: in the UI)."
    )
    watch_interval_s: int = Field(
        60, ge=5, description="Seconds between looks at the input folder; a change is indexed once two looks agree."
    )
    retry_after_s: int = Field(
        300, ge=1, description="Wait before input whose run failed is tried again; doubles each time, up to 6 hours."
    )
    run_cron: bool = Field(False, description="Whether the cron schedule is on from the start (else: in the UI).")
    cron: str = Field("0 3 * * *", description="When the schedule indexes, as a cron string.")
    timezone: str = Field("UTC", description="Time zone of the cron string, such as Europe/Berlin.")
    run_code_changes: bool = Field(
        False,
        description="Whether sensor and schedule also run what a changed prompt, model or setting made stale; that may "
        "cost as much as a whole build.",
    )
    follow_data: bool = Field(
        False,
        description="Whether assets carry automation conditions: input observed at the cron string's times, and run "
        "below what came out different.",
    )
    fresh_within_hours: float | None = Field(
        None, gt=0, description="Freshness policy of index_snapshot: hours after which it counts as late; null: none."
    )
    keep_runs_days: int | None = Field(
        None, ge=1, description="Days after which an index run drops Dagster's records of old runs; null: kept."
    )


class NotificationsSettings(_Section):
    """Who is told when a run that indexes ends."""

    webhook: str = Field(
        "", description="URL that gets JSON by POST; $NAME in it stands for an environment variable. Empty: nobody."
    )
    timeout_s: float = Field(10.0, gt=0, description="A webhook that takes longer is given up.")
