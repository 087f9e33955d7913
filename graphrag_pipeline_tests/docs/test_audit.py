"""The audit names modules, settings, tests and benches that exist, and verifies each requirement."""

from __future__ import annotations

import ast
import re
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
STATUSES = {"differs", "partial", "missing"}
KEYS = {"where", "verified"} | STATUSES
ROWS: list[dict[str, Any]] = [row for source in SOURCES for row in source["requirements"].values()]


def test_each_source_has_the_stated_number_of_requirements() -> None:
    stated = {source["source"]: source["n_requirements"] for source in SOURCES}
    assert {source["source"]: len(source["requirements"]) for source in SOURCES} == stated
    assert len(SOURCES) == 6 and len(ROWS) >= 120


def test_each_requirement_has_a_place_and_a_test_or_is_missing() -> None:
    whole = [row for row in ROWS if "missing" not in row]
    assert [row for row in whole if not row.get("where") or not row.get("verified")] == []
    assert [row for row in ROWS if set(row) - KEYS or len(STATUSES & set(row)) > 1] == []


def test_each_named_module_and_setting_exists() -> None:
    assert sorted({place for row in ROWS for place in row.get("where", ()) if not _is_place(place)}) == []


def test_each_named_test_and_bench_exists() -> None:
    assert sorted({named for row in ROWS for named in row.get("verified", ()) if not _is_verification(named)}) == []


def test_a_module_of_a_named_package_imports_it() -> None:
    for named, row in SOURCES[-1]["requirements"].items():
        package = named.split("`")[1].replace("graspologic", "graspologic_native")
        for place in row["where"]:
            assert re.search(rf"(import|from) {package}\b|\"{package}\"", (PACKAGE / place).read_text("utf-8")), place


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
