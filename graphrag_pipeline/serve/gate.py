"""The gate in front of every application of the server: sizes, the reader behind the request, counts of answers.

A request passes it once, whether it asks the API, MCP or the explorer. Keep out: what a route does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphrag_pipeline.access.rules import NotAuthenticatedError
from graphrag_pipeline.serve.answers import answer_error
from graphrag_pipeline.serve.audit import Audit
from graphrag_pipeline.serve.errors import ApiError, InvalidRequestError
from graphrag_pipeline.serve.limits import MAX_HEADER_BYTES, MAX_TARGET_BYTES, ServerLimits
from graphrag_pipeline.serve.metrics import Metrics
from graphrag_pipeline.serve.readers import Authenticator, OpenAccess, Reader
from graphrag_pipeline.serve.request_body import drain, limited, too_large

PUBLIC = frozenset({"/health", "/ready", "/openapi.json"})
"""Paths that need no key: they show nothing of an index."""


class Gate:
    """Middleware around the whole server.

    Args:
        hosts: names that the header Host may have, without a port; empty: any. A server without access rules needs
            this, since a web page can give its own name the address 127.0.0.1 and then ask in the user's browser.
        is_public: whether a path needs no key.
        audit: writes a line about each request that needs a key.
    """

    def __init__(
        self,
        app: ASGIApp,
        authenticator: Authenticator,
        limits: ServerLimits,
        metrics: Metrics,
        hosts: Collection[str] = (),
        is_public: Callable[[str], bool] = PUBLIC.__contains__,
        audit: Audit | None = None,
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._limits = limits
        self._metrics = metrics
        self._hosts = frozenset(hosts)
        self._is_public = is_public
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0
        watch = self._audit.watch(scope) if self._audit and not self._is_public(scope["path"]) else None

        async def counting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            if self._audit and watch and watch.see_answer(message):  # no answer ends without its line
                self._audit.write(watch, status, time.perf_counter() - started)
            await send(message)

        try:
            await self._pass(scope, watch.see_request(receive) if watch else receive, counting)
        except (ApiError, NotAuthenticatedError) as error:
            if status:
                raise
            await answer_error(error, scope["path"])(scope, receive, counting)
        finally:
            route = scope.get("state", {}).get("route", "other")
            method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST") else "other"
            seconds = time.perf_counter() - started
            self._metrics.count_request(route, method, status or 499, seconds)
            if self._audit and watch:
                self._audit.write(watch, status or 499, seconds)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _check_head(scope)
        self._check_host(headers.get(b"host", ""))
        if int(headers.get(b"content-length", "0")) > self._limits.max_body_bytes:
            await drain(receive)
            raise too_large(self._limits.max_body_bytes)
        # A server without lifespan state gives no such dictionary; a server with it gives one for each request.
        state = scope.setdefault("state", {})
        if not self._is_public(scope["path"]):
            state["reader"] = await self._find_reader(headers.get(b"authorization"))
        # HEAD is answered like GET; the server sends no body.
        asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        await self._app(asked, limited(receive, self._limits.max_body_bytes, self._limits.max_body_s), send)

    async def _find_reader(self, authorization: str | None) -> Reader:
        if isinstance(self._authenticator, OpenAccess):
            return self._authenticator.authenticate(authorization)
        # In a thread, since the keys of tokens may be fetched.
        return await asyncio.to_thread(self._authenticator.authenticate, authorization)

    def _check_host(self, host: str) -> None:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        if self._hosts and name.strip("[]").lower() not in self._hosts:
            raise ApiError(421, "wrong_host", "This server has another name.", "Ask it by the address it listens on.")


def _check_head(scope: Scope) -> dict[bytes, str]:
    """Return the headers that the gate reads.

    Raises:
        ApiError: the target or the headers are too large, or a header is doubled.
    """
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_TARGET_BYTES:
        raise ApiError(414, "too_long", f"The address has more than {MAX_TARGET_BYTES:,} bytes.", "Use a shorter one.")
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
        raise ApiError(431, "too_long", f"The headers have more than {MAX_HEADER_BYTES:,} bytes.", "Send fewer.")
    wanted = (b"authorization", b"content-length", b"host")
    names = [name for name, _ in scope["headers"] if name in wanted]
    if len(names) != len(set(names)):  # a proxy in front may have read the other one
        raise InvalidRequestError("A header that names the host, the length or the key is sent twice.", "Send it once.")
    found = {name: value.decode("latin-1") for name, value in scope["headers"] if name in wanted}
    return found
