"""An index run in a thread, whose stages other code waits for one after the other.

Dagster runs one step at a time in a process. An index run goes through its stages bucket by bucket, so that several are
under way at once. In a thread, it can be followed by a step a stage. Keep out: Dagster, and what is run.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from typing import Any

from graphrag_pipeline.models.pool import GRACE_S
from graphrag_pipeline.pipeline.progress import RunObserver
from graphrag_pipeline.pipeline.staleness import StalePartition

_ENDS_IN_S = GRACE_S + 10.0  # running calls of models are answered and stored first


class FollowedRun(RunObserver):
    """One index run at a time, and the news of it. Its methods except those of an observer are called by one thread.

    Attributes:
        computed: number of partitions computed, by stage.
        result: what the run returned; None before its end.
    """

    def __init__(self) -> None:
        self.computed: Counter[str] = Counter()
        self.result: Mapping[str, Any] | None = None
        self._left: Counter[str] | None = None
        self._news: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._thread: Thread | None = None
        self._log: Callable[[str], None] = lambda line: None

    def start(self, body: Callable[[RunObserver], Mapping[str, Any]]) -> None:
        """Start a run, unless one is under way or has ended well."""
        if self._thread is None and self.result is None:
            self._left = None
            self._thread = Thread(target=copy_context().run, args=(self._run, body), name="index run", daemon=True)
            self._thread.start()

    def wait_for(self, stage: str | None, log: Callable[[str], None]) -> None:
        """Wait until the run has finished a stage in all stale partitions, or has ended.

        Args:
            stage: its name; None waits for the end.
            log: receives lines about model calls while this waits.

        Raises:
            BaseException: why the run failed before that.
        """
        self._log = log
        while self._thread and not (stage and self._left is not None and self._left[stage] <= 0):
            self._news.get()()

    def stop(self) -> None:
        """Interrupt the run as Ctrl-C does, and wait until it has ended."""
        if self._thread and self._thread.ident and self._thread.is_alive():
            interrupt = ctypes.c_ulong(self._thread.ident), ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(*interrupt)
            self._thread.join(_ENDS_IN_S)

    def plan(self, stale: list[StalePartition]) -> None:
        """Note how many partitions of each stage are stale; files that change during the run make another plan."""
        self._news.put(lambda: setattr(self, "_left", Counter(item.stage for item in stale)))

    def progress(self, message: str) -> None:
        """Log a line."""
        self._news.put(lambda: self._log(message))

    def finish(self, stage: str, partition: str, is_fresh: bool) -> None:
        """Note that a partition of a stage is done."""
        self._news.put(lambda: self._count(stage, is_fresh))

    def _count(self, stage: str, is_fresh: bool) -> None:
        self.computed[stage] += not is_fresh
        if self._left:
            self._left[stage] -= 1

    def _run(self, body: Callable[[RunObserver], Mapping[str, Any]]) -> None:
        try:
            result = body(self)
        except BaseException as error:
            failure = error
            self._news.put(lambda: self._fail(failure))
        else:
            self._news.put(lambda: self._end(result))

    def _fail(self, error: BaseException) -> None:
        self._thread = None
        raise error

    def _end(self, result: Mapping[str, Any]) -> None:
        self._thread, self.result = None, result
