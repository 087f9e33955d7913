"""The tools of an agent: each reads one index and returns text for a model and values for a program, both bounded.

No tool writes. Every reply names its snapshot, so that an agent knows which index spoke. Keep out: the protocol
(`agent_server.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from graphrag_pipeline.query.index.graph_index import GraphIndex, prepare_query
from graphrag_pipeline.query.methods.state import SearchRequest
from graphrag_pipeline.query.rendering import citation_to_dict
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline.reading.communities import read_report
from graphrag_pipeline.reading.document_text import read_text
from graphrag_pipeline.reading.entities import read_entity
from graphrag_pipeline.reading.facets import count_field
from graphrag_pipeline.serve.errors import asking_models

MAX_CHARS = 24_000
"""Characters of the text of a reply, about 6,000 tokens."""
MAX_PASSAGE = 12_000
"""Characters of a passage."""
MAX_RECORDS = 50
"""Records of a list."""
MAX_VALUES = 12
"""Values shown of a field."""
_CUT = "\n[The rest is left out: ask for less at a time.]"


@dataclass(frozen=True)
class ToolReply:
    """The reply of a tool.

    Attributes:
        text: for a model.
        values: plain values for a program.
    """

    text: str
    values: dict[str, Any]


def _reply(index: GraphIndex, text: str, values: Mapping[str, Any]) -> ToolReply:
    """Return a reply that names its snapshot; its text is cut at `MAX_CHARS`."""
    closing = f"\n\n(snapshot {index.snapshot.id})"
    is_long = len(text) > MAX_CHARS
    shown = text[: MAX_CHARS - len(_CUT)] + _CUT if is_long else text
    return ToolReply(shown + closing, {**values, "is_cut": is_long, "snapshot": index.snapshot.id})


# -------------------------------------------------------------------------------------------------------------- search


def answer_question(index: GraphIndex, question: str, method: str, strategy: str, filters: Sequence[str]) -> ToolReply:
    """Return the answer to a question with its citations; a citation quotes its document word for word."""
    result = _search(index, SearchRequest(question, method, strategy or None, tuple(filters)))
    return _reply(index, result.to_markdown(), _account(result) | {"answer": result.answer[:MAX_CHARS]})


def select_context(
    index: GraphIndex, question: str, method: str, strategy: str, filters: Sequence[str], max_tokens: int
) -> ToolReply:
    """Return what an answer would be written from, as a model reads it."""
    options: dict[str, Any] = {"max_context_tokens": max_tokens} if max_tokens else {}
    request = SearchRequest(question, method, strategy or None, tuple(filters), options)
    result = _search(index, request, context_only=True)
    return _reply(index, result.to_markdown(), _account(result))


def _search(index: GraphIndex, request: SearchRequest, context_only: bool = False) -> SearchResult:
    query = prepare_query(index, request)
    with asking_models(index.settings):
        return index.run_query(query, request, context_only)


def _account(result: SearchResult) -> dict[str, Any]:
    """Return the citations of a result, and the numbers and titles of the records that it read."""
    context = result.context
    return {
        "citations": [citation_to_dict(citation) for citation in result.citations[:MAX_RECORDS]],
        "method": result.method,
        "entities": [_name(one.human_readable_id, one.title) for one in context.entities[:MAX_RECORDS]],
        "reports": [_name(one.human_readable_id, one.title) for one in context.reports[:MAX_RECORDS]],
        "text_units": [
            {
                "number": one.human_readable_id,
                "document": one.document_title,
                "document_id": one.document_id,
                "start": one.start,
                "end": one.end,
            }
            for one in context.text_units[:MAX_RECORDS]
        ],
    }


def _name(number: int, title: str) -> dict[str, Any]:
    return {"number": number, "title": title}


# ------------------------------------------------------------------------------------------------------------- records


def describe_entity(index: GraphIndex, name: str, filters: Sequence[str]) -> ToolReply:
    """Return an entity: description, names, strongest relationships and the sentences that name it."""
    page = read_entity(index.where(filters), name)
    lines = [f"# {page.title} ({page.type or 'no type'}, number {page.number})", "", page.description]
    if page.names:
        lines += ["", f"Also written: {', '.join(page.names)}"]
    lines += ["", f"## Relationships ({page.n_relationships})", *map(_line, page.relationships)]
    lines += ["", f"## Sentences that name it (in {page.n_text_units} text units)"]
    lines += [f"- {one.text} ({one.document}{_place(one.start, one.end)})" for one in page.sentences]
    return _reply(index, "\n".join(lines), asdict(page))


def list_neighbours(index: GraphIndex, name: str, filters: Sequence[str], limit: int) -> ToolReply:
    """Return the relationships of an entity, strongest first."""
    page = read_entity(index.where(filters), name, n_most=limit)
    lines = [f"# Neighbours of {page.title}", f"{len(page.relationships)} of {page.n_relationships}, strongest first:"]
    values = {"entity": _name(page.number, page.title), "n_relationships": page.n_relationships}
    found = [asdict(one) for one in page.relationships]
    return _reply(index, "\n".join([*lines, *map(_line, page.relationships)]), values | {"neighbours": found})


def _line(one: Any) -> str:
    return f"- {one.title} (weight {one.weight:g}): {one.description}"


def _place(start: int | None, end: int | None) -> str:
    return "" if start is None else f", characters {start}-{end}"


def show_report(index: GraphIndex, name: str, filters: Sequence[str]) -> ToolReply:
    """Return a community report in full."""
    page = read_report(index.where(filters), name)
    text = f"{page.content}\n\n(report {page.number}, rank {page.rank:g}, level {page.community.level})"
    return _reply(index, text, asdict(page) | {"content": page.content[:MAX_CHARS]})


def quote_document(index: GraphIndex, document: str, start: int, end: int, filters: Sequence[str]) -> ToolReply:
    """Return the characters of a document from `start` to `end`, at most `MAX_PASSAGE` of them.

    Raises:
        PipelineError: the place is not in the document.
    """
    reader = index.where(filters)
    most = start + MAX_PASSAGE
    found = read_text(reader, document, start, min(end, most) if end else most)
    _, path = reader.documents([found.id])[found.id]
    heading = f"{found.title}, characters {found.start}-{found.end} of {found.n_characters}"
    return _reply(
        index,
        f"{heading}:\n\n{found.text}",
        {
            "document": found.title,
            "document_id": found.id,
            "path": path,
            "start": found.start,
            "end": found.end,
            "n_chars": found.n_characters,
            "text": found.text,
        },
    )


def list_filters(index: GraphIndex) -> ToolReply:
    """Return the fields that filters can name, with their most frequent values."""
    fields = index.document_fields
    named = [name for name in fields.names if name != "id"][:MAX_RECORDS]
    facets = [count_field(index, fields, name, MAX_VALUES) for name in named]
    found = [
        {
            "field": facet.name,
            "n_values": facet.n_values,
            "values": [{"value": one.value, "documents": one.count} for one in facet.values],
        }
        for facet in facets
    ]
    lines = [f"- {one.name}: {', '.join(value.value for value in one.values)}" for one in facets if one.values]
    heading = 'Fields of documents, with frequent values. A filter is such as "year>=2024" or "source=reuters":'
    return _reply(index, "\n".join([heading, *lines]), {"fields": found})
