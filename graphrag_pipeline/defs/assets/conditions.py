"""What Dagster watches of the assets by itself: how old the snapshot may be, and data that came out different.

Both are off unless `schedule` in the settings says otherwise. Keep out: what a person edits (`sources.py`).
"""

from datetime import timedelta

import dagster as dg

from graphrag_pipeline.pipeline.stages import SNAPSHOT, Stage
from graphrag_pipeline.settings.schedule import ScheduleSettings


def freshness_policy_of(stage: Stage, settings: ScheduleSettings) -> dg.FreshnessPolicy | None:
    """When the published snapshot counts as late; an index run that finds nothing to do confirms it."""
    if stage is not SNAPSHOT or settings.fresh_within_hours is None:
        return None
    return dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=settings.fresh_within_hours))


def condition_of(settings: ScheduleSettings) -> dg.AutomationCondition | None:
    """Run a partition once something it reads has another data version: where content comes out equal, nothing follows.

    A code version alone starts nothing: a changed prompt would spend money unattended. A partition waits while anything
    it reads is outdated or running, so that nothing is made of half a change.
    """
    if not settings.follow_data:
        return None
    is_different = dg.AutomationCondition.any_deps_match(dg.AutomationCondition.data_version_changed())
    is_outdated = is_different.since(dg.AutomationCondition.newly_updated())
    return (
        is_different.since_last_handled()
        & ~dg.AutomationCondition.any_deps_match(is_outdated)
        & ~dg.AutomationCondition.any_deps_missing()
        & ~dg.AutomationCondition.any_deps_in_progress()
        & ~dg.AutomationCondition.in_progress()
    ).with_label("what it reads came out different")
