"""Counting calls: one `CallStats` per model in use, merged per stage and per run, shown as Dagster metadata.

Latencies are kept as counts of logarithmic classes 5 % apart, so that statistics add up and percentiles stay within
5 %. Keep out: prices, limits, spans (`spans.py`), and what the calls were about.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

_CLASS = math.log(1.05)
_SHORTEST_S = 1e-4
_lock = threading.Lock()
_accounts: ContextVar[tuple[CallStats, ...]] = ContextVar("accounts", default=())
_of_process: list[CallStats] = []


@dataclass
class CallStats:
    """What some calls took.

    Attributes:
        n_calls: answered by the endpoint, corrective calls included.
        n_cached: requests answered from the store.
        n_retries: attempts repeated after an error of the endpoint.
        seconds: time of all calls together, those side by side counted each.
        cost: US dollars; calls without a known price are in `n_unpriced`.
        latencies: class of seconds -> number of calls.
    """

    n_calls: int = 0
    n_cached: int = 0
    n_retries: int = 0
    n_unpriced: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    latencies: Counter[int] = field(default_factory=Counter)

    def add_call(self, prompt_tokens: int, completion_tokens: int, cost: float | None, seconds: float) -> None:
        """Count one answered call."""
        latency = round(math.log(max(seconds, _SHORTEST_S)) / _CLASS)
        with _lock:
            for stats in self._accounts_to_update():
                stats.n_calls += 1
                stats.prompt_tokens += prompt_tokens
                stats.completion_tokens += completion_tokens
                stats.cost += cost or 0.0
                stats.seconds += seconds
                stats.n_unpriced += cost is None
                stats.latencies[latency] += 1

    def add_retry(self) -> None:
        """Count one attempt that has to be repeated."""
        with _lock:
            for stats in self._accounts_to_update():
                stats.n_retries += 1

    def add_cached(self, n: int = 1) -> None:
        """Count requests answered from the store."""
        with _lock:
            for stats in self._accounts_to_update():
                stats.n_cached += n

    def _accounts_to_update(self) -> Iterator[CallStats]:
        yield from (self, *_accounts.get(), *_of_process)

    def merge(self, other: CallStats) -> CallStats:
        """The statistics of both together."""
        return CallStats(
            self.n_calls + other.n_calls,
            self.n_cached + other.n_cached,
            self.n_retries + other.n_retries,
            self.n_unpriced + other.n_unpriced,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost + other.cost,
            self.seconds + other.seconds,
            self.latencies + other.latencies,
        )

    def latency_s(self, share: float) -> float:
        """The latency that this share of the calls stayed within, to 5 %; 0 without calls."""
        left = share * self.latencies.total()
        for latency in sorted(self.latencies):
            left -= self.latencies[latency]
            if left <= 0:
                return math.exp(latency * _CLASS)
        return 0.0

    def as_metadata(self) -> dict[str, int | float]:
        """Numbers that plot over time, by name."""
        return {
            "calls": self.n_calls,
            "cached_calls": self.n_cached,
            "retries": self.n_retries,
            "unpriced_calls": self.n_unpriced,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost_usd": round(self.cost, 6),
            "latency_p50_s": round(self.latency_s(0.5), 4),
            "latency_p95_s": round(self.latency_s(0.95), 4),
        }


@contextmanager
def booked_to(account: CallStats) -> Iterator[None]:
    """Count what is called meanwhile, by this thread or task and what they start, in `account` too."""
    token = _accounts.set((*_accounts.get(), account))
    try:
        yield
    finally:
        _accounts.reset(token)


@contextmanager
def booked_by_process() -> Iterator[CallStats]:
    """Count what is called meanwhile, by whatever thread of this process."""
    account = CallStats()
    with _lock:
        _of_process.append(account)
    try:
        yield account
    finally:
        with _lock:
            _of_process[:] = [other for other in _of_process if other is not account]
