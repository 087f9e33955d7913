"""How many requests are under way and how long to wait: pure rules, no network, no clock but the event loop's.

Concurrency follows TCP's congestion control (additive increase, multiplicative decrease; Jacobson 1988): an overloaded
endpoint lowers it by a share, once per round of requests; each success raises it by a fraction. Rate limits that are
known beforehand are in `spending.py`, because all processes share them.
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
    """A first-come-first-served limit on concurrent requests that adapts to the endpoint; for one event loop.

    Args:
        maximum: the limit to start from and never to exceed.
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
        """One request's place; gives the loop time at which it may start (see `shrink`)."""
        await self._enter()
        try:
            loop = asyncio.get_running_loop()
            while (pause := self._paused_until - loop.time()) > 0:
                await asyncio.sleep(pause)
            yield loop.time()
        finally:
            self._leave()

    def grow(self) -> None:
        """A request succeeded: one more at once after a round of successes."""
        self.current = min(float(self.maximum), self.current + 1 / self.current)
        self._wake()

    def shrink(self, started_at: float) -> None:
        """The endpoint is overloaded; requests that started before the last time this was said add nothing."""
        if started_at > self._shrunk_at:
            self._shrunk_at = asyncio.get_running_loop().time()
            self.current = max(1.0, self.current * SHRINK)

    def pause(self, seconds: float) -> None:
        """Start nothing for this long."""
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
                self._leave()  # the place was given while the request was being cancelled
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
    """Seconds to wait after a failed attempt (0 = the first): exponential, jittered by a hash of the request.

    Equal requests wait equally long, different ones spread over the upper half of the interval.
    """
    longest = min(MAX_BACKOFF_S, first_s * 2**attempt)
    share = int.from_bytes(hashlib.sha256(f"{key}:{attempt}".encode()).digest()[:4], "big") / 2**32
    return longest * (0.5 + share / 2)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a reply asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date; else None."""
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
    """A finite number of at least zero, else None."""
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
