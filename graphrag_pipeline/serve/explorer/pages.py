"""The explorer at `/`: its files from the package, read once, compressed, with a strict Content-Security-Policy.

The files hold nothing of an index, so they need no key; their requests to the API do. A path is looked up among the
files, and never joined to a folder. Keep out: the files themselves (`bundled/explorer/`).
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

STATIC = "/static/"
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
    return path == "/" or path.startswith(STATIC)


def explorer_routes() -> list[Route]:
    """Return the routes of the explorer."""
    return [Route("/", _answer, methods=["GET"]), *(Route(path, _answer, methods=["GET"]) for path in _files())]


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
