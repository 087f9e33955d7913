"""Turns of the threads that compute in one process: one computes while the others wait for it, in order.

Python's lock lets one thread compute at a time. If several want it, each short release of it, as by a call of NumPy,
wakes another thread, mostly in vain. So a thread takes a turn, which it passes on while it waits for other work, such
as a search of LanceDB. Measured with four requests at once: 24 instead of 28 ms of processor time a request. After
`MAX_WAIT_S` a thread computes without a turn, so a long request, or one that waits for something unforeseen, never
blocks the others. Keep out: which threads take turns.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

MAX_WAIT_S = 0.05
"""Longest wait for a turn: several times the time that a context computes between two searches."""

_own = threading.local()


class Turns:
    """The turns of a process. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_taken = False
        self._waiting: deque[threading.Lock] = deque()

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute in a turn, which `waiting` passes on."""
        _own.turns, _own.has_turn = self, self._take()
        try:
            yield
        finally:
            self._give_back()
            _own.turns = None

    def _take(self) -> bool:
        """Wait for a turn; returns whether the thread has one."""
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return True
            signal = threading.Lock()
            signal.acquire()
            self._waiting.append(signal)
        if signal.acquire(timeout=MAX_WAIT_S):
            return True
        with self._lock:
            if signal in self._waiting:
                self._waiting.remove(signal)
                return False
        return True  # it was given in this moment

    def _give_back(self) -> None:
        """Pass the turn on to the thread that has waited longest."""
        if not _own.has_turn:
            return
        _own.has_turn = False
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False


@contextmanager
def waiting() -> Iterator[None]:
    """Wait for other work, while another thread has the turn of this one, if it has any."""
    turns: Turns | None = getattr(_own, "turns", None)
    if turns is None:
        yield
        return
    turns._give_back()
    try:
        yield
    finally:
        _own.has_turn = turns._take()
