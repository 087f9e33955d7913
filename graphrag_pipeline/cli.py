"""Command line: `graphrag-pipeline` and `python -m graphrag_pipeline`.

Exit status 0 is success, 1 a `PipelineError` (one line, no traceback), 2 wrong usage, 130 an interruption. Heavy
imports stay inside commands, so that help is fast. Keep out: commands, which are in `commands/`.
"""

from __future__ import annotations

import gc
import io
import signal
import sys
from collections.abc import Callable
from itertools import chain
from types import FrameType
from typing import Annotated, NoReturn

import typer
from typer.core import TyperGroup

from graphrag_pipeline.commands import (
    evaluation,
    feedback,
    indexing,
    questions,
    review,
    serving,
    setup,
    showing,
    snapshots,
    up,
)
from graphrag_pipeline.commands.terminal import ADVANCED_GROUP, DAILY_GROUP, RootOption, echo, echo_error, escape_log
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.ports import load_commands

COMMANDS: dict[str, dict[str, Callable[..., None] | typer.Typer | None]] = {
    DAILY_GROUP: {
        "up": up.up, "init": setup.init, "doctor": setup.doctor, "index": indexing.index, "status": indexing.status,
        "query": questions.query, "show": showing.show, "serve": serving.serve, "dev": serving.dev,
    },
    ADVANCED_GROUP: {
        "settings": setup.settings, "costs": indexing.costs,
        "try": evaluation.try_stage, "tune": None, "evaluate": evaluation.evaluate, "feedback": feedback.feedback,
        "review": review.review, "snapshots": snapshots.snapshots, "verify": snapshots.verify,
        "forget": snapshots.forget, "import": snapshots.import_index, "export": snapshots.export_index,
        "batch": questions.batch, "sql": questions.sql, "trace": showing.trace, "merges": indexing.merges,
        "mcp": serving.mcp, "access": serving.access, "demo-model": serving.demo_model,
    },
}  # fmt: skip
"""Group in `--help` -> commands, in the order in which a user of a new root needs them; None: an engine mounts it."""


class CommandsInOrder(TyperGroup):
    """The group of all commands; those that are not in `COMMANDS` come last."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Return the names of the commands in the order of `--help`."""
        places = {name: place for place, name in enumerate(chain(*COMMANDS.values()))}
        return sorted(self.commands, key=lambda name: places.get(name, len(places)))


app = typer.Typer(
    cls=CommandsInOrder,
    help="GraphRAG as a Dagster pipeline: index documents as a knowledge graph and ask questions about them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version

        echo(f"graphrag-pipeline {version('graphrag-pipeline')}")
        raise typer.Exit


@app.callback()
def _read_common_options(
    root: RootOption = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Read `--root` and `--version` in front of a command; a command takes this root from its context."""


for group, named in COMMANDS.items():
    for name, command in named.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=group)
        elif command:
            app.command(name, rich_help_panel=group)(command)
for add_commands in load_commands():
    add_commands(app)


def collect_rarely() -> None:
    """Run the garbage collector less often than Python does by default.

    Libraries and replies create millions of objects that live until the end. Scanning them took a third of the time of
    a small index.
    """
    gc.set_threshold(200_000, 20, 50)


def stop_when_terminated() -> None:
    """Let SIGTERM end a command like Ctrl-C: replies that are paid for are kept.

    Dagster gives SIGTERM the handler of SIGINT. A shell starts `command &` in a script with SIGINT ignored. Then
    the common handler ignores SIGINT, as the shell wants, and obeys SIGTERM.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt_if_terminated)


def _interrupt_if_terminated(number: int, _frame: FrameType | None) -> None:
    if number == signal.SIGTERM:
        raise KeyboardInterrupt


def main() -> NoReturn:
    """Run the command line; a `PipelineError` becomes one line on standard error and exit status 1."""
    stop_when_terminated()
    collect_rarely()
    escape_log()
    for stream in (sys.stdout, sys.stderr):  # a terminal without a character shows its code
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="graphrag-pipeline")  # also for `python -m`: completion goes by it
    except PipelineError as error:
        echo_error(error)
        sys.exit(1)
    sys.exit(0)


if __name__ == "__main__":
    main()
