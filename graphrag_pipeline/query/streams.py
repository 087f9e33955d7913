"""Searches in a thread: for async code, and for callers that read an answer while it is written.

A caller that stops reading, or is cancelled, cancels the calls to models that the search has under way. Keep out: how a
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
from graphrag_pipeline.query.results import Answer, Context

T = TypeVar("T")

OnToken = Callable[[str], None]
"""Gets the text of an answer in pieces, as it comes."""


MAX_AT_ONCE = 32
"""Searches of one process at a time; others wait. A search by a model mostly waits itself."""


class Listener:
    """The receivers of one search's context and answer.

    Args:
        context_only: no answer is wanted.
        on_context: gets the context once it is chosen, before the answer is written.
        on_token: gets the answer's text in pieces.
        lead: what stands before the answer, and is passed on before its first piece.

    Attributes:
        is_wanted: whether an answer is wanted.
        on_token: gets a model's text as it comes; None where no receiver was given.
    """

    def __init__(
        self,
        context_only: bool = False,
        on_context: Callable[[Context], None] | None = None,
        on_token: OnToken | None = None,
        lead: str = "",
    ) -> None:
        self._lead = lead
        self.is_wanted = not context_only
        self._on_context = on_context
        self._receive = on_token
        self.on_token = self._pass_on if on_token else None
        self._passed_on: list[str] = []

    def on_context(self, context: Context) -> None:
        """Pass on the context that the answer will be written from."""
        if self._on_context:
            self._on_context(context)

    def finish(self, answer: Answer) -> None:
        """Pass on what no piece held: a whole answer, one that replaces a broken one, or notes under the pieces."""
        passed_on = "".join(self._passed_on)
        is_begun = not answer.failure and answer.text.startswith(passed_on)
        rest = answer.text[len(passed_on) :] if is_begun else answer.text
        if self._receive and rest:
            self._receive(rest if is_begun or not passed_on else f"\n\n{rest}")

    def _pass_on(self, text: str) -> None:
        if self._lead and not self._passed_on:
            text = f"{self._lead}\n\n{text}"
        self._passed_on.append(text)
        if self._receive:
            self._receive(text)


def iterate_tokens(work: Callable[[OnToken, CallScope], T]) -> Iterator[str | T]:
    """Yield the pieces that `work` hands on, and at last what it returns.

    Raises:
        Exception: any error of `work`.
    """
    pieces: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    with _started(lambda scope: work(pieces.put, scope)) as result:
        result.add_done_callback(lambda _: pieces.put(None))
        while (text := pieces.get()) is not None:
            yield text
        yield result.result()


async def aiterate_tokens(work: Callable[[OnToken, CallScope], T]) -> AsyncIterator[str | T]:
    """Yield as `iterate_tokens` does, for code that is async."""
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[str | None] = asyncio.Queue()
    is_read = True

    def pass_on(text: str | None) -> None:
        if is_read:  # the loop may be closed otherwise
            loop.call_soon_threadsafe(pieces.put_nowait, text)

    with _started(lambda scope: work(pass_on, scope)) as result:
        result.add_done_callback(lambda _: pass_on(None))
        try:
            while (text := await pieces.get()) is not None:
                yield text
            yield result.result()
        finally:
            is_read = False


async def await_search(work: Callable[[CallScope], T]) -> T:
    """Return what `work` returns, for code that is async.

    Raises:
        Exception: any error of `work`.
    """
    with _started(work) as result:
        return await asyncio.wrap_future(result)


@contextmanager
def _started(work: Callable[[CallScope], T]) -> Iterator[Future[T]]:
    """Run `work` in a thread with the caller's context; at the end, cancel the calls to models that are left."""
    scope = CallScope()
    spans = contextvars.copy_context()  # the span around the search is the parent of its spans
    result = _searches().submit(spans.run, work, scope)
    try:
        yield result
    finally:
        result.cancel()
        scope.cancel()


@functools.lru_cache(maxsize=1)
def _searches() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_AT_ONCE, thread_name_prefix="search")
