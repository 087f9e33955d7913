"""A reading process that takes all the memory that it may, and then neither replies nor ends."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

from graphrag_pipeline.memory_limit import limited_memory

if __name__ == "__main__":
    sys.stdin.readline()
    taken: list[bytearray | None] = [None] * 100_000
    places = iter(range(len(taken)))
    with limited_memory(64_000_000):
        for n_bytes in (1 << 20, 1 << 16, 1 << 12):  # whatever is left, in pieces that are ever smaller
            with suppress(MemoryError):
                for place in places:
                    taken[place] = bytearray(n_bytes)
        time.sleep(600)
