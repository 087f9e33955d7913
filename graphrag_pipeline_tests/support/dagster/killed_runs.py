"""Work on a root in a separate process that is killed (SIGKILL) at a chosen moment.

A moment is counted in changes of files, not in seconds. A change is an open for writing, a write, rename, link, removal
or new folder. The process dies just before its n-th change, or in the middle of that write. In native code (LanceDB,
SQLite) it dies some share of the usual time later. So a kill hits the same step on any machine. Processes are forked
from one that has imported everything. Keep out: assertions about the state afterwards.
"""

from __future__ import annotations

import builtins
import functools
import io
import itertools
import multiprocessing as mp
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from fsspec.config import conf, set_conf_env

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.command_line import TIMEOUT_S, Outcome

Work = Callable[[Root], None]
"""A module-level function of the root."""

_PRELOADED = ["graphrag_pipeline_tests.support.dagster.preloaded"]
_CHANGES = {"os.rename": 1, "os.link": 1, "os.remove": 0, "os.mkdir": 0, "os.rmdir": 0, "os.truncate": 0}
"""Audit event -> position of the changed path in its arguments."""
_WRITING = os.O_WRONLY | os.O_RDWR


@dataclass(frozen=True)
class Change:
    """A change of a file of the root, and the seconds until the next change."""

    kind: str
    path: str
    seconds: float = 0.0


@dataclass(frozen=True)
class Moment:
    """The moment of the kill.

    Attributes:
        n_change: just before this change, counted from 1.
        is_halfway: after half of the bytes of that write.
        delay_s: this long after that change.
    """

    n_change: int
    is_halfway: bool = False
    delay_s: float = 0.0


@dataclass
class _Changes:
    """Counts changes of files below a folder, and dies at a moment."""

    folder: str
    moment: Moment | None
    sender: Connection
    seen: list[tuple[str, str, float]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))  # each thread gets another number

    def watch(self) -> None:
        sys.addaudithook(self._heed)
        plain_open = builtins.open

        def open_counted(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if "b" not in mode or not set(mode) & set("wxa+") or not self._is_ours(file):
                return plain_open(file, mode, *args, **kwargs)
            raw = _CountedFile(file, mode.replace("b", ""))
            raw.changes, raw.path = self, str(file)
            return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)

        builtins.open = open_counted

    def add(self, kind: str, path: Any) -> bool:
        """Count a change; return whether the process must die halfway through it."""
        self.seen.append((kind, str(path), time.perf_counter()))
        if next(self.numbers) != (self.moment.n_change if self.moment else None):
            return False
        assert self.moment
        if self.moment.is_halfway and kind == "write":
            return True
        if self.moment.delay_s:
            self.sender.send(None)  # the parent kills this process, even in native code
        else:
            die()
        return False

    def _heed(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = args
            is_writing = bool(flags & _WRITING) if isinstance(flags, int) else set(mode or "") & set("wxa+")
            if is_writing and self._is_ours(path):
                self.add("open", path)
        elif event in _CHANGES and self._is_ours(args[_CHANGES[event]]):
            self.add(event, args[_CHANGES[event]])

    def _is_ours(self, path: Any) -> bool:
        return isinstance(path, str | os.PathLike) and str(path).startswith(self.folder)


class _CountedFile(io.FileIO):
    """A file that counts its writes."""

    changes: _Changes
    path: str

    def write(self, data: Any) -> int:
        if self.changes.add("write", self.path):
            super().write(memoryview(data).cast("B")[: len(data) // 2])
            die()
        return super().write(data)


def die() -> None:
    """End this process at once, as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def index(root: Root) -> None:
    """Run `index`, the default work."""
    from graphrag_pipeline.defs.index_runs.index_run import run_index

    run_index(root)


def measure_run(root: Path, environment: Mapping[str, str] | None = None, work: Work = index) -> list[Change]:
    """Do the work on a root undisturbed; return its changes of files."""
    process, receiver = _start(root, None, environment or {}, work)
    seen = receiver.recv()
    process.join(TIMEOUT_S)
    assert process.exitcode == 0, process.exitcode
    ends = [at for _, _, at in seen[1:]] + [seen[-1][2]]
    return [Change(kind, path, end - at) for (kind, path, at), end in zip(seen, ends, strict=True)]


def kill_run(root: Path, moment: Moment, environment: Mapping[str, str] | None = None, work: Work = index) -> bool:
    """Do the work on a root and kill it at a moment; return whether it was still running."""
    process, receiver = _start(root, moment, environment or {}, work)
    with suppress(EOFError):  # it died by itself
        if receiver.recv() is None:
            time.sleep(moment.delay_s)
            process.kill()
    process.join(TIMEOUT_S)
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
    return process.exitcode != 0


@contextmanager
def working_apart(root: Path, environment: Mapping[str, str] | None = None, work: Work = index) -> Iterator[Any]:
    """Do the work on a root in a separate process; kill it at the end if it still runs.

    Yields:
        The process, with `kill()`, `is_alive()`, `join(seconds)` and `exitcode`.
    """
    process = _forking().Process(target=_prepare_and_work, args=(work, str(root), dict(environment or {})), daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join(TIMEOUT_S)


def index_at_once(*roots: Path, environment: Mapping[str, str] | None = None) -> list[Outcome]:
    """Run the command `index` on some roots at the same time, each in a separate process; return what each showed."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as held:
        works = [(root, functools.partial(_index_by_command, Path(folder) / str(n))) for n, root in enumerate(roots)]
        processes = [held.enter_context(working_apart(root, environment, work)) for root, work in works]
        for process in processes:
            process.join(TIMEOUT_S)
        shown = [[Path(folder, f"{n}.{name}").read_text("utf-8") for name in ("out", "err")] for n in range(len(roots))]
        return [Outcome(process.exitcode, *texts) for process, texts in zip(processes, shown, strict=True)]


def _index_by_command(printed: Path, root: Root) -> None:
    from graphrag_pipeline.cli import main

    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{printed}.{name}", os.O_WRONLY | os.O_CREAT), descriptor)
    sys.argv = ["graphrag-pipeline", "--root", str(root.path), "index"]
    main()


def _start(root: Path, moment: Moment | None, environment: Mapping[str, str], work: Work) -> tuple[Any, Connection]:
    context = _forking()
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(work, str(root), moment, sender, dict(environment)), daemon=True)
    process.start()
    sender.close()
    return process, receiver


def _forking() -> Any:
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


def _prepare(environment: Mapping[str, str]) -> None:
    """Take over the environment of a test; the process was forked from one that an earlier test started."""
    for name in [name for name in os.environ if name.startswith("GRAPHRAG") or name == "DAGSTER_HOME"]:
        del os.environ[name]
    os.environ.update(environment)
    set_conf_env(conf)


def _prepare_and_work(work: Work, root: str, environment: Mapping[str, str]) -> None:
    _prepare(environment)
    work(Root(Path(root)))


def _work(work: Work, root: str, moment: Moment | None, sender: Connection, environment: Mapping[str, str]) -> None:
    _prepare(environment)
    changes = _Changes(root, moment, sender)
    changes.watch()
    work(Root(Path(root)))
    if moment and moment.delay_s and len(changes.seen) >= moment.n_change:
        signal.pause()  # it was faster than usual: it dies with its work done
    sender.send(changes.seen)


def draw_moments(changes: Sequence[Change], n: int, start: int = 0, seed: int = 0) -> list[Moment]:
    """Return random moments spread evenly over a run from a change on, half by changes and half by time."""
    random = Random(seed)
    n_by_time = n // 2
    n_by_change = n - n_by_time
    bounds = [start + (len(changes) - start) * i // n_by_change for i in range(n_by_change + 1)]
    by_change = [_at_change(changes, range(*bounds[i : i + 2]), random) for i in range(n_by_change)]
    by_time = [_at_time(changes, start, (i + random.random()) / n_by_time) for i in range(n_by_time)]
    return sorted([*by_change, *by_time], key=lambda moment: (moment.n_change, moment.delay_s))


def _at_change(changes: Sequence[Change], stretch: range, random: Random) -> Moment:
    """Return a moment just before a change of this stretch or, as often, halfway through a write."""
    writes = [number for number in stretch if changes[number].kind == "write"]
    if writes and random.random() < 0.5:
        return Moment(random.choice(writes) + 1, is_halfway=True)
    return Moment(random.choice(stretch) + 1)


def _at_time(changes: Sequence[Change], start: int, share: float) -> Moment:
    """Return the moment after this share of the time from a change to the last."""
    left = share * sum(change.seconds for change in changes[start:])
    for number in range(start, len(changes)):
        if left < changes[number].seconds:
            return Moment(number + 1, delay_s=left)
        left -= changes[number].seconds
    return Moment(len(changes))
