"""The forms in which JSON is asked for: tried in order, once, each read in the same way."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pydantic import BaseModel

from graphrag_pipeline.models.endpoints.reply_forms import FORMS, ReplyForms
from graphrag_pipeline.models.ports import CallFailedError, ChatRequest
from graphrag_pipeline.models.structured import json_schema_format, parse_reply
from graphrag_pipeline_tests.model_server import Fault, ReceivedRequest, running_model_server
from graphrag_pipeline_tests.model_server.dialects import FORMATS
from graphrag_pipeline_tests.support.models.model_clients import chat_model, complete


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


@pytest.mark.parametrize("form", ["json_schema", "json_object", "tool", "plain"])
def test_each_form_gives_a_value_by_the_servers_own_reply(tmp_path: Path, form: str) -> None:
    with running_model_server() as server:
        prompt = 'Rate how much it helps. Reply with {"reason": "why", "rating": 0}. The question: Who?'
        messages = [{"role": "user", "content": prompt}]
        request = ChatRequest("r", messages, lambda text: parse_reply(text, Reason), json_schema_format(Reason))  # type: ignore[arg-type]
        value = complete(chat_model(server.base_url, tmp_path, structured_output=form), request).value
    assert value.rating in range(6) and value.reason and server.count() == 1


def test_a_pinned_form_is_the_only_one(tmp_path: Path) -> None:
    with (
        running_model_server(refused_formats=("tools",)) as server,
        pytest.raises(CallFailedError, match="does not support tools"),
    ):
        complete(chat_model(server.base_url, tmp_path, structured_output="tool"), rate("rate"))
    assert server.count() == 1


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


def test_another_request_may_have_left_a_form_in_the_meantime() -> None:
    forms = ReplyForms()
    assert forms.leave("json_schema", has_limits=False) and forms.current == "json_object"
    assert forms.leave("json_schema", has_limits=False) and forms.current == "json_object"
    assert [forms.leave(form, has_limits=True) for form in FORMS[2:]] == [True, True, False]
