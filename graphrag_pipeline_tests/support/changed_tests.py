"""The tests of what differs from a revision, and the laws: `make test-changed`.

    python -m graphrag_pipeline_tests.support.changed_tests main

Chosen are changed tests, the folder of tests that mirrors the folder of a changed module, tests that import a changed
module themselves or through other modules of the tests, and the laws. Keep out: what only a chain of the package's own
imports reaches, which would be nearly all tests; `make test` runs those.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from graphrag_pipeline_tests.support.paths import REPOSITORY

PACKAGE, TESTS = "graphrag_pipeline", "graphrag_pipeline_tests"
LAWS = tuple(f"{TESTS}/test_{name}.py" for name in ("law", "architecture", "plain_english"))
NOT_IMPORTED = ("conftest.py", "__init__.py")
"""Modules that hold for a whole folder."""


def changed_files(base: str) -> list[str]:
    """Return the files that differ from the last common commit with a revision, with those that are not committed."""
    start = _git("merge-base", base, "HEAD")[0]
    return sorted({*_git("diff", "--name-only", start), *_git("ls-files", "--others", "--exclude-standard")})


def choose_tests(changed: Iterable[str], imports: dict[str, set[str]]) -> list[str]:
    """Return the files and folders of tests to run, relative to the repository.

    Args:
        changed: paths relative to the repository.
        imports: by path of each module of the tests, the paths of the modules that it imports.
    """
    modules = {path for path in changed if path.endswith(".py")}
    users = _users_of(modules, imports)
    chosen = {path for path in modules | users if _is_test(path)} | set(LAWS)
    for path in map(Path, modules):
        if path.parts[0] == PACKAGE:
            inside = path.relative_to(PACKAGE)
            chosen.add(f"{TESTS}/{inside.parent if inside.parts[1:] else 'test_' + inside.name}")
        elif path.parts[0] == TESTS and path.name in NOT_IMPORTED and path.parent.name != "support":
            chosen.add(path.parent.as_posix())
    existing = {path for path in chosen if (REPOSITORY / path).exists()}
    return sorted(path for path in existing if existing.isdisjoint(map(str, Path(path).parents)))


def imports_of_tests() -> dict[str, set[str]]:
    """Return, by path of each module of the tests, the paths of our modules that it imports."""
    found = {}
    for path in (REPOSITORY / TESTS).rglob("*.py"):
        names = set()
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        ours = {name.replace(".", "/") for name in names if name.split(".")[0] in (PACKAGE, TESTS)}
        found[path.relative_to(REPOSITORY).as_posix()] = {
            f"{name}{end}" for name in ours for end in (".py", "/__init__.py")
        }
    return found


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements below a node, at any depth; expressions, which are most of a tree, are left out."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, name, ()):
            yield child
            yield from statements(child)


def _users_of(modules: set[str], imports: dict[str, set[str]]) -> set[str]:
    """Return the modules of the tests that import one of some modules, or import such a user."""
    users: set[str] = set()
    while more := {path for path, names in imports.items() if not names.isdisjoint(modules | users)} - users:
        users |= more
    return users


def _is_test(path: str) -> bool:
    return path.startswith(f"{TESTS}/") and Path(path).name.startswith("test_")


def _git(*arguments: str) -> list[str]:
    return subprocess.run(
        ["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def main() -> None:
    chosen = choose_tests(changed_files(sys.argv[1] if sys.argv[1:] else "main"), imports_of_tests())
    print("tests of", *chosen, sep="\n  ", flush=True)
    command = ["-m", "pytest", "-n", "2", "--dist", "worksteal", "-m", "not ui and not thorough", *chosen]
    sys.exit(subprocess.run([sys.executable, *command], cwd=REPOSITORY, check=False).returncode)


if __name__ == "__main__":
    main()
