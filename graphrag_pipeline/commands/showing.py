"""Command `show entity|report|document|community`: one record of a snapshot in full.

Keep out: reading (`reading/`) and the text of pages (`page_text.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.commands.completion import complete_name
from graphrag_pipeline.commands.terminal import (
    READ_GROUP,
    JsonOption,
    Line,
    PagerOption,
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
    from graphrag_pipeline.query.index_reader import SnapshotReader


class RecordKind(StrEnum):
    """What `show` shows."""

    ENTITY = "entity"
    REPORT = "report"
    DOCUMENT = "document"
    COMMUNITY = "community"


def add_show_commands(app: typer.Typer) -> None:
    """Mount the command of this module."""
    app.command(rich_help_panel=READ_GROUP)(show)


def show(
    kind: Annotated[RecordKind, typer.Argument(help="Kind of the record.")],
    name: Annotated[
        str,
        typer.Argument(
            help="Number or id of the record; or the name or an alias of an entity, the title of a report or of the "
            "report of a community, the path, file name or title of a document. In any case.",
            autocompletion=complete_name,
        ),
    ],
    most: Annotated[int, typer.Option(min=1, help="Maximum of records in each list.")] = 10,
    snapshot: SnapshotOption = None,
    pager: PagerOption = True,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show an entity, a report, a document or a community in full.

    An entity: description, aliases, strongest relationships, communities, and the sentences that name it. A report: its
    whole text, findings, rating and sources. A document: metadata, entities, text units and its whole text. A
    community: its place in the hierarchy, leading entities and report.
    """
    read, render = _page_of(kind)
    with _reading(root, snapshot) as reader:
        _print_page(read(reader, name, most), render, as_json, pager)


_Page = tuple[Callable[..., Any], Callable[..., Iterator[Line]]]


def _page_of(kind: RecordKind) -> _Page:
    """Return how a record of a kind is read and rendered."""
    from graphrag_pipeline.commands import page_text
    from graphrag_pipeline.reading.communities import read_community, read_report
    from graphrag_pipeline.reading.documents import read_document
    from graphrag_pipeline.reading.entities import read_entity

    pages: dict[RecordKind, _Page] = {
        RecordKind.ENTITY: (read_entity, page_text.render_entity),
        RecordKind.REPORT: (read_report, page_text.render_report),
        RecordKind.DOCUMENT: (read_document, page_text.render_document),
        RecordKind.COMMUNITY: (read_community, page_text.render_community),
    }
    return pages[kind]


@contextmanager
def _reading(root: Path | None, start: str | None) -> Iterator[SnapshotReader]:
    from graphrag_pipeline.query.index_reader import SnapshotReader

    with closing(open_snapshot(open_root(root), start)) as snapshot:
        yield SnapshotReader(snapshot)


def _print_page(page: Any, render: Callable[[Any, int], Iterator[Line]], as_json: bool, is_paged: bool) -> None:
    if as_json:
        print_json(asdict(page))
        return
    (page_lines if is_paged else echo_lines)(render(page, text_width()))
