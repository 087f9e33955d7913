"""Commands that ask the published index: `query` and `sql`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag_pipeline.commands.terminal import JsonOption, RootOption, logging_costs, open_root, print_json

METHOD_HELP = (
    "local (entities and what surrounds them), global (community reports), basic (text units), drift (reports, then "
    "follow-up questions), lazy (relevance tests, no reports), or auto, which picks one of them and says why."
)


def add_question_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    for command in (query, sql):
        app.command()(command)


def query(
    question: Annotated[str, typer.Argument(help="What to ask.")],
    method: Annotated[str, typer.Option(help=METHOD_HELP)] = "local",
    strategy: Annotated[str | None, typer.Option(help="Text unit selection of local search.")] = None,
    context_only: Annotated[bool, typer.Option("--context-only", help="Select the context, write no answer.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what every strategy of local search would pick; no answer.")
    ] = False,
    filters: Annotated[
        list[str] | None, typer.Option("--filter", help='Read only documents that pass, such as "year>=2024"; repeat.')
    ] = None,
    option: Annotated[list[str] | None, typer.Option(help="KEY=VALUE over the settings of the method.")] = None,
    history: Annotated[
        Path | None, typer.Option(help="JSON lines (role, content) of the conversation so far; local search reads it.")
    ] = None,
    snapshot: Annotated[
        str | None, typer.Option(help="Id of the snapshot to ask, or its start; else the published one.")
    ] = None,
    stream: Annotated[
        bool | None, typer.Option("--stream/--no-stream", help="Show a model's answer as it comes; on in a terminal.")
    ] = None,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from the published index."""
    from graphrag_pipeline.query.graph_index import GraphIndex
    from graphrag_pipeline.query.understanding.conversation import read_history_file
    from graphrag_pipeline.storage.history import find_snapshot

    options = dict(_parse_option(text) for text in option or [])
    if history is not None:
        options["conversation_history"] = read_history_file(history)
    conditions = [_as_text(text) for text in filters or []]
    if explain and method != "local":
        raise typer.BadParameter("only local search has text unit selection strategies", param_hint="--explain")
    project = open_root(root)
    if snapshot:
        project.follow()
    index = GraphIndex.open(project.path, find_snapshot(project.snapshots, snapshot) if snapshot else None)
    if explain:
        with logging_costs(project, "query", "explain"):
            _explain(index.where(conditions), _as_text(question), strategy, options, as_json)
        return
    is_model = index.settings.answers.engine == "model" and not (context_only or as_json)
    is_streamed = is_model and (sys.stdout.isatty() if stream is None else stream)
    on_token = _print_piece if is_streamed else None
    with logging_costs(project, "query", method):
        result = index.search(
            _as_text(question), method, strategy, context_only, conditions, on_token=on_token, **options
        )
    if as_json:
        print_json(result.to_dict())
        return
    typer.echo(f"\n\n{result.sources_to_markdown()}".rstrip() if is_streamed else result.to_markdown())
    if line := result.usage.to_line():
        typer.echo(f"\n{line}")
    if chosen := result.selection.get("chosen"):
        ignored = ", ".join(result.selection.get("ignored_options", []))
        note = f" (it has no option {ignored})" if ignored else ""
        typer.echo(f"{chosen} search: {result.selection['reason']}{note}", err=True)
    if unknown := result.selection.get("unknown_entity_names"):
        typer.echo(f"no entity of the index is named {', '.join(unknown)}", err=True)


def _print_piece(text: str) -> None:
    typer.echo(text, nl=False)
    sys.stdout.flush()


def _explain(index: Any, question: str, strategy: str | None, options: dict[str, Any], as_json: bool) -> None:
    from graphrag_pipeline.query.explain import explain_strategies, render_explanation, to_records
    from graphrag_pipeline.query.methods import METHODS
    from graphrag_pipeline.query.understanding.time_scope import read_time_scope

    settings: Any = METHODS["local"].settings_of(index.settings, strategy, options)
    timed = read_time_scope(index, question, settings.now)
    picks = explain_strategies(index.where(timed.filters), timed.question, settings)
    if as_json:
        print_json({"question": question, "snapshot": index.snapshot.id, "picks": to_records(picks)})
    else:
        typer.echo(render_explanation(picks))


def _as_text(argument: str) -> str:
    """An argument as UTF-8, whatever the locale says; what is no text becomes a question mark in a box."""
    return os.fsencode(argument).decode("utf-8", errors="replace")


def _parse_option(text: str) -> tuple[str, Any]:
    import yaml

    from graphrag_pipeline.query.batch.question_files import OWN_NAMES
    from graphrag_pipeline.settings.file import parse_yaml

    key, equals, value = (part.strip() for part in text.partition("="))
    if not key or not equals:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE, such as top_k_entities=20", param_hint="--option")
    if key in OWN_NAMES:
        raise typer.BadParameter(f"{key!r} has an option or argument of its own", param_hint="--option")
    try:
        return key, parse_yaml(value)
    except yaml.YAMLError:
        raise typer.BadParameter(f"{text!r}: the value is no YAML", param_hint="--option") from None


def sql(
    statement: Annotated[str, typer.Argument(metavar="QUERY", help="SQL over the tables of the published snapshot.")],
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Query the published snapshot's tables with DuckDB."""
    from graphrag_pipeline.storage.sql import render_rows, run_sql

    project = open_root(root)
    project.follow()
    snapshot = project.snapshots.open()
    project.fetch_stages(snapshot.id)
    result = run_sql(snapshot, _as_text(statement))
    if as_json:
        print_json(result.to_pylist())
    else:
        typer.echo(render_rows(result))
