"""Heartbeats of runs in a shared store, by which one machine sees whether a run on another one still works.

A run counts up its object `runs/ID` and removes it at its end. An observer notes each count that it sees, and measures
by its own clock how long it stays the same, so clocks of machines need not agree. Keep out: what follows from a death.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from graphrag_pipeline.errors import StoreError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.storage.shared.objects import ObjectStore

HEARTBEAT_S = 30.0
"""Seconds between two heartbeats of a run."""
DEAD_AFTER_S = 2 * HEARTBEAT_S + 60
"""Seconds without a heartbeat after which a run counts as dead."""
_JOIN_S = 5.0  # a store that does not answer may keep the thread longer
_log = logging.getLogger(__name__)


class Heartbeats:
    """The heartbeats of a store.

    Args:
        memory: file of the working copy with the counts that it saw, and when.
    """

    def __init__(self, objects: ObjectStore, memory: Path) -> None:
        self._objects = objects
        self._memory = memory

    @contextmanager
    def beating(self, run_id: str) -> Iterator[None]:
        """Count up the heartbeat of a run inside the block; if the store fails, the block goes on without it."""
        is_over, objects = threading.Event(), self._objects.for_thread()

        def beat() -> None:
            count = 0
            while True:
                count += 1
                with _tolerant():
                    objects.write(_name(run_id), str(count).encode())
                if is_over.wait(HEARTBEAT_S):
                    return

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join(_JOIN_S)
            self.forget(run_id)

    def forget(self, run_id: str) -> None:
        """Remove the heartbeat of a run that is over."""
        with _tolerant():
            self._objects.remove([_name(run_id)])

    def find_dead(self, run_ids: Collection[str], now: float | None = None) -> list[str]:
        """Return those runs whose heartbeat this machine has seen unchanged for too long; look more than once.

        Args:
            now: seconds since this machine started; those of its clock if None.
        """
        now, seen = time.monotonic() if now is None else now, self._read()
        dead, noted = [], {}
        for run_id in run_ids:
            with _tolerant():
                if (data := self._objects.read(_name(run_id))) is None:
                    continue
                count, since = data.decode(), seen.get(run_id, ("", 0.0))
                is_same = count == since[0] and since[1] <= now  # later: this machine was started again
                noted[run_id] = since if is_same else (count, now)
                if now - noted[run_id][1] > DEAD_AFTER_S:
                    dead.append(run_id)
        if noted != seen:
            files.replace(self._memory, json.dumps(noted).encode())
        return dead

    def _read(self) -> dict[str, tuple[str, float]]:
        with suppress(OSError, ValueError, TypeError, AttributeError):
            return {
                run_id: (str(count), float(at)) for run_id, (count, at) in json.loads(self._memory.read_bytes()).items()
            }
        return {}


def _name(run_id: str) -> str:
    return f"runs/{run_id}"


@contextmanager
def _tolerant() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        _log.warning("heartbeats of runs: %s", error)
