"""The model server as clients see it: refusals, scripts, shut-down, the command. `demo_model/` tests plain replies."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from graphrag_pipeline_tests.model_server import Fault, ModelServer, ReceivedRequest, Reply, running_model_server
from graphrag_pipeline_tests.model_server.__main__ import main
from graphrag_pipeline_tests.support.command_line import started
from graphrag_pipeline_tests.support.models.openai_calls import KEY, ask, connect


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with running_model_server(dimensions=8) as server:
        yield server


@pytest.mark.parametrize("given", [[], [""], ["fine", ""], ["word"] * 5, "word " * 100], ids=str)
def test_embedding_requests_that_an_endpoint_refuses(given: Any) -> None:
    with running_model_server(max_input_tokens=50, max_batch_items=4) as server, pytest.raises(openai.BadRequestError):
        connect(server).embeddings.create(model="e", input=given)


def test_a_prompt_over_the_context_length_is_refused_by_its_code() -> None:
    with running_model_server(max_context_tokens=50) as server:
        with pytest.raises(openai.BadRequestError) as caught:
            ask(connect(server), "word " * 100)
        assert caught.value.code == "context_length_exceeded" and ask(connect(server))


def test_azure_paths_and_the_list_of_models(server: ModelServer) -> None:
    azure = openai.AzureOpenAI(azure_endpoint=server.root_url, api_key=KEY, api_version="2024-10-21")
    assert ask(azure).model == "m" and server.calls[0].path == "/openai/deployments/m/chat/completions"
    assert azure.embeddings.create(model="e", input="x").data
    assert [model.id for model in connect(server).models.list()] == ["test-chat", "test-embedding"]


def test_a_wrong_key_is_refused_and_no_key_is_recorded() -> None:
    with running_model_server(api_key=KEY) as server:
        with pytest.raises(openai.AuthenticationError):
            ask(connect(server, key="sk-other"))
        ask(connect(server))
        ask(openai.AzureOpenAI(azure_endpoint=server.root_url, api_key=KEY, api_version="1"))
        assert len(server.calls) == 2 and KEY not in str(server.calls)
    with running_model_server(keep_keys=True) as server:
        ask(connect(server))
        assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"


def test_scripts_answer_by_kind_text_function_and_attempt(server: ModelServer) -> None:
    def shout(request: ReceivedRequest) -> str:
        return f"{request.prompt.upper()} {request.attempt}"

    server.push(("Hello", ("first", Fault("500"), shout)), (lambda request: request.model == "none", "never"))
    replies = [ask(connect(server, max_retries=1)).choices[0].message.content for _ in range(2)]
    assert replies == ["first", "HELLO THERE 3"] and [call.attempt for call in server.calls] == [1, 2, 3]
    server.push(("embedding", Reply(vectors=[[3.0, 4.0]], prompt_tokens=99)))
    reply = connect(server).embeddings.create(model="e", input="x")
    assert reply.data[0].embedding == [3.0, 4.0] and reply.usage.prompt_tokens == 99


def test_an_exception_of_a_script_reaches_the_test() -> None:
    with (
        pytest.raises(ZeroDivisionError),
        running_model_server(lambda request: str(1 // 0)) as server,
        pytest.raises(openai.InternalServerError),
    ):
        ask(connect(server))


def test_shut_down_leaves_no_thread_and_no_port() -> None:
    before = threading.active_count()
    with running_model_server([("echo", Fault("hang"))]) as server:
        with socket.create_connection(("127.0.0.1", server.port)), pytest.raises(openai.APITimeoutError):
            ask(connect(server, timeout=0.1))
        port = server.port
    assert threading.active_count() == before
    with running_model_server(port=port), pytest.raises(OSError), running_model_server(port=port):
        pass


def test_the_command_serves_until_it_is_stopped_and_prints_its_requests() -> None:
    program = [sys.executable, "-m", "graphrag_pipeline_tests.model_server", "--port", "0", "--faults", "500=0"]
    with started(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = line.split()[3]
        assert ask(openai.OpenAI(base_url=address, api_key=KEY)).choices
        with urllib.request.urlopen(address.replace("/v1", "/stats")) as reply:
            assert json.load(reply)["n_calls"] == 1
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
    assert process.returncode == 0 and json.loads(rest)["kinds"] == {"echo": 1}


def test_the_command_names_a_fault_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--faults", "sleepy=0.1"])
    assert "no fault is called 'sleepy'" in capsys.readouterr().err


def test_a_batch_answers_the_requests_of_a_file_as_single_ones(server: ModelServer) -> None:
    client = connect(server)
    server.push(("no", Fault("400", message="not this one")))
    bodies = [{"model": "m", "messages": [{"role": "user", "content": text}]} for text in ("Hello there", "no")]
    lines = [
        {"custom_id": f"k{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}
        for number, body in enumerate(bodies)
    ]
    content = "\n".join(map(json.dumps, lines)).encode()
    file = client.files.create(file=("requests.jsonl", content), purpose="batch")
    made = client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"a": "b"}
    )
    batch = client.batches.retrieve(made.id)
    assert (batch.status, batch.metadata) == ("completed", {"a": "b"}) and batch.request_counts is not None
    assert (batch.request_counts.completed, batch.request_counts.failed) == (1, 1)
    output, errors = batch.output_file_id, batch.error_file_id
    assert output and errors and [one.id for one in client.batches.list(limit=1)] == [made.id]
    answered, failed = (json.loads(client.files.content(name).text) for name in (output, errors))
    assert answered["custom_id"] == "k0"
    assert answered["response"]["body"] == ask(client, "Hello there").to_dict()
    assert (failed["custom_id"], failed["response"]["status_code"]) == ("k1", 400)
    assert server.log.summary()["n_batched"] == 2
