"""Concurrent model requests from synchronous code: results in order, failures as data, a clean stop.

Assets are synchronous. `run_all` runs their coroutines in the event loop of model calls (`event_loop.py`), up to a
limit at once, and waits. Two things end a run early: an error that concerns all requests (`PipelineError`: the budget
is spent, the key is wrong, the first replies are all useless), and the user (Ctrl-C, SIGTERM, Dagster's termination).
Then no new call starts, running calls get `GRACE_S` seconds to be answered and stored, and the caller gets the error.

Requests that are made shorter until they fit the window of their model.

A model that finds a prompt too long says by how many tokens (`CallFailedError.n_excess`). The code that built the
prompt knows what it can do without.

Chat model that answers from stored replies only and records the requests without one.

Steps run with it to find the requests that they would send (`inspection/estimates.py`) or once sent
(`pipeline/document_traces.py`).
"""

from __future__ import annotations

import asyncio
import math
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, Generic, TypeVar

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.accounting import count_record
from graphrag_pipeline.models.event_loop import CallScope, start_in_loop
from graphrag_pipeline.models.ports import CallFailedError, ChatModel, ChatReply, ChatRequest, Failure

T = TypeVar("T")


class StoredReplies:
    """The stored replies of a model; implements `ports.ChatModel`.

    Attributes:
        keys: keys of the stored replies that were requested.
        missing: the requests without a stored reply, in order.
        n_cached: number of replies returned.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.stage, self.fingerprint, self.max_concurrency = model.stage, model.fingerprint, 1
        self.keys: set[str] = set()
        self.missing: list[ChatRequest[Any]] = []
        self.n_cached = 0

    def run_works(self, works: Sequence[Work[Any]]) -> None:
        """Run works that request this model; a work ends at its first request without a stored reply."""
        run_all(self.stage, works, self.max_concurrency)

    async def complete(self, request: ChatRequest[T]) -> ChatReply[T]:
        """Return the stored reply.

        Raises:
            CallFailedError: no reply is stored.
        """
        [reply] = self.recall([request])
        if reply is None:
            self.missing.append(request)
            raise CallFailedError("not stored", "")
        return reply

    def recall(self, requests: Sequence[ChatRequest[T]]) -> list[ChatReply[T] | None]:
        """See `ports.ChatModel.recall`."""
        replies = self._model.recall(requests)
        found = [reply.request_key for reply in replies if reply is not None]
        self.keys.update(found)
        self.n_cached += len(found)
        return replies


MAX_SHORTENED = 3
"""Times that a request is shortened: once as a rule, again if the model counts many more tokens than this package."""


async def complete_within_window(
    model: ChatModel, request: ChatRequest[T], shorten: Callable[[int], ChatRequest[T] | None]
) -> tuple[ChatReply[T], int]:
    """Return the reply to a request, and the tokens by which its prompt was shortened.

    Args:
        shorten: returns the request with at least so many tokens less than at first; None if that is not possible.

    Raises:
        CallFailedError: the request got no usable reply, or cannot be short enough.
    """
    n_left_out = 0
    for _ in range(MAX_SHORTENED):
        try:
            return await model.complete(request), n_left_out
        except CallFailedError as error:
            n_left_out += error.n_excess
            shorter = shorten(n_left_out) if error.n_excess else None
            if shorter is None:
                raise
            request = shorter
    return await model.complete(request), n_left_out


GRACE_S = 20.0
PROGRESS_S = 0.5
POLL_S = 0.25  # between checks whether to stop
LOOKUP_BATCH = 1000  # requests looked up in the store at once

Progress = Callable[[int, int], None]
"""Receives (done, total) in the caller's thread, twice a second and at the end."""


@dataclass(frozen=True)
class Work(Generic[T]):
    """The coroutine for one record, which makes one or more calls.

    Attributes:
        is_without_call: whether the record surely needs no call. Such works run first, so that the number of works
            left tells how much there still is to do.
    """

    record: str
    start: Callable[[], Awaitable[T]]
    is_without_call: bool = False


@dataclass(frozen=True)
class EarlyCheck(Generic[T]):
    """A check of the first results that stops a run which would pay for useless replies.

    Attributes:
        n: number of results to check, the first in order (all results if there are fewer).
        check: receives these results; raises PipelineError to stop the run.
    """

    n: int
    check: Callable[[Sequence[T | Failure]], None]


def complete_all(
    chat: ChatModel,
    requests: Sequence[ChatRequest[T]],
    progress: Progress | None = None,
    early_check: EarlyCheck[ChatReply[T]] | None = None,
    scope: CallScope | None = None,
) -> list[ChatReply[T] | Failure]:
    """Answer all requests, in order: look up stored replies together, and send the other requests.

    Args:
        scope: cancels the calls, if given.

    Raises:
        PipelineError: no request can be answered, the budget is spent, or `first_look` stops the run.
    """
    results: list[ChatReply[T] | Failure | None] = []
    for start in range(0, len(requests), LOOKUP_BATCH):
        results += chat.recall(requests[start : start + LOOKUP_BATCH])
    missing = [index for index, reply in enumerate(results) if reply is None]
    works = [Work(requests[index].record, partial(chat.complete, requests[index])) for index in missing]
    n_known = len(requests) - len(missing)
    report = (lambda done, _: progress(n_known + done, len(requests))) if progress else None
    sent = run_all(chat.stage, works, chat.max_concurrency, report, early_check, scope)
    for index, result in zip(missing, sent, strict=True):
        results[index] = result
    return [result for result in results if result is not None]


def run_all(
    stage: str,
    works: Sequence[Work[T]],
    max_concurrency: int,
    progress: Progress | None = None,
    early_check: EarlyCheck[T] | None = None,
    scope: CallScope | None = None,
) -> list[T | Failure]:
    """Run all works, `max_concurrency` at once; a CallFailedError becomes a Failure of its record.

    Args:
        scope: cancels the works, if given.

    Raises:
        PipelineError: an error that concerns all works; see the module.
    """
    if not works:
        return []
    run = _Run(stage, works, early_check)
    with _terminated_as_interrupt():
        future = start_in_loop(run.do(min(max_concurrency, len(works))), scope)
        try:
            while not wait([future], PROGRESS_S).done:
                if progress:
                    progress(run.n_done, len(works))
        finally:
            if not future.done():  # interrupted
                run.stop()
                wait([future], GRACE_S + 2 * POLL_S)
                future.cancel()
    future.result()
    if progress:
        progress(run.n_done, len(works))
    return run.results()


class _Run(Generic[T]):
    """State of one `run_all`. All methods except `stop` run in the event loop."""

    def __init__(self, stage: str, works: Sequence[Work[T]], early_check: EarlyCheck[T] | None) -> None:
        self.n_done = 0
        self._stage = stage
        self._left = iter(sorted(enumerate(works), key=lambda pair: not pair[1].is_without_call))
        self._results: list[Any] = [None] * len(works)
        self._is_stopped = threading.Event()
        self._early_check = early_check
        self._n_awaited = min(early_check.n, len(works)) if early_check else 0
        self._error: PipelineError | None = None

    async def do(self, n_workers: int) -> None:
        workers = {asyncio.create_task(self._work()) for _ in range(n_workers)}
        try:
            await self._wait(workers)
        finally:
            for worker in workers:
                worker.cancel()
            ended = await asyncio.gather(*workers, return_exceptions=True)
        for error in (self._error, *ended):
            if error is not None and not isinstance(error, asyncio.CancelledError):
                raise error

    async def _wait(self, workers: Collection[asyncio.Task[None]]) -> None:
        """Wait until all works are done; after a stop, for at most `GRACE_S`."""
        pending: Collection[asyncio.Task[None]] = workers
        deadline = math.inf
        while pending and time.monotonic() < deadline:
            done, pending = await asyncio.wait(pending, timeout=POLL_S, return_when=asyncio.FIRST_EXCEPTION)
            if any(worker.exception() for worker in done):  # a bug: the caller gets the exception
                self.stop()
            if self._is_stopped.is_set():
                deadline = min(deadline, time.monotonic() + GRACE_S)

    def stop(self) -> None:
        """Start no further work."""
        self._is_stopped.set()

    def results(self) -> list[T | Failure]:
        return self._results

    async def _work(self) -> None:
        for index, work in self._left:
            if self._is_stopped.is_set():
                return
            try:
                with count_record():
                    result: T | Failure = await work.start()
            except CallFailedError as error:
                result = Failure(
                    self._stage,
                    work.record,
                    error.reason,
                    error.reply,
                    error.request_key,
                    error.is_unanswered,
                    error.n_excess,
                )
            except PipelineError as error:
                self._fail(error)
                return
            self._results[index] = result
            self.n_done += 1
            self._check_early(index)

    def _fail(self, error: PipelineError) -> None:
        self._error = self._error or error
        self.stop()

    def _check_early(self, index: int) -> None:
        """Check the first works in order, once all are done; the works that end first are the short ones."""
        if self._early_check is None or index >= self._early_check.n:
            return
        self._n_awaited -= 1
        if not self._n_awaited:
            try:
                self._early_check.check(self._results[: self._early_check.n])
            except PipelineError as error:
                self._fail(error)


@contextmanager
def _terminated_as_interrupt() -> Iterator[None]:
    """Let SIGTERM raise SystemExit in the main thread, unless another handler (such as Dagster's) is set."""
    is_ours = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if not is_ours:
        yield
        return
    signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _exit(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def split_failures(results: Iterable[T | Failure]) -> tuple[list[T], list[Failure]]:
    """Separate results and failures, each in order."""
    kept: list[T] = []
    failures: list[Failure] = []
    for result in results:
        if isinstance(result, Failure):
            failures.append(result)
        else:
            kept.append(result)
    return kept, failures
