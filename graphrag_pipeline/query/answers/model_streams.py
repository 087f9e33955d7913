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
from dataclasses import dataclass
from typing import TypeVar

from graphrag_pipeline.models.event_loop import CallScope
from graphrag_pipeline.query.answers.model import Say
from graphrag_pipeline.query.results import Answer, Context

T = TypeVar("T")


MAX_AT_ONCE = 32
"""Searches of one process at a time; others wait. A search by a model does little but wait itself."""


@dataclass(frozen=True)
class Callbacks:
    """Who is told of a search while it runs, in its thread.

    Attributes:
        context: gets the context once it is chosen, before the answer is written.
        token: gets the answer's text in pieces, as `say` of `GraphIndex.search` does.
    """

    context: Callable[[Context], None] | None = None
    token: Say | None = None


class Listener:
    """Who hears the answer to one question; `is_wanted` is False where only the context is."""

    def __init__(self, say: Say | None, context_only: bool, callbacks: Callbacks | None = None) -> None:
        self.is_wanted = not context_only
        told = callbacks or Callbacks()
        self._tell_context = told.context
        self._hearers = [hear for hear in (say, told.token) if hear]
        self.say = self._pass_on if self._hearers else None
        self._has_said = False

    def tell_context(self, context: Context) -> None:
        """Tell whoever asked for it what the answer will be written from."""
        if self._tell_context:
            self._tell_context(context)

    def finish(self, answer: Answer, note: str = "") -> None:
        """Say what no piece has said: an answer that came whole, or replaces one that broke off; a note under it."""
        if answer.text and (answer.failure or not self._has_said):
            self._hear(f"\n\n{answer.text}" if self._has_said else answer.text)
        if answer.text and note:
            self._hear(f"\n\n{note}")

    def _pass_on(self, text: str) -> None:
        self._has_said = True
        self._hear(text)

    def _hear(self, text: str) -> None:
        for hear in self._hearers:
            hear(text)


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
