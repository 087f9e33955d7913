"""A limit of the memory that this process may take, for work whose need is not known before it is done.

The limit holds for all threads of the process, on Linux alone. Keep out: limits of time, and what a
process does that gets no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import resource
except ImportError:  # other systems
    resource = None  # type: ignore[assignment]

_STATUS = Path("/proc/self/status")


@contextmanager
def limited_memory(n_bytes: int) -> Iterator[None]:
    """Let this process take at most `n_bytes` in addition to what it has; afterwards its limit is that of before.

    A request for more is a `MemoryError`, or the error of a library in C.
    """
    used = _used_bytes()
    if used is None or resource is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    hard = before[1]
    wanted = used + n_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)  # a single call, since there may be no memory for another one


def _used_bytes() -> int | None:
    """Return the data that this process has in memory; None on a system that does not say so."""
    try:
        status = _STATUS.read_text()
    except OSError:
        return None
    return int(status.partition("VmData:")[2].split()[0]) * 1_024
