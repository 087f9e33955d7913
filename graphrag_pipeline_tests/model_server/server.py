"""Model server: routes a request, chooses reply and fault, adds latency, answers, records.

`ModelServer.serve` runs in the caller's event loop; `running.py` runs it in a thread.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from graphrag_pipeline.demo_model.replies import reply_to
from graphrag_pipeline.demo_model.requests import approximate_tokens, reply_limit
from graphrag_pipeline.demo_model.shapes import cut_text, embeddings, usage_of
from graphrag_pipeline.demo_model.vectors import embed
from graphrag_pipeline_tests.model_server import shapes
from graphrag_pipeline_tests.model_server.batch_api import BatchApi
from graphrag_pipeline_tests.model_server.dialects import Dialect, describe_window
from graphrag_pipeline_tests.model_server.faults import (
    Fault,
    check_fault_rates,
    choose_fault,
    error_answer,
    error_body,
    spoil_reply,
)
from graphrag_pipeline_tests.model_server.reading import (
    RERANK_PATHS,
    Limits,
    count_inputs,
    find_refusal,
    read_request,
)
from graphrag_pipeline_tests.model_server.records import Call, Log, ReceivedRequest, hide_keys
from graphrag_pipeline_tests.model_server.scripts import Rule, Script, Scripts
from graphrag_pipeline_tests.model_server.shapes import Reply
from graphrag_pipeline_tests.model_server.wire import Connection, HttpRequest

_JSON = {"content-type": "application/json"}
_HTML_TYPE = {"content-type": "text/html"}
_BROKEN_JSON = b'{"id": "chatcmpl-1", "choices": [{"ind\x00'
_HTML = b"<!doctype html><title>Sign in</title><p>Please sign in to the network."
_MODELS_PATHS = ("/v1/models", "/openai/models", "/openai/v1/models")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Settings of the server. A limit of None is off; `count_tokens` counts tokens."""

    latency_s: float = 0.0
    chunk_latency_s: float = 0.0  # between two events of a stream
    faults: Mapping[str, float] = field(default_factory=dict)  # rate by name (faults.py)
    seed: int = 0  # of the faults
    dimensions: int = 256
    models: tuple[str, ...] = ("test-chat", "test-embedding")  # what GET /v1/models lists; any name is served
    api_key: str | None = None
    keep_keys: bool = False  # record the headers that carry a key
    keep_bodies: bool = True  # record request bodies
    hang_s: float = 60.0
    retry_after_s: float = 1.0
    max_context_tokens: int | None = None  # of a chat request and its reply
    max_input_tokens: int | None = None  # of one text to embed
    max_batch_items: int = 2048
    max_in_flight: int | None = None  # requests over it are answered 429 with retry-after-ms, at once
    n_slots: int | None = None  # requests worked on at once; the others wait in a queue, as at llama.cpp
    n_together: int = 1  # no request is answered before so many have been in flight at once (for `together_s` at most)
    together_s: float = 60.0
    tokens_per_s: float | None = None  # speed of generation, added to the latency
    dialect: Dialect = "openai"  # how requests are refused and models listed (dialects.py)
    refused_formats: tuple[str, ...] = ()  # forms of structured outputs that are refused: dialects.FORMATS
    ignored_formats: tuple[str, ...] = ()  # forms that are accepted and have no effect
    count_tokens: Callable[[str], int] = approximate_tokens


class ModelServer:
    """One server. Its address is known while it runs; its log can be read afterwards too."""

    def __init__(self, settings: ServerSettings | None = None, script: Script | None = None) -> None:
        self.settings = settings or ServerSettings()
        check_fault_rates(self.settings.faults)
        self.log = Log()
        self.port = 0
        self.script_errors: list[Exception] = []
        self.batch_api = BatchApi(self._answer_item)
        self._scripts = Scripts(script)
        self._are_together = asyncio.Event()
        n_slots = self.settings.n_slots
        self._slots: AbstractAsyncContextManager[Any] = asyncio.Semaphore(n_slots) if n_slots else nullcontext()

    @property
    def base_url(self) -> str:
        """For `OpenAI(base_url=...)`."""
        return f"{self.root_url}/v1"

    @property
    def root_url(self) -> str:
        """For `AzureOpenAI(azure_endpoint=...)`; /stats is below it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def calls(self) -> list[Call]:
        """All calls since the start or the last reset, in order of arrival."""
        return self.log.calls

    def count(self, kind: str | None = None) -> int:
        """Number of calls of a kind, or of all."""
        return self.log.count(kind)

    def push(self, *rules: Rule) -> None:
        """Add script rules before all earlier ones."""
        self._scripts.push(*rules)

    def reset(self) -> None:
        """Forget all calls and attempts; keep the rules."""
        self.log = Log()

    async def serve(self, port: int, stop: asyncio.Event, on_start: Callable[[], None]) -> None:
        """Listen on loopback (port 0: a free one) until `stop` is set, then close every connection.

        Raises:
            OSError: the port is taken.
        """
        connections: set[Connection] = set()
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(
            lambda: Connection(self._answer, connections), "127.0.0.1", port, backlog=1024
        )
        self.port = listener.sockets[0].getsockname()[1]
        try:
            on_start()
            await stop.wait()
        finally:
            loop.remove_reader(listener.sockets[0].fileno())  # else asyncio fails on a client that connects now
            for _ in range(3):
                await asyncio.sleep(0)  # those that it has accepted reach `connections`
            listener.close()
            await asyncio.gather(*(connection.closed() for connection in list(connections)))
            await listener.wait_closed()

    async def _answer(self, request: HttpRequest, connection: Connection) -> None:
        log = self.log  # keep this log: a reset may happen during a wait
        log.n_in_flight += 1
        log.most_in_flight = max(log.most_in_flight, log.n_in_flight)
        if log.most_in_flight >= self.settings.n_together:
            self._are_together.set()
        try:
            await self._route(request, connection, log)
        finally:
            log.n_in_flight -= 1

    async def _route(self, request: HttpRequest, connection: Connection, log: Log) -> None:
        if (request.method, request.path) == ("GET", "/stats"):
            return _send(connection, 200, log.summary())
        if not self._is_allowed(request.headers):
            return self._send_error(connection, Fault("401"))
        if (found := self.batch_api.route(request)) is not None:
            status, content = found
            is_file = isinstance(content, bytes)
            return connection.send(status, _JSON, content) if is_file else _send(connection, status, content)
        if request.method == "GET" and request.path in _MODELS_PATHS:
            return _send(connection, 200, self._list_models())
        is_chat = request.path.endswith("/chat/completions")
        is_azure = request.path.startswith("/openai/deployments/")
        is_known = is_chat or request.path.endswith(("/embeddings", *RERANK_PATHS))
        if request.method != "POST" or not is_known or (is_azure and "api-version=" not in request.query):
            return self._send_error(connection, Fault("404", message=f"Unknown URL: {request.method} {request.path}"))
        try:
            received = read_request(request, is_chat, log.next_attempt, self.settings.ignored_formats)
        except ValueError as error:
            return self._send_error(connection, Fault("400", message=str(error)))
        call = Call(received.kind, received.path, received.model, received.key, received.attempt,
                    received.headers if self.settings.keep_keys else hide_keys(received.headers),
                    received.body if self.settings.keep_bodies else None, n_inputs=len(received.inputs))  # fmt: skip
        log.calls.append(call)
        await self._reply(received, call, connection, log.n_in_flight)

    async def _reply(self, request: ReceivedRequest, call: Call, connection: Connection, n_in_flight: int) -> None:
        settings = self.settings
        n_tokens = count_inputs(request, settings.count_tokens)
        limits = Limits(settings.max_context_tokens, settings.max_input_tokens, settings.max_batch_items,
                        settings.dialect, settings.refused_formats)  # fmt: skip
        fault = find_refusal(request, n_tokens, limits)
        if fault is None and settings.max_in_flight is not None and n_in_flight > settings.max_in_flight:
            fault = Fault("429-retry-after-ms")
        if fault is not None:
            call.fault = fault.name
            return self._send_error(connection, fault, call)
        async with self._slots:
            reply, fault = self._decide(request)
            call.fault = fault.name if fault else None
            reply = self._limit(reply, request.body, sum(n_tokens))
            await asyncio.sleep(self._seconds_of(reply))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._are_together.wait(), settings.together_s)
        if fault is not None and error_answer(fault, settings.retry_after_s) is not None:
            return self._send_error(connection, fault, call)
        match call.fault:
            case "drop":
                return connection.drop()
            case "hang":
                await asyncio.sleep(settings.hang_s)
                return connection.drop()
            case "garbage" | "html":
                call.status = 200
                is_html = call.fault == "html"
                return connection.send(200, _HTML_TYPE if is_html else _JSON, _HTML if is_html else _BROKEN_JSON)
        await self._send_reply(request, reply, sum(n_tokens), call, connection, fault)

    def _seconds_of(self, reply: Reply) -> float:
        latency_s = self.settings.latency_s if reply.latency_s is None else reply.latency_s
        speed = self.settings.tokens_per_s
        return latency_s + (self.settings.count_tokens(reply.text) / speed if speed and reply.text else 0.0)

    def _decide(self, request: ReceivedRequest) -> tuple[Reply, Fault | None]:
        """The reply, spoilt if the fault concerns its content, and the fault."""
        settings = self.settings
        try:
            scripted = self._scripts.answer(request)
        except Exception as error:  # test code: each exception must reach the test in the other thread
            self.script_errors.append(error)
            scripted = Fault("500", message=f"the test's script failed: {error!r}")
        is_chat = request.kind not in ("embedding", "rerank")
        if isinstance(scripted, Fault):
            fault: Fault | None = scripted
        else:
            fault = choose_fault(settings.faults, is_chat, settings.seed, request.key, request.attempt)
        if isinstance(scripted, Reply):
            reply = scripted
        elif is_chat:
            reply = Reply(reply_to(request.kind, request.conversation), tool=request.conversation.tool)
        elif request.kind == "rerank":
            reply = Reply(
                scores=shapes.score_texts(str(request.body.get("query") or request.body.get("text_1")), request.inputs)
            )
        else:
            n_missing = 1 if fault is not None and fault.name == "wrong-dimension" else 0
            dimensions = int(request.body.get("dimensions") or settings.dimensions) - n_missing
            reply = Reply(vectors=[embed(item, dimensions) for item in request.inputs])
        return spoil_reply(fault, reply, request.conversation), fault

    async def _send_reply(
        self,
        request: ReceivedRequest,
        reply: Reply,
        n_prompt: int,
        call: Call,
        connection: Connection,
        fault: Fault | None,
    ) -> None:
        """Send a reply whole, streamed, or up to its middle, and book its tokens."""
        is_cut = call.fault == "drop-midway"
        usage = self._count(reply, n_prompt, call)
        call.status = None if is_cut else 200  # before sending: a client may read it as soon as it has its answer
        if request.body.get("stream") and reply.vectors is None:
            await self._stream(request, reply, usage, fault, connection)
        elif fault is not None and fault.name == "error-event":
            _send(connection, 200, error_body(fault))
        else:
            body = self._body_of(request, reply, usage, call.prompt_tokens)
            _send(connection, 200, body, {"x-request-id": f"req_{request.key[:16]}-{request.attempt}"}, is_cut)

    def _count(self, reply: Reply, n_prompt: int, call: Call) -> dict[str, Any] | None:
        """Book the tokens of a reply; return its usage, if it has one."""
        said = reply.text if reply.text is not None else reply.refusal or ""
        call.prompt_tokens = n_prompt if reply.prompt_tokens is None else reply.prompt_tokens
        counted = 0 if reply.vectors is not None or reply.scores is not None else self.settings.count_tokens(said)
        call.completion_tokens = counted if reply.completion_tokens is None else reply.completion_tokens
        return None if call.fault == "no-usage" else usage_of(call.prompt_tokens, call.completion_tokens)

    def _body_of(self, request: ReceivedRequest, reply: Reply, usage: dict[str, Any] | None, n_prompt: int) -> Any:
        if reply.scores is not None:
            return shapes.rankings(request.path, request.model, reply.scores, request.body.get("top_n"), n_prompt)
        if reply.vectors is not None:
            encoding = request.body.get("encoding_format") or "float"
            body = embeddings(request.model, reply.vectors, encoding, n_prompt)
            return body if usage else {name: value for name, value in body.items() if name != "usage"}
        return shapes.completion(request.key, request.model, reply, usage, int(request.body.get("n") or 1))

    def _answer_item(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Answer one request of a batch: status and body."""
        log, settings = self.log, self.settings
        is_chat = path.endswith("/chat/completions")
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()  # as the SDK sends it
        sent = HttpRequest("POST", path, "", {}, content)
        received = read_request(sent, is_chat, log.next_attempt, settings.ignored_formats)
        call = Call(received.kind, path, received.model, received.key, received.attempt, {}, received.body,
                    n_inputs=len(received.inputs), is_batched=True)  # fmt: skip
        log.calls.append(call)
        n_tokens = count_inputs(received, settings.count_tokens)
        limits = Limits(settings.max_context_tokens, settings.max_input_tokens, settings.max_batch_items,
                        settings.dialect, settings.refused_formats)  # fmt: skip
        fault = find_refusal(received, n_tokens, limits)
        reply = None
        if fault is None:
            reply, fault = self._decide(received)
        call.fault = fault.name if fault else None
        if fault is not None and (answer := error_answer(fault, settings.retry_after_s)) is not None:
            call.status = answer.status
            return answer.status, shapes.error(answer.status, answer.message, answer.code, answer.param, answer.more)
        assert reply is not None
        call.status = 200
        reply = self._limit(reply, received.body, sum(n_tokens))
        return 200, self._body_of(received, reply, self._count(reply, sum(n_tokens), call), call.prompt_tokens)

    async def _stream(
        self,
        request: ReceivedRequest,
        reply: Reply,
        usage: dict[str, Any] | None,
        fault: Fault | None,
        connection: Connection,
    ) -> None:
        name = fault.name if fault else ""
        is_cut = name == "drop-midway"
        shown = usage if (request.body.get("stream_options") or {}).get("include_usage") else None
        parts = list(shapes.stream_parts(request.key, request.model, reply, shown, name == "null-delta"))
        if fault is not None and name == "error-event":
            parts = [parts[0], b"data: " + json.dumps(error_body(fault)).encode() + b"\n\n"]
        connection.start_stream(200, {"content-type": "text/event-stream"})
        for part in parts[: len(parts) // 2] if is_cut else parts:
            connection.send_part(part)
            if self.settings.chunk_latency_s:
                await asyncio.sleep(self.settings.chunk_latency_s)
        if is_cut:
            connection.hang_up()
        else:
            connection.end_stream()

    def _limit(self, reply: Reply, body: dict[str, Any], n_prompt: int) -> Reply:
        """The reply cut at the request's own `max_completion_tokens` or `max_tokens`, and at the end of the window."""
        window = self.settings.max_context_tokens
        limits = [reply_limit(body), None if window is None else max(1, window - n_prompt)]
        limit = min((limit for limit in limits if limit), default=None)
        text, reason = cut_text(reply.text or "", limit, self.settings.count_tokens)
        return reply if reason == "stop" else dataclasses.replace(reply, text=text, finish_reason=reason)

    def _list_models(self) -> dict[str, Any]:
        settings = self.settings
        return shapes.models(settings.models, describe_window(settings.dialect, settings.max_context_tokens))

    def _is_allowed(self, headers: dict[str, str]) -> bool:
        given = (headers.get("authorization", "").removeprefix("Bearer "), headers.get("api-key"))
        return self.settings.api_key is None or self.settings.api_key in given

    def _send_error(self, connection: Connection, fault: Fault, call: Call | None = None) -> None:
        answer = error_answer(fault, self.settings.retry_after_s)
        assert answer is not None, fault
        if call is not None:
            call.status = answer.status
        if isinstance(fault.raw, str):
            return connection.send(answer.status, _HTML_TYPE, fault.raw.encode())
        body = fault.raw or shapes.error(answer.status, answer.message, answer.code, answer.param, answer.more)
        _send(connection, answer.status, body, answer.headers)


def _send(
    connection: Connection, status: int, body: Any, headers: Mapping[str, str] | None = None, is_cut: bool = False
) -> None:
    content = json.dumps(body).encode()
    connection.send(status, {**_JSON, **(headers or {})}, content, len(content) // 2 if is_cut else None)
