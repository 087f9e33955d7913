"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import graphrag_pipeline
from graphrag_pipeline.text.late_patterns import LatePattern, late_re, late_regex


def test_it_is_compiled_once_when_it_is_first_used():
    calls: list[str] = []

    def compile_now(pattern: str) -> re.Pattern[str]:
        calls.append(pattern)
        return re.compile(pattern)

    late = LatePattern(compile_now, r"b+")
    assert calls == []
    assert [match.span() for match in late.finditer("abba b")] == [(1, 3), (5, 6)]
    assert late.sub("x", "abba b") == "axa x" and late.search("aaa") is None
    assert calls == [r"b+"]


def test_it_has_the_attributes_and_flags_of_the_pattern():
    late = late_re(r"(?P<word>A)", re.IGNORECASE)
    assert late.pattern == r"(?P<word>A)" and late.groupindex == {"word": 1}
    assert late.fullmatch("a")
    assert late_regex(r"\L<names>", names=["Bob", "Tim"]).findall("Tim and Bob") == ["Tim", "Bob"]


def test_a_wrong_pattern_is_refused_when_it_is_first_used():
    late = late_re("(")
    with pytest.raises(re.error):
        late.search("x")


def test_every_pattern_of_the_package_compiles():
    names = [module.name for module in pkgutil.walk_packages(graphrag_pipeline.__path__, "graphrag_pipeline.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith(("__main__", ".distill"))]
    patterns = [value for module in modules for value in vars(module).values() if isinstance(value, LatePattern)]
    assert all(late.pattern for late in patterns) and len(patterns) > 100
