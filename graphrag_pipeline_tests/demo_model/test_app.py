"""The demo model: OpenAI's protocol through the real SDK, as the tests' server speaks it too, and its command."""

from __future__ import annotations

import base64
import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import openai
import pytest
import yaml

from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.command_line import (
    ONE_BUCKET,
    Call,
    assert_one_line_error,
    environment,
    program,
    started,
)
from graphrag_pipeline_tests.support.models.openai_calls import KEY, ask
from graphrag_pipeline_tests.support.roots import make_root


class Endpoint(NamedTuple):
    client: openai.OpenAI
    dimensions: int


class Command(NamedTuple):
    """A `demo-model` that listens, and the settings that it printed."""

    process: subprocess.Popen[str]
    port: int
    settings: dict[str, Any]


@contextmanager
def demo_command() -> Iterator[Command]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = program("demo-model", "--port", str(port))
    with started(command, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(7)]
        assert "by rule, for trying things only" in lines[1]
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
        yield Command(process, port, yaml.safe_load("".join(lines[3:])))


@pytest.fixture(scope="module")
def demo() -> Iterator[Command]:
    with demo_command() as command:
        yield command


@pytest.fixture(params=["demo-model", "tests"])
def endpoint(request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    """The command, and the tests' server, which answers by the same rules."""
    if request.param == "demo-model":
        address = request.getfixturevalue("demo").settings["chat_model"]["base_url"]
        yield Endpoint(openai.OpenAI(base_url=address, api_key=KEY, max_retries=0), 256)
    else:
        with running_model_server(dimensions=8) as server:
            yield Endpoint(openai.OpenAI(base_url=server.base_url, api_key=KEY, max_retries=0), 8)


def test_a_chat_completion_has_text_usage_and_an_id_of_its_request(endpoint: Endpoint) -> None:
    reply = ask(endpoint.client)
    assert reply.choices[0].message.content == "Echo: Hello there"
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None and reply.usage.total_tokens == 7 + 5
    assert ask(endpoint.client) == reply


def test_a_reply_to_a_json_schema_meets_it(endpoint: Endpoint) -> None:
    properties = {
        "verdict": {"enum": ["same", "different"]},
        "pairs": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/pair"}},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
    pair = {"type": "object", "properties": {"score": {"type": "integer", "minimum": 3, "maximum": 5}}}
    schema = {"type": "object", "properties": properties, "required": list(properties), "$defs": {"pair": pair}}
    wrapped: Any = {"type": "json_schema", "json_schema": {"name": "v", "schema": schema, "strict": True}}
    reply = json.loads(ask(endpoint.client, response_format=wrapped).choices[0].message.content or "")
    assert reply["verdict"] in ("same", "different") and isinstance(reply["note"], str)
    assert len(reply["pairs"]) == 2 and all(3 <= pair["score"] <= 5 for pair in reply["pairs"])


def test_json_object_mode_gives_an_object(endpoint: Endpoint) -> None:
    reply = ask(endpoint.client, response_format={"type": "json_object"})
    assert isinstance(json.loads(reply.choices[0].message.content or ""), dict)


def test_a_stream_is_the_same_reply_in_parts_with_usage_on_request(endpoint: Endpoint) -> None:
    events = list(ask(endpoint.client, stream=True, stream_options={"include_usage": True}))
    texts = [choice.delta.content for event in events for choice in event.choices if choice.delta.content]
    assert len(texts) > 3 and "".join(texts) == "Echo: Hello there"
    assert [event.usage.total_tokens for event in events if event.usage] == [12] and events[-1].choices == []
    assert not any(event.usage for event in ask(endpoint.client, stream=True))


def test_max_tokens_cuts_the_reply(endpoint: Endpoint) -> None:
    choice = ask(endpoint.client, "word " * 40, max_completion_tokens=3).choices[0]
    assert choice.finish_reason == "length" and len(choice.message.content or "") <= 12


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_embeddings_are_unit_vectors_near_for_similar_texts(endpoint: Endpoint, encoding: Any) -> None:
    texts = ["Marley was dead", "Marley was surely dead", "interest rates rise again"]
    client = endpoint.client
    reply = client.embeddings.create(model="e", input=texts, encoding_format=encoding, dimensions=128)
    raw = [item.embedding for item in reply.data]
    if encoding == "base64":  # with an explicit encoding, the SDK leaves the decoding to the caller
        vectors = np.array([np.frombuffer(base64.b64decode(str(value)), "<f4") for value in raw])
    else:
        vectors = np.array(raw)
    assert vectors.shape == (3, 128) and np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert vectors[0] @ vectors[1] > 0.6 > 0.3 > vectors[0] @ vectors[2]
    alone = client.embeddings.create(model="e", input=texts[1], dimensions=128)
    assert np.allclose(alone.data[0].embedding, vectors[1]), "in any batch"


def test_embeddings_take_token_ids_and_the_servers_dimension(endpoint: Endpoint) -> None:
    reply = endpoint.client.embeddings.create(model="e", input=[[1, 2, 3], [4]])
    assert [len(item.embedding) for item in reply.data] == [endpoint.dimensions] * 2 and reply.usage.prompt_tokens == 4


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_tool_is_called_with_arguments_that_fit_it(endpoint: Endpoint, is_streamed: bool) -> None:
    parameters = {"type": "object", "properties": {"rating": {"type": "integer", "minimum": 2, "maximum": 4}}}
    tool = {"type": "function", "function": {"name": "rate", "parameters": parameters}}
    reply = ask(endpoint.client, tools=[tool], stream=is_streamed)
    events = list(reply) if is_streamed else [reply]
    parts = [choice.delta if is_streamed else choice.message for event in events for choice in event.choices]
    calls = [call.function for part in parts for call in part.tool_calls or ()]
    assert [call.name for call in calls if call.name] == ["rate"]
    assert 2 <= json.loads("".join(call.arguments for call in calls))["rating"] <= 4
    assert events[-1].choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"messages": []}, "messages"),
        ({"model": ""}, "model"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"response_format": {"type": "json_schema"}}, "json_schema.schema"),
        ({"tools": [{"type": "function"}]}, "tools"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_with_the_reason(
    endpoint: Endpoint, changes: dict[str, Any], word: str
) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], **changes}
    with pytest.raises(openai.BadRequestError, match=word):
        endpoint.client.post("/chat/completions", body=body, cast_to=object)
    with pytest.raises(openai.BadRequestError, match="input"):
        endpoint.client.embeddings.create(model="m", input=[1.5])  # type: ignore[list-item]


def test_the_demo_model_lists_the_names_that_it_suggests(demo: Command) -> None:
    client = openai.OpenAI(base_url=demo.settings["chat_model"]["base_url"], api_key=KEY)
    names = [demo.settings[section]["model"] for section in ("chat_model", "embedding_model")]
    assert [model.id for model in client.models.list()] == names


def test_a_port_in_use_is_an_error_at_once(demo: Command, call: Call) -> None:
    assert_one_line_error(call("demo-model", "--port", str(demo.port)), f"port {demo.port}", "another with --port")


def test_the_demo_model_indexes_a_root_answers_a_question_and_ends_with_ctrl_c(tmp_path: Path, call: Call) -> None:
    engines = ("extraction", "descriptions", "reports", "embeddings", "answers")
    with demo_command() as demo:
        settings = yaml.safe_load(ONE_BUCKET) | demo.settings | {name: {"engine": "model"} for name in engines}
        root = make_root(tmp_path / "root", settings=yaml.safe_dump(settings)).path
        indexed = call("index", "--root", root)
        assert indexed.status == 0 and re.search(r"[1-9]\d* entities, .* [1-9]\d* communities\n", indexed.out), indexed
        asked = json.loads(call("query", "Who is Bob Cratchit?", "--root", root, "--json").out)
        assert asked["citations"] and "Cratchit" in asked["answer"]
        assert asked["answering"]["engine"] == "model" and set(asked["usage"]["by_model"]) == {
            "demo-chat",
            "demo-embedding",
        }
        demo.process.send_signal(signal.SIGINT)
        assert demo.process.wait(30) == 0
