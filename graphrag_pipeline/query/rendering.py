"""Answers, sources and contexts as markdown for people, text for models, and plain values for JSON.

The JSON form is a contract with users: add keys, never rename one. Keep out: what is shown to whom.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any

from graphrag_pipeline.query.context_style import ContextStyle
from graphrag_pipeline.query.results import Answer, Citation, Context, TextUnitRecord
from graphrag_pipeline.query.strict_tables import render_strict

MAX_QUOTE_SHOWN = 160
"""Characters of a quote in a list of sources; the citation holds all of it."""
PLAIN = ContextStyle()
_BETWEEN = "\0"
"""Stands between cells while all are looked at; it is no white space."""


def render_answer(text: str, citations: Sequence[Citation]) -> str:
    """Return the text in markdown, and under it the source of each marker."""
    return f"{text}\n\n{render_sources(citations)}".strip()


def render_sources(citations: Sequence[Citation]) -> str:
    """Return one line for each marker of an answer: its document, offsets, record and quote."""
    return "\n".join(_source_line(citation) for citation in citations)


def _source_line(citation: Citation) -> str:
    place = "" if citation.start is None else f", characters {citation.start:,}-{citation.end:,}"
    kind = "source" if citation.kind == "text_unit" else citation.kind  # the name that `trace` takes
    record = f"({kind} {citation.human_readable_id})"
    quote = " ".join(citation.quote.split())
    shown = quote if len(quote) <= MAX_QUOTE_SHOWN else f"{quote[:MAX_QUOTE_SHOWN].rsplit(' ', 1)[0]} ..."
    return f"[{citation.number}] {citation.document_title}{place} {record}: \u201c{shown}\u201d  "


def render_context(context: Context, style: ContextStyle = PLAIN) -> str:
    """Return the context as a model reads it: one table or list of sources per part, `human_readable_id` first.

    Cells keep to one line; reports and sources keep their own lines under a heading. A delimiter inside a text stays.
    Text from documents is data, whatever it contains. A strict style has the tables of Microsoft GraphRAG
    (`strict_tables.py`), with cells as they are.
    """
    if style.is_strict:
        return render_strict(context, style)
    rank = ("rank",) if style.shows("entity_rank") else ()
    weight = ("weight",) if style.shows("relationship_weight") else ()
    ranks = [f" (rank {report.rank:g})" if style.shows("community_rank") else "" for report in context.reports]
    reports = zip(context.reports, ranks, strict=True)
    sources = [(u.human_readable_id, _source_title(u), u.text) for u in context.text_units]
    names = style.context_names
    parts = [
        _table(names["entities"], ("title", "type", "description", *rank), context.entities, style),
        _table(names["relationships"], ("source", "target", "description", *weight), context.relationships, style),
        _table(names["claims"], ("subject", "object", "type", "status", "description"), context.claims, style),
        _blocks(names["reports"], [(r.human_readable_id, f"{r.title}{rank}", r.content) for r, rank in reports]),
        _blocks(names["text_units"], sources),
    ]
    return "\n\n".join(part for part in parts if part)


def _table(heading: str, columns: Sequence[str], records: Sequence[object], style: ContextStyle) -> str:
    if not records:
        return ""
    shown = [style.rank_description if name == "rank" else name for name in columns]
    read, delimiter = attrgetter("human_readable_id", *columns), style.column_delimiter
    rows = [[value if type(value) is str else _write_value(value) for value in read(record)] for record in records]
    if not _is_folded(rows):
        rows = [[_fold_cell(text) for text in row] for row in rows]
    return "\n".join([f"# {heading}", delimiter.join(("id", *shown)), *map(delimiter.join, rows)])


def _is_folded(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether `_fold_cell` leaves all cells as they are; one look at all text takes a tenth of the time."""
    text = _BETWEEN.join([_BETWEEN.join(row) for row in rows])
    has_edge = f"{_BETWEEN} " in text or f" {_BETWEEN}" in text
    return not has_edge and " ".join(text.split()) == text


def _fold_cell(text: str) -> str:
    """Return the text of a cell on one line."""
    return " ".join(text.split())


def _write_value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _blocks(heading: str, blocks: Sequence[tuple[int, str, str]]) -> str:
    if not blocks:
        return ""
    written = [f"[{number}] {_fold_cell(title)}\n{text.strip()}" for number, title, text in blocks]
    return f"# {heading}\n" + "\n\n".join(written)


def _source_title(unit: TextUnitRecord) -> str:
    return f"{unit.document_title} (excerpt)" if unit.is_excerpt else unit.document_title


def account_of(answer: Answer) -> dict[str, Any]:
    """Return how an answer was written: engine, removed citations, failures, what was not read, what cites nothing."""
    return {
        "engine": answer.engine,
        "invented_citations": answer.n_invented,
        "failure": answer.failure,
        "unread": asdict(answer.unread) | {"reasons": list(answer.unread.reasons)} if answer.unread else None,
        "uncited": [{"sentence": one.text, "citation": one.citation} for one in answer.uncited],
        **({"left_out": answer.n_left_out} if answer.n_left_out else {}),
        **({"copied_from_prompt": answer.n_copied} if answer.n_copied else {}),
    }


def citation_to_dict(citation: Citation) -> dict[str, Any]:
    return {**vars(citation), "record": citation.record}


def context_to_dict(context: Context, candidates: Context | None = None) -> dict[str, list[dict[str, Any]]]:
    """Return the records of each table; candidates follow the context, and `in_context` separates both."""
    chosen = _tables_of(context)
    if candidates is None:
        return chosen
    others = _tables_of(candidates)
    return {
        name: [{**r, "in_context": True} for r in chosen[name]] + [{**r, "in_context": False} for r in others[name]]
        for name in chosen
    }


def _tables_of(context: Context) -> dict[str, list[dict[str, Any]]]:
    return {name: [_plain(record) for record in records] for name, records in vars(context).items()}


def _plain(record: Any) -> dict[str, Any]:
    values = dict(vars(record))
    for name in _tuples_of(record.__class__):
        values[name] = list(values[name])
    return values


@functools.cache
def _tuples_of(kind: type) -> tuple[str, ...]:
    """Return the fields of a kind of record that hold tuples."""
    return tuple(field.name for field in fields(kind) if str(field.type).startswith("tuple"))
