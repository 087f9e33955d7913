"""The forms in which JSON is asked for: tried in order, once, each read in the same way."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic import BaseModel

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.endpoints import reply_forms
from graphrag_pipeline.models.endpoints.clients import ModelClients
from graphrag_pipeline.models.endpoints.openai_client import OpenAIChatModel
from graphrag_pipeline.models.ports import ChatRequest
from graphrag_pipeline.models.reply_json import json_schema_format, parse_reply
from graphrag_pipeline.settings.models import ChatModelSettings
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.model_server import Fault, ReceivedRequest, running_model_server
from graphrag_pipeline_tests.model_server.dialects import FORMATS
from graphrag_pipeline_tests.support.models.model_clients import chat_model, complete, in_loop


def complete_all(chat: OpenAIChatModel, requests: list[ChatRequest[Rating]], is_failing: bool = False) -> list[Any]:
    """The replies to requests that are sent at once; failures among them if `is_failing`."""

    async def run() -> list[Any]:
        return await asyncio.gather(*map(chat.complete, requests), return_exceptions=is_failing)

    return in_loop(run())


class Reason(BaseModel):
    reason: str
    rating: int


LIMITS = {"why": {"maxLength": 30}}


class Rating(BaseModel):
    rating: int
    why: str


def rate(question: str, has_limits: bool = False) -> ChatRequest[Rating]:
    messages = [{"role": "user", "content": question}]
    limits = LIMITS if has_limits else {}
    schema = json_schema_format(Rating)
    return ChatRequest(question, messages, lambda text: parse_reply(text, Rating), schema, limits=limits)  # type: ignore[arg-type]


REFUSED = [
    ((), "json_schema", 1),
    (("json_schema",), "json_object", 2),
    (("json_schema", "json_object"), "tools", 3),
    (FORMATS, "", 4),
    (("json_object", "tools"), "json_schema", 1),
]


@pytest.mark.parametrize(("refused", "used", "n_first"), REFUSED, ids=[str(row[0]) for row in REFUSED])
def test_forms_are_tried_in_order_once_and_remembered(
    tmp_path: Path, refused: tuple[str, ...], used: str, n_first: int, caplog: pytest.LogCaptureFixture
) -> None:
    script = [("rate", {"rating": 3, "why": "it fits"})]
    with running_model_server(script, refused_formats=refused) as server:
        chat = chat_model(server.base_url, tmp_path)
        with caplog.at_level(logging.WARNING):
            assert complete(chat, rate("rate one")).value.rating == 3
        assert server.count() == n_first and caplog.text.count("refuses JSON") == n_first - 1
        assert complete(chat, rate("rate two")).value.rating == 3
        assert server.count() == n_first + 1, "the form is remembered"
        assert complete(chat_model(server.base_url, tmp_path), rate("rate one")).is_cached
    body = server.calls[-1].body or {}
    assert (body.get("response_format") or {}).get("type", "tools" if body.get("tools") else "") == used
    assert ("JSON schema" in body["messages"][-1]["content"]) == (used in ("json_object", ""))


@pytest.mark.parametrize("has_limits", [False, True])
def test_requests_at_once_wait_for_the_first_to_find_the_form(
    tmp_path: Path, has_limits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_forms, "TRIAL_S", 60.0)
    script = [("rate", {"rating": 3, "why": "it fits"})]
    refused = ("json_schema", "json_object")
    with running_model_server(script, refused_formats=refused, latency_s=0.3) as server:
        chat = chat_model(server.base_url, tmp_path, max_concurrency=8)
        replies = complete_all(chat, [rate(f"rate {number}", has_limits) for number in range(8)])
        assert [reply.value.rating for reply in replies] == [3] * 8
        statuses = [call.status for call in server.calls]
    assert sorted(statuses) == [200] * 8 + [400] * 2, "one refusal of a type is enough"
    assert server.log.most_in_flight > 2, "once the form is found, nothing waits"


def test_a_long_first_reply_holds_the_others_up_for_a_short_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_forms, "TRIAL_S", 0.05)
    with running_model_server([("rate", {"rating": 3, "why": "it fits"})], n_together=4) as server:
        chat = chat_model(server.base_url, tmp_path, max_concurrency=8)
        complete_all(chat, [rate(f"rate {number}") for number in range(4)])
        assert server.count() == server.log.most_in_flight == 4


def test_a_trial_that_fails_for_another_reason_lets_the_next_one_try(tmp_path: Path) -> None:
    script = [("rate 0", Fault("401")), ("rate", {"rating": 3, "why": "it fits"})]
    with running_model_server(script, refused_formats=("json_schema",)) as server:
        chat = chat_model(server.base_url, tmp_path, max_concurrency=8)
        failed, *others = complete_all(chat, [rate(f"rate {number}") for number in range(4)], is_failing=True)
        assert isinstance(failed, PipelineError) and len(others) == 3
        assert not any(isinstance(reply, BaseException) for reply in others)
        assert [call.status for call in server.calls].count(400) == 1


@pytest.mark.parametrize("form", ["json_schema", "json_object", "tool", "plain"])
def test_each_form_gives_a_value_by_the_servers_own_reply(tmp_path: Path, form: str) -> None:
    with running_model_server() as server:
        prompt = 'Rate how much it helps. Reply with {"reason": "why", "rating": 0}. The question: Who?'
        messages = [{"role": "user", "content": prompt}]
        request = ChatRequest("r", messages, lambda text: parse_reply(text, Reason), json_schema_format(Reason))  # type: ignore[arg-type]
        value = complete(chat_model(server.base_url, tmp_path, structured_output=form), request).value
    assert value.rating in range(6) and value.reason and server.count() == 1


def test_limits_reach_the_schema_and_are_left_out_if_the_endpoint_does_not_know_them(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> object:
        if "maxLength" in str(request.body.get("response_format")):
            return Fault("400", message="Invalid schema for response_format: 'maxLength' is not permitted.")
        return {"rating": 1, "why": "so"}

    with running_model_server([("rate", {"rating": 1, "why": "so"})]) as server:
        plain = complete(chat_model(server.base_url, tmp_path / "a"), rate("rate"))
        limited = complete(chat_model(server.base_url, tmp_path / "b"), rate("rate", has_limits=True))
        assert plain.request_key == limited.request_key, "limits change no key"
        sent = [call.body["response_format"]["json_schema"]["schema"] for call in server.calls if call.body]
        assert [schema["properties"]["why"].get("maxLength") for schema in sent] == [None, 30]
    with running_model_server(answer) as server:  # type: ignore[arg-type]
        chat = chat_model(server.base_url, tmp_path / "c")
        for name in ("one", "two"):
            complete(chat, rate(f"rate {name}", has_limits=True))
        assert server.count() == 3
        assert (server.calls[-1].body or {})["response_format"]["type"] == "json_schema"


def test_a_form_that_is_ignored_is_corrected_with_the_schema_in_words(tmp_path: Path) -> None:
    script = [("cannot be used", {"rating": 2, "why": "so"}), ("rate", "I rate it two.")]
    with running_model_server(script, ignored_formats=FORMATS) as server:
        assert complete(chat_model(server.base_url, tmp_path), rate("rate")).value.rating == 2
    assert "JSON schema" in (server.calls[1].body or {})["messages"][-1]["content"] and server.count() == 2


def rate_in_a_new_process(
    base_url: str, folder: Path, question: str, has_limits: bool = False, **settings: Any
) -> None:
    """Rate by the clients of a process of its own: only the database is shared."""
    chosen = Settings(chat_model=ChatModelSettings(**{"model": "m", "base_url": base_url} | settings))
    clients = ModelClients(chosen, folder / "responses.sqlite")
    assert complete(clients.chat_model("extraction"), rate(question, has_limits)).value.rating == 3


@pytest.mark.parametrize(("refused", "n_first"), [(("json_schema",), 2), (FORMATS, 4)])
def test_the_next_command_asks_in_the_form_that_was_found(
    tmp_path: Path, refused: tuple[str, ...], n_first: int
) -> None:
    with running_model_server([("rate", {"rating": 3, "why": "so"})], refused_formats=refused) as server:
        rate_in_a_new_process(server.base_url, tmp_path, "rate one")
        assert server.count() == n_first
        rate_in_a_new_process(server.base_url, tmp_path, "rate two")
        assert server.count() == n_first + 1
        rate_in_a_new_process(server.base_url, tmp_path, "rate two", model="other")
        assert server.count() == 2 * n_first + 1, "another model may take other forms"


@pytest.mark.parametrize("pinned", ["auto", "json_schema"])
def test_the_next_command_leaves_out_limits_that_were_refused(tmp_path: Path, pinned: str) -> None:
    def answer(request: ReceivedRequest) -> object:
        if "maxLength" in str(request.body.get("response_format")):
            return Fault("400", message="Invalid schema for response_format: 'maxLength' is not permitted.")
        return {"rating": 3, "why": "so"}

    with running_model_server(answer) as server:  # type: ignore[arg-type]
        for name in ("one", "two"):
            rate_in_a_new_process(server.base_url, tmp_path, f"rate {name}", True, structured_output=pinned)
        assert [call.status for call in server.calls] == [400, 200, 200]


def test_a_kept_form_that_is_refused_is_forgotten_and_all_are_tried_again(tmp_path: Path) -> None:
    script = [("rate", {"rating": 3, "why": "so"})]
    with running_model_server(script, refused_formats=("json_schema", "json_object")) as old:
        rate_in_a_new_process(old.base_url, tmp_path, "rate one")
        assert old.count() == 3
        address = old.base_url
    port = urlsplit(address).port or 0
    with running_model_server(script, refused_formats=("tools",), port=port) as new:
        rate_in_a_new_process(address, tmp_path, "rate two")
        assert [call.status for call in new.calls] == [400, 200]
        rate_in_a_new_process(address, tmp_path, "rate three")
        assert [call.status for call in new.calls] == [400, 200, 200]
        assert (new.calls[-1].body or {})["response_format"]["type"] == "json_schema"
