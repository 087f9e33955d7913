"""The tools as a server of the Model Context Protocol, mounted at `/mcp` or run over stdio.

Over HTTP the gate has named the reader of the request, and his tools read what he may read. No session is kept, so any
process can answer any request. Keep out: what a tool returns (`tools.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field
from starlette.routing import BaseRoute, Route

from graphrag_pipeline.models.event_loop import CallScope
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.serve.endpoint import ServedApp, Workers, named_root, permitted_roots
from graphrag_pipeline.serve.errors import error_of
from graphrag_pipeline.serve.limits import Filters, MethodText, timed_out
from graphrag_pipeline.serve.mcp import tools
from graphrag_pipeline.serve.mcp.tools import MAX_RECORDS, ToolReply
from graphrag_pipeline.serve.readers import Reader, ReaderOfAll
from graphrag_pipeline.settings.search_names import SEARCH_METHODS, STRATEGIES

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
    """The tools of one server.

    Args:
        app: the served roots.
        workers: the threads that tools run in.
    """

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
        return await self._read(
            ctx,
            "search",
            root,
            snapshot,
            lambda index: tools.answer_question(index, question, method, strategy, filters),
        )

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
        return await self._read(
            ctx,
            "context",
            root,
            snapshot,
            lambda index: tools.select_context(index, question, method, strategy, filters, max_tokens),
        )

    async def entity(
        self,
        name: Name,
        ctx: Context,
        filters: Filters = [],  # noqa: B006
        root: RootName = "",
        snapshot: SnapshotId = "",
    ) -> CallToolResult:
        """Return an entity: description, names, relationships and the sentences that name it."""
        return await self._read(
            ctx, "entity", root, snapshot, lambda index: tools.describe_entity(index, name, filters)
        )

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
        return await self._read(
            ctx, "neighbours", root, snapshot, lambda index: tools.list_neighbours(index, name, filters, limit)
        )

    async def report(
        self,
        name: Name,
        ctx: Context,
        filters: Filters = [],  # noqa: B006
        root: RootName = "",
        snapshot: SnapshotId = "",
    ) -> CallToolResult:
        """Return the report of a community of entities, in full."""
        return await self._read(ctx, "report", root, snapshot, lambda index: tools.show_report(index, name, filters))

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
        return await self._read(
            ctx,
            "document_passage",
            root,
            snapshot,
            lambda index: tools.quote_document(index, document, start, end, filters),
        )

    async def filters(self, ctx: Context, root: RootName = "", snapshot: SnapshotId = "") -> CallToolResult:
        """List the fields of documents that filters can name, with frequent values."""
        return await self._read(ctx, "filters", root, snapshot, tools.list_filters)

    async def roots(self, ctx: Context) -> CallToolResult:
        """List the roots that can be read."""
        _note(ctx, tool="roots")
        names = list(permitted_roots(self._app, _reader_of(ctx)))
        return _to_result(ToolReply("\n".join(names), {"roots": names}))

    # --------------------------------------------------------------------------------------------------------- reading

    async def _read(
        self, ctx: Context, tool: str, root: str, snapshot: str, work: Callable[[GraphIndex], ToolReply]
    ) -> CallToolResult:
        """Run a tool in a thread on a leased index; a refusal is an error that the model can read."""
        reader, scope = _reader_of(ctx), CallScope()
        _note(ctx, tool=tool)

        def run() -> ToolReply:
            name, filters = named_root(self._app, reader, root)
            _note(ctx, root=name)
            with self._app.served.lease(name, filters, snapshot or None) as lease:
                return work(lease.index.within(scope))

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


def _reader_of(ctx: Context) -> Reader:
    """Return the reader whom the gate named; over stdio, the user who started the process."""
    request = ctx.request_context.request
    if request is None:
        return ReaderOfAll()
    reader: Reader = request.scope["state"]["reader"]
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
