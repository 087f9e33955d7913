"""OpenAI's own client asks a server whose answers a model writes: whole, streamed, broken off, too late, cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import openai
import pytest

from graphrag_pipeline.serve.limits import ServerLimits
from graphrag_pipeline_tests.model_server import ReceivedRequest
from graphrag_pipeline_tests.model_server.faults import Fault
from graphrag_pipeline_tests.model_server.shapes import Reply
from graphrag_pipeline_tests.support.models.model_roots import KEY, ModelIndex
from graphrag_pipeline_tests.support.serving import RunningServer, running_server

QUESTION = {"role": "user", "content": "Who leads the council?"}


@contextmanager
def serving(index: ModelIndex, timeout_s: float = 60.0) -> Iterator[tuple[RunningServer, openai.OpenAI]]:
    limits = ServerLimits(timeout_s=timeout_s)
    with (
        running_server({"articles": index.root.path}, limits=limits) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client,
    ):
        yield server, client


def of_chat(answer: object) -> object:
    """A script that answers requests to the chat model only."""
    return lambda request: answer if request.path.endswith("/chat/completions") else None


def text_of(chunks: list) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def wait_until_idle(server: RunningServer) -> None:
    deadline = time.monotonic() + 30
    while "graphrag_requests_running 0.0" not in server.client.get("/metrics").text:
        assert time.monotonic() < deadline, "the search goes on"
        time.sleep(0.05)


def test_a_streamed_answer_is_the_whole_one(model_index: ModelIndex) -> None:
    with serving(model_index) as (_, client):
        chunks = list(
            client.chat.completions.create(
                model="articles:local", messages=[QUESTION], stream=True, stream_options={"include_usage": True}
            )
        )
        whole = client.chat.completions.create(model="articles:local", messages=[QUESTION])
    message = whole.choices[0].message
    assert text_of(chunks) == message.content and message.annotations
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None and chunks[-1].usage.prompt_tokens > 0  # the second answer is a stored one
    for annotation in message.annotations:
        cited = annotation.url_citation
        assert message.content[cited.start_index : cited.end_index].startswith("[^")


def test_an_answer_that_breaks_off_goes_on_with_the_embedded_engine(model_index: ModelIndex) -> None:
    model_index.script = of_chat(Fault("drop-midway"))
    with serving(model_index) as (server, client):
        chunks = list(client.chat.completions.create(model="articles:local", messages=[QUESTION], stream=True))
        assert "The model gave no answer (the reply broke off" in text_of(chunks)
        assert "the embedded engine answers instead" in text_of(chunks) and KEY not in text_of(chunks)
        assert chunks[-1].choices[0].finish_reason == "stop"
        wait_until_idle(server)
        model_index.script = None
        again = client.chat.completions.create(model="articles:local", messages=[QUESTION])
        assert "broke off" not in str(again.choices[0].message.content)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_refused_key_is_an_error_of_the_server_without_advice(model_index: ModelIndex, is_streamed: bool) -> None:
    model_index.script = of_chat(Fault("401"))
    with serving(model_index) as (_, client), pytest.raises(openai.APIError) as caught:
        list(client.chat.completions.create(model="articles:local", messages=[QUESTION], stream=is_streamed))
    assert KEY not in str(caught.value) and "environment variable" not in str(caught.value)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_model_that_takes_too_long_is_cancelled(model_index: ModelIndex, is_streamed: bool) -> None:
    model_index.script = of_chat(Reply("Late.", latency_s=30.0))
    with serving(model_index, timeout_s=1.5) as (server, client):
        started = time.monotonic()
        with pytest.raises(openai.APIError, match="No answer within"):
            list(client.chat.completions.create(model="articles:local", messages=[QUESTION], stream=is_streamed))
        assert time.monotonic() - started < 15
        wait_until_idle(server)


def test_a_client_that_leaves_ends_the_call_to_the_model(model_index: ModelIndex) -> None:
    is_asked, may_answer = threading.Event(), threading.Event()

    def wait(request: ReceivedRequest) -> object:
        if request.path.endswith("/chat/completions"):
            is_asked.set()
            may_answer.wait(60)
        return None

    model_index.script = wait
    try:
        with serving(model_index) as (server, client):
            stream = client.chat.completions.create(model="articles:local", messages=[QUESTION], stream=True)
            assert next(iter(stream)).choices[0].delta.role == "assistant"
            assert is_asked.wait(30)
            stream.close()
            wait_until_idle(server)
    finally:
        may_answer.set()


def test_suggested_questions_are_written_by_the_model_and_name_records(model_index: ModelIndex) -> None:
    with serving(model_index) as (server, _):
        body = {"history": [QUESTION, {"role": "assistant", "content": "Nobody says."}]}
        answer = server.client.post("/follow-ups", json=body).raise_for_status().json()
        assert answer["engine"] == "model" and answer["questions"] and not answer["failure"]
        for one in answer["questions"]:
            assert all(record["title"].casefold() in one["question"].casefold() for record in one["about"])
        model_index.script = of_chat(Fault("500"))
        body = {"question": "Who met whom in the council?"}
        answer = server.client.post("/follow-ups", json=body).raise_for_status().json()
    assert answer["engine"] == "embedded" and answer["failure"] and answer["questions"]
    assert all(one["about"] for one in answer["questions"])
