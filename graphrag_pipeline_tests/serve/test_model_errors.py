"""Readers get a fixed text about a model that fails; the log has the cause, without the key in any form."""

from __future__ import annotations

import base64
import json
import logging
import re
from typing import Any

import anyio
import pytest
from mcp import Client

from graphrag_pipeline_tests.model_server.faults import Fault
from graphrag_pipeline_tests.support.models.model_roots import KEY, ModelIndex
from graphrag_pipeline_tests.support.serving import RunningServer, running_server

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
