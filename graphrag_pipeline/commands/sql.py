"""Command `sql`: a query over the tables of a snapshot, printed as a table or with one column a line.

Keep out: running it (`storage/sql.py`).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.commands.questions import as_text
from graphrag_pipeline.commands.terminal import (
    READ_GROUP,
    JsonOption,
    Line,
    RootOption,
    SnapshotOption,
    echo_lines,
    open_root,
    open_snapshot,
    print_json,
)
from graphrag_pipeline.commands.wrapping import MIN_WIDTH, cells, wrap

if TYPE_CHECKING:
    import pyarrow as pa


def add_sql_commands(app: typer.Typer) -> None:
    """Mount the command of this module."""
    app.command(rich_help_panel=READ_GROUP)(sql)


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
