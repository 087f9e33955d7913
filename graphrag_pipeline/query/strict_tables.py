"""Tables of a local context as Microsoft GraphRAG writes them: a heading, names of columns, a row for each record.

Strict packing counts these rows and shows them, so its contexts end where those of Microsoft GraphRAG end. Reports are
CSV, where a field with a line break is quoted. Other cells are written as they are. Keep out: budgets.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from graphrag_pipeline.query.context_style import ContextStyle
from graphrag_pipeline.query.results import Context

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
