"""Shared parts of commands: the root, common options, groups of the help, and all printing.

Keep out: commands.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.text.safe_output import escape_controls, escape_json_controls

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root


def _prefer_own_root(context: typer.Context, root: Path | None) -> Path | None:
    """Return `--root` of the command itself, else the `--root` given before the command."""
    return root or context.find_root().params.get("root")


RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        callback=_prefer_own_root,
        help="Root directory; default: $GRAPHRAG_ROOT, the current directory or ./data.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

# Groups of commands in `--help`, in the order of work.
INDEX_GROUP = "Index documents"
QUESTION_GROUP = "Ask questions"
INSPECT_GROUP = "Inspect and evaluate"
SNAPSHOT_GROUP = "Manage snapshots, import and export"
DAGSTER_GROUP = "Run Dagster"


def open_root(root: Path | None) -> Root:
    """Open the named root, or find one.

    Raises:
        PipelineError: the root has no readable settings.
    """
    from graphrag_pipeline.pipeline.root import Root, find_root

    opened = Root(find_root(root))
    opened.settings  # noqa: B018 - so that every command reports a missing root the same way
    return opened


def command_with_root(root: Path | None) -> str:
    """Return how a command of this root begins, for hints that a user copies."""
    return f"graphrag-pipeline --root {shlex.quote(str(root))}" if root else "graphrag-pipeline"


def logging_costs(root: Root, command: str, about: str) -> AbstractContextManager[Root]:
    """Give the root whose model calls are logged for `costs` (see `inspection.costs.costs_logged`)."""
    from graphrag_pipeline.inspection.costs import costs_logged

    return costs_logged(root, command, about, lambda line: echo(line, err=True))


def echo(text: object = "", err: bool = False, nl: bool = True) -> None:
    """Print text as `typer.echo`; control characters of documents and models are escaped, so no terminal obeys them.

    All commands print by this function.
    """
    typer.echo(escape_controls(str(text)), err=err, nl=nl)


def print_json(values: Any) -> None:
    """Print JSON that every reader accepts: no NaN, no control character, only ASCII if the terminal is not UTF-8."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(_without_nan(values), indent=1, ensure_ascii=not is_utf8, allow_nan=False, default=str)
    echo(escape_json_controls(text))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
