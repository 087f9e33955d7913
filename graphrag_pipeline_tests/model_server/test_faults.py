"""Each fault as the real SDK sees it, by rate and by script, and when: by seed and request, never by order."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

import openai
import pytest

from graphrag_pipeline_tests.model_server import Fault, ModelServer, running_model_server
from graphrag_pipeline_tests.support.models.openai_calls import KEY, ask, connect

ERRORS: list[tuple[str, type[Exception], dict[str, str]]] = [
    ("429", openai.RateLimitError, {}),
    ("429-retry-after", openai.RateLimitError, {"retry-after": "2"}),
    ("429-retry-after-ms", openai.RateLimitError, {"retry-after-ms": "1500"}),
    ("429-quota", openai.RateLimitError, {}),
    ("500", openai.InternalServerError, {}),
    ("503", openai.InternalServerError, {}),
    ("401", openai.AuthenticationError, {}),
    ("404", openai.NotFoundError, {}),
    ("too-long", openai.BadRequestError, {}),
    ("unsupported-format", openai.BadRequestError, {}),
]


@pytest.mark.parametrize(("name", "kind", "headers"), ERRORS, ids=[row[0] for row in ERRORS])
def test_errors_come_with_status_and_headers(name: str, kind: type[Exception], headers: dict[str, str]) -> None:
    with running_model_server([("echo", Fault(name))], retry_after_s=1.5) as server:
        with pytest.raises(kind) as caught:
            ask(connect(server))
        assert isinstance(caught.value, openai.APIStatusError)
        sent = {name: value for name, value in caught.value.response.headers.items() if name.startswith("retry")}
        assert sent == headers and server.calls[0].status == caught.value.status_code


@pytest.mark.parametrize("name", ["drop", "drop-midway"])
def test_a_dropped_connection_is_a_connection_error(name: str) -> None:
    with running_model_server([("echo", Fault(name))]) as server:
        with pytest.raises(openai.APIConnectionError):
            ask(connect(server))
        assert server.calls[0].status is None and not server.calls[0].is_clean


def test_a_stream_dropped_midway_gives_its_first_parts() -> None:
    with running_model_server([("echo", Fault("drop-midway"))], chunk_latency_s=0.01) as server:
        texts: list[str | None] = []
        with pytest.raises(openai.APIConnectionError):
            for event in ask(connect(server), stream=True):
                texts.append(event.choices[0].delta.content)
        assert 0 < len("".join(text or "" for text in texts)) < len("Echo: Hello there")


def test_a_hang_ends_with_the_clients_time_out() -> None:
    with running_model_server([("echo", (Fault("hang"), "back"))]) as server:
        with pytest.raises(openai.APITimeoutError):
            ask(connect(server, timeout=0.2))
        assert ask(connect(server)).choices[0].message.content == "back"
        assert [call.status for call in server.calls] == [None, 200]


def test_bodies_that_are_not_json() -> None:
    with running_model_server([("echo", (Fault("garbage"), Fault("html")))]) as server:
        with pytest.raises(ValueError):
            ask(connect(server))
        reply: Any = ask(connect(server))
        assert isinstance(reply, str), "the SDK hands out what is not declared as JSON: a client must look"


SPOILT: list[tuple[str, Callable[[Any], bool]]] = [
    ("truncated", lambda choice: choice.finish_reason == "length" and choice.message.content == '{"answer'),
    ("fenced", lambda choice: choice.message.content == '```json\n{"answer": "yes"}\n```'),
    ("refused", lambda choice: choice.message.content is None and "can't help" in choice.message.refusal),
    ("empty", lambda choice: choice.message.content == "" and choice.finish_reason == "stop"),
    ("nonsense", lambda choice: '{"answer"' not in choice.message.content),
]


@pytest.mark.parametrize(("name", "is_as_told"), SPOILT, ids=[row[0] for row in SPOILT])
def test_spoilt_replies_by_rate(name: str, is_as_told: Callable[[Any], bool]) -> None:
    with running_model_server([("echo", {"answer": "yes"})], faults={name: 1}) as server:
        assert is_as_told(ask(connect(server)).choices[0])


def test_a_wrong_dimension_spoils_embeddings_only() -> None:
    with running_model_server(faults={"wrong-dimension": 1}, dimensions=8) as server:
        assert len(connect(server).embeddings.create(model="e", input="x").data[0].embedding) == 7
        assert ask(connect(server)).choices[0].message.content == "Echo: Hello there"


def test_more_requests_at_once_than_allowed_are_rate_limited() -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "wait"}]}).encode()
    raw = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    with running_model_server([("wait", Fault("hang"))], max_in_flight=2) as server:
        waiting = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        for connection in waiting:
            connection.sendall(raw)
        wait_until(lambda: server.log.n_in_flight == 2)
        with pytest.raises(openai.RateLimitError):
            ask(connect(server))
        for connection in waiting:
            connection.close()
        wait_until(lambda: server.log.n_in_flight == 0)
        assert ask(connect(server)) and server.log.most_in_flight == 3


def wait_until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.005)


async def ask_all(
    server: ModelServer, order: Iterable[int], n_at_once: int = 100, max_retries: int = 0, timeout_s: float = 30
) -> dict[int, str]:
    """Replies, or names of errors, to numbered questions asked in this order."""
    places = asyncio.Semaphore(n_at_once)

    async def one(client: openai.AsyncOpenAI, i: int) -> str:
        try:
            async with places:
                reply = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": f"q{i}"}])
        except openai.OpenAIError as error:
            return type(error).__name__
        return reply.choices[0].message.content or ""

    order = list(order)
    options: dict[str, Any] = {"api_key": KEY, "max_retries": max_retries, "timeout": timeout_s}
    async with openai.AsyncOpenAI(base_url=server.base_url, **options) as client:
        return dict(zip(order, await asyncio.gather(*(one(client, i) for i in order)), strict=True))


def test_faults_depend_on_seed_and_request_not_on_order() -> None:
    rates = {"429": 0.2, "500": 0.1, "drop": 0.1}
    runs = []
    for seed, order, n_at_once in (
        (7, range(60), 60),
        (7, range(60), 7),
        (7, range(59, -1, -1), 1),
        (8, range(60), 60),
    ):
        with running_model_server(faults=rates, seed=seed) as server:
            runs.append(asyncio.run(ask_all(server, order, n_at_once)))
    assert runs[0] == runs[1] == runs[2] != runs[3]
    assert 10 < sum(not outcome.startswith("Echo") for outcome in runs[0].values()) < 40, "about 40 %"


def test_a_retried_call_can_succeed_and_is_booked_once() -> None:
    with running_model_server(faults={"429-retry-after-ms": 0.5}, retry_after_s=0.001, seed=1) as server:
        replies = asyncio.run(ask_all(server, range(20), max_retries=20))
        assert replies == {i: f"Echo: q{i}" for i in range(20)}
        assert server.count() > 20 and not server.log.repeated_keys()
        ask(connect(server, max_retries=20), "q3")
        assert server.log.summary()["statuses"]["200"] == 21


@pytest.mark.parametrize("rates", [{"sleepy": 0.1}, {"429": 1.5}, {"429": 0.6, "empty": 0.6}], ids=str)
def test_impossible_fault_rates_are_refused(rates: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="model server"), running_model_server(faults=rates):
        pass
