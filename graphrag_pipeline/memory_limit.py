"""A limit of the memory that this process may take, for work whose need is not known before it is done.

The limit holds for all threads of the process, on Linux alone. Keep out: limits of time, and what is done about a
process that gets no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import resource
except ImportError:  # other systems
    resource = None  # type: ignore[assignment]

_FULL_BYTES = 128 * 1_024
"""With less than this left, no allocator gets more: it is the least by which malloc extends its heap."""


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


def has_no_memory_left(pid: int) -> bool:
    """Return whether a process is at its limit; False on a system that does not say so, and for one that has ended.

    For the parent of a process with `limited_memory`: one that is at its limit may neither end nor go on, since CPython
    (3.11 to 3.13) tries without end to leave a `with` block as long as it gets no memory for the number of a line.
    """
    used = _used_bytes(str(pid))
    if used is None or not hasattr(resource, "prlimit"):
        return False
    try:
        limit, _ = resource.prlimit(pid, resource.RLIMIT_DATA)
    except OSError:
        return False
    return limit != resource.RLIM_INFINITY and limit - used < _FULL_BYTES


def _used_bytes(process: str = "self") -> int | None:
    """Return the data that a process has in memory; None on a system that does not say so, or after its end."""
    try:
        _, name, rest = Path("/proc", process, "status").read_text().partition("VmData:")
    except OSError:
        return None
    return int(rest.split()[0]) * 1_024 if name else None  # a process that has ended but was not waited for has no data
