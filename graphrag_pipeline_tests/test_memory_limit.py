"""The limit of memory of a process."""

from __future__ import annotations

import resource
import sys

import pytest

from graphrag_pipeline.memory_limit import limited_memory


@pytest.mark.skipif(sys.platform != "linux", reason="no other system holds the limit")
def test_more_memory_than_the_limit_is_an_error_and_afterwards_there_is_no_limit() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with limited_memory(300_000_000):
        assert len(bytearray(100_000_000)) == 100_000_000
        with pytest.raises(MemoryError):
            bytearray(2_000_000_000)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert len(bytearray(600_000_000)) == 600_000_000
