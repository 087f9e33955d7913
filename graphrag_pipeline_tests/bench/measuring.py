"""Measurement of commands as whole processes, and comparison of figures with their limits."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_LOOK_S = 0.5
"""Seconds between two looks at the memory of a process and its descendants."""


class CommandFailedError(Exception):
    """A measured command failed; the message holds the end of what it printed."""


@dataclass(frozen=True)
class ProcessUsage:
    """Cost of a process: seconds of wall time, seconds of processor, peak memory in bytes."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


@dataclass(frozen=True)
class Figure:
    """One row of the table; a figure without a limit is for information.

    Attributes:
        unit: "" for a share or a score, which is shown with three decimals instead of two.
        limit: the most it may be.
        least: the least it may be.
    """

    what: str
    measured: float
    unit: str
    limit: float | None = None
    least: float | None = None

    @property
    def is_over(self) -> bool:
        return self.limit is not None and self.measured > self.limit

    @property
    def is_under(self) -> bool:
        return self.least is not None and self.measured < self.least

    def to_row(self) -> str:
        measured = f"{self.measured:.2f} {self.unit}" if self.unit else f"{self.measured:.3f}"
        bounds = [self._bound("", self.limit), self._bound("at least ", self.least)]
        limit = ", ".join(bound for bound in bounds if bound)
        verdict = "**over**" if self.is_over else "**under**" if self.is_under else "ok" if limit else ""
        return f"| {self.what} | {measured} | {limit} | {verdict} |"

    def _bound(self, word: str, value: float | None) -> str:
        return "" if value is None else f"{word}{value:g} {self.unit}".rstrip()


def measure_command(root: Path, *arguments: str) -> ProcessUsage:
    """Run `graphrag-pipeline --root ROOT ...` in a separate process.

    Raises:
        CommandFailedError: its exit status is not 0.
    """
    return measure_module("graphrag_pipeline", "--root", str(root), *arguments)


def measure_module(module: str, *arguments: str) -> ProcessUsage:
    """Run `python -m MODULE ...` in a separate process.

    Raises:
        CommandFailedError: its exit status is not 0.
    """
    command = [sys.executable, "-m", module, *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in ("DAGSTER_HOME", "GRAPHRAG_ROOT")}
    with tempfile.TemporaryFile() as printed:
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT, env=environment)
        with _watched_memory(process.pid) as together:
            _, status, used = os.wait4(process.pid, 0)
        wall_s = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            printed.seek(0)
            tail = printed.read()[-2000:].decode(errors="replace")
            raise CommandFailedError(f"{' '.join(command)} exited with {process.returncode}:\n{tail}")
    n_bytes = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return ProcessUsage(wall_s, used.ru_utime + used.ru_stime, max(n_bytes, *together))


@contextmanager
def _watched_memory(pid: int) -> Iterator[list[int]]:
    """Yield the memory of a process and its descendants together, in bytes, with one value for each look.

    Memory that processes share counts once (PSS), where the system tells it.
    """
    found, is_over = [0], threading.Event()

    def look() -> None:
        while not is_over.wait(_LOOK_S):
            n_bytes = 0
            with suppress(psutil.Error):
                watched = psutil.Process(pid)
                for process in (watched, *watched.children(recursive=True)):
                    with suppress(psutil.Error):
                        used = process.memory_full_info()
                        n_bytes += getattr(used, "pss", used.uss)
            found.append(n_bytes)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        is_over.set()
        thread.join()


def figures_of(what: str, usage: ProcessUsage, max_wall_s: float | None, max_gb: float | None) -> list[Figure]:
    """Rows for one command."""
    return [
        Figure(f"{what}: time", usage.wall_s, "s", max_wall_s),
        Figure(f"{what}: processor", usage.cpu_s, "s"),
        Figure(f"{what}: peak memory", usage.peak_bytes / 1e9, "GB", max_gb),
    ]
