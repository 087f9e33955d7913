"""HTTP/1.1 over asyncio with faults on demand: keep-alive, streams, half a body, a dead connection.

A handler is called once per request, one at a time per connection, and answers through its `Connection`. It is
cancelled when the client disconnects. A web framework would hide the connection that a fault must break. Requests need
a Content-Length, which the OpenAI SDK always sends.

Keep out: anything about models.
"""

from __future__ import annotations

import asyncio
import http
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote

_MAX_HEAD = 65_536
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in http.HTTPStatus}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One whole request; header names in lower case, the path without its query and unquoted."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


class Connection(asyncio.Protocol):
    """One client. A handler calls `send` once, or `start_stream`, `send_part`s and `end_stream`, or `drop`."""

    def __init__(self, handler: Handler, connections: set[Connection]) -> None:
        self._handler = handler
        self._connections = connections
        self._buffer = bytearray()
        self._head: tuple[HttpRequest, int] | None = None  # a request and the number of bytes of its body
        self._task: asyncio.Task[None] | None = None
        self._transport: Any = None
        self._is_last = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._take_next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        if self._task is not None:
            self._task.cancel()

    def send(self, status: int, headers: Mapping[str, str], body: bytes, n_sent: int | None = None) -> None:
        """Send a whole answer; with `n_sent`, only that many bytes of the promised body, then hang up."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"{_STATUS_LINES[status]}{lines}content-length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode("latin-1") + body[:n_sent])
        if n_sent is not None:
            self.hang_up()

    def start_stream(self, status: int, headers: Mapping[str, str]) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._transport.write(f"{_STATUS_LINES[status]}{lines}transfer-encoding: chunked\r\n\r\n".encode("latin-1"))

    def send_part(self, part: bytes) -> None:
        self._transport.write(b"%x\r\n%b\r\n" % (len(part), part))

    def end_stream(self) -> None:
        self._transport.write(b"0\r\n\r\n")

    def hang_up(self) -> None:
        """Close after the written bytes; a client that expects more sees a lost connection."""
        self._transport.close()

    def drop(self) -> None:
        """Close at once."""
        self._transport.abort()

    async def closed(self) -> None:
        """Close at once and wait until the handler ends."""
        self._transport.abort()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _take_next(self) -> None:
        if self._task is not None or self._transport.is_closing():
            return
        request = self._take_request()
        if request is not None:
            self._is_last = request.headers.get("connection", "").lower() == "close"
            self._task = asyncio.get_running_loop().create_task(self._handler(request, self))
            self._task.add_done_callback(self._on_answered)

    def _on_answered(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled() or task.exception() is not None:
            self._transport.abort()
        elif self._is_last:
            self._transport.close()
        else:
            self._take_next()

    def _take_request(self) -> HttpRequest | None:
        """The next request if it has arrived whole."""
        if self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _MAX_HEAD:
                    self._refuse(431)
                return None
            head = bytes(self._buffer[:end]).decode("latin-1")
            del self._buffer[: end + 4]
            self._head = self._parse_head(head)
            if self._head is None:
                return None
        request, length = self._head
        if len(self._buffer) < length:
            return None
        self._head = None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return HttpRequest(request.method, request.path, request.query, request.headers, body)

    def _parse_head(self, head: str) -> tuple[HttpRequest, int] | None:
        first, *lines = head.split("\r\n")
        words = first.split(" ")
        pairs = [line.partition(":") for line in lines]
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        length = headers.get("content-length", "0")
        if len(words) != 3 or not words[2].startswith("HTTP/1.") or not length.isdecimal():
            self._refuse(400)
            return None
        if "transfer-encoding" in headers:
            self._refuse(411)
            return None
        if headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        path, _, query = words[1].partition("?")
        return HttpRequest(words[0], unquote(path), query, headers, b""), int(length)

    def _refuse(self, status: int) -> None:
        self.send(status, {"connection": "close"}, b"", n_sent=0)


Handler: TypeAlias = Callable[[HttpRequest, Connection], Coroutine[Any, Any, None]]
"""Answers one request; an exception in it reaches the client as a dropped connection."""
