"""Commands that show one record and its origin: `show` and `trace`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.commands.terminal import (
    JsonOption,
    Line,
    PagerOption,
    RootOption,
    SnapshotOption,
    complete_name,
    echo_lines,
    open_root,
    open_snapshot,
    page_lines,
    print_json,
    text_width,
    wrap,
)
from graphrag_pipeline.reading.pages import CommunityLink, ReportPage

if TYPE_CHECKING:
    from graphrag_pipeline.inspection.tracing import Origin, Trace, TraceNode

Lines = Iterator[Line]
_HEADS = ("title", "name", "path", "document")
"""Fields that name a record in a list, the first that has a value."""
_TEXTS = ("description", "content", "text", "rating_explanation", "evidence")
"""Fields that are shown as running text."""
_LEFT_OUT = ("title", "summary", "findings", "document_id")
"""Fields that another one repeats: `content` holds the summary and the findings of a report."""


def render_page(page: Any, width: int) -> Lines:
    """Render any record of `reading.pages`: its title, its values, its texts, and its lists of other records.

    Args:
        width: maximum of columns of a line; 0 does not wrap.
    """
    yield Line(page.title, "heading")
    values = {field.name: getattr(page, field.name) for field in fields(page) if field.name not in _LEFT_OUT}
    yield from _facts(width, dict(_list_facts(values)))
    for name, value in values.items():
        if name in _TEXTS and value:
            yield from _text(_label(name).capitalize(), value, width)
        elif isinstance(value, ReportPage):
            yield Line("")
            yield from render_page(value, width)
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            yield from _list(_label(name).capitalize(), list(map(_describe, value)), values.get(f"n_{name}"), width)


def _list_facts(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the short values of a record, each with its name in words; no empty one."""
    start, end = values.get("start"), values.get("end")
    if start is not None and end is not None:
        yield "characters", f"{start:,} to {end:,}"
    for name, value in values.items():
        is_count = name.startswith("n_") and name[2:] in values  # it stands in the heading of its list
        if name in (*_TEXTS, "start", "end") or is_count or value is None or value is False or value in ("", ()):
            continue
        if isinstance(value, Mapping):
            yield from ((key, _fold(one)) for key, one in value.items())
        elif isinstance(value, CommunityLink):
            yield _label(name), _describe(value)[0]
        elif isinstance(value, tuple) and isinstance(value[0], str):
            yield _label(name), "; ".join(value)
        elif isinstance(value, str | bool):
            yield _label(name), "yes" if value is True else _fold(value)
        elif isinstance(value, int | float):
            yield _label(name), f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _describe(record: Any) -> tuple[str, str]:
    """Return a record of a list in one line, and the text below it."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    head = next((values[name] for name in _HEADS if values.get(name)), "")
    text = next((values[name] for name in _TEXTS if values.get(name)), "")
    shown = {name: value for name, value in values.items() if name not in (*_HEADS, *_LEFT_OUT)}
    facts = ", ".join(f"{name} {value}" for name, value in _list_facts(shown))
    return f"{head} ({facts})" if head else facts, text


def _label(name: str) -> str:
    return name.removeprefix("n_").removeprefix("is_").removeprefix("has_").replace("_", " ")


def _facts(width: int, facts: Mapping[str, str]) -> Lines:
    column = max(map(len, facts), default=0) + 2
    for name, value in facts.items():
        first, *others = (
            wrap(value, width, " " * (column + 2)) if width else [" " * (column + 2) + " ".join(value.split())]
        )
        yield Line(f"  {name:{column}}{first.lstrip()}")
        yield from map(Line, others)


def _text(title: str, text: str, width: int) -> Lines:
    yield Line("")
    yield Line(title, "heading")
    yield from (Line(line) for line in wrap(text.strip(), width, "  "))


def _list(title: str, items: Sequence[tuple[str, str]], n_all: int | None, width: int) -> Lines:
    """Render items, each a name with a text below it."""
    n_shown = len(items)
    shown = "" if n_all is None else f" ({n_all:,})" if n_all == n_shown else f" ({n_shown:,} of {n_all:,}; --most)"
    yield Line("")
    yield Line(f"{title}{shown}", "heading")
    for name, text in items:
        yield from (Line(line) for line in wrap(_fold(name), width, "  "))
        if text:
            yield from (Line(line) for line in wrap(text.strip(), width, "    "))


def _fold(text: Any) -> str:
    return " ".join(str(text).split())


class RecordKind(StrEnum):
    """What `show` shows."""

    ENTITY = "entity"
    REPORT = "report"
    DOCUMENT = "document"
    COMMUNITY = "community"


def show(
    kind: Annotated[RecordKind, typer.Argument(help="Kind of the record.")],
    name: Annotated[
        str,
        typer.Argument(
            help="Number or id of the record; or the name or an alias of an entity, the title of a report or of the "
            "report of a community, the path, file name, title or code of a document. In any case.",
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
    from graphrag_pipeline.query.index_reader import SnapshotReader
    from graphrag_pipeline.reading.records import read_community, read_document, read_entity, read_report

    read: Callable[..., Any] = {
        RecordKind.ENTITY: read_entity,
        RecordKind.REPORT: read_report,
        RecordKind.DOCUMENT: read_document,
        RecordKind.COMMUNITY: read_community,
    }[kind]
    with closing(open_snapshot(open_root(root), snapshot)) as opened:
        page = read(SnapshotReader(opened), name, most)
    if as_json:
        print_json(asdict(page))
        return
    (page_lines if pager else echo_lines)(render_page(page, text_width()))


_MAX_NAME = 200
"""Maximum characters of a text in a tree."""
_DIGITS = 8
"""Digits of code versions and hashes in a tree; JSON has all digits."""


def trace(
    citation: Annotated[str, typer.Argument(help='Citation as in answers, "[Data: Entities (12)]", or Entities:12.')],
    most: Annotated[
        int, typer.Option(min=1, help="Maximum text units, mentions, findings and cited records to show.")
    ] = 3,
    snapshot: SnapshotOption = None,
    pager: PagerOption = True,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Follow a citation to text units and documents, with the prompt, model and run of each record."""
    from graphrag_pipeline.defs.runs.lookup import finding_runs
    from graphrag_pipeline.inspection.tracing import trace_citation
    from graphrag_pipeline.query.index.graph_index import GraphIndex
    from graphrag_pipeline.storage.snapshot_store import find_snapshot

    project = open_root(root)
    chosen = find_snapshot(project.snapshots, snapshot) if snapshot else None
    with finding_runs(project) as find_run, GraphIndex.open(project.path, chosen) as index:
        project.fetch_stages(index.snapshot.id)
        traced = trace_citation(project, index, citation, find_run, most)
    if as_json:
        print_json(asdict(traced))
        return
    (page_lines if pager else echo_lines)(render_trace(traced, text_width()))


def render_trace(traced: Trace, width: int = 0) -> Iterator[Line]:
    """Render a trace as an indented tree; the origin of a partition is shown in full once.

    Args:
        width: maximum of columns of the text of a report; 0 does not wrap.
    """
    published = f", published by run {traced.published_by}" if traced.published_by else ""
    yield Line(f"{traced.citation} in snapshot {traced.snapshot}{published}")
    shown: set[tuple[str, str]] = set()
    for node in traced.nodes:
        yield from _render_node(node, "", shown, width)
    if traced.missing:
        yield Line(f"not in this snapshot: {', '.join(traced.missing)}", "warning")


def _render_node(node: TraceNode, indent: str, shown: set[tuple[str, str]], width: int) -> Iterator[Line]:
    number = "" if node.number is None else f" {node.number}"
    yield Line(f"{indent}{node.kind}{number}{f': {_shorten(node.name)}' if node.name else ''}", "heading")
    inner = indent + "  "
    if facts := "; ".join(_render_facts(node.facts)):
        yield Line(f"{inner}{facts}")
    if node.origin:
        yield Line(f"{inner}made by {_render_origin(node.origin, shown)}", "faint")
    if node.text:
        yield Line(f"{inner}text", "heading")
        yield from (Line(line) for line in wrap(node.text.strip(), width, inner + "  "))
    for below in node.below:
        yield from _render_node(below, inner, shown, width)
    if node.n_left_out:
        yield Line(f"{inner}and {node.n_left_out:,} more (--most)")


def _render_facts(facts: Mapping[str, Any]) -> Iterator[str]:
    if "start" in facts:
        yield f"characters {facts['start']:,}-{facts['end']:,}"
    for name, value in facts.items():
        if name not in ("start", "end") and value not in (None, "", [], False):
            yield f"{name} {_shorten(_in_words(value))}"


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_in_words(one)}" for key, one in value.items())
    return ", ".join(map(_in_words, value)) if isinstance(value, list | tuple) else str(value)


def _render_origin(origin: Origin, shown: set[tuple[str, str]]) -> str:
    parts = [origin.asset]
    if (origin.stage, origin.partition) in shown:
        parts[0] += " as above"
    else:
        shown.add((origin.stage, origin.partition))
        parts += _render_code(origin)
    if origin.request_key:
        parts.append(f"request {origin.request_key}" + ("" if origin.reply else " (its reply is no longer stored)"))
    elif origin.model:
        parts.append("without a model call")
    return "; ".join(parts)


def _render_code(origin: Origin) -> Iterator[str]:
    yield f"code version {origin.code_version[:_DIGITS]}"
    if origin.model is None:
        model = (origin.reply or {}).get("model")
        yield (f"model {model}, " if model else "") + "prompts of an earlier version that are no longer stored"
    elif origin.model:
        prompts = ", ".join(f"{name} {value[:_DIGITS]}" for name, value in origin.prompts.items())
        yield f"model {origin.model}; prompts {prompts}"
    elif origin.is_embedded:
        yield "embedded engine"
    yield f"run {origin.run or 'not known'}"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_NAME else f"{line[:_MAX_NAME]} ..."
