"""Commands that show one record and its origin: `show` and `trace`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
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
from graphrag_pipeline.reading.pages import (
    CommunityLink,
    CommunityPage,
    DocumentPage,
    EntityLink,
    EntityPage,
    Neighbour,
    PlacedText,
    ReportPage,
)
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.inspection.tracing import Origin, Trace, TraceNode
    from graphrag_pipeline.query.index_reader import SnapshotReader

Lines = Iterator[Line]
_MOST_PREDICATES = 3


def render_entity(page: EntityPage, width: int) -> Lines:
    """Render an entity.

    Args:
        width: maximum of columns of a line; 0 does not wrap.
    """
    yield Line(page.title, "heading")
    yield from _facts(
        width,
        {
            "entity": f"number {page.number}, id {page.id}",
            "type": ", ".join([page.type, *(kind for kind in page.types if kind != page.type)]),
            "also written": "; ".join(page.names),
            "relationships": f"{page.degree:,}",
            "text units": f"{page.n_text_units:,}",
        },
    )
    yield from _text("Description", page.description or "none", width)
    merges = [(merge.name, f"{merge.rule}, {merge.score:.2f}: {merge.evidence}") for merge in page.merges]
    yield from _list("Merged names", merges, len(merges), width)
    neighbours = [(f"{one.title}  ({', '.join(_facts_of(one))})", one.description) for one in page.relationships]
    yield from _list("Strongest relationships", neighbours, page.n_relationships, width)
    yield from _communities("Communities", page.communities, width)
    yield from _sentences(page, width)


def _facts_of(neighbour: Neighbour) -> tuple[str, ...]:
    said = neighbour.predicates[:_MOST_PREDICATES]
    return f"relationship {neighbour.number}", *said, f"weight {neighbour.weight:g}"


def _sentences(page: EntityPage, width: int) -> Lines:
    if not page.sentences:
        yield from _text("Sentences that name it", "none: its text units write none of its names", width)
        return
    first = f" (the first {len(page.sentences):,}; --most)" if page.has_more_sentences else ""
    items = [(_place(one), _fold(one.text)) for one in page.sentences]
    yield from _list(f"Sentences that name it{first}", items, None, width)
    if page.n_unnamed:
        yield Line(
            f"  not named, although meant: in {counted(page.n_unnamed, 'text units')} read for this list", "faint"
        )


def render_report(page: ReportPage, width: int) -> Lines:
    """Render a report; see `render_entity`."""
    yield Line(page.title, "heading")
    yield from _facts(width, {"report": f"number {page.number}, id {page.id}", "community": _community(page.community),
                              **_rating(page)})  # fmt: skip
    yield from _report_body(page, width)


def _rating(page: ReportPage) -> dict[str, str]:
    notes = {"is_verbatim": "repeats descriptions: the community is too small for a model",
             "is_fallback": "written by rule, because the model failed"}  # fmt: skip
    reason = f": {page.rating_explanation}" if page.rating_explanation else ""
    note = "; ".join(text for name, text in notes.items() if getattr(page, name))
    return {"rating": f"{page.rank:g} of 10{reason}", "note": note}


def _report_body(page: ReportPage, width: int) -> Lines:
    yield from _text("Summary", page.summary, width)
    if page.findings:
        yield from _list(
            "Findings",
            [(f"{n}. {one.summary}", one.explanation) for n, one in enumerate(page.findings, 1)],
            None,
            width,
        )
    else:
        yield from _text("Text", page.content, width)
    cited = [(f"{one.kind.replace('_', ' ')} {one.number}: {one.name}", "") for one in page.cited]
    yield from _list("Sources that it cites", cited, page.n_cited, width)
    yield from _list("Text units behind it", [(_place(one), "") for one in page.passages], page.n_passages, width)


def render_document(page: DocumentPage, width: int) -> Lines:
    """Render a document; see `render_entity`."""
    yield Line(page.title, "heading")
    facts = {
        "document": f"number {page.number}, id {page.id}",
        "path": page.path,
        "record": page.record,
        "date": page.creation_date or "",
        "length": f"{len(page.text):,} characters, {counted(page.n_text_units, 'text units')}",
    }
    yield from _facts(width, facts | {name: str(value) for name, value in page.metadata.items()})
    yield from _entities("Entities", page.entities, page.n_entities, width)
    units = [
        f"text unit {one.number}: {_span(one.start, one.end)}, {one.n_tokens:,} tokens, "
        f"{counted(one.n_entities, 'entities')}"
        for one in page.text_units
    ]
    yield from _list("Text units", [(unit, "") for unit in units], page.n_text_units, width)
    yield from _text("Text", page.text, width)


def render_community(page: CommunityPage, width: int) -> Lines:
    """Render a community; see `render_entity`."""
    yield Line(page.title, "heading")
    yield from _facts(
        width,
        {
            "community": f"number {page.number}, id {page.id}",
            "level": f"{page.level}{' (coarsest)' if page.parent is None and not page.level else ''}",
            "size": ", ".join(
                [
                    counted(page.size, "entities"),
                    counted(page.n_relationships, "relationships"),
                    counted(page.n_text_units, "text units"),
                ]
            ),
            "above": _community(page.parent) if page.parent else "",
        },
    )
    yield from _communities("Below", page.children, width)
    yield from _entities("Leading entities", page.entities, page.n_entities, width)
    if page.report:
        yield Line("")
        yield Line(f"Report {page.report.number}: {page.report.title}", "heading")
        yield from _facts(width, _rating(page.report))
        yield from _report_body(page.report, width)


# --------------------------------------------------------------------------------------------------------------- parts


def _facts(width: int, facts: Mapping[str, str]) -> Lines:
    known = {name: value for name, value in facts.items() if value}
    column = max(map(len, known), default=0) + 2
    for name, value in known.items():
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
    """Render items, each a name with a text below it; nothing without items."""
    if not items:
        return
    shown = (
        "" if n_all is None else f" ({n_all:,})" if n_all == len(items) else f" ({len(items):,} of {n_all:,}; --most)"
    )
    yield Line("")
    yield Line(f"{title}{shown}", "heading")
    for name, text in items:
        yield from (
            Line(line, "faint" if text and name[:1].islower() else "") for line in wrap(_fold(name), width, "  ")
        )
        if text:
            yield from (Line(line) for line in wrap(text.strip(), width, "    "))


def _communities(title: str, links: Iterable[CommunityLink], width: int) -> Lines:
    items = [(_community(link), "") for link in links]
    yield from _list(title, items, len(items), width)


def _community(link: CommunityLink) -> str:
    title = f"{link.title}  " if link.title else ""
    return f"{title}(community {link.number}, level {link.level}, {counted(link.size, 'entities')})"


def _entities(title: str, links: Sequence[EntityLink], n_all: int, width: int) -> Lines:
    items = []
    for one in links:
        found = f", in {counted(one.n_text_units, 'text units')}" if one.n_text_units else ""
        head = f"{one.title}  (entity {one.number}, {one.type}, {counted(one.degree, 'relationships')}{found})"
        items.append((head, "" if found else one.description))
    yield from _list(title, items, n_all, width)


def _place(found: PlacedText) -> str:
    document = found.path or found.document
    return f"in {document}, {_span(found.start, found.end)}, text unit {found.text_unit}"


def _span(start: int | None, end: int | None) -> str:
    return "place in the document not known" if start is None else f"characters {start:,} to {end:,}"


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
    read, render = _page_of(kind)
    with _reading(root, snapshot) as reader:
        _print_page(read(reader, name, most), render, as_json, pager)


_Page = tuple[Callable[..., Any], Callable[..., Iterator[Line]]]


def _page_of(kind: RecordKind) -> _Page:
    """Return how a record of a kind is read and rendered."""
    from graphrag_pipeline.reading.records import read_community, read_document, read_entity, read_report

    pages: dict[RecordKind, _Page] = {
        RecordKind.ENTITY: (read_entity, render_entity),
        RecordKind.REPORT: (read_report, render_report),
        RecordKind.DOCUMENT: (read_document, render_document),
        RecordKind.COMMUNITY: (read_community, render_community),
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
