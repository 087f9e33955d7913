"""OpenAI's API through its own client, with and without a model."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import openai
import pytest

from graphrag_pipeline.serve.limits import ServerLimits
from graphrag_pipeline.serve.openai_api import FootnoteStream, drop_footnotes, refer
from graphrag_pipeline_tests.model_server import ReceivedRequest
from graphrag_pipeline_tests.model_server.faults import Fault
from graphrag_pipeline_tests.model_server.shapes import Reply
from graphrag_pipeline_tests.support.models.model_roots import KEY, ModelIndex
from graphrag_pipeline_tests.support.roots import CAROL
from graphrag_pipeline_tests.support.serving import RunningServer, running_server

TEXTS = {name.partition(".")[0]: text for name, text in CAROL.items()}
QUESTION = {"role": "user", "content": "Who is Bob Cratchit?"}


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as opened:
        yield opened


def test_models_are_roots_with_methods(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert names == ["carol:local", "carol:global", "carol:basic", "carol:drift", "carol:lazy", "carol:auto"]
    assert client.models.retrieve("carol:drift").id == "carol:drift"
    with pytest.raises(openai.NotFoundError, match="no model"):
        client.models.retrieve("carol:telepathy")


@pytest.mark.parametrize("model", ["carol:local", "carol:global", "carol:auto", "local", "carol"])
def test_an_answer_has_footnotes_and_annotations(client: openai.OpenAI, server: RunningServer, model: str) -> None:
    completion = client.chat.completions.create(model=model, messages=[QUESTION])
    message = completion.choices[0].message
    assert completion.choices[0].finish_reason == "stop" and message.role == "assistant"
    assert completion.system_fingerprint == server.served.root("carol").snapshot
    assert completion.usage is not None and completion.usage.prompt_tokens > 0
    assert message.content and message.annotations
    for annotation in message.annotations:
        cited = annotation.url_citation
        marker = message.content[cited.start_index : cited.end_index]
        assert f"\n{marker}: " in message.content  # its footnote
        text = httpx.get(cited.url).raise_for_status().json()["document"]
        assert text["text"] == cited.quote == TEXTS[text["title"]][text["start"] : text["end"]]  # type: ignore[attr-defined]


def test_a_stream_has_the_same_answer(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="carol:local", messages=[QUESTION])
    chunks = list(
        client.chat.completions.create(
            model="carol:local", messages=[QUESTION], stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    last = next(chunk.choices[0] for chunk in reversed(chunks) if chunk.choices)
    expected = [one.model_dump() for one in whole.choices[0].message.annotations or ()]
    assert last.finish_reason == "stop" and last.delta.annotations == expected  # type: ignore[attr-defined]
    assert chunks[-1].usage == whole.usage
    assert {chunk.system_fingerprint for chunk in chunks} == {whole.system_fingerprint}


def test_history_system_messages_and_additions_count(client: openai.OpenAI) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Who is Tiny Tim?"},
        {"role": "assistant", "content": "A child [^1].\n\n[^1]: two.txt: “Tiny Tim”"},
        {"role": "user", "content": [{"type": "text", "text": "What did he do then?"}]},
    ]
    completion = client.chat.completions.create(
        model="carol:local", messages=messages, extra_body={"filters": ["path=two.txt"], "strategy": "graph"}
    )  # type: ignore[call-overload]
    content = completion.choices[0].message.content
    assert "Tiny Tim" in content
    assert {one.url_citation.title for one in completion.choices[0].message.annotations} == {"two"}


def test_errors_have_the_form_that_the_client_reads(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="no root"):
        client.chat.completions.create(model="other:local", messages=[QUESTION])
    with pytest.raises(openai.NotFoundError, match="no model"):
        client.chat.completions.create(model="carol:telepathy", messages=[QUESTION])
    with pytest.raises(openai.BadRequestError, match="user"):
        client.chat.completions.create(model="carol:local", messages=[{"role": "system", "content": "Hello"}])
    with pytest.raises(openai.BadRequestError, match="empty"):
        client.chat.completions.create(model="carol:local", messages=[{"role": "user", "content": " "}], stream=True)
    with pytest.raises(openai.BadRequestError, match="colour"):
        client.chat.completions.create(model="carol:local", messages=[QUESTION], extra_body={"filters": ["colour=1"]})
    with pytest.raises(openai.BadRequestError, match="`n`"):
        client.chat.completions.create(model="carol:local", messages=[QUESTION], n=2)


@pytest.mark.parametrize("text", ["He is [1] a clerk [2][3].", "In [2020] he [a] wrote [1](http://x) [12", "[", ""])
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_markers_become_references_in_pieces_of_any_size(text: str, size: int) -> None:
    stream = FootnoteStream()
    pieces = [stream.take(text[place : place + size]) for place in range(0, len(text), size)]
    assert "".join([*pieces, stream.finish()]) == refer(text)


def test_history_holds_no_footnotes() -> None:
    assert drop_footnotes("A clerk [^1].\n\n[^1]: two.txt, characters 1-2: “x”\n[^2]: y") == "A clerk ."


COUNCIL = {"role": "user", "content": "Who leads the council?"}


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
                model="articles:local", messages=[COUNCIL], stream=True, stream_options={"include_usage": True}
            )
        )
        whole = client.chat.completions.create(model="articles:local", messages=[COUNCIL])
    message = whole.choices[0].message
    assert text_of(chunks) == message.content and message.annotations
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None and chunks[-1].usage.prompt_tokens > 0  # the second answer is a stored one
    for annotation in message.annotations:
        cited = annotation.url_citation
        assert message.content[cited.start_index : cited.end_index].startswith("[^")


def test_an_answer_that_breaks_off_goes_on_with_the_embedded_engine(model_index: ModelIndex) -> None:
    with serving(model_index) as (server, client):
        other = {"role": "user", "content": "Where is Torbrook Water?"}  # an endpoint's first reply is passed on whole
        client.chat.completions.create(model="articles:local", messages=[other])
        model_index.script = of_chat(Fault("drop-midway"))
        chunks = list(client.chat.completions.create(model="articles:local", messages=[COUNCIL], stream=True))
        assert "The model gave no answer (the reply broke off" in text_of(chunks)
        assert "the embedded engine answers instead" in text_of(chunks) and KEY not in text_of(chunks)
        assert chunks[-1].choices[0].finish_reason == "stop"
        wait_until_idle(server)
        model_index.script = None
        again = client.chat.completions.create(model="articles:local", messages=[COUNCIL])
        assert "broke off" not in str(again.choices[0].message.content)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_refused_key_is_an_error_of_the_server_without_advice(model_index: ModelIndex, is_streamed: bool) -> None:
    model_index.script = of_chat(Fault("401"))
    with serving(model_index) as (_, client), pytest.raises(openai.APIError) as caught:
        list(client.chat.completions.create(model="articles:local", messages=[COUNCIL], stream=is_streamed))
    assert KEY not in str(caught.value) and "environment variable" not in str(caught.value)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_model_that_takes_too_long_is_cancelled(model_index: ModelIndex, is_streamed: bool) -> None:
    model_index.script = of_chat(Reply("Late.", latency_s=30.0))
    with serving(model_index, timeout_s=1.5) as (server, client):
        started = time.monotonic()
        with pytest.raises(openai.APIError, match="No answer within"):
            list(client.chat.completions.create(model="articles:local", messages=[COUNCIL], stream=is_streamed))
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
            stream = client.chat.completions.create(model="articles:local", messages=[COUNCIL], stream=True)
            assert next(iter(stream)).choices[0].delta.role == "assistant"
            assert is_asked.wait(30)
            stream.close()
            wait_until_idle(server)
    finally:
        may_answer.set()


def test_suggested_questions_are_written_by_the_model_and_name_records(model_index: ModelIndex) -> None:
    with serving(model_index) as (server, _):
        body = {"history": [COUNCIL, {"role": "assistant", "content": "Nobody says."}]}
        answer = server.client.post("/follow-ups", json=body).raise_for_status().json()
        assert answer["engine"] == "model" and answer["questions"] and not answer["failure"]
        for one in answer["questions"]:
            assert all(record["title"].casefold() in one["question"].casefold() for record in one["about"])
        model_index.script = of_chat(Fault("500"))
        body = {"question": "Who met whom in the council?"}
        answer = server.client.post("/follow-ups", json=body).raise_for_status().json()
    assert answer["engine"] == "embedded" and answer["failure"] and answer["questions"]
    assert all(one["about"] for one in answer["questions"])
