"""The command line in real processes, independent of the caller's environment."""

from __future__ import annotations

import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from typing import Any, NamedTuple

import graphrag_pipeline

TIMEOUT_S = 900
"""Much more than any command takes, even on a loaded machine."""

ONE_BUCKET = "storage:\n  n_buckets: 1\n"
"""Settings of the smallest root that works."""

WITHOUT_ROOT_RIGHTS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
"""The user root ignores permissions; a process started this way obeys them."""


def environment(**changes: str) -> dict[str, str]:
    """Return the environment of a command: none of our variables, and the package importable from any folder."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GRAPHRAG") and name not in ("DAGSTER_HOME", "PYTHONIOENCODING", "COLUMNS")
    }
    return kept | {"PYTHONPATH": str(Path(graphrag_pipeline.__file__).parents[1])} | changes


def program(*arguments: str | Path) -> list[str]:
    """Return the program and arguments of `python -m graphrag_pipeline ARGUMENTS`."""
    return [sys.executable, "-m", "graphrag_pipeline", *map(str, arguments)]


def run(
    *arguments: str | Path,
    cwd: Path | None = None,
    changes: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Run `python -m graphrag_pipeline ARGUMENTS`; output is read as UTF-8."""
    return subprocess.run(
        [*prefix, *program(*arguments)],
        cwd=cwd,
        env=environment(**(changes or {})),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )


@contextmanager
def started(command: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """`subprocess.Popen`, but a command that still runs when the test ends or fails is killed, not waited for."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def in_terminal(columns: int, *arguments: str | Path, typed: str = "", **changes: str) -> str:
    """Return what a terminal of 50 rows shows.

    Args:
        typed: by the user; the terminal shows it, too.
    """
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    variables = environment(TERM="xterm", PAGER="cat", **changes)
    with started(program(*arguments), stdin=theirs, stdout=theirs, stderr=theirs, env=variables) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        shown = b""
        while select.select([ours], [], [], 60)[0]:
            try:
                shown += os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
        process.wait(60)
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def mount_namespace() -> tuple[str, ...]:
    """A command prefix under which tmpfs can be mounted for that process alone; empty if this machine has none."""
    for flags in (("--mount",), ("--mount", "--user", "--map-root-user")):
        probe = ["unshare", *flags, "mount", "-t", "tmpfs", "none", "/mnt"]
        try:
            if subprocess.run(probe, capture_output=True, check=False, timeout=TIMEOUT_S).returncode == 0:
                return ("unshare", *flags)
        except FileNotFoundError:
            pass
    return ()


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


Call = Callable[..., Outcome]


def assert_one_line_error(outcome: Outcome, *words: str) -> None:
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith("error: ") and outcome.err.count("\n") == 1, outcome.err
    for word in words:
        assert word in outcome.err
