"""One request: who reads, its turn among others, its work in a thread, its time limit, and its metrics.

Keep out: routes, and which root has which index (`served_roots.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sse_starlette import EventSourceResponse
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from graphrag_pipeline.access.rules import NOBODY, Principal
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.endpoints.problems import causes_in_log
from graphrag_pipeline.models.event_loop import CallScope
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.serve.api_route import FilteredQuery, RootQuery
from graphrag_pipeline.serve.errors import (
    API_HEADERS,
    ApiError,
    InvalidRequestError,
    answer_json,
    is_openai,
    known_error,
    write_error,
    write_json,
)
from graphrag_pipeline.serve.limits import Admission, Place, ServerLimits, timed_out
from graphrag_pipeline.serve.served_roots import IndexLease, ServedRoots, no_such_root
from graphrag_pipeline.turns import Turns

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counters of one server."""

    def __init__(self, served: ServedRoots) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "graphrag_http_requests", "Requests that were answered.", ["route", "method", "status"],
            registry=self._registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "graphrag_http_request_seconds", "Seconds from the request to the end of its answer.", ["route"],
            buckets=_SECONDS, registry=self._registry,
        )  # fmt: skip
        self._searches = Counter("graphrag_searches", "Searches that ended.", ["method"], registry=self._registry)
        self._tokens = Counter(
            "graphrag_model_tokens", "Tokens that models read and wrote for searches.", ["direction"],
            registry=self._registry,
        )  # fmt: skip
        self.admission: Admission | None = None
        self._registry.register(_State(self, served))
        ProcessCollector(registry=self._registry)

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_search(self, method: str, input_tokens: int, output_tokens: int) -> None:
        """Count a search and the tokens of its models."""
        self._searches.labels(method).inc()
        self._tokens.labels("input").inc(input_tokens)
        self._tokens.labels("output").inc(output_tokens)

    def render(self) -> bytes:
        """Return all figures in Prometheus' text format."""
        rendered: bytes = generate_latest(self._registry)
        return rendered


class _State(Collector):
    """The state of the server at the time of the question."""

    def __init__(self, metrics: Metrics, served: ServedRoots) -> None:
        self._metrics = metrics
        self._served = served

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        admission = self._metrics.admission
        yield _gauge("graphrag_requests_running", "Requests that compute now.", admission.n_running if admission else 0)
        yield _gauge("graphrag_requests_waiting", "Requests in the queue.", admission.n_waiting if admission else 0)
        leases = GaugeMetricFamily("graphrag_leases", "Requests that read a root.", labels=["root"])
        followed = GaugeMetricFamily("graphrag_publications_followed", "Since the start.", labels=["root"])
        snapshots = GaugeMetricFamily("graphrag_snapshot_info", "The open snapshot.", labels=["root", "snapshot"])
        failing = GaugeMetricFamily("graphrag_follow_failing", "1 if the last look failed.", labels=["root"])
        for name in self._served.names:
            root = self._served.root(name)
            leases.add_metric([name], root.n_leases)
            followed.add_metric([name], root.n_followed)
            snapshots.add_metric([name, root.snapshot or ""], 1)
            failing.add_metric([name], int(bool(root.problem)))
        yield from (leases, followed, snapshots, failing)


def _gauge(name: str, what: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, what, value=value)


Emit = Callable[[str, Any], None]
"""Takes an event of a stream: its name, "" for one without a name, and its data."""


@dataclass(frozen=True)
class ServedApp:
    """The parts of a server that functions behind routes use."""

    served: ServedRoots
    limits: ServerLimits
    metrics: Metrics


@dataclass(frozen=True)
class Workers:
    """The threads of a server, the admission to them, and their turns; None if they mostly wait for models."""

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


@dataclass(frozen=True)
class ApiCall:
    """One request at work; its scope cancels the calls to models if the client goes away."""

    request: Request
    app: ServedApp
    workers: Workers
    scope: CallScope = field(default_factory=CallScope)

    @property
    def reader(self) -> Principal:
        """The reader whom the gate named."""
        reader: Principal = self.request.scope["state"].get("reader", NOBODY)
        return reader

    @property
    def base_url(self) -> str:
        """Address of the server, as the client named it."""
        return f"{self.request.scope.get('scheme', 'http')}://{self.request.headers.get('host', '')}"

    async def read(self, query: RootQuery, work: Callable[[IndexLease], Any]) -> Response:
        """Answer with what `work` returns about a leased index."""
        return answer_json(await self._compute(lambda: write_json(self._on_lease(query.root, query.snapshot, work))))

    async def show(self, query: FilteredQuery, name: str, read: Callable[[GraphIndex], Any]) -> Response:
        """Answer with what `read` returns about the index as the filters of the request leave it, under a name."""
        return await self.read(query, lambda lease: lease.answer(**{name: read(lease.index.where(query.filter))}))

    async def show_list(
        self, query: FilteredQuery, name: str, read: Callable[[GraphIndex], tuple[Iterable[Any], int]]
    ) -> Response:
        """Answer like `show` with a part of a list, and the length of the whole."""

        def work(lease: IndexLease) -> dict[str, Any]:
            found, total = read(lease.index.where(query.filter))
            return lease.answer(**{name: found, "total": total})

        return await self.read(query, work)

    async def search(self, root: str, snapshot: str | None, work: Callable[[IndexLease], Any]) -> Response:
        """Answer like `read`; if the client goes away, calls to models are cancelled."""
        left = asyncio.ensure_future(_wait_until_left(self.request))
        try:
            return answer_json(await self._compute(lambda: write_json(self._on_lease(root, snapshot, work)), left))
        finally:
            left.cancel()

    async def _compute(self, work: Callable[[], bytes], left: asyncio.Future | None = None) -> bytes:
        wrapped = asyncio.wrap_future(await self.workers.start(work, self.reader.name))
        try:
            timeout = self.app.limits.timeout_s
            waiting = {wrapped, left} if left else {wrapped}
            await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if wrapped.done():
                return wrapped.result()
            raise ClientDisconnect if left and left.done() else timed_out(timeout)
        finally:
            if not wrapped.done():
                self.scope.cancel()
                wrapped.cancel()

    def _on_lease(self, root: str, snapshot: str | None, work: Callable[[IndexLease], Any]) -> Any:
        """Run `work` on a leased index, in a thread."""
        name, filters = named_root(self.app, self.reader, root)
        with self.app.served.lease(name, filters, snapshot or None) as lease:
            return work(lease)

    async def stream(self, root: str, snapshot: str | None, work: Callable[[IndexLease, Emit], Any]) -> Response:
        """Answer with the events that `work` emits in its thread."""
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[tuple[str, Any] | None] = asyncio.Queue()

        def emit(name: str, data: Any) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(events.put_nowait, (name, data))

        future = await self.workers.start(
            lambda: self._on_lease(root, snapshot, lambda lease: work(lease, emit)), self.reader.name
        )
        future.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(events.put_nowait, None))
        first = await self._first_event(events, future)
        return EventSourceResponse(
            self._events(first, events, future), headers=API_HEADERS, ping=15, sep="\n", send_timeout=60
        )

    async def _first_event(self, events: asyncio.Queue, future: Future[Any]) -> tuple[str, Any] | None:
        """Wait for the first event, so that an error before it has its status."""
        coming, left = asyncio.ensure_future(events.get()), asyncio.ensure_future(_wait_until_left(self.request))
        timeout = self.app.limits.timeout_s
        try:
            await asyncio.wait({coming, left}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                self.scope.cancel()
                raise ClientDisconnect if left.done() else timed_out(timeout)
        finally:
            coming.cancel()
            left.cancel()
        first: tuple[str, Any] | None = coming.result()
        if first is None:
            future.result()
        return first

    async def _events(
        self, first: tuple[str, Any] | None, events: asyncio.Queue, future: Future[Any]
    ) -> AsyncIterator[dict[str, str]]:
        ends = asyncio.get_running_loop().time() + self.app.limits.timeout_s
        try:
            event = first
            while event is not None:
                name, data = event
                text = data if isinstance(data, str) else write_json(data).decode()
                yield {"event": name, "data": text} if name else {"data": text}
                event = await asyncio.wait_for(events.get(), ends - asyncio.get_running_loop().time())
            future.result()
        except TimeoutError:
            yield self._error_event(timed_out(self.app.limits.timeout_s))
        except Exception as error:  # the stream has begun, so the error is its last event
            yield self._error_event(known_error(error))
        finally:
            self.scope.cancel()

    def _error_event(self, error: ApiError) -> dict[str, str]:
        path = self.request.scope["path"]
        text = write_error(error, path).decode()
        return {"data": text} if is_openai(path) else {"event": "error", "data": text}


async def _find_call(request: Request) -> ApiCall:
    return ApiCall(request, request.app.state.served_app, request.app.state.workers)


Call = Annotated[ApiCall, Depends(_find_call)]
"""The request, as a parameter of a route."""


def named_root(app: ServedApp, reader: Principal, name: str) -> tuple[str, tuple[str, ...]]:
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


def permitted_roots(app: ServedApp, reader: Principal) -> dict[str, tuple[str, ...]]:
    """Return the roots that a reader may read, with his filters."""
    found = {}
    for name in app.served.names:
        try:
            found[name] = tuple(reader.filters_of(name))
        except PipelineError:
            continue
    return found


async def _wait_until_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
