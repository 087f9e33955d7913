"""Threads that take turns: one computes, the others wait in order, and none waits for ever."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from graphrag_pipeline import turns as module
from graphrag_pipeline.turns import Turns, waiting

LONG_S = 30.0


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    monkeypatch.setattr(module, "MAX_WAIT_S", LONG_S)
    return Turns()


def run(*works: Callable[[], object]) -> None:
    with ThreadPoolExecutor(len(works)) as threads:
        for future in [threads.submit(work) for work in works]:
            future.result(LONG_S)


def test_threads_compute_one_after_the_other_but_not_while_they_wait(turns: Turns) -> None:
    computing, most = list[int](), list[int]()

    def work() -> None:
        with turns.computing():
            for _ in range(50):
                computing.append(1)
                most.append(len(computing))
                computing.pop()
                with waiting():
                    pass

    run(*[work] * 4)
    assert max(most) == 1 and len(most) == 200


def test_a_waiting_thread_passes_its_turn_on(turns: Turns) -> None:
    is_done = threading.Event()

    def first() -> None:
        with turns.computing(), waiting():
            assert is_done.wait(LONG_S)

    def second() -> None:
        with turns.computing():
            is_done.set()

    run(first, second)


def test_a_turn_ends_with_an_error(turns: Turns) -> None:
    def fail() -> None:
        with turns.computing(), waiting():
            raise KeyError

    with pytest.raises(KeyError):
        run(fail)
    with turns.computing():
        pass


def test_a_thread_that_waited_long_computes_without_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAIT_S", 0.01)
    turns, has_begun, is_done = Turns(), threading.Event(), threading.Event()

    def hold() -> None:
        with turns.computing():
            has_begun.set()
            assert is_done.wait(LONG_S)

    def compute() -> None:
        assert has_begun.wait(LONG_S)
        with turns.computing(), waiting():
            pass
        is_done.set()

    run(hold, compute)
    monkeypatch.setattr(module, "MAX_WAIT_S", LONG_S)
    with turns.computing():  # the turn is free again
        pass


def test_without_turns_waiting_is_only_waiting() -> None:
    with waiting():
        pass
