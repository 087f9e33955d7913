"""Worker processes of an index run: parts of its computation run in them, so that it uses all cores.

Workers compute and return what they made; only the process of the run writes. So a killed run leaves no writer behind,
and one worker gives the same bytes as many. A worker that dies costs nothing but time: its part is computed again in
the process of the run. Keep out: what is computed.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from graphrag_pipeline.errors import PipelineError

T = TypeVar("T")

NUMBER, MEMORY = "GRAPHRAG_WORKERS", "GRAPHRAG_MAX_MEMORY"
"""Environment variables with the number of workers, and with the GB that all processes of a run may take together."""
_OWN_GB, _WORKER_GB = 1.0, 0.5
_FREE_SHARE = 0.75  # of the machine's memory, if no limit is given
_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "LOKY_MAX_MEMORY_LEAK_SIZE": "1e15",  # else it takes growth by 300 MB for a leak, warns and starts another process
}
_LIMIT_OF_GROUP = Path("/sys/fs/cgroup/memory.max")


def choose_number(n_workers: int | None = None, max_memory_gb: float | None = None) -> int:
    """Return how many workers to start: as asked for, else `GRAPHRAG_WORKERS`, else one a core; as many as fit.

    Args:
        max_memory_gb: memory of all processes together. None is `GRAPHRAG_MAX_MEMORY`, else three quarters of what
            this machine or container has.

    Returns:
        The number; 1 in a process that may start none, such as a worker of Celery.

    Raises:
        PipelineError: a variable is not a positive number.
    """
    from loky import cpu_count

    if multiprocessing.current_process().daemon:
        return 1
    wanted = n_workers or int(_read_number(NUMBER)) or cpu_count()
    memory = max_memory_gb or _read_number(MEMORY) or _memory_here() * _FREE_SHARE
    return max(1, min(wanted, int((memory - _OWN_GB) / _WORKER_GB))) if memory else wanted


def _read_number(variable: str) -> float:
    text = os.environ.get(variable, "")
    with suppress(ValueError):
        if (value := float(text or 0)) >= 0:
            return value
    raise PipelineError(f"the environment variable {variable} is {text!r}; give a positive number, or unset it")


def _memory_here() -> float:
    """Return the memory of this machine or container in GB; 0 if the system does not say."""
    found = []
    with suppress(ValueError, OSError, AttributeError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(ValueError, OSError):
        found.append(int(_LIMIT_OF_GROUP.read_text()))
    return min(found, default=0) / 2**30


class WorkerPool:
    """A pool of processes, which starts with its first work; a context manager that ends them.

    Attributes:
        n: number of processes; with one, none is started.
    """

    def __init__(self, n: int = 1) -> None:
        self.n = n
        self._pool: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def is_running(self) -> bool:
        """Whether the processes have been started, so that more work for them costs no start."""
        return self._pool is not None

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Call a function of a module in a worker; its arguments and its result are pickled.

        If a worker has died, the result is that failure.
        """
        if self._pool is None:
            from loky.process_executor import ProcessPoolExecutor

            self._pool = ProcessPoolExecutor(
                self.n,
                env=_ENVIRONMENT,
                initializer=_end_with,
                initargs=(os.getpid(),),
            )
        future: Future[T] = Future()
        try:
            future = self._pool.submit(function, *arguments)
        except BrokenProcessPool as error:
            future.set_exception(error)
        return future

    def stop(self) -> None:
        """End the processes, also those that are at work."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, kill_workers=True)


def _end_with(parent: int) -> None:
    """End this process once its parent is gone, killed without a word to its workers."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
