"""Errors as readers of the API see them; the words of an endpoint stay in the log."""

from __future__ import annotations

import base64
import json
import logging
import re
from typing import Any

import anyio
import pytest
from mcp import Client

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.index_reader import EMPTY_INDEX
from graphrag_pipeline.serve.errors import error_of, for_reader
from graphrag_pipeline_tests.model_server.faults import Fault
from graphrag_pipeline_tests.support.models.model_roots import KEY, ModelIndex
from graphrag_pipeline_tests.support.serving import RunningServer, running_server


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("rerank is true, but rerank_model.model is empty: set it in settings.yaml",
         "rerank is true, but rerank_model.model is empty"),
        ("snapshot 'x': no such id; run `graphrag-pipeline snapshots list` to see all ids", "snapshot 'x': no such id"),
        ("403 Forbidden. Check the key in the environment variable MY_KEY, and the address.", "403 Forbidden"),
        (EMPTY_INDEX, "The index has no documents"),
        ("run `graphrag-pipeline index`", "the server cannot answer this now"),
        ("by id: ask without filters, or run `graphrag-pipeline index` with `entity_key: id` again", "by id"),
        ("no document is called `../settings.yaml`", "no document is called `../settings.yaml`"),
    ],
)  # fmt: skip
def test_advice_to_the_operator_is_left_out(written: str, read: str) -> None:
    assert for_reader(PipelineError(written)) == read
    assert str(error_of(PipelineError(written))) == read


def test_no_error_of_the_api_names_a_command(server: RunningServer) -> None:
    for path in ("/documents/zzzz", "/reports/zzzz", "/communities/zzzz", "/entities/!!!", "/snapshots/zzzz",
                 "/entities?filter=nothing=1", "/text-units/zzzz", "/v1/models/zzzz"):  # fmt: skip
        answer = server.client.get(path)
        assert 400 <= answer.status_code < 500 and "graphrag-pipeline" not in answer.text, path
    body = {"question": "Who is Tim?", "options": {"rerank": True}}
    answer = server.client.post("/search", json=body)
    assert answer.status_code == 400 and "settings.yaml" not in answer.text


QUESTION = "Who leads the council?"
ENCODED = base64.b64encode(f"Bearer {KEY}".encode()).decode()
SAID = f"denied by proxy-7.internal for {KEY.upper()} {' '.join(KEY)} {ENCODED}"
BODY = {"question": QUESTION}


def ask_everywhere(server: RunningServer) -> list[str]:
    """The texts of all answers to one question: REST, its events, OpenAI's API, MCP and other searches."""
    chat = {"model": "articles:local", "messages": [{"role": "user", "content": QUESTION}]}
    answers = [
        server.client.post(path, json=body)
        for path, body in (
            ("/search", BODY),
            ("/search", {**BODY, "method": "global"}),
            ("/search", {**BODY, "method": "drift"}),
            ("/search/stream", BODY),
            ("/v1/chat/completions", chat),
            ("/v1/chat/completions", {**chat, "stream": True}),
            ("/follow-ups", BODY),
            ("/explain", BODY),
        )
    ]

    async def call_tool() -> Any:
        async with Client(f"{server.url}/mcp") as client:
            return await client.call_tool("search", {"question": QUESTION})

    return [*(answer.text for answer in answers), str(anyio.run(call_tool))]


@pytest.mark.parametrize("status", ["401", "400"])
def test_the_words_of_an_endpoint_are_in_the_log_alone(
    model_index: ModelIndex, status: str, caplog: pytest.LogCaptureFixture
) -> None:
    model_index.script = lambda request: Fault(status, message=SAID) if "chat" in request.path else None
    with running_server({"articles": model_index.root.path}) as server, caplog.at_level(logging.WARNING):
        answers = ask_everywhere(server)
    shown = "\n".join(answers)
    host = re.sub(r"\w+://|/v1", "", model_index.root.settings.chat_model.base_url)
    for hidden in ("proxy-7", "denied by", host, KEY, KEY.upper(), " ".join(KEY), ENCODED[12:40]):
        assert hidden not in shown, hidden
    assert "gave no answer" in shown and "no answer" in answers[-1]
    logged = caplog.text
    assert "denied by proxy-7.internal" in logged
    for hidden in (KEY, KEY.upper(), " ".join(KEY), ENCODED[12:40]):
        assert hidden not in logged


def test_what_is_spent_is_not_shown(model_index: ModelIndex, caplog: pytest.LogCaptureFixture) -> None:
    settings = model_index.root.path / "settings.yaml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(re.sub(r"max_tokens: null", "max_tokens: 7", text), encoding="utf-8")
    with running_server({"articles": model_index.root.path}) as server, caplog.at_level(logging.WARNING):
        answer = server.client.post("/search", json=BODY)
        shown = "\n".join(ask_everywhere(server))
    error = json.loads(answer.text)["error"]
    assert (answer.status_code, error["message"]) == (502, "The budget for models is spent.")
    assert "max_tokens = 7" not in shown and "budget.max" not in shown and "max_tokens = 7" in caplog.text
