"""Patterns that read texts of requests before anything has cut them: their time grows with the text, not its square.

Patterns that read a question are not among them: `read_question` cuts it first, to 8,000 characters without long runs.
"""

from __future__ import annotations

import pkgutil
import re
import time
from collections.abc import Iterator
from importlib import import_module

import pytest

import graphrag_pipeline.serve
from graphrag_pipeline.text.late_patterns import LatePattern

READERS = ("graphrag_pipeline.filters", "graphrag_pipeline.query.question")
UNITS = (" ", "1", "a", ". ", "\u0301", ",", "[", "[1]", "%", ";", "`", "`a` ", "\n", "gzip ", "in ", "a.", "1.", "-")
TAILS = ("", "x", "!", "\n", "`")
SHORT, LONG = 10_000, 100_000
FLOOR_S = 0.5
"""Seconds that are never too long: noise of a busy machine. A pattern that takes the square needs minutes."""
_GUARDED = {"_PARTS"}
"""Patterns of texts of the product's own, which are short."""


def patterns() -> Iterator[tuple[str, re.Pattern[str] | re.Pattern[bytes]]]:
    """All compiled patterns of the modules that read requests, by name."""
    served = [
        name for _, name, _ in pkgutil.walk_packages(graphrag_pipeline.serve.__path__, "graphrag_pipeline.serve.")
    ]
    for module in map(import_module, (*READERS, *served)):
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern | LatePattern) and name not in _GUARDED:
                yield f"{module.__name__}.{name}", value


def slowest_s(pattern: re.Pattern, n: int) -> float:
    """Return the longest search and match in a hostile text of n characters."""
    slowest = 0.0
    for unit in (*UNITS, *filter(str.strip, re.findall(r"[^\\\W]|[^\w\s\\]", str(pattern.pattern)))):
        for tail in TAILS:
            text = (unit * (n // len(unit) + 1))[:n] + tail
            for one in (pattern.search, pattern.fullmatch):
                started = time.perf_counter()
                one(text.encode() if isinstance(pattern.pattern, bytes) else text)
                slowest = max(slowest, time.perf_counter() - started)
                if slowest > 20 * FLOOR_S:
                    return slowest
    return slowest


@pytest.mark.parametrize(("name", "pattern"), list(patterns()), ids=[name for name, _ in patterns()])
def test_a_pattern_takes_time_by_the_length_of_a_text(name: str, pattern: re.Pattern) -> None:
    short = slowest_s(pattern, SHORT)
    assert short < FLOOR_S
    assert slowest_s(pattern, LONG) < max(FLOOR_S, 30 * short), name
