"""FastAPI's routes as this server needs them: models that routes share, stricter reading, and one form of errors.

A route is a function of a router of `make_router`. Its parameters are a query model, a body, keys of the path, and
`Call` (`endpoint.py`), which does its work in a thread. FastAPI validates and describes them. Keep out: what any
request has in common (`gate.py`), models of one route, and the routes.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, get_origin
from urllib.parse import parse_qsl, unquote

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, create_model
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from graphrag_pipeline.serve.errors import ApiError, ErrorAnswer, InvalidRequestError, answer_error
from graphrag_pipeline.serve.limits import MAX_KEYS, MAX_TEXT_CHARS, Filters

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


MAX_LISTED = 1_000
"""Most records of one answer."""
MAX_OFFSET = 2**53
_NUMBER = re.compile(r"-?[0-9]{1,4000}", re.ASCII)


def _read_digits(text: Any) -> Any:
    """Refuse what Python reads as a number and no other program does, such as `1_0`.

    Raises:
        ValueError: the text of a query string is not a number in ASCII digits.
    """
    if isinstance(text, str) and not _NUMBER.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is not a whole number in the digits 0 to 9")
    return text


Whole = Annotated[int, BeforeValidator(_read_digits)]
"""A whole number of a query string."""
Small = Annotated[Whole, Field(ge=0, le=MAX_OFFSET)]
SearchText = Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS)]


class ServerQuery(BaseModel):
    """A request about the server, without parameters."""

    model_config = ConfigDict(extra="forbid")


class NamedRootQuery(ServerQuery):
    """A request about one root."""

    root: str = Field("", max_length=200, description="Name of the root; needed only if several are served.")


class RootQuery(NamedRootQuery):
    """A request about a snapshot of one root."""

    snapshot: str = Field(
        "", max_length=64, description="Id of an earlier snapshot, or its beginning; default: the published one."
    )


class FilteredQuery(RootQuery):
    """A request for records."""

    filter: Filters = Field(
        default_factory=list,
        description="Read only records of documents that pass all filters, such as `year>=2024`; repeatable.",
    )


class PagedQuery(FilteredQuery):
    """A request for a part of a list."""

    limit: Whole = Field(50, ge=1, le=MAX_LISTED, description="Most records.")
    offset: Whole = Field(0, ge=0, le=MAX_OFFSET, description="Records to skip.")


class StrictBody(BaseModel):
    """A JSON object of a request; a number in quotes is no number, and unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Answered(BaseModel):
    """An answer from one snapshot."""

    root: str = Field(description="Name of the root.")
    snapshot: str = Field(description="Id of the snapshot that the answer comes from.")


def answer_model(name: str, **fields: Any) -> type[Answered]:
    """Return the model of an answer with these fields, each a type, beside those of `Answered`."""
    required: dict[str, Any] = {field: (kind, ...) for field, kind in fields.items()}
    return create_model(name, __base__=Answered, **required)


EVENTS: dict[str, Any] = {
    "text/event-stream": {
        "schema": {
            "type": "object",
            "description": "An event of the stream; its data is JSON, or `[DONE]` at the end of OpenAI's streams.",
            "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
        }
    }
}
"""The content of a streamed answer in the OpenAPI document."""
_ERRORS: dict[int | str, str] = {
    400: "The request does not validate, or a filter, option or strategy does not hold.",
    401: "No valid key or token.",
    404: "There is no such root, snapshot or record for this client.",
    405: "The path has no such method.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    414: "The address is too long.",
    415: "The body is not JSON.",
    421: "The header Host names another server.",
    429: "Too many requests at once; try again after the seconds of `Retry-After`.",
    431: "The headers are too large.",
    500: "A defect of the server.",
    502: "A model gave no answer.",
    503: "No index can be read now.",
    504: "The time limit is over.",
    "default": "Any other error.",  # without it, FastAPI describes errors of its own form
}
_MAX_IN_LOOP = 16_384
"""Bytes of a body that is read without a thread, in less than a millisecond."""
_LARGE_BODIES = ThreadPoolExecutor(1, thread_name_prefix="large-bodies")
"""One thread, since reading a body holds Python's lock: several would keep it from the event loop."""
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
Key = Annotated[str, BeforeValidator(restore_slashes), StringConstraints(min_length=1)]
"""A part of a path that names a record."""


def make_router(tag: str, error: type[BaseModel] = ErrorAnswer) -> APIRouter:
    """Return a router for routes of one group of the OpenAPI document, with the model of their errors."""
    return APIRouter(
        tags=[tag],
        route_class=ServerRoute,
        dependencies=[Depends(HTTPBearer(scheme_name="key", auto_error=False))],  # for the document; the gate checks it
        responses={status: {"model": error, "description": what} for status, what in _ERRORS.items()},
        generate_unique_id_function=_name_operation,
    )


def _name_operation(route: APIRoute) -> str:
    words = route.path.replace("{", "").replace("}", "").replace("-", "_").strip("/").split("/")
    return "_".join([*map(str.lower, route.methods or ()), *words])


class ServerRoute(APIRoute):
    """A route that reads a request strictly, and answers every error in the one form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler between the reading of the request and the answers to errors."""
        handle = super().get_route_handler()
        models = [one.field_info.annotation for one in self.dependant.query_params]
        repeatable = {name for model in models for name in _list_fields(model)}

        async def answer(request: Request) -> Response:
            request.scope.setdefault("state", {})["route"] = self.path
            try:
                _check_query(request.scope["query_string"], repeatable)
                return await handle(await _with_body(request) if self.body_field else request)
            except ClientDisconnect:
                return Response(status_code=499)  # for the log; no client gets it
            except Exception as error:  # the edge of the server: every error has an answer
                return answer_error(error, request.scope["path"])

        return answer


def _list_fields(model: Any) -> list[str]:
    return [name for name, one in model.model_fields.items() if get_origin(one.annotation) is list]


def _check_query(raw: bytes, repeatable: Collection[str]) -> None:
    """Check what FastAPI would read leniently.

    Raises:
        InvalidRequestError: a bad escape, no UTF-8, or a parameter that is given twice and is no list.
    """
    try:
        if _BAD_ESCAPE.search(raw):
            raise ValueError("a percent sign without two hexadecimal digits")
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw), errors="strict")
    except ValueError:
        raise InvalidRequestError("The query string is not valid percent-encoded UTF-8.") from None
    for name, n in Counter(name for name, _ in pairs).items():
        if n > 1 and name not in repeatable:
            raise InvalidRequestError(f"`{name[:80]}` is given twice.")


class _JsonRequest(Request):
    """A request whose JSON is read already."""

    def __init__(self, request: Request, content: bytes, value: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._body, self._json = content, value


async def _with_body(request: Request) -> Request:
    """Return the request with its body, read.

    Raises:
        ApiError: the body is not JSON, or too much of it.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ApiError(415, "not_json", f"The body is `{kind[:80]}`.", "Send JSON, as `application/json`.")
    content = await request.body()
    if len(content) <= _MAX_IN_LOOP:
        return _JsonRequest(request, content, _parse(content))
    value = await asyncio.get_running_loop().run_in_executor(_LARGE_BODIES, _parse, content)
    return _JsonRequest(request, content, value)


def _parse(content: bytes) -> Any:
    try:
        json.loads(content, object_pairs_hook=_check_keys)
        return from_json(content)  # strict where `json` is not, as about half of a surrogate pair
    except RecursionError:
        raise InvalidRequestError("The body is nested too deeply.") from None
    except ValueError as error:
        raise InvalidRequestError(f"The body is not JSON: {error}"[:300]) from None


def _check_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of the body.

    Raises:
        InvalidRequestError: it has too many keys, or a key twice, of which another reader of the body may take the
            other value.
    """
    if len(pairs) > MAX_KEYS:
        raise InvalidRequestError(f"An object of the body has more than {MAX_KEYS:,} keys.", "Send fewer.")
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = next(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        raise InvalidRequestError(f"`{repeated[:80]}` is in one object of the body twice.", "Send each key once.")
    return found
