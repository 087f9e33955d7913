"""Dagster's daemon, which goes on with a backfill at once: `python -m graphrag_pipeline.defs.dev.daemon run ...`.

Dagster looks at its backfills every 30 s, which no setting changes. *Materialize all* waits for two such looks on
average: one starts the buckets, the next starts the assets of the whole corpus. The daemon here looks as soon as a
backfill has no run under way, and not before. All other daemons are Dagster's own. Keep out: the start of the process
(`processes.py`).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from threading import Event
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.runs.names import BACKFILL_TAG, FINISHED
from graphrag_pipeline.defs.runs.private_api import (
    BackfillDaemon,
    BulkActionsFilter,
    BulkActionStatus,
    DaemonIterator,
    create_daemons,
    daemon_commands,
)

_LOOK_S = 1.0
_LOOKS = 3
_MOST_S = 300.0
_ACTIVE = [BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING, BulkActionStatus.FAILING]
_UNFINISHED = [status for status in dg.DagsterRunStatus if status.value not in FINISHED]


class Outlook(Enum):
    """Whether a look at the backfills is worth while now."""

    DUE = "a backfill is active that has no run queued or under way"
    WORKING = "each active backfill has one"
    NOTHING = "no backfill is active, or the last looks changed nothing"


class WaitForWork(Event):
    """The event that ends a daemon, for a loop that waits for it between two looks, as long as its work needs.

    Args:
        event: ends the daemon.
        ask: whether a look is worth while.
        look_s: seconds between two questions.
        most_s: seconds beyond the loop's own that a wait for a run takes at most.
    """

    def __init__(
        self, event: Event, ask: Callable[[], Outlook], look_s: float = _LOOK_S, most_s: float = _MOST_S
    ) -> None:
        super().__init__()
        self._event, self._ask, self._look_s, self._most_s = event, ask, look_s, most_s

    def is_set(self) -> bool:
        """Return whether the daemon has to end."""
        return self._event.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the daemon has to end, a look is due, or the time is over; return whether it has to end.

        Args:
            timeout: seconds; while a run works, `most_s` more.
        """
        end = time.monotonic() + (timeout or 0.0)
        while not self._event.wait(self._look_s):
            outlook = self._ask()
            latest = end + (self._most_s if outlook is Outlook.WORKING else 0.0)
            if outlook is Outlook.DUE or time.monotonic() >= latest:
                break
        return self._event.is_set()


class ActiveBackfills:
    """The backfills of an instance that did not end.

    A look while a run works would split the rest of the backfill into more runs than it needs. A look that changes
    nothing is repeated `_LOOKS` times at most, because the code server may be away; then Dagster's 30 s apply.
    """

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance = instance
        self._idle: dict[str, tuple[BulkActionStatus, int]] = {}
        self._looks_left = 0

    def outlook(self) -> Outlook:
        """Return whether a look is worth while now."""
        active = self._instance.get_backfills(filters=BulkActionsFilter(statuses=_ACTIVE))
        idle = {
            backfill.backfill_id: (backfill.status, self._count_runs(backfill.backfill_id))
            for backfill in active
            if not self._count_runs(backfill.backfill_id, _UNFINISHED)
        }
        if idle != self._idle:
            self._idle, self._looks_left = idle, _LOOKS
        if not idle:
            is_working = active and all(backfill.status is BulkActionStatus.REQUESTED for backfill in active)
            return Outlook.WORKING if is_working else Outlook.NOTHING
        self._looks_left -= 1
        return Outlook.DUE if self._looks_left >= 0 else Outlook.NOTHING

    def _count_runs(self, backfill_id: str, statuses: Sequence[dg.DagsterRunStatus] = ()) -> int:
        """Return the number of runs of a backfill, in all statuses unless some are given."""
        return self._instance.get_runs_count(dg.RunsFilter(tags={BACKFILL_TAG: backfill_id}, statuses=statuses))


class PromptBackfillDaemon(BackfillDaemon):
    """Dagster's daemon of backfills, which looks at once when a backfill can go on, and else every 30 s."""

    def core_loop(self, workspace_process_context: Any, shutdown_event: Event) -> DaemonIterator:
        """Yield after each look, as Dagster's daemon does."""
        active = ActiveBackfills(workspace_process_context.instance)
        yield from super().core_loop(workspace_process_context, WaitForWork(shutdown_event, active.outlook))


def make_daemons(instance: dg.DagsterInstance) -> Iterator[Any]:
    """Yield the daemons that an instance needs: Dagster's own, but for backfills."""
    for daemon in create_daemons(instance):
        is_of_backfills = daemon.daemon_type() == BackfillDaemon.daemon_type()
        yield PromptBackfillDaemon(instance.get_backfill_settings()) if is_of_backfills else daemon


def main() -> None:
    """Run Dagster's command `dagster-daemon` with our daemons."""
    commands = daemon_commands()
    # The command has no option for it; the function that it calls has an argument.
    commands.daemon_controller_from_instance = partial(
        commands.daemon_controller_from_instance, gen_daemons=make_daemons
    )
    commands.cli()


if __name__ == "__main__":
    main()
