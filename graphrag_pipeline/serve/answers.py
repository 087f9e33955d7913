"""Answers of the server: JSON with the headers of the API, and errors in the form of their path.

Keep out: which error becomes which status (`errors.py`).
"""

from __future__ import annotations

import logging
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response

from graphrag_pipeline.serve.errors import ApiError, error_of

_log = logging.getLogger(__name__)
API_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}


def write_json(value: Any) -> bytes:
    """Return a value as JSON; numbers that JSON lacks become null."""
    return to_json(value, inf_nan_mode="null")


def answer_json(content: bytes, media_type: str = "application/json") -> Response:
    """Return an answer with the headers of the API; `content` is written already, since that takes time."""
    return Response(content, media_type=media_type, headers=API_HEADERS)


def answer_error(error: Exception, path: str = "") -> Response:
    """Return the answer to a request that failed, in the form of its path."""
    found = known_error(error)
    headers = {**API_HEADERS, **found.headers}
    return Response(write_error(found, path), found.status, headers=headers, media_type="application/json")


def known_error(error: Exception) -> ApiError:
    """Return the error that a client sees; the log has a defect of the server."""
    found = error_of(error)
    if found.status == 500:
        _log.error("a request failed", exc_info=error)
    return found


def write_error(error: ApiError, path: str) -> bytes:
    """Return an error as JSON, in OpenAI's form on its paths."""
    if not is_openai(path):
        return write_json(error.to_answer())
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    message = f"{error} {error.what_to_do}"
    return write_json({"error": {"message": message, "type": kind, "param": None, "code": error.code}})


def is_openai(path: str) -> bool:
    """Return whether a path is one of the OpenAI-compatible routes."""
    return path.startswith("/v1/")
