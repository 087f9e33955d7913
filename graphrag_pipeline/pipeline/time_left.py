"""Time left of model calls: the pace of the records that needed a call, for all records that are left.

A record that is answered from the store or without a model takes no time and says nothing about calls. So the pace is
the time since the first call over the records done that needed one, and each record left counts as one that needs a
call. That is an upper estimate: a stored reply among the rest makes the time left shorter, never longer. Records that
surely need no call are done first (`pool.Work`).

Invariant: the time left never grows from one line to the next, unless the line says why.

Keep out: counts of calls, and the words of a line (`progress.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from graphrag_pipeline.models.accounting import CallStats

TOLERANCE = 1.25
"""An estimate up to this factor above the one before, counted down, is noise; the one before stands."""


@dataclass(frozen=True)
class TimeLeft:
    """What is left of a run of calls.

    Attributes:
        seconds: until all records are done.
        cost: US dollars until then.
        why_longer: why it is longer than the line before said; "" if it is not.
    """

    seconds: float
    cost: float
    why_longer: str = ""


class Pace:
    """The pace of one run of calls.

    Args:
        account: where its calls are counted, perhaps after those of earlier runs.
        now: monotonic time in seconds; the run has not made a call before.
    """

    def __init__(self, account: CallStats, now: float) -> None:
        self._account = account
        self._records, self._cost = account.n_records, account.cost
        self._started = self._advanced = now
        self._n_called = 0
        self._said: tuple[float, float, int] | None = None  # seconds left, when said, retries until then

    def look(self, now: float) -> None:
        """Note how many records that needed a call are done."""
        n_called = self._account.n_records - self._records
        if n_called > self._n_called:
            self._n_called, self._advanced = n_called, now
        elif not n_called and not self._account.starts():
            self._started = self._advanced = now

    def say(self, n_left: int, now: float) -> TimeLeft | None:
        """Return what is left for a line that is shown now; None while no record that needed a call is done."""
        if not self._n_called:
            return None
        each_s = (self._advanced - self._started) / self._n_called
        n_queued = max(n_left - max(len(self._account.starts()), 1), 0)
        estimate = max(n_left * each_s - (now - self._advanced), n_queued * each_s)
        cost = (self._account.cost - self._cost) / self._n_called * n_left
        seconds, why = self._compare(estimate, each_s, now)
        self._said = (seconds, now, self._account.n_retries)
        return TimeLeft(seconds, cost, why)

    def _compare(self, estimate: float, each_s: float, now: float) -> tuple[float, str]:
        """Return an estimate, or the one said before counted down, with the reason why it is longer than that."""
        if self._said is None:
            return estimate, ""
        before, then, n_retries = self._said
        expected = max(before - (now - then), 0.0)
        if estimate <= expected * TOLERANCE + each_s:
            return min(estimate, expected), ""
        return estimate, "after retries" if self._account.n_retries > n_retries else "calls take longer now"
