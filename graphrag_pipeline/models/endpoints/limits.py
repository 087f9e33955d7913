"""Adaptive concurrency and retry delays: pure rules, without network and without a clock besides the event loop's.

Many servers answer a few requests at once and queue the others. A queue makes every request slower and answers no
request sooner. By Little's law, requests per second = concurrent requests / latency. So the limit starts low and
doubles while latency holds: if it doubles and latency doubles too, the server is full, and the limit goes back. After
that it is tried again now and then. A time-out halves the limit, and a limit at which requests timed out is not tried
again before several rounds under a lower one have shown that there is time for it. The longest latency of a round
counts: the first requests of a stage find an empty queue.

For endpoints that refuse requests (429, 503) the limit follows the congestion control of TCP (Jacobson, "Congestion
Avoidance and Control", 1988): an overload reply multiplies it by `SHRINK`, once per round of requests, and a round of
successes adds 1.

Keep out: configured rate limits, which all processes of a root share (`models/spending.py`).
"""

from __future__ import annotations

import asyncio
import email.utils
import hashlib
import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

FIRST_LIMIT = 4
"""Concurrent requests at the start, if the configured maximum is not lower."""
SHRINK = 0.7
LATENCY_HOLDS = 1.6
"""A limit that doubles must not multiply the latency by more than this, which is a gain of 1.25 in replies a second."""
ROUNDS_UNTIL_TRIED_AGAIN = 8
MAX_TIMEOUT_SHARE = 0.4
"""The limit grows only while the latency is below this share of the time-out: doubled, it must still fit."""
MAX_BACKOFF_S = 60.0


class AdaptiveLimit:
    """A first-come-first-served limit on concurrent requests that adapts to the endpoint. For one event loop.

    Args:
        maximum: the highest limit.
        timeout_s: seconds after which the caller abandons a request.

    Attributes:
        current: the limit in force; its whole part counts.
    """

    def __init__(self, maximum: int, timeout_s: float = math.inf) -> None:
        self.maximum = maximum
        self.current = float(min(maximum, FIRST_LIMIT))
        self.n_active = 0
        self._timeout_s = timeout_s
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._shrunk_at = -math.inf
        self._paused_until = -math.inf
        self._round = _Round()
        self._before: tuple[float, float] | None = None  # limit and latency before the limit was raised
        self._n_rounds_held = ROUNDS_UNTIL_TRIED_AGAIN
        self._is_refused = False
        self._timed_out_at = math.inf  # the limit must stay below
        self._longest_s: deque[float] = deque(maxlen=ROUNDS_UNTIL_TRIED_AGAIN)  # of the last rounds under this limit

    @property
    def load(self) -> float:
        """Requests under way and waiting, as a multiple of the limit."""
        return (self.n_active + len(self._waiting)) / int(self.current)

    @asynccontextmanager
    async def slot(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> AsyncIterator[float]:
        """Wait for the place of one request; yield the loop time at which it starts (see `succeed`).

        Args:
            sleep: sleeps for so many seconds while the endpoint is paused.
        """
        await self._enter()
        try:
            loop = asyncio.get_running_loop()
            while (pause := self._paused_until - loop.time()) > 0:
                await sleep(pause)
            yield loop.time()
        finally:
            self._leave()

    def succeed(self, started_at: float) -> None:
        """Count an answered request; at the end of a round of them, raise the limit or take a raise back.

        A round is as many requests as the limit allows, all started under it. Requests count only while others wait
        for a place: otherwise the latency says nothing about this limit.
        """
        if not self._waiting or started_at < self._round.since:
            return
        self._round.add(asyncio.get_running_loop().time() - started_at)
        if self._round.n >= int(self.current):
            self._end_round(self._round)
            self._wake()

    def _end_round(self, round_: _Round) -> None:
        latency_s, before, self._before = round_.mean_s, self._before, None
        if before is not None and latency_s > LATENCY_HOLDS * before[1] * (self.current / before[0]) / 2:
            self._set(before[0])
            self._n_rounds_held = 0
            return
        self._n_rounds_held += 1
        has_room = self.current < self.maximum and round_.longest_s < MAX_TIMEOUT_SHARE * self._timeout_s
        following = self.current + 1 if self._is_refused else min(2 * self.current, self.maximum)
        self._longest_s.append(round_.longest_s)
        has_room = has_room and self._may_be(following)
        if has_room and self._is_refused:
            self._set(following)
        elif has_room and (before is not None or self._n_rounds_held >= ROUNDS_UNTIL_TRIED_AGAIN):
            self._before = (self.current, latency_s)
            self._set(following)
        else:
            self._round = _Round(asyncio.get_running_loop().time())

    def _may_be(self, limit: float) -> bool:
        """Whether a limit never timed out, or the last rounds under the present one leave time for it."""
        if limit < self._timed_out_at:
            return True
        expected_s = max(self._longest_s) * limit / self.current
        if len(self._longest_s) < ROUNDS_UNTIL_TRIED_AGAIN or expected_s >= MAX_TIMEOUT_SHARE * self._timeout_s:
            return False
        self._timed_out_at = math.inf
        return True

    def refuse(self, started_at: float) -> None:
        """Lower the limit after an overload reply; from then on it grows by 1 a round."""
        self._is_refused = True
        self._shrink(started_at, SHRINK)

    def time_out(self, started_at: float) -> None:
        """Halve the limit after a time-out: the request may have waited in a queue of the server."""
        if started_at > self._shrunk_at and self.current > 1:
            self._timed_out_at = min(self._timed_out_at, self.current)
        self._shrink(started_at, 0.5)

    def _shrink(self, started_at: float, factor: float) -> None:
        """Lower the limit; requests that started before the last decrease have no effect."""
        if started_at > self._shrunk_at:
            self._shrunk_at = asyncio.get_running_loop().time()
            self._before, self._n_rounds_held = None, 0
            self._set(self.current * factor)

    def _set(self, limit: float) -> None:
        self.current = min(float(self.maximum), max(1.0, limit))
        self._round = _Round(asyncio.get_running_loop().time())
        self._longest_s.clear()

    def pause(self, seconds: float) -> None:
        """Start no request for `seconds`."""
        self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + seconds)

    async def _enter(self) -> None:
        if self.n_active < int(self.current) and not self._waiting:
            self.n_active += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._leave()  # the request got its place while it was being cancelled
            raise

    def _leave(self) -> None:
        self.n_active -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self.n_active < int(self.current):
            turn = self._waiting.popleft()
            if not turn.done():
                self.n_active += 1
                turn.set_result(None)


class FirstRequest:
    """The first request of a kind: the others wait for its result, so that an endpoint refuses the kind only once.

    Args:
        longest_s: longest wait. A refusal comes at once, so a long reply does not hold up the other requests.
    """

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._under_way: asyncio.Event | None = None

    @asynccontextmanager
    async def turn(self, is_decided: Callable[[], bool]) -> AsyncIterator[None]:
        """Wait for the trial that is under way, or be the trial, unless the result is known."""
        while self._under_way is not None and not is_decided():
            try:
                await asyncio.wait_for(self._under_way.wait(), self._longest_s)
            except TimeoutError:
                break
        mine = None
        if self._under_way is None and not is_decided():
            mine = self._under_way = asyncio.Event()
        try:
            yield
        finally:
            if mine is not None:
                mine.set()
                self._under_way = None if self._under_way is mine else self._under_way

    def end(self) -> None:
        """Let the others go before the trial itself has ended, since its result is known."""
        if self._under_way is not None:
            self._under_way.set()
            self._under_way = None


@dataclass
class _Round:
    """The requests answered under one limit, which is in force since a loop time."""

    since: float = -math.inf
    n: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0

    def add(self, seconds: float) -> None:
        self.n += 1
        self.seconds += seconds
        self.longest_s = max(self.longest_s, seconds)

    @property
    def mean_s(self) -> float:
        return self.seconds / self.n


def backoff_s(attempt: int, first_s: float, key: str) -> float:
    """Return the seconds to wait after a failed attempt (0 = the first): exponential, with jitter by a hash of `key`.

    Equal requests wait equally long. Different requests spread over the upper half of the interval.
    """
    longest = min(MAX_BACKOFF_S, first_s * 2**attempt)
    share = int.from_bytes(hashlib.sha256(f"{key}:{attempt}".encode()).digest()[:4], "big") / 2**32
    return longest * (0.5 + share / 2)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that response headers ask to wait, or None.

    Read are `retry-after-ms`, and `retry-after` in seconds or as a date.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _number(value: str | None) -> float | None:
    """Return a finite number of at least 0, else None."""
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
