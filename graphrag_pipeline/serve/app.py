"""The application: routes, the explorer's pages and MCP behind one gate.

Keep out: what a route does.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from graphrag_pipeline.access.rules import FollowedRules
from graphrag_pipeline.serve import openai_api
from graphrag_pipeline.serve.api_route import EncodedSlashes
from graphrag_pipeline.serve.endpoint import Metrics, ServedApp, Workers
from graphrag_pipeline.serve.errors import ApiError, answer_error, answer_json, write_json
from graphrag_pipeline.serve.gate import PUBLIC, Audit, Compression, Gate
from graphrag_pipeline.serve.limits import Admission, ServerLimits
from graphrag_pipeline.serve.mcp import AgentServer
from graphrag_pipeline.serve.routes import documents, graph, search, server
from graphrag_pipeline.serve.served_roots import ServedRoots
from graphrag_pipeline.turns import Turns

STATIC = "/static/"
REVIEW = "/review/"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Scripts and styles come from files of this server only, and no text can become HTML or a script."""
HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "vary": "accept-encoding",
}
_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""Media types of the served files; other files of the folder, such as licences, are not served."""


@dataclass(frozen=True)
class _ServedFile:
    content: bytes
    compressed: bytes
    media_type: str
    etag: str


def is_page(path: str) -> bool:
    """Return whether a path is one of the explorer, which needs no key."""
    return path == "/" or path.startswith((STATIC, REVIEW))


def explorer_routes() -> list[Route]:
    """Return the routes of the explorer."""
    pages = [Route("/", _answer, methods=["GET"]), Route(f"{REVIEW}{{key}}", _open_review, methods=["GET"])]
    return [*pages, *(Route(path, _answer, methods=["GET"]) for path in _files())]


@cache
def _files() -> dict[str, _ServedFile]:
    """Return the served files by path, without that of the page itself."""
    return {f"{STATIC}{name}": _read(name, file) for name, file in _walk(_folder()) if name != "index.html"}


@cache
def _index() -> _ServedFile:
    return _read("index.html", _folder() / "index.html")


def _folder() -> Traversable:
    return files("graphrag_pipeline") / "bundled" / "explorer"


def _walk(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    for one in sorted(folder.iterdir(), key=lambda one: one.name):
        if one.is_dir():
            yield from _walk(one, f"{prefix}{one.name}/")
        elif one.name.rpartition(".")[2] in _TYPES:
            yield f"{prefix}{one.name}", one


def _read(name: str, file: Traversable) -> _ServedFile:
    content = file.read_bytes()
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return _ServedFile(content, gzip.compress(content, mtime=0), _TYPES[name.rpartition(".")[2]], etag)


async def _answer(request: Request) -> Response:
    request.scope.setdefault("state", {})["route"] = "explorer"
    file = _files().get(request.url.path) or _index()
    headers = {**HEADERS, "etag": file.etag}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.compressed, media_type=file.media_type, headers={**headers, "content-encoding": "gzip"})
    return Response(file.content, media_type=file.media_type, headers=headers)


async def _open_review(request: Request) -> Response:
    """Send to the address of a review in the explorer, which asks for the key that it needs."""
    request.scope.setdefault("state", {})["route"] = "explorer"
    key = quote(request.path_params["key"], safe="", errors="replace")
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"/#{REVIEW}{key}{query}", headers=HEADERS)


API_ROUTES: tuple[APIRoute, ...] = tuple(
    route
    for router in (
        *(server.routes, search.routes, graph.routes, documents.routes),
        *(server.history_routes, openai_api.routes),
    )
    for route in router.routes
    if isinstance(route, APIRoute)
)
"""All routes of the OpenAPI document."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")

Lifespan = Callable[[], AbstractAsyncContextManager[None]]
"""Runs from the start of the server to its end."""


def build_app(
    served: ServedRoots,
    rules: FollowedRules | None = None,
    limits: ServerLimits | None = None,
    hosts: Collection[str] = (),
    lifespans: Sequence[Lifespan] = (),
    audit: Audit | None = None,
) -> FastAPI:
    """Return the application.

    Args:
        served: is started with the application and closed with it.
        rules: name the reader of a request; None: everybody reads all.
        lifespans: contexts of the server beside that of the agents.
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
        ],
        middleware=[
            Middleware(Compression),
            Middleware(
                Gate, rules=rules, limits=limits, metrics=app.metrics, hosts=hosts,
                is_public=lambda path: is_page(path) or path in PUBLIC, audit=audit,
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
