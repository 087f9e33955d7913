"""Text of pages for a terminal: headings, lists and wrapped texts as lines. Keep out: printing, and reading pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphrag_pipeline.commands.terminal import Line
from graphrag_pipeline.commands.wrapping import wrap
from graphrag_pipeline.reading.pages import (
    CommunityLink,
    CommunityPage,
    DocumentPage,
    EntityLink,
    EntityPage,
    PlacedText,
    ReportPage,
)
from graphrag_pipeline.text.counted import counted

Lines = Iterator[Line]


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
    neighbours = [
        (f"{one.title}  (relationship {one.number}, weight {one.weight:g})", one.description)
        for one in page.relationships
    ]
    yield from _list("Strongest relationships", neighbours, page.n_relationships, width)
    yield from _communities("Communities", page.communities, width)
    yield from _sentences(page, width)


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
