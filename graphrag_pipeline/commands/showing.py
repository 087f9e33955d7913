"""Commands `show entity|report|document|community`: one record of a snapshot in full.

Keep out: reading (`reading/`) and the text of pages (`page_text.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.commands.completion import complete_name
from graphrag_pipeline.commands.terminal import (
    READ_GROUP,
    JsonOption,
    Line,
    RootOption,
    SnapshotOption,
    echo_lines,
    open_root,
    open_snapshot,
    page_lines,
    print_json,
)
from graphrag_pipeline.commands.wrapping import text_width

if TYPE_CHECKING:
    from graphrag_pipeline.query.snapshot_reader import SnapshotReader

showing = typer.Typer(help="Show an entity, report, document or community in full.", no_args_is_help=True)
_MostOption = Annotated[int, typer.Option(min=1, help="Maximum of records in each list.")]
_PagerOption = Annotated[
    bool, typer.Option("--pager/--no-pager", help="Whether a long page is shown by $PAGER in a terminal.")
]


def _name(kind: str, ways: str) -> Any:
    return typer.Argument(help=f"{ways[0].upper()}{ways[1:]}.", autocompletion=complete_name(kind))


def add_show_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.add_typer(showing, name="show", rich_help_panel=READ_GROUP)


@showing.command("entity")
def show_entity(
    name: Annotated[str, _name("entity", "name in any case, alias, number or id")],
    most: _MostOption = 10,
    snapshot: SnapshotOption = None,
    pager: _PagerOption = True,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show an entity: description, aliases, strongest relationships, communities, and the sentences that name it."""
    from graphrag_pipeline.commands.page_text import render_entity
    from graphrag_pipeline.reading.entities import read_entity

    with _reading(root, snapshot) as reader:
        _print_page(read_entity(reader, name, most), render_entity, as_json, pager)


@showing.command("report")
def show_report(
    name: Annotated[str, _name("report", "title in any case, number or id")],
    most: _MostOption = 10,
    snapshot: SnapshotOption = None,
    pager: _PagerOption = True,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a community report: its whole text, findings, rating and sources."""
    from graphrag_pipeline.commands.page_text import render_report
    from graphrag_pipeline.reading.communities import read_report

    with _reading(root, snapshot) as reader:
        _print_page(read_report(reader, name, most), render_report, as_json, pager)


@showing.command("document")
def show_document(
    name: Annotated[str, _name("document", "path, file name, title, number or id")],
    most: _MostOption = 10,
    snapshot: SnapshotOption = None,
    pager: _PagerOption = True,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a document: metadata, entities, text units and its whole text."""
    from graphrag_pipeline.commands.page_text import render_document
    from graphrag_pipeline.reading.documents import read_document

    with _reading(root, snapshot) as reader:
        _print_page(read_document(reader, name, most), render_document, as_json, pager)


@showing.command("community")
def show_community(
    name: Annotated[str, _name("community", "number, title of its report, or id")],
    most: _MostOption = 10,
    snapshot: SnapshotOption = None,
    pager: _PagerOption = True,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a community: its place in the hierarchy, leading entities and report."""
    from graphrag_pipeline.commands.page_text import render_community
    from graphrag_pipeline.reading.communities import read_community

    with _reading(root, snapshot) as reader:
        _print_page(read_community(reader, name, most), render_community, as_json, pager)


@contextmanager
def _reading(root: Path | None, start: str | None) -> Iterator[SnapshotReader]:
    from graphrag_pipeline.query.snapshot_reader import SnapshotReader

    with closing(open_snapshot(open_root(root), start)) as snapshot:
        yield SnapshotReader(snapshot)


def _print_page(page: Any, render: Callable[[Any, int], Iterator[Line]], as_json: bool, is_paged: bool) -> None:
    if as_json:
        print_json(asdict(page))
        return
    (page_lines if is_paged else echo_lines)(render(page, text_width()))
