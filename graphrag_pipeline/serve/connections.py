"""HTTP connections with limits on the head of a request: its bytes, its seconds, and how many connections are in one.

Uvicorn limits none of them with its fast parser: an endless header would fill the memory, and a slow one would keep its
connection for ever. Keep out: bodies (`request_body.py`), and what a request asks (`gate.py`).
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from graphrag_pipeline.serve.limits import MAX_HEAD_S, MAX_HEADER_BYTES, MAX_TARGET_BYTES, MAX_UNREAD_HEADS

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
