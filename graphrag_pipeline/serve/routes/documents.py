"""Routes of documents: lists, pages, text and mentions by offsets, and text units."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import Field
from starlette.responses import Response

from graphrag_pipeline.inspection.index_state import UnreadDocument, list_unread_documents
from graphrag_pipeline.reading.lists import count_facets, list_documents
from graphrag_pipeline.reading.pages import (
    DocumentPage,
    DocumentRow,
    DocumentText,
    IndexFacets,
    MentionPlace,
    TextUnitPage,
)
from graphrag_pipeline.reading.records import read_document, read_mentions, read_text, read_text_unit
from graphrag_pipeline.serve.api_route import (
    MAX_LISTED,
    MAX_OFFSET,
    Answered,
    FilteredQuery,
    Key,
    PagedQuery,
    RootQuery,
    SearchText,
    Whole,
    answer_model,
    make_router,
)
from graphrag_pipeline.serve.endpoint import Call
from graphrag_pipeline.serve.routes.graph import NumberKey, RecordQuery
from graphrag_pipeline.serve.served_roots import IndexLease

DocumentKey = Annotated[Key, Path(description="Number, id, path, file name or title.")]


class DocumentsQuery(PagedQuery):
    """A request for documents."""

    search: SearchText = Field("", description="A part of the title or path, in any case.")
    sort: Literal["number", "title", "path", "date"] = "number"


class UnreadQuery(RootQuery):
    """A request for a part of the list of documents that could not be read."""

    limit: Whole = Field(50, ge=1, le=MAX_LISTED, description="Most documents.")
    offset: Whole = Field(0, ge=0, le=MAX_OFFSET, description="Documents to skip.")


class UnreadList(Answered):
    """Documents that the snapshot lacks because they could not be read, then those that were read with a note."""

    unread: tuple[UnreadDocument, ...]
    total: int
    is_withheld: bool = Field(
        description="Whether the list is empty because of the filters of your key: of a document that could not be "
        "read, it is not known whether it passes them."
    )


class SpanQuery(FilteredQuery):
    """A request for a part of a text."""

    start: Whole = Field(0, ge=0, le=MAX_OFFSET, description="Offset of the first character.")
    end: Whole | None = Field(None, ge=0, le=MAX_OFFSET, description="Offset behind the last one; default: the end.")


class MentionsQuery(SpanQuery):
    """A request for mentions."""

    limit: Whole = Field(MAX_LISTED, ge=1, le=10 * MAX_LISTED, description="Most mentions.")


class FacetsQuery(FilteredQuery):
    """A request for counts."""

    limit: Whole = Field(50, ge=1, le=MAX_LISTED, description="Most values of each field.")


routes = make_router("documents")


@routes.get("/documents", response_model=answer_model("DocumentList", documents=tuple[DocumentRow, ...], total=int))
async def documents(query: Annotated[DocumentsQuery, Query()], call: Call) -> Response:
    """List documents."""
    return await call.show_list(
        query, "documents", lambda index: list_documents(index, query.search, query.sort, query.limit, query.offset)
    )


@routes.get("/unread-documents", response_model=UnreadList)
async def unread_documents(query: Annotated[UnreadQuery, Query()], call: Call) -> Response:
    """List documents that could not be read, or were read with a note."""

    def read(lease: IndexLease) -> dict[str, Any]:
        found = list_unread_documents(lease.root.tables, lease.index.snapshot.manifest) if lease.is_whole else []
        part = found[query.offset : query.offset + query.limit]
        return lease.answer(unread=part, total=len(found), is_withheld=not lease.is_whole)

    return await call.read(query, read)


@routes.get("/documents/{key}", response_model=answer_model("DocumentAnswer", document=DocumentPage))
async def document(key: DocumentKey, query: Annotated[RecordQuery, Query()], call: Call) -> Response:
    """Show a document in full."""
    return await call.show(query, "document", lambda index: read_document(index, key, query.limit))


@routes.get("/documents/{key}/text", response_model=answer_model("TextAnswer", document=DocumentText))
async def text(key: DocumentKey, query: Annotated[SpanQuery, Query()], call: Call) -> Response:
    """Return a part of a document's text."""
    return await call.show(query, "document", lambda index: read_text(index, key, query.start, query.end))


@routes.get(
    "/documents/{key}/mentions",
    response_model=answer_model("MentionList", mentions=tuple[MentionPlace, ...], total=int),
)
async def mentions(key: DocumentKey, query: Annotated[MentionsQuery, Query()], call: Call) -> Response:
    """List the mentions of entities in a document."""
    return await call.show_list(
        query, "mentions", lambda index: read_mentions(index, key, query.start, query.end, query.limit)
    )


@routes.get("/text-units/{key}", response_model=answer_model("TextUnitAnswer", text_unit=TextUnitPage))
async def text_unit(key: NumberKey, query: Annotated[RecordQuery, Query()], call: Call) -> Response:
    """Show a text unit in full."""
    return await call.show(query, "text_unit", lambda index: read_text_unit(index, key, query.limit))


@routes.get("/facets", response_model=answer_model("FacetsAnswer", facets=IndexFacets))
async def facets(query: Annotated[FacetsQuery, Query()], call: Call) -> Response:
    """Count records by type, level and field of documents."""

    def read(lease: IndexLease) -> dict[str, Any]:
        index = lease.index.where(query.filter)
        return lease.answer(facets=count_facets(index, lease.index.document_fields, query.limit))

    return await call.read(query, read)
