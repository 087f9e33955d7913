"""The audit names modules, settings, tests and benches that exist, and verifies each requirement."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from graphrag_pipeline.settings.settings import SEARCH_SETTINGS, Settings
from graphrag_pipeline_tests.bench.benches import BENCHES, SLOW
from graphrag_pipeline_tests.support.documentation.doc_pages import DOCS

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "graphrag_pipeline"
SOURCES: list[dict[str, Any]] = yaml.safe_load((DOCS / "audit.yaml").read_text(encoding="utf-8"))
KEYS = {"where", "verified", "differs"}
ROWS: list[dict[str, Any]] = [row for source in SOURCES for row in source["requirements"].values()]


def test_each_source_has_the_stated_number_of_requirements() -> None:
    stated = {source["source"]: source["n_requirements"] for source in SOURCES}
    assert {source["source"]: len(source["requirements"]) for source in SOURCES} == stated
    assert len(SOURCES) == 5 and len(ROWS) >= 120


def test_each_requirement_has_a_place_and_a_test() -> None:
    assert [row for row in ROWS if not row["where"] or not row["verified"] or set(row) - KEYS] == []


def test_each_named_module_and_setting_exists() -> None:
    assert sorted({place for row in ROWS for place in row["where"] if not _is_place(place)}) == []


def test_each_named_test_and_bench_exists() -> None:
    assert sorted({named for row in ROWS for named in row["verified"] if not _is_verification(named)}) == []


def _is_place(place: str) -> bool:
    if place.endswith(".py"):
        return (PACKAGE / place).is_file()
    section, _, option = place.partition(".")
    of_question = SEARCH_SETTINGS.get(section.removesuffix("_search"))
    return option in (of_question or type(getattr(Settings(), section))).model_fields


def _is_verification(named: str) -> bool:
    kind, _, bench = named.partition(" ")
    if kind == "bench":
        return bench in BENCHES | SLOW
    file, _, test = named.partition("::")
    return test in _tests_of(TESTS / file)


@cache
def _tests_of(path: Path) -> set[str]:
    """Names of the test functions of a file, read from its syntax tree, without running it."""
    if not path.is_file():
        return set()
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    functions = (node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {name for name in functions if name.startswith("test_")}
