"""The number of worker processes: as asked for, as many as fit into the memory."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool

import pytest
from loky import process_executor

from graphrag_pipeline import workers
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.workers import WorkerPool, choose_number


@pytest.mark.parametrize(
    ("asked", "memory", "variables", "expected"),
    [
        (3, 64, {}, 3),
        (8, 2, {}, 2),
        (8, 1, {}, 1),
        (None, 64, {"GRAPHRAG_WORKERS": "5"}, 5),
        (None, None, {"GRAPHRAG_WORKERS": "50", "GRAPHRAG_MAX_MEMORY": "3.5"}, 5),
    ],
)
def test_workers_are_as_many_as_asked_for_and_fit(
    asked: int | None, memory: float | None, variables: dict, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert choose_number(asked, memory) == expected


def test_without_a_wish_it_is_one_a_core_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (workers.NUMBER, workers.MEMORY):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("loky.cpu_count", lambda: 64)
    monkeypatch.setattr(workers, "_memory_here", lambda: 8.0)
    assert choose_number() == 10
    monkeypatch.setattr(workers, "_memory_here", lambda: 0.0)
    assert choose_number() == 64, "the system does not say how much there is"


@pytest.mark.parametrize("value", ["many", "-1", "nan"])
def test_a_wrong_variable_is_named(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(workers.NUMBER, value)
    with pytest.raises(PipelineError, match=f"GRAPHRAG_WORKERS is '{value}'"):
        choose_number()


def test_processes_start_with_the_first_work_and_end_with_the_pool() -> None:
    with WorkerPool(2) as pool:
        assert not pool.is_running
        assert pool.submit(divmod, 7, 2).result() == (3, 1)
        assert pool.is_running
    assert not pool.is_running


def test_work_for_a_pool_whose_worker_died_fails_as_its_result() -> None:
    with WorkerPool(1) as pool:
        for arguments in ((os._exit, 1), (divmod, 7, 2)):
            with pytest.raises(BrokenProcessPool):
                pool.submit(*arguments).result()


def test_a_worker_may_keep_much_memory() -> None:
    """Loky takes growth by 300 MB for a leak, unless told otherwise: a warning, and everything is loaded again."""
    with WorkerPool(1) as pool:
        assert pool.submit(_allowed_growth).result() > 1e12


def _allowed_growth() -> float:
    return process_executor._MAX_MEMORY_LEAK_SIZE


@pytest.mark.skipif(os.name == "nt", reason="a process of Windows does not learn of the end of its parent")
def test_workers_of_a_killed_process_end() -> None:
    code = "from graphrag_pipeline.workers import WorkerPool; import os, time; pool = WorkerPool(1); "
    code += "print(pool.submit(os.getpid).result(), flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        worker = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while _is_alive(worker):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_process_that_may_start_none_computes_alone() -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:  # its processes are daemonic, as those of Celery
        assert pool.apply(choose_number, (4,)) == 1
