"""A declared route as an ASGI application: reading the request, a thread for the work, the answer or its events.

Keep out: what any request has in common (`gate.py`), and the routes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from sse_starlette import EventSourceResponse
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.endpoints.problems import causes_in_log
from graphrag_pipeline.models.event_loop import CallScope
from graphrag_pipeline.serve.api_route import ApiCall, ApiRoute, ServedApp
from graphrag_pipeline.serve.encoded_slashes import restore_slashes
from graphrag_pipeline.serve.errors import ApiError, InvalidRequestError, describe_invalid, error_of
from graphrag_pipeline.serve.limits import MAX_KEYS, Admission, Place, timed_out
from graphrag_pipeline.serve.readers import NOBODY, Reader
from graphrag_pipeline.serve.served_roots import no_such_root
from graphrag_pipeline.turns import Turns

_log = logging.getLogger(__name__)
_STREAM = "text/event-stream"
_MAX_IN_LOOP = 16_384
"""Bytes of a body that is read without a thread, in less than a millisecond."""
_LARGE_BODIES = ThreadPoolExecutor(1, thread_name_prefix="large-bodies")
"""One thread, since reading a body holds Python's lock: several would keep it from the event loop."""
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_NUMBER = re.compile(r"-?[0-9]{1,4000}", re.ASCII)
API_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}


class ClientLeft(Exception):
    """The client went away before the answer."""


@dataclass(frozen=True)
class Workers:
    """The threads of a server, and the admission to them.

    Attributes:
        turns: of the threads; None if they mostly wait for models.
    """

    admission: Admission
    pool: ThreadPoolExecutor
    turns: Turns | None = None

    async def start(self, work: Callable[[], Any], principal: str) -> Future[Any]:
        """Start `work` of a principal in a thread once a place is free; its place is given back when it ends.

        Raises:
            BusyError: no place became free.
        """
        place: Place = await self.admission.take(principal)
        loop = asyncio.get_running_loop()
        future = self.pool.submit(copy_context().run, self._in_turn, work)
        future.add_done_callback(lambda _: _give_back(loop, place))
        return future

    def _in_turn(self, work: Callable[[], Any]) -> Any:
        with causes_in_log(), self.turns.computing() if self.turns else nullcontext():
            return work()


def _give_back(loop: asyncio.AbstractEventLoop, place: Place) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(place.give_back)


class RouteEndpoint:
    """The ASGI application of one route."""

    def __init__(self, route: ApiRoute, app: ServedApp, workers: Workers) -> None:
        self._route = route
        self._app = app
        self._workers = workers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["route"] = self._route.path
        try:
            response = await self._answer(scope, receive)
        except ClientLeft:
            return
        except Exception as error:  # the edge of the server: every error has an answer
            response = answer_error(error, scope["path"])
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        route = self._route
        query = _read_query(route, scope["query_string"])
        body = await _read_body(route, scope, receive) if route.body else None
        calls = CallScope()
        reader: Reader = scope["state"].get("reader", NOBODY)
        path = {name: restore_slashes(value) for name, value in scope.get("path_params", {}).items()}
        call = ApiCall(self._app, reader, query, body, path, calls, base_url=_base_url(scope))
        if route.is_instant:
            return Response(_write(self._work(call)), media_type=route.media_type, headers=API_HEADERS)
        if not route.reads_root:
            content = await asyncio.to_thread(lambda: _write(self._work(call)))
            return Response(content, media_type=route.media_type, headers=API_HEADERS)
        if _is_streamed(route, scope, body):
            return await self._stream(call, receive)
        return Response(await self._compute(call, receive), media_type=route.media_type, headers=API_HEADERS)

    async def _compute(self, call: ApiCall, receive: Receive) -> bytes:
        future = await self._workers.start(lambda: _write(self._work(call)), call.reader.name)
        wrapped = asyncio.wrap_future(future)
        left = asyncio.ensure_future(_wait_until_left(receive)) if self._route.is_search else None
        try:
            waiting = {wrapped, left} if left else {wrapped}
            timeout = self._app.limits.timeout_s
            await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if wrapped.done():
                return wrapped.result()
            raise ClientLeft if left and left.done() else timed_out(timeout)
        finally:
            if left:
                left.cancel()
            if not wrapped.done():
                call.scope.cancel()
                wrapped.cancel()

    def _work(self, call: ApiCall) -> Any:
        """Run the function behind the route, in a thread."""
        if not self._route.reads_root:
            return self._route.handle(call)  # type: ignore[call-arg]
        name, filters = choose_root(call)
        with self._app.served.lease(name, filters, call_snapshot(call)) as lease:
            return self._route.handle(call, lease)  # type: ignore[call-arg]

    async def _stream(self, call: ApiCall, receive: Receive) -> Response:
        """Return a response whose events come from the thread while it works."""
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[tuple[str, Any] | None] = asyncio.Queue()

        def emit(name: str, data: Any) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(events.put_nowait, (name, data))

        streamed = replace(call, emit=emit)
        future = await self._workers.start(lambda: self._work(streamed), call.reader.name)
        future.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(events.put_nowait, None))
        first = await self._first_event(events, future, call, receive)
        return EventSourceResponse(
            self._events(first, events, future, call), headers=API_HEADERS, ping=15, sep="\n", send_timeout=60
        )

    async def _first_event(
        self, events: asyncio.Queue, future: Future[Any], call: ApiCall, receive: Receive
    ) -> tuple[str, Any] | None:
        """Wait for the first event, so that an error before it has its status."""
        coming, left = asyncio.ensure_future(events.get()), asyncio.ensure_future(_wait_until_left(receive))
        timeout = self._app.limits.timeout_s
        try:
            await asyncio.wait({coming, left}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                call.scope.cancel()
                raise ClientLeft if left.done() else timed_out(timeout)
        finally:
            coming.cancel()
            left.cancel()
        first: tuple[str, Any] | None = coming.result()
        if first is None:
            future.result()
        return first

    async def _events(
        self, first: tuple[str, Any] | None, events: asyncio.Queue, future: Future[Any], call: ApiCall
    ) -> AsyncIterator[dict[str, str]]:
        ends = asyncio.get_running_loop().time() + self._app.limits.timeout_s
        try:
            event = first
            while event is not None:
                name, data = event
                text = data if isinstance(data, str) else _json(data).decode()
                yield {"event": name, "data": text} if name else {"data": text}
                event = await asyncio.wait_for(events.get(), ends - asyncio.get_running_loop().time())
            future.result()
        except TimeoutError:
            yield self._error_event(timed_out(self._app.limits.timeout_s))
        except Exception as error:  # the stream has begun, so the error is its last event
            yield self._error_event(_known(error))
        finally:
            call.scope.cancel()

    def _error_event(self, error: ApiError) -> dict[str, str]:
        text = _json(_write_error(error, self._route.path)).decode()
        return {"data": text} if _is_openai(self._route.path) else {"event": "error", "data": text}


def choose_root(call: ApiCall) -> tuple[str, tuple[str, ...]]:
    """Return the root that a request means, and the filters of its reader there; see `named_root`."""
    name = getattr(call.query, "root", "") or getattr(call.body, "root_name", "")
    return named_root(call.app, call.reader, name)


def named_root(app: ServedApp, reader: Reader, name: str) -> tuple[str, tuple[str, ...]]:
    """Return the root of a name, and the filters of a reader there.

    Args:
        name: "" is the only root that he may read.

    Raises:
        ApiError: it names none of several roots, or one that is not served or not for this reader.
    """
    permitted = permitted_roots(app, reader)
    if name:
        if name not in permitted:
            raise no_such_root(name)
        return name, permitted[name]
    if len(permitted) != 1:
        problem = "No root is named" if permitted else "You may not read any root"
        raise InvalidRequestError(f"{problem}.", "Name one by `?root=`; GET /roots lists those that you may read.")
    [only] = permitted.items()
    return only


def permitted_roots(app: ServedApp, reader: Reader) -> dict[str, tuple[str, ...]]:
    """Return the roots that a reader may read, with his filters."""
    found = {}
    for name in app.served.names:
        try:
            found[name] = tuple(reader.filters_of(name))
        except PipelineError:
            continue
    return found


def call_snapshot(call: ApiCall) -> str | None:
    """Return the snapshot that a request names in its query or body."""
    named: str = getattr(call.query, "snapshot", "") or getattr(call.body, "snapshot", None) or ""
    return named or None


# ----------------------------------------------------------------------------------------------- reading and writing


def _read_query(route: ApiRoute, raw: bytes) -> BaseModel:
    try:
        if _BAD_ESCAPE.search(raw):
            raise ValueError("a percent sign without two hexadecimal digits")
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw), errors="strict")
    except ValueError:
        raise InvalidRequestError("The query string is not valid percent-encoded UTF-8.") from None
    values: dict[str, Any] = {}
    for name, text in pairs:
        if name in route.list_params:
            values.setdefault(name, []).append(text)
        elif name in values:
            raise InvalidRequestError(f"`{name[:80]}` is given twice.")
        elif name in route.number_params and not _NUMBER.fullmatch(text):
            raise InvalidRequestError(f"`{name}`: {text[:80]!r} is not a whole number in the digits 0 to 9.")
        else:
            values[name] = text
    return _validate(route.query, values)


def _validate(model: type[BaseModel], values: dict[str, Any]) -> BaseModel:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InvalidRequestError(describe_invalid(error)) from None


async def _read_body(route: ApiRoute, scope: Scope, receive: Receive) -> BaseModel:
    kind = _header(scope, b"content-type").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ApiError(415, "not_json", f"The body is `{kind[:80]}`.", "Send JSON, as `application/json`.")
    parts, more = [], True
    while more:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    assert route.body is not None
    content = b"".join(parts)
    if len(content) <= _MAX_IN_LOOP:
        return _parse_body(route.body, content)
    return await asyncio.get_running_loop().run_in_executor(_LARGE_BODIES, _parse_body, route.body, content)


def _parse_body(model: type[BaseModel], content: bytes) -> BaseModel:
    try:
        json.loads(content, object_pairs_hook=_check_keys)  # first, since each unknown key becomes an error below
    except RecursionError:
        raise InvalidRequestError("The body is nested too deeply.") from None
    except ValueError:
        pass  # pydantic says what is wrong with it
    try:
        return model.model_validate_json(content, strict=True)
    except ValidationError as error:
        raise InvalidRequestError(describe_invalid(error)) from None


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


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def _is_streamed(route: ApiRoute, scope: Scope, body: Any) -> bool:
    if route.streams == "wanted":
        return _STREAM in _header(scope, b"accept").lower()
    return route.streams == "always" or (route.streams == "body" and bool(body.stream))


def _base_url(scope: Scope) -> str:
    return f"{scope.get('scheme', 'http')}://{_header(scope, b'host')}"


async def _wait_until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _write(answer: Any) -> bytes:
    return answer if isinstance(answer, bytes) else _json(answer)


def _json(value: Any) -> bytes:
    return to_json(value, inf_nan_mode="null")


def _known(error: Exception) -> ApiError:
    found = error_of(error)
    if found.status == 500:
        _log.error("a request failed", exc_info=error)
    return found


def answer_error(error: Exception, path: str = "") -> Response:
    """Return the answer to a request that failed, in the form of its path."""
    found = _known(error)
    headers = {**API_HEADERS, **found.headers}
    return Response(_json(_write_error(found, path)), found.status, headers=headers, media_type="application/json")


def _write_error(error: ApiError, path: str) -> Any:
    if not _is_openai(path):
        return error.to_answer()
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    message = f"{error} {error.what_to_do}"
    return {"error": {"message": message, "type": kind, "param": None, "code": error.code}}


def _is_openai(path: str) -> bool:
    return path.startswith("/v1/")
