"""Compression of answers for clients that ask for it.

It lies around the gate, which reads plain answers for the audit log. Events of a stream are never compressed, since
each must leave at once. Keep out: files of the explorer, which are compressed once (`explorer/pages.py`).
"""

from __future__ import annotations

import asyncio
import gzip
import re

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
