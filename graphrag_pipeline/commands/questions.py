"""Commands that ask an index: `query`, `batch` and `sql`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.commands.terminal import (
    MIN_WIDTH,
    JsonOption,
    Line,
    RootOption,
    SnapshotOption,
    cells,
    complete_choice,
    echo,
    echo_lines,
    open_root,
    open_snapshot,
    print_json,
    wrap,
)
from graphrag_pipeline.models.accounting import paid_run
from graphrag_pipeline.settings.search_names import SEARCH_METHODS, STRATEGIES, WITHOUT_EXCERPTS, describe_methods

if TYPE_CHECKING:
    import pyarrow as pa

    from graphrag_pipeline.query.batch.question_files import BatchQuestion
    from graphrag_pipeline.query.batch.run import BatchAccount
    from graphrag_pipeline.query.index.graph_index import GraphIndex
    from graphrag_pipeline.query.methods.state import SearchRequest
    from graphrag_pipeline.query.search_result import SearchResult


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
    with paid_run("query", "explain" if explain else method):
        index = GraphIndex.of_root(project, found)
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
        ways = (f"{way} ({', '.join(f'{n} {what}' for what, n in counts.items())})" for way, counts in used.items())
        echo(f"reports chosen by more than their ratings: {'; '.join(ways)}".replace("_", " "), err=True)
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


def batch(
    file: Annotated[Path, typer.Argument(help="Questions: a text file with one per line, CSV or JSON lines.")],
    out: Annotated[
        Path | None,
        typer.Option(help="JSON lines file for the answers; answers in it are reused. Default: print them."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help=f"For questions without a method. {describe_methods()}",
            autocompletion=complete_choice(*SEARCH_METHODS),
        ),
    ] = "auto",
    filters: Annotated[
        list[str] | None,
        typer.Option("--filter", help='Read only matching documents, such as "year>=2024"; repeatable.'),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Questions answered at once.")] = 4,
    root: RootOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary (calls, tokens, cost) as JSON.")] = False,
) -> None:
    """Answer a file of questions from one snapshot; exit status 1 if a question fails."""
    from graphrag_pipeline.query.batch.question_files import BatchQuestion, read_question_file
    from graphrag_pipeline.query.batch.run import answer_into_file
    from graphrag_pipeline.query.index.graph_index import GraphIndex
    from graphrag_pipeline.query.methods.registry import look_up_method

    look_up_method(method)
    default = BatchQuestion("", method, filters=tuple(filters or ()))
    questions = read_question_file(file, default)
    project = open_root(root)
    with paid_run("batch", "answers"), GraphIndex.of_root(project) as index:
        index.where(default.filters)  # an invalid filter is one error, not one per question
        try:
            account = (
                answer_into_file(index, questions, out, concurrency)
                if out
                else _print_answers(index, questions, concurrency)
            )
        except KeyboardInterrupt:
            echo("interrupted: finished answers are kept; run the command again to continue", err=True)
            raise typer.Exit(130) from None
    is_err = out is None  # answers alone are on standard output
    echo(json.dumps(account.to_dict()) if as_json else account.to_text(), err=is_err)
    if account.failed:
        raise typer.Exit(1)


def _print_answers(index: GraphIndex, questions: list[BatchQuestion], concurrency: int) -> BatchAccount:
    from graphrag_pipeline.query.batch.run import BatchAccount, answer_all

    account = BatchAccount()
    for answered in answer_all(index, questions, concurrency):
        account = account.add(answered)
        echo(json.dumps(answered.to_dict()))
    return account


def sql(
    statement: Annotated[str, typer.Argument(metavar="QUERY", help="SQL over the tables of the snapshot.")],
    snapshot: SnapshotOption = None,
    is_vertical: Annotated[
        bool, typer.Option("--vertical", "-x", help="One column a line, each value in full and wrapped.")
    ] = False,
    is_wide: Annotated[
        bool, typer.Option("--wide", help="Show every value in full, even if lines are longer than the terminal.")
    ] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Query the tables of a snapshot with DuckDB.

    In a terminal, a table that is too wide for it gets narrower columns, and the last line says that values were cut.
    Nothing is cut in a pipe or a file.
    """
    from graphrag_pipeline.storage.sql import run_sql

    project = open_root(root)
    limits = project.settings.storage
    result = run_sql(open_snapshot(project, snapshot), as_text(statement), limits.sql_max_s, limits.sql_max_memory_mb)
    if as_json:
        print_json(result.to_pylist())
        return
    width = max(MIN_WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() and not is_wide else 0
    echo_lines(render_vertical(result, width) if is_vertical else render_table(result, width))


def render_vertical(rows: pa.Table, width: int) -> Iterator[Line]:
    """Render rows with one column a line; lines of a value are kept.

    Args:
        width: maximum of columns of the terminal; 0 does not wrap.
    """
    names = rows.schema.names
    column = max(map(cells, names), default=0) + 2
    for number, row in enumerate(zip(*(one.to_pylist() for one in rows.columns), strict=True), 1):
        yield Line(f"row {number:,} of {rows.num_rows:,}", "heading")
        for name, value in zip(names, row, strict=True):
            first, *others = list(wrap(_text(value), width, " " * column))
            yield Line(_escape(f"{name}{' ' * (column - cells(name))}{first.lstrip(' ')}".rstrip()))
            yield from (Line(_escape(line)) for line in others)
    if not rows.num_rows:
        yield Line("no rows")


def render_table(rows: pa.Table, width: int) -> Iterator[Line]:
    """Render rows as lines under their column names; a cell is one line, and no character is obeyed by a terminal.

    Args:
        width: columns of the terminal; wider tables are cut, which the last line says. 0 cuts nothing.
    """
    if rows.schema.names == ["explain_key", "explain_value"]:
        yield from (Line(line) for text in rows["explain_value"].to_pylist() for line in text.split("\n"))
        return
    columns = [
        [_escape(name), *(_escape(_text(value)) for value in one.to_pylist())]
        for name, one in zip(rows.schema.names, rows.columns, strict=True)
    ]
    wanted = [max(map(cells, column)) for column in columns]
    widths = fit_widths(wanted, width) if width else wanted
    is_number = [_is_number(kind) for kind in rows.schema.types]
    for number, line in enumerate(zip(*columns, strict=True)):
        shown = (_fill(*cell) for cell in zip(line, widths, is_number, strict=True))
        yield Line("  ".join(shown).rstrip(), "" if number else "heading")
    if not rows.num_rows:
        yield Line("no rows")
    elif widths != wanted:
        cut = [name for name, has, full in zip(rows.schema.names, widths, wanted, strict=True) if has < full]
        yield Line(f"cut to the terminal: {', '.join(cut)}; --vertical, --wide or --json shows all", "faint")


def fit_widths(wanted: list[int], width: int, gap: int = 2) -> list[int]:
    """Return widths of columns that fit a line: narrow columns keep theirs, the others share what is left.

    Args:
        width: of the line; with so many columns that each gets less than 4, the line is longer.
    """
    left, widths = width - gap * (len(wanted) - 1), dict[int, int]()
    for place in sorted(range(len(wanted)), key=wanted.__getitem__):
        share = max(4, left // (len(wanted) - len(widths)))
        widths[place] = min(wanted[place], share)
        left -= widths[place]
    return [widths[place] for place in range(len(wanted))]


def _fill(text: str, width: int, is_right: bool) -> str:
    """Return a cell of a width, cut with three dots if it is too long."""
    if cells(text) > width:
        text = _cut(text, width - 3) + "..."
    blanks = " " * (width - cells(text))
    return blanks + text if is_right else text + blanks


def _cut(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    from rich.cells import set_cell_size

    return set_cell_size(text, width).rstrip()


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _escape(text: str) -> str:
    """Return text on one line, with unprintable characters as codes."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
