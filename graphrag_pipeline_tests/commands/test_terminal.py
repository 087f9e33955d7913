"""All commands print through one function, which escapes what documents and models wrote."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest

from graphrag_pipeline.commands.terminal import echo, print_json
from graphrag_pipeline_tests.support.paths import REPOSITORY

PACKAGE = REPOSITORY / "graphrag_pipeline"
HOSTILE = "\x1b]0;owned\x07 \x1b[2J\x9b31m"


def test_nothing_that_is_printed_is_obeyed_by_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    echo(HOSTILE)
    echo(HOSTILE, err=True)
    print_json({"answer": HOSTILE})
    captured = capsys.readouterr()
    for text in captured:
        assert not set(text) & set("\x1b\x07\x9b")
    assert captured.err == r"\x1b]0;owned\x07 \x1b[2J\x9b31m" + "\n"
    assert json.loads(captured.out.split("\n", 1)[1]) == {"answer": HOSTILE}


def test_no_terminal_obeys_a_warning_of_the_log() -> None:
    """Such as the name of another writer, which it wrote into the lease of the shared store itself."""
    program = (
        "import logging\n"
        "from graphrag_pipeline.commands.terminal import escape_log\n"
        "escape_log()\n"
        f"logging.getLogger('graphrag_pipeline.storage').warning('%s is writing', {HOSTILE!r})\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stderr.decode() == r"\x1b]0;owned\x07 \x1b[2J\x9b31m is writing" + "\n"


def test_commands_print_by_no_other_function() -> None:
    wrong = [
        f"{path.name}:{node.lineno}"
        for path in [
            *(REPOSITORY / "graphrag_pipeline" / "commands").glob("*.py"),
            REPOSITORY / "graphrag_pipeline/cli.py",
        ]
        if path.name != "terminal.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "typer.echo", "typer.secho", "click.echo")
    ]
    assert wrong == []
