"""Patterns that read texts of requests and documents take time by the length of a text, not by its square."""

from __future__ import annotations

import inspect
import pkgutil
import re
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import graphrag_pipeline
from graphrag_pipeline.text.late_patterns import LatePattern

READERS = ("citations", "filters", "identity", "query", "reading", "serve", "text", "turns")
UNITS = (" ", "\t", "1", "a", "A", ". ", "\u0301", "\n", "\\", "a ", "1 ", "a.", "1.", "a, ", "的", "[1]", "`a` ", "<a")
ENDS = (("", ""), ("", "x"), ("", "`"), ("# a", "\0"))
"""What is before and behind the repeated text."""
SHORT, LONG = 10_000, 100_000
HARMLESS_S = 0.001
"""Seconds for `SHORT` that are harmless even if the time grows with the square of the length: 0.1 s for `LONG`."""
FLOOR_S = 0.5
"""Seconds of the processor that are never too long. A pattern that takes the square needs ten to a thousand times as
many for `LONG`."""


def pattern_calls() -> Iterator[tuple[str, Any, frozenset[str]]]:
    """All compiled patterns of the modules that a request reaches: name, pattern, and the methods that are called."""
    for found in pkgutil.walk_packages(graphrag_pipeline.__path__, "graphrag_pipeline."):
        if found.name.split(".")[1] in READERS:
            module = import_module(found.name)
            for name, value in vars(module).items():
                called = frozenset(re.findall(rf"\b{name}\.([a-z]+)\(", inspect.getsource(module)))
                for place, one in enumerate(_each(value)):
                    yield f"{found.name.removeprefix('graphrag_pipeline.')}.{name}.{place}", one, called


def _each(value: Any) -> Iterator[Any]:
    if isinstance(value, re.Pattern | LatePattern):
        yield value
    elif isinstance(value, list | tuple | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _each(one)


def texts_for(pattern: re.Pattern, n: int) -> Iterator[str]:
    """Texts of n characters that repeat what a pattern looks for, each with an end that it may not expect."""
    written = str(pattern.pattern)
    signs, words = re.findall(r"[^\w\s\\]", written), re.findall(r"[^\W\d_]{2,12}", written)
    for unit in dict.fromkeys((*UNITS, *signs, *words[:3])):
        for head, tail in ENDS:
            yield head + (unit * (n // len(unit) + 1))[:n] + tail


def seconds(pattern: re.Pattern, called: frozenset[str], text: str) -> float:
    """Return the time of a pattern for a text in the ways that it is called."""
    content: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
    started = time.thread_time()
    for method in called & {"match", "fullmatch"}:
        getattr(pattern, method)(content)
    if not called or called - {"match", "fullmatch"}:
        pattern.findall(content)
    return time.thread_time() - started


CALLS = list(pattern_calls())


@pytest.mark.parametrize(("pattern", "called"), [call[1:] for call in CALLS], ids=[call[0] for call in CALLS])
def test_a_pattern_takes_time_by_the_length_of_a_text(pattern: re.Pattern, called: frozenset[str]) -> None:
    for short, long in zip(texts_for(pattern, SHORT), texts_for(pattern, LONG), strict=True):
        took = seconds(pattern, called, short)
        assert took < FLOOR_S, short[:20]
        if took < HARMLESS_S:
            continue
        assert seconds(pattern, called, long) < max(FLOOR_S, 30 * took), long[:20]
