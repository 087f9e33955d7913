"""The one event loop of a process for model calls, in a thread of its own, used from code that is not async.

HTTP connections and the requests under way belong to it, so that stages, queries and embedders share them. Signals
and interrupts reach the waiting main thread, never a call in the middle.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import openai

T = TypeVar("T")

CLOSING_S = 5.0


def start_in_loop(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine in the loop of model calls.

    Raises:
        RuntimeError: called from within that loop, where waiting for it would never end.
    """
    loop, thread = _loop()
    if threading.current_thread() is thread:
        work.close()
        raise RuntimeError("called from a model call's own event loop; await the coroutine instead")
    return asyncio.run_coroutine_threadsafe(work, loop)


def http_client() -> openai.DefaultAioHttpClient:
    """The HTTP client of the running loop, for all endpoints: aiohttp, in half the processor time of httpx."""
    import openai

    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None:
        client = _clients[loop] = openai.DefaultAioHttpClient()
    return client


_clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = weakref.WeakKeyDictionary()


@functools.lru_cache(maxsize=1)
def _loop() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="model-calls", daemon=True)
    thread.start()
    atexit.register(_close, loop)
    return loop, thread


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Close the connections; the thread ends with the process."""
    client = _clients.pop(loop, None)
    if client is not None:
        asyncio.run_coroutine_threadsafe(client.aclose(), loop).result(CLOSING_S)
