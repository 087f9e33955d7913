"""The limit of memory of a process."""

from __future__ import annotations

import os
import resource
import sys

import pytest

from graphrag_pipeline.memory_limit import has_no_memory_left, limited_memory


@pytest.mark.skipif(sys.platform != "linux", reason="no other system holds the limit")
def test_more_memory_than_the_limit_is_an_error_and_afterwards_there_is_no_limit() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with limited_memory(300_000_000):
        assert len(bytearray(100_000_000)) == 100_000_000
        with pytest.raises(MemoryError):
            bytearray(2_000_000_000)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert len(bytearray(600_000_000)) == 600_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="no other system says how much memory a process has")
def test_only_a_process_at_its_limit_has_no_memory_left() -> None:
    assert not has_no_memory_left(os.getpid())
    with limited_memory(300_000_000):
        assert not has_no_memory_left(os.getpid())
    with limited_memory(0):
        is_full = has_no_memory_left(os.getpid())
    assert is_full
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # ended, but not waited for
    assert not has_no_memory_left(child)
    os.waitpid(child, 0)
    assert not has_no_memory_left(child)
