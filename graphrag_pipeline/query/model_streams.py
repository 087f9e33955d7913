"""An answer as it is written: what a search says, piece by piece, for a caller that iterates."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from graphrag_pipeline.query.model_answers import Say
from graphrag_pipeline.query.results import Answer

T = TypeVar("T")


class _StoppedError(Exception):
    """The caller listens no more."""


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
    """Yield what `work` says, and at last what it returns; `work` runs in a thread of its own.

    Raises:
        Exception: what `work` raises.
    """
    said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    is_stopped = threading.Event()

    def say(text: str) -> None:
        if is_stopped.is_set():
            raise _StoppedError
        said.put(text)

    pool = ThreadPoolExecutor(1, thread_name_prefix="search")
    result = pool.submit(contextvars.copy_context().run, work, say)
    result.add_done_callback(lambda _: said.put(None))
    try:
        while (text := said.get()) is not None:
            yield text
        yield result.result()
    finally:
        is_stopped.set()
        pool.shutdown(wait=False)
