"""The server as one Starlette application: the API, MCP, and a place for the explorer.

Keep out: the routes, and listening (`commands/serving.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from graphrag_pipeline.serve.api_route import ApiRoute, ServedApp
from graphrag_pipeline.serve.audit import Audit
from graphrag_pipeline.serve.compression import Compression
from graphrag_pipeline.serve.encoded_slashes import EncodedSlashes
from graphrag_pipeline.serve.endpoint import API_HEADERS, RouteEndpoint, Workers, answer_error
from graphrag_pipeline.serve.errors import ApiError
from graphrag_pipeline.serve.explorer.pages import explorer_routes, is_page
from graphrag_pipeline.serve.gate import PUBLIC, Gate
from graphrag_pipeline.serve.limits import Admission, ServerLimits
from graphrag_pipeline.serve.mcp.agent_server import AgentServer
from graphrag_pipeline.serve.metrics import Metrics
from graphrag_pipeline.serve.openai_api.routes import ROUTES as OPENAI_ROUTES
from graphrag_pipeline.serve.openapi import describe_routes
from graphrag_pipeline.serve.readers import Authenticator, OpenAccess
from graphrag_pipeline.serve.routes.documents import ROUTES as DOCUMENT_ROUTES
from graphrag_pipeline.serve.routes.follow_ups import ROUTES as FOLLOW_UPS_ROUTES
from graphrag_pipeline.serve.routes.graph import ROUTES as GRAPH_ROUTES
from graphrag_pipeline.serve.routes.history import ROUTES as HISTORY_ROUTES
from graphrag_pipeline.serve.routes.picture import ROUTES as PICTURE_ROUTES
from graphrag_pipeline.serve.routes.search import ROUTES as SEARCH_ROUTES
from graphrag_pipeline.serve.routes.server import ROUTES as SERVER_ROUTES
from graphrag_pipeline.serve.served_roots import ServedRoots
from graphrag_pipeline.turns import Turns

API_ROUTES: tuple[ApiRoute, ...] = (
    *SERVER_ROUTES,
    *SEARCH_ROUTES,
    *FOLLOW_UPS_ROUTES,
    *GRAPH_ROUTES,
    *DOCUMENT_ROUTES,
    *HISTORY_ROUTES,
    *PICTURE_ROUTES,
    *OPENAI_ROUTES,
)
"""All routes of the OpenAPI document."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")

Lifespan = Callable[[], AbstractAsyncContextManager[None]]
"""Runs from the start of the server to its end."""


def build_app(
    served: ServedRoots,
    authenticator: Authenticator | None = None,
    limits: ServerLimits | None = None,
    hosts: Collection[str] = (),
    mounts: Callable[[ServedApp, Workers], Sequence[BaseRoute]] = lambda app, workers: (),
    is_public: Callable[[str], bool] = PUBLIC.__contains__,
    lifespans: Sequence[Lifespan] = (),
    audit: Audit | None = None,
    compresses: bool = True,
) -> Starlette:
    """Return the application.

    Args:
        served: is started with the application and closed with it.
        authenticator: names the reader of a request; None: everybody reads all.
        hosts: see `gate.Gate`.
        mounts: makes further routes; they come last.
        is_public: whether a path needs no key; those of the explorer never do.
        lifespans: of the mounted parts.
        audit: writes a line about each request that needs a key.
        compresses: whether clients that ask for it get compressed answers.
    """
    limits = limits or ServerLimits()
    app, workers = _make_parts(served, limits)
    agents = AgentServer(app, workers)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await asyncio.to_thread(served.start)
        async with AsyncExitStack() as stack:
            for one in (agents.lifespan, *lifespans):
                await stack.enter_async_context(one())
            yield
        workers.pool.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(served.close)

    made = Starlette(
        routes=[
            *(Route(one.path, RouteEndpoint(one, app, workers), methods=[one.method]) for one in API_ROUTES),
            _fixed_route("/openapi.json", "application/json", _write_openapi()),
            *agents.routes(),
            *explorer_routes(),
            *mounts(app, workers),
        ],
        middleware=[
            *([Middleware(Compression)] if compresses else []),
            Middleware(
                Gate, authenticator=authenticator or OpenAccess(), limits=limits, metrics=app.metrics, hosts=hosts,
                is_public=lambda path: is_page(path) or is_public(path), audit=audit,
            ),
            Middleware(EncodedSlashes),
        ],
        exception_handlers={HTTPException: _answer_http_error},
        lifespan=lifespan,
    )  # fmt: skip
    made.router.redirect_slashes = False
    return made


def _make_parts(served: ServedRoots, limits: ServerLimits) -> tuple[ServedApp, Workers]:
    app = ServedApp(served, limits, Metrics(served))
    threads = ThreadPoolExecutor(limits.max_running, thread_name_prefix="serve")
    workers = Workers(Admission(limits), threads, Turns() if limits.takes_turns else None)
    app.metrics.admission = workers.admission
    return app, workers


def _write_openapi() -> bytes:
    from pydantic_core import to_json

    return to_json(describe_routes(API_ROUTES), indent=1)


def _fixed_route(path: str, media_type: str, content: bytes) -> Route:
    async def answer(_: Request) -> Response:
        return Response(content, media_type=media_type, headers=API_HEADERS)

    return Route(path, answer, methods=["GET"])


def _answer_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        found = ApiError(405, "wrong_method", "This path has no such method.", f"Use {allowed}.")
        response = answer_error(found)
        response.headers["allow"] = allowed
        return response
    return answer_error(ApiError(404, "not_found", "There is no such path.", "/openapi.json lists all."))


async def run_agent_over_stdio(served: ServedRoots, limits: ServerLimits) -> None:
    """Give the tools of MCP to the program that started this process, until it closes standard input."""
    app, workers = _make_parts(served, limits)
    await asyncio.to_thread(served.start)
    try:
        await AgentServer(app, workers).run_over_stdio()
    finally:
        workers.pool.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(served.close)
