"""Routes of documents: lists, pages, text and mentions by offsets, and text units."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from graphrag_pipeline.inspection.unread_documents import UnreadDocument, list_unread_documents
from graphrag_pipeline.reading.document_text import read_mentions, read_text, read_text_unit
from graphrag_pipeline.reading.documents import read_document
from graphrag_pipeline.reading.facets import count_facets
from graphrag_pipeline.reading.lists import list_documents
from graphrag_pipeline.reading.pages import DocumentPage
from graphrag_pipeline.reading.rows import DocumentRow, DocumentText, IndexFacets, MentionPlace, TextUnitPage
from graphrag_pipeline.serve.api_route import (
    MAX_LISTED,
    MAX_OFFSET,
    Answered,
    ApiCall,
    ApiRoute,
    FilteredQuery,
    PagedQuery,
    RootQuery,
    SearchText,
    filtered,
)
from graphrag_pipeline.serve.routes.graph import RecordQuery
from graphrag_pipeline.serve.served_roots import IndexLease

_NAMED = {"key": "Number, id, path, file name or title."}


class DocumentsQuery(PagedQuery):
    """A request for documents."""

    search: SearchText = Field("", description="A part of the title or path, in any case.")
    sort: Literal["number", "title", "path", "date"] = "number"


class DocumentList(Answered):
    """Documents."""

    documents: tuple[DocumentRow, ...]
    total: int


class UnreadQuery(RootQuery):
    """A request for a part of the list of documents that could not be read."""

    limit: int = Field(50, ge=1, le=MAX_LISTED, description="Most documents.")
    offset: int = Field(0, ge=0, le=MAX_OFFSET, description="Documents to skip.")


class UnreadList(Answered):
    """Documents that the snapshot lacks because they could not be read, then those that were read with a note."""

    unread: tuple[UnreadDocument, ...]
    total: int
    is_withheld: bool = Field(
        description="Whether the list is empty because of the filters of your key: of a document that could not be "
        "read, it is not known whether it passes them."
    )


class DocumentAnswer(Answered):
    """A document in full."""

    document: DocumentPage


class SpanQuery(FilteredQuery):
    """A request for a part of a text."""

    start: int = Field(0, ge=0, le=MAX_OFFSET, description="Offset of the first character.")
    end: int | None = Field(None, ge=0, le=MAX_OFFSET, description="Offset behind the last one; default: the end.")


class TextAnswer(Answered):
    """A part of a document's text."""

    document: DocumentText


class MentionsQuery(SpanQuery):
    """A request for mentions."""

    limit: int = Field(MAX_LISTED, ge=1, le=10 * MAX_LISTED, description="Most mentions.")


class MentionList(Answered):
    """Places where a document writes names of entities."""

    mentions: tuple[MentionPlace, ...]
    total: int


class TextUnitAnswer(Answered):
    """A text unit in full."""

    text_unit: TextUnitPage


class FacetsQuery(FilteredQuery):
    """A request for counts."""

    limit: int = Field(50, ge=1, le=MAX_LISTED, description="Most values of each field.")


class FacetsAnswer(Answered):
    """Counts of the index by type, level and field of documents."""

    facets: IndexFacets


def _documents(call: ApiCall, lease: IndexLease) -> Any:
    query: DocumentsQuery = call.query
    found, total = list_documents(filtered(call, lease), query.search, query.sort, query.limit, query.offset)
    return lease.answer(documents=found, total=total)


def _unread(call: ApiCall, lease: IndexLease) -> Any:
    query: UnreadQuery = call.query
    found = list_unread_documents(lease.root.tables, lease.index.snapshot.manifest) if lease.is_whole else []
    part = found[query.offset : query.offset + query.limit]
    return lease.answer(unread=part, total=len(found), is_withheld=not lease.is_whole)


def _document(call: ApiCall, lease: IndexLease) -> Any:
    return lease.answer(document=read_document(filtered(call, lease), call.path["key"], call.query.limit))


def _text(call: ApiCall, lease: IndexLease) -> Any:
    query: SpanQuery = call.query
    return lease.answer(document=read_text(filtered(call, lease), call.path["key"], query.start, query.end))


def _mentions(call: ApiCall, lease: IndexLease) -> Any:
    query: MentionsQuery = call.query
    found, total = read_mentions(filtered(call, lease), call.path["key"], query.start, query.end, query.limit)
    return lease.answer(mentions=found, total=total)


def _text_unit(call: ApiCall, lease: IndexLease) -> Any:
    return lease.answer(text_unit=read_text_unit(filtered(call, lease), call.path["key"], call.query.limit))


def _facets(call: ApiCall, lease: IndexLease) -> Any:
    return lease.answer(facets=count_facets(filtered(call, lease), lease.index.document_fields, call.query.limit))


ROUTES = (
    ApiRoute("GET", "/documents", _documents, DocumentList, "List documents.", "documents", DocumentsQuery),
    ApiRoute("GET", "/unread-documents", _unread, UnreadList,
             "List documents that could not be read, or were read with a note.", "documents", UnreadQuery),
    ApiRoute("GET", "/documents/{key}", _document, DocumentAnswer, "Show a document in full.", "documents",
             RecordQuery, path_params=_NAMED),
    ApiRoute("GET", "/documents/{key}/text", _text, TextAnswer, "Return a part of a document's text.", "documents",
             SpanQuery, path_params=_NAMED),
    ApiRoute("GET", "/documents/{key}/mentions", _mentions, MentionList, "List the mentions of entities in a document.",
             "documents", MentionsQuery, path_params=_NAMED),
    ApiRoute("GET", "/text-units/{key}", _text_unit, TextUnitAnswer, "Show a text unit in full.", "documents",
             RecordQuery, path_params={"key": "Number or id."}),
    ApiRoute("GET", "/facets", _facets, FacetsAnswer, "Count records by type, level and field of documents.",
             "documents", FacetsQuery),
)  # fmt: skip
