"""Command `query`: an answer from the published index."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.commands.completion import complete_choice
from graphrag_pipeline.commands.terminal import (
    QUESTION_GROUP,
    JsonOption,
    RootOption,
    SnapshotOption,
    echo,
    logging_costs,
    open_root,
    print_json,
)
from graphrag_pipeline.settings.search_names import SEARCH_METHODS, STRATEGIES, WITHOUT_EXCERPTS, describe_methods

if TYPE_CHECKING:
    from graphrag_pipeline.query.index.graph_index import GraphIndex
    from graphrag_pipeline.query.methods.state import SearchRequest
    from graphrag_pipeline.query.search_result import SearchResult


def add_question_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.command(rich_help_panel=QUESTION_GROUP)(query)


def query(
    question: Annotated[str, typer.Argument(help="Question, in words.")],
    method: Annotated[
        str, typer.Option(help=describe_methods(), autocompletion=complete_choice(*SEARCH_METHODS))
    ] = "local",
    strategy: Annotated[
        str | None,
        typer.Option(
            help=f"Text unit selection strategy of local search: {', '.join(STRATEGIES)}.",
            autocompletion=complete_choice(*STRATEGIES),
        ),
    ] = None,
    context_only: Annotated[
        bool, typer.Option("--context-only", help="Only select the context; write no answer.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show the text units that each strategy of local search selects; no answer."),
    ] = False,
    filters: Annotated[
        list[str] | None,
        typer.Option("--filter", help='Read only matching documents, such as "year>=2024"; repeatable.'),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE that overrides a setting of the method; repeatable.")
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(help="JSON lines file (role, content) with the conversation so far, for local search."),
    ] = None,
    snapshot: SnapshotOption = None,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream", help="Show a model's answer while it is written; default: on in a terminal."
        ),
    ] = None,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from the published index, with citations."""
    from graphrag_pipeline.query.index.graph_index import GraphIndex
    from graphrag_pipeline.query.methods.registry import look_up_method
    from graphrag_pipeline.query.methods.state import SearchRequest
    from graphrag_pipeline.storage.snapshot_store import find_snapshot

    conditions = tuple(as_text(text) for text in filters or [])
    request = SearchRequest(as_text(question), method, strategy, conditions, _read_options(option or [], history))
    if explain and "strategy" not in look_up_method(method).options:
        raise typer.BadParameter(
            "only local search has selection strategies; use `--method local`", param_hint="--explain"
        )
    project = open_root(root)
    if snapshot:
        project.follow()
    found = find_snapshot(project.snapshots, snapshot) if snapshot else None
    with logging_costs(project, "query", "explain" if explain else method) as counted:
        index = GraphIndex.of_root(counted, found)
        if explain:
            _explain(index, request, as_json)
            return
        is_model = index.settings.answers.engine == "model" and not (context_only or as_json)
        is_streamed = is_model and (sys.stdout.isatty() if stream is None else stream)
        result = index.run(request, context_only, on_token=_print_piece if is_streamed else None)
    if as_json:
        print_json(result.to_dict())
    else:
        _print_result(result, is_streamed)


def _read_options(texts: list[str], history: Path | None) -> dict[str, Any]:
    from graphrag_pipeline.query.understanding.conversation import read_history_file

    options = dict(_parse_option(text) for text in texts)
    return options if history is None else {**options, "conversation_history": read_history_file(history)}


def _print_piece(text: str) -> None:
    echo(text, nl=False)
    sys.stdout.flush()


def _print_result(result: SearchResult, is_streamed: bool) -> None:
    """Print the answer, or its sources alone if the answer was streamed; notes about the search go to stderr."""
    echo(f"\n\n{result.sources_to_markdown()}".rstrip() if is_streamed else result.to_markdown())
    if line := result.usage.to_line():
        echo(f"\n{line}")
    for remark in () if result.answer else result.remarks:
        echo(remark, err=True)
    if chosen := result.selection.get("chosen"):
        ignored = ", ".join(result.selection.get("ignored_options", []))
        note = f" (ignored, not options of {chosen}: {ignored})" if ignored else ""
        echo(f"{chosen} search: {result.selection['reason']}{note}", err=True)
    if used := result.selection.get("options_used"):
        echo(f"reports chosen with options of global_search: {_list_options(used)}", err=True)
    if unknown := result.selection.get("unknown_entity_names"):
        echo(f"no entity is named {', '.join(unknown)}", err=True)
    if unheard := result.selection.get("unheard"):
        echo(f"The context has no text about {', '.join(unheard)}; {_advise(result.selection)}.", err=True)


def _advise(selection: Mapping[str, Any]) -> str:
    """Return which options of a local search let more matched entities be heard; strict packing takes no excerpts."""
    if selection.get("packing") != "strict":
        return "see `local_search.max_context_tokens`, `text_unit_share` and `excerpts`"
    shared = "`packing: shared`"
    if selection.get("strategy") in WITHOUT_EXCERPTS:
        shared = "another strategy, or `packing: shared` with `excerpts: true`"
    return f"see `local_search.max_context_tokens` and `text_unit_share`; for excerpts, set {shared}"


def _list_options(used: Mapping[str, Mapping[str, int]]) -> str:
    """Return options with their counts, such as "best_roots (8 kept)"."""
    counts = {name: [f"{n} {what.replace('_', ' ')}" for what, n in found.items()] for name, found in used.items()}
    return "; ".join(f"{name} ({', '.join(found)})" for name, found in counts.items())


def _explain(index: GraphIndex, request: SearchRequest, as_json: bool) -> None:
    from graphrag_pipeline.query.index.explain import explain_question, render_explanation, to_records

    picks = explain_question(index, request)
    if as_json:
        print_json({"question": request.question, "snapshot": index.snapshot.id, "picks": to_records(picks)})
    else:
        echo(render_explanation(picks))


def as_text(argument: str) -> str:
    """Decode an argument as UTF-8 in every locale; invalid bytes become U+FFFD."""
    return os.fsencode(argument).decode("utf-8", errors="replace")


def _parse_option(text: str) -> tuple[str, Any]:
    from graphrag_pipeline.query.batch.question_files import SEARCH_ARGUMENTS

    key, equals, value = text.partition("=")
    key = key.strip()
    if not key or not equals:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE, such as top_k_entities=20", param_hint="--option")
    if key in SEARCH_ARGUMENTS:
        raise typer.BadParameter(f"{key!r} is a separate option or argument", param_hint="--option")
    return key, _parse_value(value)


def _parse_value(text: str) -> Any:
    """Return the value of an option: of YAML, or the text if it is not YAML or is one mark, such as ","."""
    import yaml

    from graphrag_pipeline.settings.file import parse_yaml

    stripped = text if text == "\t" else text.strip()
    if len(stripped) == 1 and not stripped.isalnum() and stripped != "~":
        return stripped
    try:
        return parse_yaml(stripped)
    except yaml.YAMLError:
        return stripped
