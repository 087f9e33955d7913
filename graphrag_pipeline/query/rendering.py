"""Answers, sources and contexts as markdown for people, text for models, and plain values for JSON.

The JSON form is a contract with users: add keys, never rename one.

The style of a context as a model reads it: optional columns, delimiter, names of columns and headings.

A result keeps what differs from the defaults in `selection`, so that it can be written out again.

Tables of a local context as Microsoft GraphRAG writes them: a heading, names of columns, a row for each record.

Strict packing counts these rows and shows them, so its contexts end where those of Microsoft GraphRAG end. Reports are
CSV, where a field with a line break is quoted. Other cells are written as they are.

Keep out: what is shown to whom.
"""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Self

from graphrag_pipeline.citations import KINDS
from graphrag_pipeline.query.results import Answer, Citation, Context, TextUnitRecord, name_place
from graphrag_pipeline.settings.settings import LocalSearchSettings

PARTS = ("reports", "entities", "relationships", "claims", "text_units")
"""Parts in the order of the text."""
TEXT_UNIT_DELIMITER = "|"


def render_strict(context: Context, style: ContextStyle) -> str:
    """Return the tables of a context, without the empty ones."""
    tables = [_render_part(part, getattr(context, part), style) for part in PARTS]
    return "\n\n".join(table for table in tables if table)


def _render_part(part: str, records: Sequence[Any], style: ContextStyle) -> str:
    if not records:
        return ""
    has_links = part == "relationships" and shows_links(records)
    heading = heading_of(part, style, has_links)
    if part != "reports":
        return heading + "".join(row_of(part, record, style, has_links) for record in records)
    written = io.StringIO()
    writer = csv.writer(written, delimiter=style.column_delimiter, lineterminator="\n")
    writer.writerows(_cells(part, record, style, has_links) for record in records)
    return heading + written.getvalue()


def shows_links(records: Sequence[Any]) -> bool:
    """Return whether relationships have the column `links`: the first one decides."""
    return bool(records) and records[0].score > 0


def heading_of(part: str, style: ContextStyle, has_links: bool = False) -> str:
    """Return the heading of a part and the names of its columns, two lines."""
    text = "summary" if style.use_community_summary else "content"
    columns = {
        "reports": ("id", "title", text, *(["rank"] if style.shows("community_rank") else [])),
        "entities": ("id", "entity", "description", *([style.rank_description] if style.shows("entity_rank") else [])),
        "relationships": (
            *("id", "source", "target", "description"),
            *(["weight"] if style.shows("relationship_weight") else []),
            *(["links"] if has_links else []),
        ),
        "claims": ("id", "entity", "object_id", "status", "start_date", "end_date", "description"),
        "text_units": ("id", "text"),
    }[part]
    return f"-----{style.context_names[part]}-----\n{_delimiter_of(part, style).join(columns)}\n"


def row_of(part: str, record: Any, style: ContextStyle, has_links: bool = False) -> str:
    """Return the row of a record as it is counted; reports are quoted only when they are written."""
    cells = _cells(part, record, style, has_links)
    return _delimiter_of(part, style).join(cells) + "\n"


def _delimiter_of(part: str, style: ContextStyle) -> str:
    """Return the delimiter of a part; Microsoft GraphRAG does not hand the one that is set to the text units."""
    return TEXT_UNIT_DELIMITER if part == "text_units" else style.column_delimiter


def _cells(part: str, record: Any, style: ContextStyle, has_links: bool) -> list[str]:
    number = str(record.human_readable_id)
    if part == "text_units":
        return [number, record.text]
    if part == "reports":
        return [number, record.title, record.content, *([str(record.rank)] if style.shows("community_rank") else [])]
    return [number, *_texts(part, record, style, has_links)]


def _texts(part: str, record: Any, style: ContextStyle, has_links: bool) -> list[str]:
    if part == "entities":
        return [record.title, record.description, *([str(record.rank)] if style.shows("entity_rank") else [])]
    if part == "relationships":
        weight = [str(record.weight or "")] if style.shows("relationship_weight") else []
        links = [str(int(record.score) or "")] if has_links else []
        return [record.source, record.target, record.description, *weight, *links]
    dates = [record.start_date or "", record.end_date or ""]
    return [record.subject, record.object or "", record.status or "", *dates, record.description or ""]


SHOWN_COLUMNS = ("entity_rank", "relationship_weight")
"""Optional columns of the tables that a model sees by default."""
_DEFAULTS = LocalSearchSettings()
CONTEXT_NAMES: Mapping[str, str] = MappingProxyType(_DEFAULTS.context_names)


@dataclass(frozen=True)
class ContextStyle:
    """How the tables of a context are written.

    Attributes:
        shown_columns: optional columns: `entity_rank`, `community_rank`, `relationship_weight`.
        context_names: heading of each part.
        is_strict: whether the tables are those of Microsoft GraphRAG.
        use_community_summary: whether reports are summaries, which strict tables name in the heading.
    """

    shown_columns: tuple[str, ...] = SHOWN_COLUMNS
    column_delimiter: str = _DEFAULTS.column_delimiter
    rank_description: str = _DEFAULTS.rank_description
    context_names: Mapping[str, str] = field(default_factory=lambda: CONTEXT_NAMES)
    is_strict: bool = False
    use_community_summary: bool = False

    @classmethod
    def of_settings(cls, settings: LocalSearchSettings) -> Self:
        """Return the style that the settings name."""
        return cls(
            settings.shown_columns,
            settings.column_delimiter,
            settings.rank_description,
            settings.context_names,
            settings.is_strict,
            settings.use_community_summary,
        )

    @classmethod
    def of_selection(cls, selection: Mapping[str, Any]) -> Self:
        """Return the style that `to_selection` wrote into the account of a search."""
        named = {f.name: selection[f.name] for f in fields(cls) if f.name in selection}
        if "shown_columns" in named:
            named["shown_columns"] = tuple(named["shown_columns"])
        return cls(**named, is_strict=selection.get("packing") == "strict")

    def to_selection(self) -> dict[str, Any]:
        """Return what differs from the defaults, as plain values."""
        found: dict[str, Any] = {}
        if set(self.shown_columns) != set(SHOWN_COLUMNS):
            found["shown_columns"] = list(self.shown_columns)
        if self.column_delimiter != _DEFAULTS.column_delimiter:
            found["column_delimiter"] = self.column_delimiter
        if self.rank_description != _DEFAULTS.rank_description:
            found["rank_description"] = self.rank_description
        if self.context_names != CONTEXT_NAMES:
            found["context_names"] = dict(self.context_names)
        if self.is_strict and self.use_community_summary:
            found["use_community_summary"] = True
        return found | ({"packing": "strict"} if self.is_strict else {})

    def shows(self, column: str) -> bool:
        """Return whether an optional column is shown."""
        return column in self.shown_columns

    @property
    def kinds_of_names(self) -> dict[str, str]:
        """Changed heading, in lower case -> kind in a citation."""
        kinds = zip(("entities", "relationships", "claims", "reports", "text_units"), KINDS, strict=True)
        changed = {part: name for part, name in self.context_names.items() if name != CONTEXT_NAMES[part]}
        return {changed[part].casefold(): kind for part, kind in kinds if part in changed}

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the text that differ from the defaults."""
        changed = [name for part, name in self.context_names.items() if name != CONTEXT_NAMES[part]]
        return (*changed, *([self.rank_description] if self.rank_description != _DEFAULTS.rank_description else []))


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
    kind = "source" if citation.kind == "text_unit" else citation.kind  # the name that `trace` takes
    record = f"({kind} {citation.human_readable_id})"
    quote = " ".join(citation.quote.split())
    shown = quote if len(quote) <= MAX_QUOTE_SHOWN else f"{quote[:MAX_QUOTE_SHOWN].rsplit(' ', 1)[0]} ..."
    return f"[{citation.number}] {name_place(citation)} {record}: \u201c{shown}\u201d  "


def render_context(context: Context, style: ContextStyle = PLAIN) -> str:
    """Return the context as a model reads it: one table or list of sources per part, `human_readable_id` first.

    Cells keep to one line; reports and sources keep their own lines under a heading. A delimiter inside a text stays.
    Text from documents is data, whatever it contains. A strict style has the tables of Microsoft GraphRAG, with cells
    as they are.
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
