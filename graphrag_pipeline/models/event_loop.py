"""Event loop of a process for model calls, in a separate thread, for use from synchronous code.

HTTP connections and running requests belong to this loop, so that stages, queries and embedders share them. Signals
and interrupts reach the waiting main thread and never a running call. A caller that may cancel its calls hands a
`CallScope` along.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import openai

T = TypeVar("T")

CLOSING_S = 5.0


class CallScope:
    """A group of model calls, from any thread, that can be cancelled together.

    Attributes:
        is_cancelled: whether a further model call in this scope raises CancelledError.
    """

    def __init__(self) -> None:
        self.is_cancelled = False
        self._under_way: set[Future[Any]] = set()
        self._lock = threading.Lock()

    def cancel(self) -> None:
        """Cancel the running calls and refuse further ones."""
        with self._lock:
            self.is_cancelled = True
            running = list(self._under_way)
        for future in running:
            future.cancel()

    def start(self, work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> Future[T]:
        """Start a call.

        Raises:
            CancelledError: `cancel` was called.
        """
        with self._lock:
            if self.is_cancelled:
                work.close()
                raise CancelledError
            future = asyncio.run_coroutine_threadsafe(work, loop)
            self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return future


def start_in_loop(work: Coroutine[Any, Any, T], scope: CallScope | None = None) -> Future[T]:
    """Start a coroutine in the loop of model calls; `scope` can cancel it.

    Raises:
        RuntimeError: called from inside that loop, where waiting for the result would never end.
        CancelledError: `scope` was cancelled.
    """
    loop, thread = _loop()
    if threading.current_thread() is thread:
        work.close()
        raise RuntimeError("called from a model call's own event loop; await the coroutine instead")
    return scope.start(work, loop) if scope else asyncio.run_coroutine_threadsafe(work, loop)


def http_client() -> openai.DefaultAioHttpClient:
    """Return the HTTP client of the running loop, shared by all endpoints.

    It is based on aiohttp, which needs half the processor time of httpx.
    """
    import openai

    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None:
        client = _clients[loop] = openai.DefaultAioHttpClient()
    return client


# A connection pool belongs to its loop, and a process has one loop for model calls. It holds connections, no results.
_clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = weakref.WeakKeyDictionary()


@functools.lru_cache(maxsize=1)
def _loop() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="model-calls", daemon=True)
    thread.start()
    atexit.register(_close, loop)
    return loop, thread


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Close the connections; the daemon thread ends with the process."""
    client = _clients.pop(loop, None)
    if client is not None:
        asyncio.run_coroutine_threadsafe(client.aclose(), loop).result(CLOSING_S)
