"""Stores of a torture run: none, a folder, or an S3 server, each with its faults and damage to its objects.

Keep out: which commands meet a fault (`commands.py`).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from graphrag_pipeline_tests.support.object_server import BUCKET, NO_ANSWER, ObjectServer, running_object_server
from graphrag_pipeline_tests.torture.damage import FOLDERS, KINDS, damage_bytes, damage_file

FAULTY_SHARE = 0.5
"""Share of requests that fail during a fault of an S3 server."""
SLOWEST_S = 1.0
STATES = "states"
CHANGING = ("flip", "cut", "zero")


class TorturedStore(Protocol):
    """A store that several machines share.

    Attributes:
        url: its place; "" without a store.
        environment: what commands need to reach it.
        is_damaged: whether an object was ever damaged.
    """

    url: str
    environment: Mapping[str, str]
    is_damaged: bool

    def begin_fault(self, seconds: float) -> str | None:
        """Let the store fail for some seconds; return what was done."""

    def end_fault(self, is_now: bool = False) -> None:
        """Let the store work again if the time of its fault is over, or now."""

    def failed_since(self, moment: float) -> bool:
        """Return whether a fault was under way at any time since a moment of the monotonic clock."""

    def damage(self, chance: random.Random) -> str | None:
        """Damage an object; return what was done, or None without an object."""

    def damage_state(self, chance: random.Random, seconds: float) -> str | None:
        """Damage the newest state for some seconds, as until its restoration from a backup."""


def _do_nothing() -> None:
    """Restore nothing."""


class FolderStore:
    """A folder as a store; while it fails it seems empty, as a file system that is not mounted.

    Args:
        folder: a new folder; "" for no store at all.
    """

    def __init__(self, folder: Path | None) -> None:
        self.url = f"file://{folder}" if folder else ""
        self.environment: Mapping[str, str] = {}
        self.is_damaged = False
        self._folder = folder
        self._until, self._ended = 0.0, 0.0
        self._n_faults = 0
        self._restore: Callable[[], object] = _do_nothing
        if folder:
            self._mounted().mkdir()
            folder.symlink_to(self._mounted())

    def begin_fault(self, seconds: float) -> str | None:
        if not self._folder or self._until:
            return None
        self._n_faults += 1
        empty = self._folder.with_name(f"empty_{self._n_faults}")
        empty.mkdir()
        self._until = time.monotonic() + seconds
        self._point_at(empty)
        return f"the store seems empty for {seconds:.1f} s"

    def end_fault(self, is_now: bool = False) -> None:
        if self._folder and self._until and (is_now or time.monotonic() > self._until):
            self._restore()
            self._point_at(self._mounted())
            self._until, self._restore = 0.0, _do_nothing
            self._ended = time.monotonic()

    def failed_since(self, moment: float) -> bool:
        return bool(self._until) or self._ended >= moment

    def damage(self, chance: random.Random) -> str | None:
        what = damage_file(self._mounted(), chance, FOLDERS) if self._folder else None
        self.is_damaged |= what is not None
        return what

    def damage_state(self, chance: random.Random, seconds: float) -> str | None:
        states = sorted((self._mounted() / STATES).glob("*.gz")) if self._folder else []
        if not states or self._until:
            return None
        whole = states[-1].read_bytes()
        states[-1].write_bytes(damage_bytes(whole, chance.choice(CHANGING), chance) or b"")
        self.is_damaged, self._until = True, time.monotonic() + seconds
        self._restore = lambda: states[-1].write_bytes(whole) if states[-1].exists() else None
        return f"the state {states[-1].name} is damaged for {seconds:.1f} s"

    def _mounted(self) -> Path:
        assert self._folder
        return self._folder.with_name("mounted")

    def _point_at(self, target: Path) -> None:
        assert self._folder
        link = self._folder.with_name(".link")
        link.symlink_to(target)
        os.replace(link, self._folder)


class ServerStore:
    """An S3 server; while it fails, requests are refused, dropped, late, or carried out without an answer."""

    def __init__(self, server: ObjectServer, chance: random.Random) -> None:
        self.url = f"s3://{BUCKET}/index"
        self.environment: Mapping[str, str] = server.environment
        self.is_damaged = False
        self._until = 0.0
        self._state_until, self._state_restored = 0.0, 0.0
        self._damaged_state: tuple[str, bytes] | None = None
        self._is_damaging = False
        self._server = server
        self._chance = chance
        server.fault, server.fault_after = self._refuse, self._lose

    def begin_fault(self, seconds: float) -> str | None:
        self._until = time.monotonic() + seconds
        return f"the store fails for {seconds:.1f} s"

    def end_fault(self, is_now: bool = False) -> None:
        self._until = min(self._until, time.monotonic()) if is_now else self._until
        if self._damaged_state and (is_now or time.monotonic() > self._state_until):
            name, whole = self._damaged_state
            with self._undisturbed():
                if self._connect().exists(name):
                    self._connect().pipe_file(name, whole)
            self._damaged_state, self._state_restored = None, time.monotonic()

    def failed_since(self, moment: float) -> bool:
        return bool(self._damaged_state) or max(self._until, self._state_restored) >= moment

    def damage_state(self, chance: random.Random, seconds: float) -> str | None:
        with self._undisturbed():
            names = sorted(self._connect().find(f"{self.url}/{STATES}"))
            if not names or self._damaged_state:
                return None
            try:
                whole = self._connect().cat_file(names[-1])
            except FileNotFoundError:  # a command removed it
                return None
            self._connect().pipe_file(names[-1], damage_bytes(whole, chance.choice(CHANGING), chance) or b"")
        self._damaged_state, self.is_damaged = (names[-1], whole), True
        self._state_until = time.monotonic() + seconds
        return f"the state {names[-1]} is damaged for {seconds:.1f} s"

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Let requests of the torture itself meet no fault."""
        self._is_damaging = True
        try:
            yield
        finally:
            self._is_damaging = False

    def damage(self, chance: random.Random) -> str | None:
        with self._undisturbed():
            return self._damage(chance)

    def _damage(self, chance: random.Random) -> str | None:
        store = self._connect()
        store.invalidate_cache()
        names = sorted(name for folder in FOLDERS for name in store.find(f"{self.url}/{folder}"))
        if not names:
            return None
        name, kind = chance.choice(names), chance.choice(KINDS)
        try:
            data = store.cat_file(name)
        except FileNotFoundError:  # a command removed it
            return None
        damaged = damage_bytes(data, kind, chance) if data else None
        if damaged is None:
            store.rm_file(name)
        else:
            store.pipe_file(name, damaged)
        self.is_damaged = True
        return f"{kind} {name}"

    def _connect(self) -> Any:
        import fsspec

        return fsspec.filesystem("s3", skip_instance_cache=True, **self._server.options)

    def _is_failing(self) -> bool:
        return time.monotonic() < self._until and not self._is_damaging

    def _refuse(self, method: str, path: str) -> int | None:
        if not self._is_failing() or self._chance.random() > FAULTY_SHARE:
            return None
        fault = self._chance.choice((500, 503, 403, NO_ANSWER, None))
        if fault is None:
            time.sleep(self._chance.uniform(0, SLOWEST_S))
        return fault

    def _lose(self, method: str, path: str) -> int | None:
        is_lost = self._is_failing() and self._chance.random() < FAULTY_SHARE / 4
        return self._chance.choice((500, NO_ANSWER)) if is_lost else None


@contextmanager
def open_store(kind: str, folder: Path, chance: random.Random) -> Iterator[TorturedStore]:
    """Yield an empty store of a kind."""
    if kind == "s3":
        with running_object_server() as server:
            yield ServerStore(server, chance)
    else:
        yield FolderStore(folder / "store" if kind == "file" else None)
