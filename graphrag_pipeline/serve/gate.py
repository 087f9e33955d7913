"""The gate of the server: what any request has in common before its route and after it.

A connection has limits, a request has a reader and a body of limited size, and an answer is compressed and logged in
one line of JSON. Keep out: routes, and their own limits of time (`endpoint.py`).
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import re
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from graphrag_pipeline.access.audit import AnswerTrace, AuditLog
from graphrag_pipeline.access.rules import READER_OF_ALL, FollowedRules, NotAuthenticatedError, Principal
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.serve.endpoint import Metrics
from graphrag_pipeline.serve.errors import ApiError, InvalidRequestError, answer_error
from graphrag_pipeline.serve.limits import (
    MAX_BODY_MARKS,
    MAX_HEAD_S,
    MAX_HEADER_BYTES,
    MAX_TARGET_BYTES,
    MAX_UNREAD_HEADS,
    ServerLimits,
)

_MAX_BYTES = 2 * (MAX_TARGET_BYTES + MAX_HEADER_BYTES)
"""Twice what the gate accepts, since its answer to a head that is a little too large says more than this one."""
_REFUSAL = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class GuardedConnection(HttpToolsProtocol):
    """A connection that is closed if the head of a request is too large or too late.

    Bytes are counted by the piece that arrives, so a head may exceed its limit by one piece. Those that belong to no
    body count, so headers behind a body have the same limit.
    """

    _unread: dict[HttpToolsProtocol, None] = {}  # noqa: RUF012 - of the process: connections in a head, oldest first
    _timer: asyncio.TimerHandle | None = None
    _n_bytes = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self._await_head()
        self._n_bytes += len(data)
        super().data_received(data)
        if self._n_bytes > _MAX_BYTES and not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(_REFUSAL)
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._n_bytes = 0
        self._await_head()

    def on_headers_complete(self) -> None:
        self._end_head()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._n_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._n_bytes = 0
        super().on_message_complete()

    def _await_head(self) -> None:
        """Start the time of a head, unless it runs."""
        if self._timer is not None or self.transport.is_closing():
            return
        self._timer = self.loop.call_later(MAX_HEAD_S, self.transport.close)
        self._unread[self] = None
        if len(self._unread) > MAX_UNREAD_HEADS:  # a client that is not slow has sent its head long before
            oldest = next(iter(self._unread))
            oldest._end_head()  # type: ignore[attr-defined]
            oldest.transport.close()

    def _end_head(self) -> None:
        self._n_bytes = 0
        self._unread.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_MARKS = (b",", b"[", b"{")
"""One of them is before every value of JSON, with at most a key between. Counting them takes microseconds."""
_MOST_DRAINED_BYTES = 16_000_000
_MOST_DRAINED_S = 2.0


def limited(receive: Receive, max_bytes: int, max_s: float) -> Receive:
    """Return `receive` that refuses a body over the limits, also one that announced no length.

    Args:
        max_bytes: of the whole body; its values are limited by `MAX_BODY_MARKS`.
        max_s: from now to its end; waiting for the end of the connection afterwards has no limit.
    """
    n_bytes = n_marks = 0
    is_whole = False
    ends = time.monotonic() + max_s

    async def read() -> Message:
        nonlocal n_bytes, n_marks, is_whole
        if is_whole:
            return await receive()
        try:
            async with asyncio.timeout(ends - time.monotonic()):
                message = await receive()
        except TimeoutError:
            raise _too_slow(max_s) from None
        piece = message.get("body", b"")
        n_bytes += len(piece)
        n_marks += sum(map(piece.count, _MARKS))
        is_whole = not message.get("more_body", False)
        if n_bytes > max_bytes or n_marks > MAX_BODY_MARKS:
            if not is_whole:
                await drain(receive)
            raise too_large(max_bytes) if n_bytes > max_bytes else _too_many()
        return message

    return read


async def drain(receive: Receive) -> None:
    """Read on after a refused body: a client that still sends would meet a reset connection, not the answer."""
    n_bytes = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_MOST_DRAINED_S):
            while n_bytes < _MOST_DRAINED_BYTES:
                message = await receive()
                n_bytes += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def too_large(max_bytes: int) -> ApiError:
    """Return the error of a body over the limit."""
    return ApiError(413, "too_large", f"The body has more than {max_bytes:,} bytes.", "Send a smaller body.")


def _too_many() -> ApiError:
    return InvalidRequestError(f"The body has more than {MAX_BODY_MARKS:,} commas and brackets.", "Send fewer values.")


def _too_slow(max_s: float) -> ApiError:
    return ApiError(408, "too_slow", f"The body did not arrive within {max_s:g} s.", "Send it at once.")


MIN_BYTES = 1_000
"""Bytes of an answer from which compression pays."""
_MAX_IN_LOOP = 50_000
"""Bytes up to which an answer is compressed without a thread, in about a millisecond."""
_LEVEL = 4
_WANTED = re.compile(r"(?:^|,)\s*(?:gzip|\*)\s*(?:;\s*q\s*=\s*([0-9.]+)\s*)?(?=,|$)", re.IGNORECASE)
_COMPRESSED_TYPES = ("application/json", "text/plain")


class Compression:
    """Middleware that compresses whole answers of text."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _wants_gzip(scope):
            await self._app(scope, receive, send)
            return
        waiting: list[Message] = []

        async def compressing(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_text(message):
                waiting.append(message)
                return
            if waiting and message["type"] == "http.response.body":
                start = waiting.pop()
                message = await _compress(start, message)
                await send(start)
            await send(message)

        await self._app(scope, receive, compressing)


def _wants_gzip(scope: Scope) -> bool:
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept-encoding").decode("latin-1")
    found = _WANTED.search(accepted)
    return found is not None and (found[1] is None or found[1].strip("0.") != "")


def _is_text(start: Message) -> bool:
    headers = MutableHeaders(raw=list(start["headers"]))
    return headers.get("content-type", "").startswith(_COMPRESSED_TYPES) and "content-encoding" not in headers


async def _compress(start: Message, message: Message) -> Message:
    """Return the body compressed, and set the headers of its start; a body in several parts stays as it is."""
    content: bytes = message.get("body", b"")
    headers = MutableHeaders(raw=start["headers"])
    headers.add_vary_header("Accept-Encoding")
    if message.get("more_body") or len(content) < MIN_BYTES:
        return message
    in_thread = len(content) > _MAX_IN_LOOP
    packed = await asyncio.to_thread(_pack, content) if in_thread else _pack(content)
    headers["content-encoding"], headers["content-length"] = "gzip", str(len(packed))
    return {**message, "body": packed}


def _pack(content: bytes) -> bytes:
    return gzip.compress(content, _LEVEL, mtime=0)


_log = logging.getLogger(__name__)
_MAX_TEXT_BYTES = 100_000
_KEY = re.compile(r"\d{1,15}|[0-9a-f]{16,128}")
"""A number or an id of a record; any other key is a text of the request."""


@dataclass
class RequestWatch:
    """What is seen of one request and its answer.

    Attributes:
        has_texts: whether the body of the request is kept.
        is_written: whether the log has its line.
    """

    scope: Scope
    has_texts: bool
    trace: AnswerTrace = field(default_factory=AnswerTrace)
    text: bytes = b""
    is_written: bool = False

    def see_request(self, receive: Receive) -> Receive:
        """Return `receive` that keeps the beginning of the body, if texts are wanted."""
        if not self.has_texts:
            return receive

        async def seen() -> Message:
            message = await receive()
            self.text += message.get("body", b"")[: _MAX_TEXT_BYTES - len(self.text)]
            return message

        return seen

    def see_answer(self, message: Message) -> bool:
        """Keep a piece of the answer, for the names in it; return whether it is the last."""
        if message["type"] != "http.response.body":
            return False
        self.trace.add(message.get("body", b""))
        return not message.get("more_body", False)


class Audit:
    """The audit log as the gate uses it."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log

    def watch(self, scope: Scope) -> RequestWatch:
        """Return the watch of a request that begins."""
        return RequestWatch(scope, self._log.has_texts)

    def write(self, watch: RequestWatch, status: int, seconds: float) -> None:
        """Write the line about a request, unless it is written; a failure is an error in the server's own log."""
        if watch.is_written:
            return
        watch.is_written = True
        scope = watch.scope
        watch.trace.finish()
        state = scope.get("state", {})
        reader, route = state.get("reader"), state.get("route")
        target = f"{scope['path']}?{scope['query_string'].decode('latin-1')}" if self._log.has_texts else ""
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "principal": getattr(reader, "name", ""),
            "subject": getattr(reader, "subject", ""),
            "client": (scope.get("client") or ("",))[0],
            "method": scope["method"],
            "route": route or ("/mcp" if scope["path"] == "/mcp" else "other"),
            "tool": state.get("tool", ""),
            "status": status,
            "root": watch.trace.root or state.get("root", ""),
            "snapshot": watch.trace.snapshot,
            "documents": watch.trace.documents or _asked_document(route, scope, status),
            "seconds": round(seconds, 3),
            "target": target.rstrip("?"),
            "request": watch.text.decode("utf-8", "replace"),
        }
        try:
            self._log.write(entry)
        except PipelineError as error:
            _log.error("the audit log misses a request: %s", error)


def _asked_document(route: str | None, scope: Scope, status: int) -> list[str]:
    """Return the key of the document that the path names, for answers that do not name it, such as its mentions."""
    key: str = scope.get("path_params", {}).get("key", "")
    is_read = status == 200 and (route or "").startswith("/documents/{key}")
    return [key] if is_read and _KEY.fullmatch(key) else []


PUBLIC = frozenset({"/health", "/ready", "/openapi.json"})
"""Paths that need no key: they show nothing of an index."""


class Gate:
    """Middleware around the whole server.

    Args:
        rules: name the reader of a request; None: everybody reads all.
        hosts: names that the header Host may have, without a port; empty: any. A server without access rules needs
            this, since a web page can give its own name the address 127.0.0.1 and then ask in the user's browser.
        is_public: whether a path needs no key.
        audit: writes a line about each request that needs a key.
    """

    def __init__(
        self,
        app: ASGIApp,
        rules: FollowedRules | None,
        limits: ServerLimits,
        metrics: Metrics,
        hosts: Collection[str],
        is_public: Callable[[str], bool],
        audit: Audit | None,
    ) -> None:
        self._app = app
        self._rules = rules
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

    async def _find_reader(self, authorization: str | None) -> Principal:
        if self._rules is None:
            return READER_OF_ALL
        # In a thread, since the keys of tokens may be fetched.
        return await asyncio.to_thread(self._rules.authenticate, authorization)

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
