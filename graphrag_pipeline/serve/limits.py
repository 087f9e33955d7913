"""Limits of the server on sizes, values, time, requests at once and waiting requests, and the admission of requests.

Keep out: HTTP.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter, deque
from dataclasses import dataclass
from types import TracebackType
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from graphrag_pipeline.serve.errors import ApiError, BusyError

MAX_TARGET_BYTES = 8_192
"""Bytes of a path with its query string."""
MAX_HEADER_BYTES = 32_768
"""Bytes of all headers of a request."""
MAX_HEAD_S = 10.0
"""Seconds from the beginning of a connection, or of a request, to the end of its headers: a client sends them at once,
and lost packets are sent again within a few seconds."""
MAX_UNREAD_HEADS = 256
"""Connections whose headers are not complete; of more, the oldest is closed, far below a process's limit on files."""
MAX_BODY_MARKS = 20_000
"""Commas and opening brackets of a body, also in its texts. They bound the values that a parser makes while it holds
Python's lock: about 1 ms for 1,000 in the slowest, that of MCP. Prose of 256 kB has 3,000, and source code 10,000."""
MAX_FILTERS = 32
MAX_TEXT_CHARS = 1_000
"""Characters of a filter, and of a text among the options; as many values of a filter fit as a person would list."""
MAX_ITEMS = 200
"""Items of a list among the options, turns of a conversation, and options."""
MAX_KEYS = 1_000
"""Keys of one object of a body: each unknown one becomes an error, which costs a hundred times its bytes."""
MAX_NAME_CHARS = 100
"""Characters of the name of a method, strategy or option."""
_TURNS = "conversation_history"
"""The option whose texts may be long: local search cuts them to its budget."""
_MAX_DEPTH = 4
"""Of lists and objects in an option: `options` of auto search has options, whose history has turns."""


def _check_options(options: dict[str, Any]) -> dict[str, Any]:
    """Refuse options that one search could read for minutes.

    Raises:
        ValueError: a name, text or list is too long, or lists are too deep; it names the option and the limit.
    """
    for name, value in options.items():
        if len(name) > MAX_NAME_CHARS:
            raise ValueError(f"option `{name[:MAX_NAME_CHARS]}...`: a name has at most {MAX_NAME_CHARS} characters")
        _check_option(name, value, 1)
    return options


def _check_option(name: str, value: Any, depth: int) -> None:
    if isinstance(value, str) and len(value) > MAX_TEXT_CHARS and name != _TURNS:
        raise ValueError(f"option `{name}`: a text has at most {MAX_TEXT_CHARS:,} characters")
    if not isinstance(value, list | dict):
        return
    if len(value) > MAX_ITEMS or depth > _MAX_DEPTH:
        raise ValueError(f"option `{name}`: at most {MAX_ITEMS} items, in lists {_MAX_DEPTH} deep")
    for key, one in value.items() if isinstance(value, dict) else ((name, one) for one in value):
        _check_option(key[:MAX_NAME_CHARS], one, depth + 1)


Filters = Annotated[
    list[Annotated[str, Field(max_length=MAX_TEXT_CHARS)]],
    Field(max_length=MAX_FILTERS, description="Such as `year>=2024`; only documents that pass all are read."),
]
Options = Annotated[
    dict[str, Any],
    Field(
        max_length=MAX_ITEMS,
        description=f"Over the settings of the method. A text has at most {MAX_TEXT_CHARS:,} characters, a list "
        f"{MAX_ITEMS} items.",
    ),
    AfterValidator(_check_options),
]
MethodText = Annotated[str, Field(max_length=MAX_NAME_CHARS)]
"""Name of a method or strategy, where it is not an enumeration."""


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """Limits on requests.

    Attributes:
        max_body_bytes: of a request; a conversation of 40,000 words has 256 kB.
        max_body_s: until the body of a request has arrived.
        timeout_s: from the start of the work to its answer.
        max_running: requests that compute at the same time.
        max_waiting: requests that wait for one of these places; a further one gets 429.
        max_wait_s: for a place; afterwards a request gets 429.
        drain_s: for requests under way when the server is stopped.
        takes_turns: whether the threads of requests compute one after the other (`turns.py`), which saves processor
            time where they do not wait for models.
    """

    max_body_bytes: int = 256_000
    max_body_s: float = 30.0
    timeout_s: float = 120.0
    max_running: int = 32
    max_waiting: int = 256
    max_wait_s: float = 30.0
    drain_s: float = 30.0
    takes_turns: bool = False


def running_by_default(waits_for_models: bool) -> int:
    """Return the number of requests that compute at once: few if they need processors, many if they wait for models."""
    return 32 if waits_for_models else max(4, 2 * (os.cpu_count() or 1))


class Admission:
    """The places for requests that compute, and the queue in front of them; used in one event loop.

    Principals share both. A free place goes to the waiting principal with the fewest places; among equals, to the one
    that got its last place first. If the queue is full, the principal with the most requests in it loses its last one.
    So one principal with hundreds of requests delays another by one request.

    Attributes:
        n_running: taken places.
    """

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[bool]]] = {}
        self._n_placed = 0
        self._placed: Counter[str] = Counter()  # number of the last place of each principal, by `_n_placed`
        self.n_running = 0

    @property
    def n_waiting(self) -> int:
        """Requests in the queue."""
        return sum(map(len, self._waiting.values()))

    async def take(self, principal: str = "") -> Place:
        """Wait for a place.

        Raises:
            BusyError: the queue is full, or the wait was too long.
        """
        if self.n_running < self._limits.max_running:  # then no request waits
            return self._place(principal)
        self._make_room(principal)
        granted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(principal, deque()).append(granted)
        try:
            async with asyncio.timeout(self._limits.max_wait_s):
                is_granted = await granted
        except BaseException as error:
            if granted.done() and not granted.cancelled() and granted.result():
                self.give_back(principal)
            waiting = self._waiting.get(principal, deque())
            if granted in waiting:
                waiting.remove(granted)
            if not waiting:
                self._waiting.pop(principal, None)
            if isinstance(error, TimeoutError):
                raise BusyError(f"no place became free within {self._limits.max_wait_s:g} s.") from None
            raise
        if not is_granted:
            raise BusyError("the queue is full, and you have the most requests in it.")
        return Place(self, principal)

    def give_back(self, principal: str) -> None:
        """Free a place, and give it to the next request."""
        self.n_running -= 1
        self._running -= Counter([principal])  # drops a principal without places
        while self._waiting:
            following = min(self._waiting, key=lambda name: (self._running[name], self._placed[name]))
            granted = self._waiting[following].popleft()
            if not self._waiting[following]:
                del self._waiting[following]
            if not granted.done():  # else its client has just gone away
                self._place(following)
                granted.set_result(True)
                return

    def _place(self, principal: str) -> Place:
        self.n_running += 1
        self._running[principal] += 1
        self._n_placed += 1
        self._placed[principal] = self._n_placed
        return Place(self, principal)

    def _make_room(self, principal: str) -> None:
        if self.n_waiting < self._limits.max_waiting:
            return
        longest = max(self._waiting, key=lambda name: len(self._waiting[name]), default=principal)
        if len(self._waiting.get(longest, ())) <= len(self._waiting.get(principal, ())) + 1:
            raise BusyError(f"{self.n_waiting} requests are waiting already.")
        if not (last := self._waiting[longest].pop()).done():
            last.set_result(False)


class Place:
    """A place among the requests that compute; it is given back once."""

    def __init__(self, admission: Admission, principal: str) -> None:
        self._admission: Admission | None = admission
        self._principal = principal

    def give_back(self) -> None:
        """Free the place, if it is not free yet."""
        admission, self._admission = self._admission, None
        if admission:
            admission.give_back(self._principal)

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_back()


def timed_out(limit_s: float) -> ApiError:
    """Return the error of a request that took too long."""
    message = f"No answer within {limit_s:g} s; its model calls were cancelled."
    return ApiError(504, "timeout", message, "Ask a smaller question, or raise `--timeout`.")
