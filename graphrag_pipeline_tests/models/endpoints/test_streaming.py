"""Streamed replies over real HTTP: pieces in order, stored whole, retried only before the first piece."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.endpoints.openai_client import OpenAIChatModel
from graphrag_pipeline.models.endpoints.streaming import iterate_in_loop
from graphrag_pipeline.models.ports import CallFailedError, ChatReply, ChatRequest
from graphrag_pipeline.models.reply_json import json_schema_format
from graphrag_pipeline.text.cut_texts import LOOP_NOTE, keep_whole_sentences
from graphrag_pipeline_tests.model_server import Fault, ReceivedRequest, Reply, running_model_server
from graphrag_pipeline_tests.support.models.model_clients import ask, chat_model, complete

FACT = "fact: Marley was dead, to begin with; there is no doubt whatever about that."


def stream(chat: OpenAIChatModel, request: ChatRequest[str]) -> list[str]:
    return list(iterate_in_loop(chat.stream(request)))


def test_pieces_come_in_order_and_the_whole_is_stored_under_the_same_key(tmp_path: Path) -> None:
    with running_model_server(lambda request: Reply(FACT, prompt_tokens=11, completion_tokens=4)) as server:
        chat = chat_model(server.base_url, tmp_path)
        pieces = stream(chat, ask("Who?"))
        assert len(pieces) > 3 and "".join(pieces) == FACT
        again = complete(chat, ask("Who?"))
        assert (again.text, again.is_cached, again.prompt_tokens, again.completion_tokens) == (FACT, True, 11, 4)
        assert stream(chat, ask("Who?")) == [FACT]
    assert server.count() == 1
    assert (chat.stats.n_calls, chat.stats.n_cached) == (1, 2)


@pytest.mark.parametrize("fault", ["429", "500", "drop", "garbage", "html"])
def test_a_failure_before_the_first_piece_is_retried(tmp_path: Path, fault: str) -> None:
    with running_model_server(lambda request: [Fault(fault), FACT], retry_after_s=0.01) as server:
        assert "".join(stream(chat_model(server.base_url, tmp_path), ask("Who?"))) == FACT


def test_a_broken_stream_is_a_failure_that_keeps_the_received_text(tmp_path: Path) -> None:
    pieces: list[str] = []
    with running_model_server(lambda request: [Fault("drop-midway"), FACT]) as server:
        chat = chat_model(server.base_url, tmp_path)
        with pytest.raises(CallFailedError, match="broke off") as caught:
            for piece in iterate_in_loop(chat.stream(ask("Who?"))):
                pieces.append(piece)
        assert pieces and caught.value.reply == "".join(pieces)
        assert server.count() == 1
        assert "".join(stream(chat, ask("Who?"))) == FACT, "no part of it was stored"


def test_a_reply_that_was_read_and_does_not_parse_is_a_failure(tmp_path: Path) -> None:
    with (
        running_model_server(lambda request: "gossip " * 9) as server,
        pytest.raises(CallFailedError, match="there is no fact"),
    ):
        stream(chat_model(server.base_url, tmp_path), ask("Who?"))
    assert server.count() == 1


@pytest.mark.parametrize("fault", ["truncated", "refused"])
def test_a_cut_or_refused_stream_is_a_failure(tmp_path: Path, fault: str) -> None:
    with running_model_server(lambda request: Fault(fault)) as server, pytest.raises(CallFailedError):
        stream(chat_model(server.base_url, tmp_path), ask("Who?"))
    assert server.count() == 1


def test_an_empty_stream_is_requested_once_more(tmp_path: Path) -> None:
    with running_model_server(lambda request: None if request.body.get("stream") is None else Fault("empty")) as server:
        server.push(("Who", lambda request: None if request.body.get("stream") else FACT))
        assert stream(chat_model(server.base_url, tmp_path), ask("Who?")) == [FACT]


def test_an_endpoint_without_streams_answers_whole(tmp_path: Path) -> None:
    with running_model_server(lambda request: Fault("400", message="unknown: 'stream_options'")
                              if "stream" in request.body else FACT) as server:  # fmt: skip
        assert stream(chat_model(server.base_url, tmp_path), ask("Who?")) == [FACT]
    assert server.count() == 2


def test_thoughts_are_not_streamed(tmp_path: Path) -> None:
    with running_model_server(lambda request: f"<think>hm, a fact? {FACT}</think>\n\n{FACT}") as server:
        chat = chat_model(server.base_url, tmp_path)
        assert "".join(stream(chat, ask("Who?"))) == FACT
        assert complete(chat, ask("Who?")).text == FACT


def test_thoughts_that_begin_without_a_mark_are_not_streamed_from_the_first_stream_on(tmp_path: Path) -> None:
    with running_model_server(lambda request: f"A draft of it.\n</think>\n\n{FACT}") as server:
        chat = chat_model(server.base_url, tmp_path, is_known=False)
        assert [stream(chat, ask(question)) for question in ("Who?", "What?")] == [[FACT], [FACT]]


def test_a_stream_is_passed_on_once_a_reply_in_free_text_had_no_thoughts(tmp_path: Path) -> None:
    """JSON by a grammar leaves no room for thoughts, so it says nothing of a stream."""
    in_json = ask("As JSON?", response_format=json_schema_format(Facts))
    with running_model_server(lambda request: FACTS if "response_format" in request.body else FACT) as server:
        chat = chat_model(server.base_url, tmp_path, is_known=False)
        complete(chat, in_json)
        assert len(stream(chat, ask("Who?"))) == 1
        assert len(stream(chat, ask("What?"))) > 3
        chat = chat_model(server.base_url, tmp_path, is_known=False)
        assert len(stream(chat, ask("Where?"))) > 3, "a later command knows it, too"


EVENTS = [
    (Fault("error-event", message="flagged", code="content_filter"), CallFailedError, "400: flagged"),
    (Fault("error-event", message="blocked by the safety system", more={"code": 400}), CallFailedError, "400: blocked"),
    (Fault("error-event", message="no more", code="insufficient_quota"), PipelineError, "no credit or quota"),
    (Fault("error-event", message="wrong", more={"code": 401}), PipelineError, "Check the key"),
    (Fault("error-event", message="maximum context length is 10 tokens", code="context_length_exceeded"),
     CallFailedError, "do not fit the window"),
    (Fault("error-event", raw={"object": "error", "message": "flagged by moderation", "code": 400}), CallFailedError,
     "400: flagged"),
]  # fmt: skip


@pytest.mark.parametrize("is_read", [False, True], ids=["whole or watched", "with readers"])
@pytest.mark.parametrize(("event", "kind", "reason"), EVENTS)
def test_an_error_in_a_stream_is_judged_as_a_response(
    event: Fault, kind: type[Exception], reason: str, is_read: bool, tmp_path: Path
) -> None:
    with running_model_server(lambda request: event) as server:
        chat = chat_model(server.base_url, tmp_path, stop_loops=True)
        with pytest.raises(kind, match=reason):
            stream(chat, ask("Who?")) if is_read else complete(chat, ask("Who?"))


@pytest.mark.parametrize("stop_loops", [False, True], ids=["whole", "streamed"])
def test_a_rate_limit_in_the_place_of_a_reply_is_waited_out(stop_loops: bool, tmp_path: Path) -> None:
    busy = Fault("error-event", message="Too many requests", more={"code": 429})
    with running_model_server(lambda request: [busy, FACT]) as server:
        chat = chat_model(server.base_url, tmp_path, stop_loops=stop_loops)
        assert complete(chat, ask("Who?")).text == FACT and server.count() == 2


def test_a_reader_may_stop_early(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT, chunk_latency_s=0.05) as server:
        pieces = iterate_in_loop(chat_model(server.base_url, tmp_path).stream(ask("Who?")))
        assert FACT.startswith(next(pieces))
        pieces.close()  # type: ignore[attr-defined]


def test_a_stream_in_a_loop_is_closed_and_what_was_whole_is_kept_as_cut_off(tmp_path: Path) -> None:
    def read(name: str, **faults: float) -> str:
        with running_model_server(lambda request: Reply(FACT), faults=faults) as server:
            chat = chat_model(server.base_url, tmp_path / name, parameters={"max_tokens": 8000})
            request = replace(ask("Who?"), keep_whole=keep_whole_sentences)
            text = "".join(stream(chat, request))
            assert server.count() == chat.stats.n_calls == 1 and chat.stats.completion_tokens >= len(text) // 5
            again = complete(chat, request)
            assert again.is_cached and again.is_cut == bool(faults)
        return text

    assert read("whole") == FACT
    looping = read("loop", **{"endless-list": 1.0})
    assert looping.startswith(FACT) and looping.endswith(LOOP_NOTE)
    assert 6 * len(FACT) < len(looping) < 12_000, "the server would have written 32,000 characters"


class Facts(BaseModel):
    facts: list[str]


FACTS = '{"facts": ["a fact about Jacob Marley", "another fact about Ebenezer Scrooge"]}'


@pytest.mark.parametrize("refused", [(), ("json_schema", "json_object"), ("json_schema", "json_object", "tools")])
def test_replies_of_an_index_are_watched_for_loops_in_each_form(tmp_path: Path, refused: tuple[str, ...]) -> None:
    def read(name: str, **faults: float) -> ChatReply[str]:
        def reply(request: ReceivedRequest) -> Reply:
            return Reply(FACTS, tool=request.conversation.tool)

        with running_model_server(reply, refused_formats=refused, faults=faults) as server:
            chat = chat_model(server.base_url, tmp_path / name, stop_loops=True, parameters={"max_tokens": 8000})
            found = complete(chat, ask("Who?", response_format=json_schema_format(Facts)))
            assert server.calls[-1].body and server.calls[-1].body["stream"] is True
        return found

    whole, looping = read("whole"), read("loop", **{"endless-list": 1.0})
    assert (whole.text, whole.is_cut) == (FACTS, False)
    assert looping.is_cut
    assert len(whole.text) < len(looping.text) < 12_000, "the server would have written 32,000 characters"


def test_an_endpoint_that_refuses_streams_gets_whole_requests_and_is_asked_once(tmp_path: Path) -> None:
    refusal = Fault("400", message="stream is not supported by this server")
    with running_model_server(lambda request: refusal if request.body.get("stream") else FACT) as server:
        chat = chat_model(server.base_url, tmp_path, stop_loops=True)
        assert [complete(chat, ask(f"Who {n}?")).text for n in range(3)] == [FACT] * 3
        assert [bool(call.body and call.body.get("stream")) for call in server.calls] == [True, False, False, False]


def test_a_watched_stream_that_breaks_off_is_sent_again(tmp_path: Path) -> None:
    with running_model_server(lambda request: [Fault("drop-midway"), FACT]) as server:
        chat = chat_model(server.base_url, tmp_path, stop_loops=True)
        assert complete(chat, ask("Who?")).text == FACT and server.count() == 2
