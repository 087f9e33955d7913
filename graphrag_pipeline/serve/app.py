"""The server as one FastAPI application: the API, MCP, and a place for the explorer.

Keep out: the routes, and listening (`commands/serving.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from graphrag_pipeline.serve.answers import answer_error, answer_json, write_json
from graphrag_pipeline.serve.audit import Audit
from graphrag_pipeline.serve.compression import Compression
from graphrag_pipeline.serve.encoded_slashes import EncodedSlashes
from graphrag_pipeline.serve.endpoint import ServedApp, Workers
from graphrag_pipeline.serve.errors import ApiError
from graphrag_pipeline.serve.explorer.pages import explorer_routes, is_page
from graphrag_pipeline.serve.gate import PUBLIC, Gate
from graphrag_pipeline.serve.limits import Admission, ServerLimits
from graphrag_pipeline.serve.mcp.agent_server import AgentServer
from graphrag_pipeline.serve.metrics import Metrics
from graphrag_pipeline.serve.openai_api import routes as openai_api
from graphrag_pipeline.serve.readers import Authenticator, OpenAccess
from graphrag_pipeline.serve.routes import documents, follow_ups, graph, history, picture, search, server
from graphrag_pipeline.serve.served_roots import ServedRoots
from graphrag_pipeline.turns import Turns

API_ROUTES: tuple[APIRoute, ...] = tuple(
    route
    for group in (server, search, follow_ups, graph, documents, history, picture, openai_api)
    for route in group.routes.routes
    if isinstance(route, APIRoute)
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
) -> FastAPI:
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
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(served.start)
        async with AsyncExitStack() as stack:
            for one in (agents.lifespan, *lifespans):
                await stack.enter_async_context(one())
            yield
        workers.pool.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(served.close)

    made = FastAPI(
        title="graphrag_pipeline",
        version=version("graphrag-pipeline"),
        description="Searches and records of published GraphRAG indexes, read only.",
        openapi_url=None,  # its route has no headers of the API; the pages for it load scripts from other servers
        redirect_slashes=False,
        routes=[
            *API_ROUTES,
            Route("/openapi.json", _describe, methods=["GET"]),
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
    made.state.served_app, made.state.workers = app, workers
    return made


def _make_parts(served: ServedRoots, limits: ServerLimits) -> tuple[ServedApp, Workers]:
    app = ServedApp(served, limits, Metrics(served))
    threads = ThreadPoolExecutor(limits.max_running, thread_name_prefix="serve")
    workers = Workers(Admission(limits), threads, Turns() if limits.takes_turns else None)
    app.metrics.admission = workers.admission
    return app, workers


async def _describe(request: Request) -> Response:
    return answer_json(write_json(request.app.openapi()))


async def _answer_http_error(_: Request, error: HTTPException) -> Response:
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
