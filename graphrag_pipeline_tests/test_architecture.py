"""The rules of the house that a machine can check, read from the syntax trees."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import networkx as nx
import pytest

from graphrag_pipeline_tests.support.changed_tests import statements
from graphrag_pipeline_tests.support.paths import REPOSITORY

PACKAGE = REPOSITORY / "graphrag_pipeline"
TESTS = REPOSITORY / "graphrag_pipeline_tests"
MODULES = {
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if "bundled" not in path.parts
}

ROOMS = (
    # a stand-in for a model, which shares nothing with the client that it answers
    "demo_model",
    # contracts and the words that every step shares
    *(
        "errors",
        "nearest",
        "identity",
        "filters",
        "citations",
        "arrow_columns",
        "memory_limit",
        "turns",
        "workers",
        "ports",
    ),
    *("settings", "tables", "text", "filesystem"),
    # models behind ports; files and snapshots on disk
    *("models", "models.endpoints", "inputs", "storage.vectors", "storage", "storage.shared"),
    # the pure steps of the index
    *("indexing.graph", "indexing.communities"),
    *("indexing.reports", "indexing"),
    # from stage tables to a snapshot; the stage graph of a root
    *("publishing", "pipeline", "interchange"),
    # one question: values, the reader of an index, then each step of a search
    *("query", "query.context", "query.results", "query.rendering"),
    "query.token_budget",
    *(
        "query.streams",
        "query.search_result",
        "query.question",
        "query.names",
        "query.filtering",
    ),
    *(
        "query.index_reader",
        "query.records",
        "query.cited_records",
        "query.model_requests",
    ),
    *("query.understanding", "query.selection", "query.search", "query.answers"),
    "query.methods",
    "query.suggestions",
    *("query.index", "query.batch"),
    # one record of a snapshot in full
    "reading",
    # figures and reports about an index
    *("evaluation.index_quality", "evaluation", "inspection", "inspection.doctor"),
    # Dagster
    *(
        "defs.runs",
        "defs.assets.pages",
        "defs.assets",
        "defs.index_runs",
        "defs.jobs",
        "defs.automation",
        "defs",
    ),
    # the server: values, served roots, one request, groups of routes, the application
    "access",
    *("serve", "serve.errors", "serve.limits", "serve.served_roots", "serve.api_route", "serve.endpoint"),
    *("serve.routes", "serve.openai_api", "serve.mcp", "serve.gate", "serve.app"),
    # the edges that people start
    *("graphrag_pipeline", "commands", "cli", "__main__", "definitions", "component"),
    # what fills the ports; entry points lead to it
    *("engines", "engines.embedded.names", "engines.embedded"),
    *("engines.model.extraction", "engines.model", "engines.model.answers", "engines.model.tuning"),
)
"""The rooms from the bottom to the top: a module imports from its own room and from rooms named before it."""

HEAVY = {"dagster", "lancedb", "pandas", "networkx", "tiktoken", "duckdb", "openai", "graspologic_native", "markitdown",
         "spacy", "tokenizers", "model2vec", "selenium", "jieba"}  # fmt: skip
MOST_FILES = 20


FLAT = ("", "query", "serve")
"""Folders whose files are rooms of their own: values at the bottom, entry points at the top."""


def room_of(module: str) -> str:
    """The folder of a module below the package; in a flat folder, the module itself."""
    path = MODULES[module]
    folder = ".".join(path.relative_to(PACKAGE).parts[:-1])
    if folder not in FLAT or path.name == "__init__.py":
        return folder or "graphrag_pipeline"
    return f"{folder}.{path.stem}".removeprefix(".")


def imports(tree: ast.AST, at_top_only: bool = False) -> Iterator[str]:
    """Names of imported modules and of what is imported from them."""
    nodes = tree.body if at_top_only and isinstance(tree, ast.Module) else statements(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_modules(tree: ast.AST) -> set[str]:
    """Modules of the package that a module imports anywhere, imports for type checking included."""
    names = {name for name in imports(tree) if name.startswith("graphrag_pipeline.")}
    return {name if name in MODULES else name.rpartition(".")[0] for name in names} & set(MODULES)


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def import_graph() -> nx.DiGraph:
    """Module -> the modules it imports."""
    graph = nx.DiGraph()
    for module, path in MODULES.items():
        graph.add_node(module)
        graph.add_edges_from((module, used) for used in imported_modules(parse(path)) if used != module)
    return graph


def test_every_module_opens_with_its_contract() -> None:
    contracts = {module: ast.get_docstring(parse(path)) or "" for module, path in MODULES.items()}
    assert [module for module, contract in contracts.items() if not contract] == []
    questions = ("What", "How", "Which", "Who", "Whether", "Where")
    assert [module for module, contract in contracts.items() if contract.split()[0] in questions] == []


def test_heavy_packages_are_imported_inside_functions_and_dagster_by_defs_alone() -> None:
    others = {
        module: parse(path)
        for module, path in MODULES.items()
        if not room_of(module).startswith("defs") and room_of(module) not in ("definitions", "component")
    }
    heavy = {module: _packages(imports(tree, at_top_only=True)) & HEAVY for module, tree in others.items()}
    assert {module: found for module, found in heavy.items() if found} == {}
    users = {module: tree for module, tree in others.items() if "dagster" in _packages(imports(tree))}
    assert [module for module, tree in users.items() if not _is_for_types_only(tree)] == []


def _packages(names: Iterable[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def _is_for_types_only(tree: ast.Module) -> bool:
    functions = [node for node in statements(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return not any("dagster" in _packages(imports(node)) for node in functions)


def test_no_modules_import_each_other_in_a_circle(import_graph: nx.DiGraph) -> None:
    circles = [sorted(circle) for circle in nx.strongly_connected_components(import_graph) if len(circle) > 1]
    assert circles == []


def test_rooms_import_only_from_rooms_below_them(import_graph: nx.DiGraph) -> None:
    height = {room: number for number, room in enumerate(ROOMS)}
    assert {room_of(module) for module in MODULES} == set(ROOMS)
    wrong = [
        f"{module} -> {used}" for module, used in import_graph.edges if height[room_of(used)] > height[room_of(module)]
    ]
    assert wrong == []


def test_indexing_and_query_do_not_know_each_other(import_graph: nx.DiGraph) -> None:
    parts = [(room_of(a).partition(".")[0], room_of(b).partition(".")[0]) for a, b in import_graph.edges]
    assert not {("indexing", "query"), ("query", "indexing")} & set(parts)


def test_engines_are_reached_by_entry_points_alone(import_graph: nx.DiGraph) -> None:
    """The core imports no engine, and an engine nothing of another: each can be deleted."""
    engines = "graphrag_pipeline.engines."
    wrong = [
        (module, used)
        for module, used in import_graph.edges
        if used.startswith(engines) and module.removeprefix(engines).split(".")[0] != used.split(".")[2]
    ]
    assert wrong == []


def test_the_demo_model_is_reached_by_its_command_alone(import_graph: nx.DiGraph) -> None:
    users = {module for module, used in import_graph.edges if room_of(used) == "demo_model"}
    assert {room_of(module) for module in users} == {"demo_model", "commands"}


def test_no_folder_holds_more_than_twenty_files() -> None:
    files = Counter(path.parent for path in MODULES.values() if path.name != "__init__.py")
    assert {folder: n for folder, n in files.items() if n > MOST_FILES} == {}


def test_a_class_name_stands_for_one_thing() -> None:
    modules: Mapping[str, list[str]] = defaultdict(list)
    for module, path in MODULES.items():
        for node in parse(path).body:
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(module)
    assert {name: found for name, found in modules.items() if len(found) > 1 and not name.startswith("_")} == {}


def test_a_test_file_imports_no_other_test_file() -> None:
    found = {}
    for path in sorted(TESTS.rglob("*.py")):
        modules = {part for name in imports(parse(path)) for part in name.split(".") if name.startswith(TESTS.name)}
        found[path] = {part for part in modules if part.startswith("test_") or part == "conftest"} - {path.stem}
    assert {path: parts for path, parts in found.items() if parts} == {}


def test_private_modules_of_dagster_are_imported_in_one_file() -> None:
    found = {name for name, path in MODULES.items() if "dagster._" in path.read_text(encoding="utf-8")}
    assert found == {"graphrag_pipeline.defs.runs.private_api"}
