"""The public Python API: every name is there, and importing the package loads nothing else."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import graphrag_pipeline


@pytest.mark.parametrize("name", graphrag_pipeline.__all__)
def test_public_names_are_imported_at_first_use(name: str) -> None:
    assert getattr(graphrag_pipeline, name).__name__ == name
    assert name in dir(graphrag_pipeline)


def test_type_checkers_see_the_names_that_are_imported_lazily() -> None:
    tree = ast.parse(Path(graphrag_pipeline.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        (node.module, alias.name) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == {(module, name) for name, module in graphrag_pipeline._MODULE_OF.items()}
    assert sorted(name for _, name in seen) == sorted(graphrag_pipeline.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'GraphIndx'"):
        graphrag_pipeline.GraphIndx  # noqa: B018


def test_importing_the_package_loads_no_other_package() -> None:
    program = "import sys; before = set(sys.modules); import graphrag_pipeline; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded - set(sys.stdlib_module_names) == {"graphrag_pipeline"}
    assert "graphrag_pipeline.errors" not in done.stdout.split()


def test_the_command_line_starts_without_numpy_so_that_index_can_limit_its_threads_first() -> None:
    program = "import sys, graphrag_pipeline.cli; print({'numpy', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
