"""Adaptive concurrency and retry delays: pure rules, without network and without a clock besides the event loop's.

Concurrency follows the congestion control of TCP: additive increase, multiplicative decrease (Jacobson, "Congestion
Avoidance and Control", 1988). An overloaded endpoint multiplies the limit by `SHRINK`, once per round of requests. Each
success adds 1 / limit, so that a round of successes adds 1.

Keep out: configured rate limits, which all processes of a root share (`models/spending.py`).
"""

from __future__ import annotations

import asyncio
import email.utils
import hashlib
import math
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime

SHRINK = 0.7
MAX_BACKOFF_S = 60.0


class AdaptiveLimit:
    """A first-come-first-served limit on concurrent requests that adapts to the endpoint. For one event loop.

    Args:
        maximum: the initial and highest limit.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.current = float(maximum)
        self.n_active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._shrunk_at = -math.inf
        self._paused_until = -math.inf

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Wait for the place of one request; yield the loop time at which it starts (see `shrink`)."""
        await self._enter()
        try:
            loop = asyncio.get_running_loop()
            while (pause := self._paused_until - loop.time()) > 0:
                await asyncio.sleep(pause)
            yield loop.time()
        finally:
            self._leave()

    def grow(self) -> None:
        """Raise the limit after a success: by 1 after a round of successes."""
        self.current = min(float(self.maximum), self.current + 1 / self.current)
        self._wake()

    def shrink(self, started_at: float) -> None:
        """Lower the limit after an overload; requests that started before the last decrease have no effect."""
        if started_at > self._shrunk_at:
            self._shrunk_at = asyncio.get_running_loop().time()
            self.current = max(1.0, self.current * SHRINK)

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
