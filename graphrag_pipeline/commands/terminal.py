"""What all commands share: the root they work on, the options every one has, and JSON on standard output.

Keep out: commands.
"""

from __future__ import annotations

import json
import math
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
        help="Project root; else $GRAPHRAG_ROOT, the current folder or ./data.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def open_root(root: Path | None) -> Root:
    """Open the named root, or find one.

    Raises:
        PipelineError: it has no settings that can be read.
    """
    from graphrag_pipeline.pipeline.root import Root, find_root

    opened = Root(find_root(root))
    opened.settings  # noqa: B018 - also where a command needs none: what is no root is told the same way everywhere
    return opened


def logging_costs(root: Root, command: str, about: str) -> AbstractContextManager[None]:
    """Log for `costs` what a command asks models meanwhile (see `inspection.costs.costs_logged`)."""
    from graphrag_pipeline.inspection.costs import costs_logged

    return costs_logged(root, command, about, lambda line: typer.echo(line, err=True))


def print_json(values: Any) -> None:
    """JSON that any reader takes: no NaN, and only ASCII where the terminal is not UTF-8."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    typer.echo(json.dumps(_without_nan(values), indent=1, ensure_ascii=not is_utf8, allow_nan=False, default=str))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
