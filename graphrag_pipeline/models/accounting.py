"""Call statistics: calls, tokens, cost and latency of each model, stage and run; and the run that pays for a call.

Latencies are counted in logarithmic classes 5 % apart, so that statistics add up and percentiles are exact to 5 %.
A call counts in the statistics of its client, and in each account of its caller.

Callers of models: the accounts that count a caller's calls, and the scope in which they can be cancelled.

Code that opens an account hands it to the models that it calls: `Root.counted_in` for all models of a root,
`IndexReader.for_question` for those of one question. A model made by `for_caller` shares connections, limits and the
cache with the model that it was made from.

Keep out: prices, limits, spans (`endpoints/spans.py`), and the content of calls.
"""

from __future__ import annotations

import atexit
import math
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Protocol

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash

if TYPE_CHECKING:
    from graphrag_pipeline.models.event_loop import CallScope
    from graphrag_pipeline.models.ports import Embedder


@dataclass(frozen=True)
class Caller:
    """A caller of models.

    Attributes:
        accounts: statistics that count each call.
        scope: the group of calls to cancel together; None if they are never cancelled.
    """

    accounts: tuple[CallStats, ...] = ()
    scope: CallScope | None = None

    def joined_by(self, other: Caller) -> Caller:
        """Return a caller whose calls count in the accounts of both; the scope of `other` comes first."""
        return Caller((*self.accounts, *other.accounts), other.scope or self.scope)

    def add_call(self, prompt_tokens: int, completion_tokens: int, cost: float | None, seconds: float) -> None:
        """Count one answered call in each account."""
        for account in self.accounts:
            account.add_call(prompt_tokens, completion_tokens, cost, seconds)

    def add_unanswered(self, prompt_tokens: int, cost: float | None) -> None:
        """Count one request without an answer in each account, unless the endpoint charges nothing for it."""
        for account in self.accounts if prompt_tokens else ():
            account.add_unanswered(prompt_tokens, cost)

    def add_retry(self, is_timeout: bool = False) -> None:
        """Count one attempt that will be repeated in each account."""
        for account in self.accounts:
            account.add_retry(is_timeout)

    @contextmanager
    def attempt(self, limit: int) -> Iterator[None]:
        """Show an attempt as under way in each account, at an endpoint that may get `limit` at once."""
        attempt = object()
        for account in self.accounts:
            account.begin(attempt, limit)
        try:
            yield
        finally:
            for account in self.accounts:
                account.end(attempt)

    @contextmanager
    def waiting(self, seconds: float, reason: str) -> Iterator[None]:
        """Show in each account that an attempt starts only in so many seconds, and why."""
        attempt = object()
        for account in self.accounts:
            account.begin_wait(attempt, seconds, reason)
        try:
            yield
        finally:
            for account in self.accounts:
                account.end_wait(attempt)

    def set_limit(self, limit: int) -> None:
        """Note in each account how many calls the endpoint may get at once now."""
        for account in self.accounts:
            account.limit = limit

    def add_cached(self, n: int = 1) -> None:
        """Count requests answered from the store in each account."""
        for account in self.accounts:
            account.add_cached(n)


def embedder_for(embedder: Embedder, caller: Caller) -> Embedder:
    """Return an embedder for a caller; one that sends no request stays the same."""
    for_caller: Callable[[Caller], Embedder] | None = getattr(embedder, "for_caller", None)
    return embedder if for_caller is None else for_caller(caller)


_CLASS = math.log(1.05)
_SHORTEST_S = 1e-4
_lock = threading.Lock()  # one for all statistics: it is held for a microsecond, and statistics stay plain data
_record: ContextVar[list[CallStats] | None] = ContextVar("record", default=None)


ASKED_TO_WAIT = "the server asked to wait"
BEFORE_RETRY = "a pause before a retry"
RATE_LIMIT = "the rate limit in the settings"


@dataclass(frozen=True)
class Wait:
    """A wait before an attempt: until a monotonic time in seconds, and why."""

    until: float
    reason: str


@dataclass
class CallStats:
    """Counts of a set of calls.

    Attributes:
        n_calls: calls that the endpoint answered, corrective calls included.
        n_cached: requests answered from the store.
        n_retries: attempts repeated after an error of the endpoint.
        n_timeouts: those of them after a time-out.
        n_unpriced: calls of models without a known price.
        cost: US dollars, without the calls in `n_unpriced`.
        seconds: sum of the durations of all calls; concurrent calls each count in full.
        latencies: latency class -> number of calls.
        limit: concurrent calls that the endpoint of the last call may get now (`endpoints/limits.py`); 0 without calls.
        n_unanswered: requests without an answer whose prompt the endpoint may have charged, such as after a time-out.
        unanswered_tokens: tokens of these prompts, which are in no other count.
        unanswered_cost: US dollars of these prompts.
        n_records: records that are done and needed a call (`count_record`).
        under_way: attempt -> monotonic time in seconds since when an attempt is at the endpoint.
        waits: attempt -> why it does not start yet, and until when.
    """

    n_calls: int = 0
    n_cached: int = 0
    n_retries: int = 0
    n_timeouts: int = 0
    n_unpriced: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    latencies: Counter[int] = field(default_factory=Counter)
    limit: int = 0
    n_records: int = 0
    n_unanswered: int = 0
    unanswered_tokens: int = 0
    unanswered_cost: float = 0.0
    under_way: dict[object, float] = field(default_factory=dict)
    waits: dict[object, Wait] = field(default_factory=dict)

    def begin(self, attempt: object, limit: int) -> None:
        """Note an attempt that starts now, and how many the endpoint may get at once."""
        with _lock:
            self.limit = limit
            self.under_way[attempt] = time.monotonic()
        accounts = _record.get()
        if accounts is not None and not any(account is self for account in accounts):
            accounts.append(self)

    def end(self, attempt: object) -> None:
        """Note that an attempt has ended."""
        with _lock:
            self.under_way.pop(attempt, None)

    def starts(self) -> list[float]:
        """Return the monotonic times at which the attempts under way started, the oldest first."""
        with _lock:
            return sorted(self.under_way.values())

    def begin_wait(self, attempt: object, seconds: float, reason: str) -> None:
        """Note an attempt that starts in so many seconds."""
        with _lock:
            self.waits[attempt] = Wait(time.monotonic() + seconds, reason)

    def end_wait(self, attempt: object) -> None:
        """Note that a wait has ended."""
        with _lock:
            self.waits.pop(attempt, None)

    def next_wait(self) -> Wait | None:
        """Return the wait after which the next attempt starts; None without one.

        A server that asks to wait means all requests: the longest of these waits counts. Of others, the shortest does.
        """
        with _lock:
            waits = list(self.waits.values())
        asked = [wait for wait in waits if wait.reason == ASKED_TO_WAIT]
        if asked:
            return max(asked, key=lambda wait: wait.until)
        return min(waits, key=lambda wait: wait.until, default=None)

    def add_call(self, prompt_tokens: int, completion_tokens: int, cost: float | None, seconds: float) -> None:
        """Count one answered call."""
        latency = round(math.log(max(seconds, _SHORTEST_S)) / _CLASS)
        with _lock:
            self.n_calls += 1
            self.prompt_tokens += prompt_tokens
            self.completion_tokens += completion_tokens
            self.cost += cost or 0.0
            self.seconds += seconds
            self.n_unpriced += cost is None
            self.latencies[latency] += 1

    def add_unanswered(self, prompt_tokens: int, cost: float | None) -> None:
        """Count one request without an answer that the endpoint may charge."""
        with _lock:
            self.n_unanswered += 1
            self.unanswered_tokens += prompt_tokens
            self.unanswered_cost += cost or 0.0

    def add_retry(self, is_timeout: bool = False) -> None:
        """Count one attempt that will be repeated."""
        with _lock:
            self.n_retries += 1
            self.n_timeouts += is_timeout

    def add_cached(self, n: int = 1) -> None:
        """Count requests answered from the store."""
        with _lock:
            self.n_cached += n

    def merge(self, other: CallStats) -> CallStats:
        """Return the sum of both statistics."""
        added = {item.name for item in fields(self)} - {"limit", "under_way", "waits"}
        sums = {name: getattr(self, name) + getattr(other, name) for name in added}
        return CallStats(limit=max(self.limit, other.limit), **sums)

    def latency_s(self, share: float) -> float:
        """Return the latency in seconds that `share` (0 to 1) of the calls did not exceed, to 5 %; 0 without calls."""
        left = share * self.latencies.total()
        for latency in sorted(self.latencies):
            left -= self.latencies[latency]
            if left <= 0:
                return math.exp(latency * _CLASS)
        return 0.0

    def as_metadata(self) -> dict[str, int | float]:
        """Return numbers to plot over time, by name."""
        return {
            "calls": self.n_calls,
            "cached_calls": self.n_cached,
            "retries": self.n_retries,
            "timeouts": self.n_timeouts,
            "unpriced_calls": self.n_unpriced,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost_usd": round(self.cost, 6),
            "latency_p50_s": round(self.latency_s(0.5), 4),
            "latency_p95_s": round(self.latency_s(0.95), 4),
        }


@contextmanager
def count_record() -> Iterator[None]:
    """Count the work on one record in each account that gets a call from it; works may run side by side as tasks."""
    accounts: list[CallStats] = []
    token = _record.set(accounts)
    try:
        yield
    finally:
        _record.reset(token)
        with _lock:
            for account in accounts:
                account.n_records += 1


# ----------------------------------------------------------------------------------------------------------- paid runs

RUNNING, DONE, FAILED, INTERRUPTED = "running", "done", "failed", "interrupted"
UNNAMED = "python"
"""Command of a run in a process that named none."""


class RunLedger(Protocol):
    """A ledger that has calls of a run (`spending.Ledger`)."""

    def end(self, run: PaidRun, status: str) -> None:
        """Note the end of a run."""


@dataclass
class PaidRun:
    """A run of this process: a new id for each."""

    command: str = UNNAMED
    about: str = ""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    begun: float = field(default_factory=time.time)
    ledgers: list[RunLedger] = field(default_factory=list)

    def end(self, status: str) -> None:
        """Note the end of the run in each ledger that has a call of it."""
        for ledger in self.ledgers:
            ledger.end(self, status)


_unnamed = PaidRun()
_named: list[PaidRun] = []


@contextmanager
def paid_run(command: str, about: str = "", run_id: str = "") -> Iterator[None]:
    """Book the calls of this process to a command until it ends; inside another named run, they are booked to that.

    Args:
        run_id: joins what several processes do for one run, such as the steps of a Dagster run; "": a run of its own.
    """
    if _named:
        yield
        return
    run = PaidRun(command, about, stable_hash("paid run", run_id)) if run_id else PaidRun(command, about)
    _named.append(run)
    status = FAILED
    try:
        yield
        status = DONE
    except KeyboardInterrupt:
        status = INTERRUPTED
        raise
    except BaseException as error:
        status = {0: DONE, 130: INTERRUPTED}.get(getattr(error, "exit_code", 1), FAILED)
        raise
    finally:
        _named.remove(run)
        run.end(status)


@atexit.register
def _end_unnamed() -> None:
    with suppress(PipelineError):
        _unnamed.end(DONE)


def current_run() -> PaidRun:
    """Return the run to which a call of this process is booked now."""
    return _named[-1] if _named else _unnamed
