"""Slashes inside a part of a path: `/documents/news%2Fone.txt/text` has three parts, and the key is `news/one.txt`.

A server decodes a path before it is routed, so that such a slash would look like one between two parts. Keep out:
routes, and which keys exist.
"""

from __future__ import annotations

from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

_STAND_IN = "\udc2f"
"""Half of a surrogate pair, which no decoded path holds."""


class EncodedSlashes:
    """Middleware that routes by the parts of a path as they were sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path") or b""
        if scope["type"] == "http" and b"%2f" in raw.lower():
            parts = [unquote(part).replace("/", _STAND_IN) for part in raw.decode("latin-1").split("/")]
            scope = {**scope, "path": "/".join(parts)}
        await self._app(scope, receive, send)


def restore_slashes(text: str) -> str:
    """Return a part of a path with the slashes that it was sent with."""
    return text.replace(_STAND_IN, "/")
