"""Tools for agents by the Model Context Protocol: search and read an index, over HTTP or standard input."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field
from starlette.routing import BaseRoute, Route

from graphrag_pipeline.access.rules import READER_OF_ALL, Principal
from graphrag_pipeline.models.event_loop import CallScope
from graphrag_pipeline.query.index.graph_index import GraphIndex, prepare_query
from graphrag_pipeline.query.methods.state import SearchRequest
from graphrag_pipeline.query.rendering import citation_to_dict
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline.reading.lists import count_field
from graphrag_pipeline.reading.records import read_entity, read_report, read_text
from graphrag_pipeline.serve.endpoint import ServedApp, Workers, named_root, permitted_roots
from graphrag_pipeline.serve.errors import asking_models, error_of
from graphrag_pipeline.serve.limits import Filters, MethodText, timed_out
from graphrag_pipeline.settings.search_names import SEARCH_METHODS, STRATEGIES

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
    """The reply of a tool: text for a model, and plain values for a program."""

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
    _, path, _ = reader.documents([found.id])[found.id]
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


INSTRUCTIONS = """A knowledge graph of documents. `search` answers a question with exact citations; `context` gives what
an answer is written from. `entity`, `neighbours`, `report` and `document_passage` read single records. `filters` lists
the fields that narrow every tool to some documents. Quote documents only as the tools quote them."""
PATH = "/mcp"
_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

Question = Annotated[str, Field(min_length=1, max_length=8_000, description="In words.")]
Name = Annotated[str, Field(min_length=1, max_length=500, description="Name, alias, number or id.")]
Method = Annotated[MethodText, Field(description=f"One of {', '.join(SEARCH_METHODS)}.")]
Strategy = Annotated[
    MethodText, Field(description=f"Of local search: {', '.join(STRATEGIES)}; empty: that of the settings.")
]
RootName = Annotated[str, Field(max_length=200, description="Needed only if several roots are served.")]
SnapshotId = Annotated[str, Field(max_length=64, description="Id of an earlier snapshot; empty: the published one.")]


class AgentServer:
    """The tools of one server, which run in the threads of its workers."""

    def __init__(self, app: ServedApp, workers: Workers) -> None:
        self._app = app
        self._workers = workers
        self._server = MCPServer("graphrag-pipeline", instructions=INSTRUCTIONS, version=_version(), log_level="ERROR")
        for function in (
            self.search, self.context, self.entity, self.neighbours, self.report, self.document_passage, self.filters,
            self.roots,
        ):  # fmt: skip
            self._server.add_tool(function, annotations=_READ_ONLY)

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the protocol over HTTP; `lifespan` must run around them.

        Without sessions, a stream of notifications (GET) would only be kept open, also when the server stops.
        """
        checked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the gate checks the host
        made = self._server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            max_request_body_size=self._app.limits.max_body_bytes,
            transport_security=checked,
        )
        return [Route(route.path, route.app, methods=["POST"]) for route in made.routes if isinstance(route, Route)]

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Return the context that answers requests of `routes`."""
        return self._server.session_manager.run()

    async def run_over_stdio(self) -> None:
        """Answer on standard input and output until the input ends."""
        await self._server.run_stdio_async()

    # ----------------------------------------------------------------------------------------------------------- tools

    async def search(
        self,
        question: Question,
        ctx: Context,
        method: Method = "local",
        strategy: Strategy = "",
        filters: Filters = [],  # noqa: B006 - the schema shows it
        root: RootName = "",
        snapshot: SnapshotId = "",
    ) -> CallToolResult:
        """Answer a question from the documents, with citations that quote them word for word."""
        place = root, snapshot
        return await self._read(ctx, "search", place, answer_question, question, method, strategy, filters)

    async def context(
        self,
        question: Question,
        ctx: Context,
        method: Method = "local",
        strategy: Strategy = "",
        filters: Filters = [],  # noqa: B006
        max_tokens: Annotated[int, Field(ge=0, le=100_000, description="0: that of the settings.")] = 4_000,
        root: RootName = "",
        snapshot: SnapshotId = "",
    ) -> CallToolResult:
        """Return the records and passages that an answer would be written from, without an answer."""
        place = root, snapshot
        return await self._read(ctx, "context", place, select_context, question, method, strategy, filters, max_tokens)

    async def entity(
        self,
        name: Name,
        ctx: Context,
        filters: Filters = [],  # noqa: B006
        root: RootName = "",
        snapshot: SnapshotId = "",
    ) -> CallToolResult:
        """Return an entity: description, names, relationships and the sentences that name it."""
        return await self._read(ctx, "entity", (root, snapshot), describe_entity, name, filters)

    async def neighbours(
        self,
        name: Name,
        ctx: Context,
        limit: Annotated[int, Field(ge=1, le=MAX_RECORDS)] = 20,
        filters: Filters = [],  # noqa: B006
        root: RootName = "",
        snapshot: SnapshotId = "",
    ) -> CallToolResult:
        """Return the relationships of an entity, strongest first."""
        return await self._read(ctx, "neighbours", (root, snapshot), list_neighbours, name, filters, limit)

    async def report(
        self,
        name: Name,
        ctx: Context,
        filters: Filters = [],  # noqa: B006
        root: RootName = "",
        snapshot: SnapshotId = "",
    ) -> CallToolResult:
        """Return the report of a community of entities, in full."""
        return await self._read(ctx, "report", (root, snapshot), show_report, name, filters)

    async def document_passage(
        self,
        document: Annotated[str, Field(min_length=1, max_length=500, description="Path, title, number or id.")],
        ctx: Context,
        start: Annotated[int, Field(ge=0, description="Offset of the first character.")] = 0,
        end: Annotated[int, Field(ge=0, description="Offset behind the last one; 0: as many as fit.")] = 0,
        filters: Filters = [],  # noqa: B006
        root: RootName = "",
        snapshot: SnapshotId = "",
    ) -> CallToolResult:
        """Return the exact text of a document between two offsets, such as those of a citation."""
        place = root, snapshot
        return await self._read(ctx, "document_passage", place, quote_document, document, start, end, filters)

    async def filters(self, ctx: Context, root: RootName = "", snapshot: SnapshotId = "") -> CallToolResult:
        """List the fields of documents that filters can name, with frequent values."""
        return await self._read(ctx, "filters", (root, snapshot), list_filters)

    async def roots(self, ctx: Context) -> CallToolResult:
        """List the roots that can be read."""
        _note(ctx, tool="roots")
        names = list(permitted_roots(self._app, _reader_of(ctx)))
        return _to_result(ToolReply("\n".join(names), {"roots": names}))

    # --------------------------------------------------------------------------------------------------------- reading

    async def _read(
        self, ctx: Context, tool: str, place: tuple[str, str], work: Callable[..., ToolReply], *given: Any
    ) -> CallToolResult:
        """Run a tool in a thread on a leased index; a refusal is an error that the model can read.

        Args:
            place: root and snapshot, as the tool got them.
            work: called with the index and `given`.
        """
        reader, scope = _reader_of(ctx), CallScope()
        _note(ctx, tool=tool)

        def run() -> ToolReply:
            name, filters = named_root(self._app, reader, place[0])
            _note(ctx, root=name)
            with self._app.served.lease(name, filters, place[1] or None) as lease:
                return work(lease.index.within(scope), *given)

        try:
            future = asyncio.wrap_future(await self._workers.start(run, reader.name))
            try:
                async with asyncio.timeout(self._app.limits.timeout_s):
                    return _to_result(await future)
            except TimeoutError:
                raise timed_out(self._app.limits.timeout_s) from None
            finally:
                if not future.done():
                    scope.cancel()
        except Exception as error:  # the edge of the server: nothing of a defect reaches a client
            known = error_of(error)
            raise ToolError(f"{known} {known.what_to_do}") from (error if known.status >= 500 else None)


def _reader_of(ctx: Context) -> Principal:
    """Return the reader whom the gate named; over stdio, the user who started the process."""
    request = ctx.request_context.request
    if request is None:
        return READER_OF_ALL
    reader: Principal = request.scope["state"]["reader"]
    return reader


def _note(ctx: Context, **values: str) -> None:
    """Note the tool or its root for the audit log, which names no root that the reader may not read."""
    request = ctx.request_context.request
    if request is not None:
        request.scope["state"].update(values)


def _to_result(reply: ToolReply) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=reply.text)], structured_content=reply.values)


def _version() -> str:
    from importlib.metadata import version

    return version("graphrag-pipeline")
