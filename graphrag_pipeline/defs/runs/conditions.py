"""Freshness policy of the snapshot, and the automation condition that follows changed data.

Both are off unless `schedule` in the settings turns them on. Keep out: the files that the user edits
(`assets/sources.py`).
"""

from collections.abc import Sequence
from datetime import timedelta

import dagster as dg

from graphrag_pipeline.pipeline.stages import SNAPSHOT, Stage
from graphrag_pipeline.settings.section import ScheduleSettings


def freshness_policy_of(stage: Stage, settings: ScheduleSettings) -> dg.FreshnessPolicy | None:
    """Return when the published snapshot counts as late; an index run that finds nothing stale confirms it."""
    if stage is not SNAPSHOT or settings.fresh_within_hours is None:
        return None
    return dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=settings.fresh_within_hours))


def condition_of(settings: ScheduleSettings, unread: Sequence[dg.AssetKey]) -> dg.AutomationCondition | None:
    """Return a condition that runs a partition once an input has another data version; equal content starts nothing.

    A changed code version starts nothing, because a changed prompt would spend money unattended. A partition waits
    while any input is outdated or running, so that it never reads half a change.

    Args:
        unread: upstream assets that a stage does not read itself; they only mark it in the UI.
    """
    if not settings.follow_data:
        return None
    others = dg.AssetSelection.assets(*unread)
    is_different = dg.AutomationCondition.any_deps_match(dg.AutomationCondition.data_version_changed()).ignore(others)
    is_outdated = is_different.since(dg.AutomationCondition.newly_updated())
    return (
        is_different.since_last_handled()
        & ~dg.AutomationCondition.any_deps_match(is_outdated).ignore(others)
        & ~dg.AutomationCondition.any_deps_missing().ignore(others)
        & ~dg.AutomationCondition.any_deps_in_progress().ignore(others)
        & ~dg.AutomationCondition.in_progress()
    ).with_label("an input has other data")
