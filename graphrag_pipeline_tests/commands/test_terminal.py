"""All commands print through one function, which escapes what documents and models wrote."""

from __future__ import annotations

import ast
import json
import logging
import subprocess
import sys

import pytest

from graphrag_pipeline.commands.terminal import Line, echo, echo_error, echo_lines, escape_log, print_json
from graphrag_pipeline.errors import PipelineError
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


FORGED = "input/x\npublished snapshot deadbeef\u2028published\x85published\x0bpublished\rpublished\x0cpublished"
"""A name that would add a message, whatever ends a line."""


def test_no_value_adds_a_line_of_output(capsys: pytest.CaptureFixture[str]) -> None:
    echo(f"not read: {FORGED}: unsupported", err=True)
    echo_lines([FORGED, Line(FORGED, "warning")])
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 1 and captured.err.startswith(r"not read: input/x\x0apublished snapshot ")
    assert len(captured.out.splitlines()) == 2


def test_further_lines_of_an_error_look_like_no_message(capsys: pytest.CaptureFixture[str]) -> None:
    echo_error(PipelineError(f"no table `{FORGED}`\ntables: documents"))
    first, *further = capsys.readouterr().err.splitlines()
    assert first == "error: no table `input/x" and all(line.startswith("  ") for line in further)


def test_no_value_adds_a_line_to_the_log() -> None:
    record = logging.LogRecord("x", logging.WARNING, "", 0, "%s is writing", (FORGED,), None)
    handler = logging.StreamHandler()
    previous, logging.lastResort = logging.lastResort, handler
    try:
        escape_log()
    finally:
        logging.lastResort = previous
    assert len(handler.format(record).splitlines()) == 1
