"""A search in a thread of its own: for code that is async, and for callers that read an answer as it is written.

Whoever stops reading, or is cancelled, gives up the calls to models that the search has under way. Keep out: how a
method searches.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import queue
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from graphrag_pipeline.models.event_loop import CallScope
from graphrag_pipeline.query.model_answers import Say
from graphrag_pipeline.query.results import Answer

T = TypeVar("T")


MAX_AT_ONCE = 32
"""Searches of one process at a time; others wait. A search by a model does little but wait itself."""


class Listener:
    """Who hears the answer to one question; `is_wanted` is False where only the context is."""

    def __init__(self, say: Say | None, context_only: bool) -> None:
        self.is_wanted = not context_only
        self.say = self._pass_on if say else None
        self._hear = say
        self._has_said = False

    def finish(self, answer: Answer) -> None:
        """Say what no piece has said: an answer that came whole, or that replaces one that broke off."""
        if self._hear and answer.text and (answer.failure or not self._has_said):
            self._hear(f"\n\n{answer.text}" if self._has_said else answer.text)

    def _pass_on(self, text: str) -> None:
        self._has_said = True
        if self._hear:
            self._hear(text)


def iterate_said(work: Callable[[Say], T]) -> Iterator[str | T]:
    """Yield what `work` says, and at last what it returns.

    Raises:
        Exception: what `work` raises.
    """
    said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    with _started(lambda: work(said.put)) as result:
        result.add_done_callback(lambda _: said.put(None))
        while (text := said.get()) is not None:
            yield text
        yield result.result()


async def aiterate_said(work: Callable[[Say], T]) -> AsyncIterator[str | T]:
    """`iterate_said` for code that is async."""
    loop = asyncio.get_running_loop()
    said: asyncio.Queue[str | None] = asyncio.Queue()
    is_read = True

    def pass_on(text: str | None) -> None:
        if is_read:  # the loop may be closed otherwise
            loop.call_soon_threadsafe(said.put_nowait, text)

    with _started(lambda: work(pass_on)) as result:
        result.add_done_callback(lambda _: pass_on(None))
        try:
            while (text := await said.get()) is not None:
                yield text
            yield result.result()
        finally:
            is_read = False


async def await_search(work: Callable[[], T]) -> T:
    """What `work` returns, for code that is async.

    Raises:
        Exception: what `work` raises.
    """
    with _started(work) as result:
        return await asyncio.wrap_future(result)


@contextmanager
def _started(work: Callable[[], T]) -> Iterator[Future[T]]:
    """Work in a thread, with the caller's context; at the end its calls to models are given up, if any are left."""
    scope = CallScope()

    def work_in_scope() -> T:
        with scope.entered():
            return work()

    result = _searches().submit(contextvars.copy_context().run, work_in_scope)
    try:
        yield result
    finally:
        result.cancel()
        scope.cancel()


@functools.lru_cache(maxsize=1)
def _searches() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_AT_ONCE, thread_name_prefix="search")
