"""A chat model behind a real HTTP endpoint: requests, replies, storage, retries and refusals."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.models.accounting import ASKED_TO_WAIT, BEFORE_RETRY, RATE_LIMIT, Caller, CallStats
from graphrag_pipeline.models.endpoints import endpoint
from graphrag_pipeline.models.endpoints.endpoint import MAX_UNREACHED
from graphrag_pipeline.models.endpoints.openai_client import BOUNDED_COMPLETION, OpenAIChatModel
from graphrag_pipeline.models.endpoints.streaming import iterate_in_loop
from graphrag_pipeline.models.pool import complete_all
from graphrag_pipeline.models.ports import CallFailedError, ChatReply, ChatRequest
from graphrag_pipeline.models.reply_json import json_schema_format, parse_reply
from graphrag_pipeline.models.spending import BudgetExceededError, Spending
from graphrag_pipeline.settings.models import BudgetSettings
from graphrag_pipeline.text.cut_texts import CUT_NOTE
from graphrag_pipeline_tests.model_server import Fault, ReceivedRequest, Reply, running_model_server
from graphrag_pipeline_tests.support.models.model_clients import ask, chat_model, complete, in_loop, open_cache

FACT = "fact: Marley was dead"


class Rating(BaseModel):
    rating: int
    why: str


def rate(question: str) -> ChatRequest[Rating]:
    return ChatRequest(
        question,
        [{"role": "user", "content": question}],
        lambda text: parse_reply(text, Rating),
        json_schema_format(Rating),
    )


def test_a_reply_is_paid_once_and_found_again_by_another_process(tmp_path: Path) -> None:
    with running_model_server([("Marley", Reply(FACT, prompt_tokens=11, completion_tokens=4))]) as server:
        first = complete(chat_model(server.base_url, tmp_path), ask("Marley?"))
        again = complete(chat_model(server.base_url, tmp_path), ask("Marley?"))
    assert (first.value, first.is_cached, first.prompt_tokens, first.completion_tokens) == (FACT, False, 11, 4)
    assert again.is_cached
    assert (again.text, again.request_key, again.prompt_tokens) == (first.text, first.request_key, 11)
    assert server.count() == 1


def test_the_key_is_of_all_that_decides_the_reply_and_not_of_the_address(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT) as one, running_model_server(lambda request: FACT) as other:
        chat = chat_model(one.base_url, tmp_path)
        complete(chat, ask("Who?"))
        assert complete(chat_model(other.base_url, tmp_path), ask("Who?")).is_cached
        for changed in (
            complete(chat, ask("What?")),
            complete(chat, ask("Who?", repeat=1)),
            complete(chat, ask("Who?", response_format={"type": "json_object"})),
            complete(chat_model(one.base_url, tmp_path, model="test-chat-2"), ask("Who?")),
            complete(chat_model(one.base_url, tmp_path, parameters={"temperature": 0}), ask("Who?")),
        ):
            assert not changed.is_cached
    assert other.count() == 0


def test_parameters_reach_the_endpoint(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT) as server:
        complete(chat_model(server.base_url, tmp_path, parameters={"temperature": 0, "top_k": 5}), ask("Who?"))
    body = server.calls[0].body
    assert body is not None
    assert (body["model"], body["temperature"], body["top_k"]) == ("test-chat", 0, 5)


def test_an_identical_request_under_way_is_sent_once(tmp_path: Path) -> None:
    async def all_at_once() -> list[bool]:
        replies = await asyncio.gather(*(chat.complete(ask("Who?")) for _ in range(20)))
        return [reply.is_cached for reply in replies]

    with running_model_server(lambda request: FACT, latency_s=0.05) as server:
        chat = chat_model(server.base_url, tmp_path)
        assert in_loop(all_at_once()).count(False) == 1
    assert server.count() == 1


def test_an_identical_request_under_way_that_fails_fails_once(tmp_path: Path) -> None:
    async def all_at_once() -> list[object]:
        return list(await asyncio.gather(*(chat.complete(ask("Who?")) for _ in range(5)), return_exceptions=True))

    with running_model_server(lambda request: Fault("refused"), latency_s=0.05) as server:
        chat = chat_model(server.base_url, tmp_path)
        assert all(isinstance(result, CallFailedError) for result in in_loop(all_at_once()))
    assert server.count() == 1


def test_the_model_receives_the_reason_its_reply_was_refused(tmp_path: Path) -> None:
    with running_model_server([("cannot be used: there is no fact", FACT), ("Who", "gossip")]) as server:
        reply = complete(chat_model(server.base_url, tmp_path), ask("Who?"))
        assert complete(chat_model(server.base_url, tmp_path), ask("Who?")).is_cached
    assert reply.value == FACT
    corrected = server.calls[1].body
    assert corrected is not None
    assert [turn["role"] for turn in corrected["messages"]] == ["user", "assistant", "user"]
    assert corrected["messages"][1]["content"] == "gossip"
    assert server.count() == 2


def test_a_reply_that_stays_unusable_is_a_failure_and_never_requested_unchanged(tmp_path: Path) -> None:
    with running_model_server(lambda request: "gossip " * 200) as server:
        for often in ("twice", "3 times", "4 times; it is not asked again", "4 times"):
            with pytest.raises(CallFailedError, match=rf"no fact in 'gossip .* \(asked {often}") as caught:
                complete(chat_model(server.base_url, tmp_path), ask("Who?"))
        assert caught.value.reply.startswith("gossip")
        assert len(caught.value.reply) <= 300
    assert len({json.dumps(call.body) for call in server.calls}) == server.count() == 4


@pytest.mark.parametrize("reply", ["", "gossip"])
def test_a_rejected_reply_is_stored_and_a_later_run_sends_another_correction(tmp_path: Path, reply: str) -> None:
    with running_model_server([("2 answers so far", FACT), ("Who", reply)]) as server:
        with pytest.raises(CallFailedError):
            complete(chat_model(server.base_url, tmp_path), ask("Who?"))
        found = complete(chat_model(server.base_url, tmp_path), ask("Who?"))
        assert found.value == FACT and not found.is_cached
        assert complete(chat_model(server.base_url, tmp_path), ask("Who?")).is_cached
    assert server.count() == 3


def test_a_rejected_reply_that_parses_now_is_not_paid_again(tmp_path: Path) -> None:
    lenient = ChatRequest("Who?", ask("Who?").messages, str)
    with running_model_server([("cannot be used", "more gossip"), ("Who", "gossip")]) as server:
        with pytest.raises(CallFailedError):
            complete(chat_model(server.base_url, tmp_path), ask("Who?"))
        longer = ChatRequest("Who?", lenient.messages, lambda text: text[: text.index("more") + 4])
        assert complete(chat_model(server.base_url, tmp_path), longer).value == "more"
        assert complete(chat_model(server.base_url, tmp_path), lenient).text == "more gossip"
    assert server.count() == 2


def test_a_refusal_is_not_stored(tmp_path: Path) -> None:
    with running_model_server(lambda request: Fault("refused")) as server:
        for _ in range(2):
            with pytest.raises(CallFailedError, match="refused"):
                complete(chat_model(server.base_url, tmp_path), ask("Who?"))
    assert server.count() == 2


def test_a_stored_reply_that_a_stricter_reader_refuses_is_requested_again(tmp_path: Path) -> None:
    def read_long(text: str) -> str:
        if len(text) < 100:
            raise ValueError("too short")
        return text

    with running_model_server([("too short", FACT * 10), ("Who", FACT)]) as server:
        chat = chat_model(server.base_url, tmp_path)
        complete(chat, ask("Who?"))
        strict = ChatRequest("Who?", ask("Who?").messages, read_long)
        assert not complete(chat, strict).is_cached
        assert complete(chat, strict).is_cached
    assert server.count() == 2, "the stored reply is corrected at once"


class Findings(BaseModel):
    findings: list[Rating]


def list_findings(question: str) -> ChatRequest[Findings]:
    messages = [{"role": "user", "content": question}]
    return ChatRequest(question, messages, lambda text: parse_reply(text, Findings), json_schema_format(Findings))


def test_the_whole_part_of_a_cut_reply_is_used_and_not_paid_again(tmp_path: Path) -> None:
    text = json.dumps({"findings": [{"rating": 7, "why": "ghosts"}, {"rating": 3, "why": "turkey"}]})
    with running_model_server(lambda request: Reply(text[:-8], finish_reason="length")) as server:
        replies = [complete(chat_model(server.base_url, tmp_path), list_findings("Who?")) for _ in range(2)]
    assert [reply.value for reply in replies] == [Findings(findings=[Rating(rating=7, why="ghosts")])] * 2
    assert [(reply.is_cut, reply.is_cached) for reply in replies] == [(True, False), (True, True)]
    assert server.count() == 1


def test_a_request_for_text_says_what_is_whole_of_it(tmp_path: Path) -> None:
    with running_model_server(lambda request: Reply("fact one. fact tw", finish_reason="length")) as server:
        chat = chat_model(server.base_url, tmp_path)
        reply = complete(chat, ask("Who?", keep_whole=lambda text: text[: text.rindex(".") + 1]))
    assert reply.value == "fact one."
    assert server.count() == 1


def test_a_streamed_reply_that_was_cut_off_ends_with_a_note(tmp_path: Path) -> None:
    async def read() -> str:
        return "".join([piece async for piece in chat.stream(ask("Who?", keep_whole=str))])

    with running_model_server(lambda request: Reply("fact one. fact tw", finish_reason="length")) as server:
        chat = chat_model(server.base_url, tmp_path)
        assert [in_loop(read()) for _ in range(2)] == ["fact one. fact tw" + CUT_NOTE] * 2
    assert server.count() == 1


@pytest.mark.parametrize("fault", ["truncated", "empty", "nonsense"])
def test_a_cut_or_empty_reply_is_requested_once_more(tmp_path: Path, fault: str) -> None:
    script = [("briefly", FACT), ("cannot be used", FACT), ("was empty", FACT), ("Who", Fault(fault))]
    with running_model_server(script) as server:
        reply = complete(chat_model(server.base_url, tmp_path), ask("Who?"))
    assert reply.value == FACT
    assert server.count() == 2


CUT_REPLIES = [
    ("The first fact is lo", 200, r"raise `max_reply_tokens` in extraction\.model"),
    (
        "The ghost said once more that all of it was true. " * 5,
        100,
        "repeated itself, which a larger cap does not help",
    ),
]


@pytest.mark.parametrize(("text", "cap", "reason"), CUT_REPLIES, ids=["long", "loop"])
def test_a_correction_of_a_cut_reply_gets_a_larger_cap_unless_the_model_repeats_itself(
    tmp_path: Path, text: str, cap: int, reason: str
) -> None:
    with running_model_server(lambda request: Reply(text, finish_reason="length")) as server:
        with pytest.raises(CallFailedError, match=reason):
            complete(chat_model(server.base_url, tmp_path, max_reply_tokens=100), ask("Who?"))
        assert [call.body["max_tokens"] for call in server.calls] == [100, cap]


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"max_reply_tokens": 100}, "`max_reply_tokens` in extraction.model"),
        (
            {"max_reply_tokens": 100, "parameters": {"max_completion_tokens": 90}},
            "chat_model.parameters.max_completion_tokens",
        ),
    ],
)
@pytest.mark.parametrize("text", ["The first fact is lo", ""])
def test_a_cut_reply_names_the_option_that_cut_it(
    tmp_path: Path, text: str, options: dict[str, Any], option: str
) -> None:
    with (
        running_model_server(lambda request: Reply(text, finish_reason="length")) as server,
        pytest.raises(CallFailedError, match=rf"raise {re.escape(option)}"),
    ):
        complete(chat_model(server.base_url, tmp_path, **options), ask("Who?"))


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("truncated", "finish_reason length"), ("empty", "reply is empty"), ("refused", "refused")],
)
def test_a_reply_that_stays_cut_empty_or_refused_is_a_failure_with_its_reason(
    tmp_path: Path, fault: str, reason: str
) -> None:
    with running_model_server(lambda request: Fault(fault)) as server, pytest.raises(CallFailedError, match=reason):
        complete(chat_model(server.base_url, tmp_path), ask("fact"))
    assert server.count() == (1 if fault == "refused" else 2)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_server_that_answers_with_pages_is_no_model_and_is_not_asked_for_long(
    is_streamed: bool, tmp_path: Path
) -> None:
    with running_model_server(lambda request: Fault("html")) as server:
        chat = chat_model(server.base_url, tmp_path, max_attempts=6)
        with pytest.raises(PipelineError, match=r"'test-chat' at 127.0.0.1: it answers with a page .* base_url, which"):
            list(iterate_in_loop(chat.stream(ask("Who?")))) if is_streamed else complete(chat, ask("Who?"))
        assert chat.stats.prompt_tokens == 0, "a page is not paid"
        # A stream without events is asked for once more as a whole reply.
        assert server.count() <= 3 * (1 + is_streamed)


@pytest.mark.parametrize(
    "fault", ["429", "429-retry-after-ms", "408", "409", "500", "503", "drop", "drop-midway", "garbage", "html"]
)
def test_a_temporary_error_is_retried(tmp_path: Path, fault: str) -> None:
    with running_model_server(lambda request: [Fault(fault), Fault(fault), FACT], retry_after_s=0.01) as server:
        chat = chat_model(server.base_url, tmp_path)
        assert complete(chat, ask("Who?")).value == FACT
    assert server.count() == 3
    assert (chat.stats.n_calls, chat.stats.n_retries) == (1, 2)


def test_a_hanging_request_times_out_and_is_retried(tmp_path: Path) -> None:
    with running_model_server(lambda request: [Fault("hang"), FACT]) as server:
        assert complete(chat_model(server.base_url, tmp_path, timeout_s=0.3), ask("Who?")).value == FACT


def test_retry_after_is_honoured(tmp_path: Path) -> None:
    with running_model_server(lambda request: [Fault("429-retry-after-ms", retry_after_s=0.4), FACT]) as server:
        started = time.monotonic()
        complete(chat_model(server.base_url, tmp_path), ask("Who?"))
        assert time.monotonic() - started >= 0.4


@pytest.mark.parametrize(
    ("fault", "options", "reason"),
    [
        (Fault("429-retry-after-ms", retry_after_s=0.4), {}, ASKED_TO_WAIT),
        (Fault("503"), {}, BEFORE_RETRY),
        (FACT, {"requests_per_minute": 120}, RATE_LIMIT),
    ],
    ids=["server", "retry", "rate"],
)
def test_the_account_of_a_caller_shows_why_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault | str, options: dict[str, Any], reason: str
) -> None:
    monkeypatch.setattr(endpoint, "FIRST_BACKOFF_S", 0.8 if reason == BEFORE_RETRY else 0.001)
    account, seen = CallStats(), dict[str, float]()

    async def scene(chat: OpenAIChatModel) -> None:
        asking = asyncio.gather(chat.complete(ask("Who?")), chat.complete(ask("What?")))
        while not asking.done():
            wait = account.next_wait() if not account.starts() else None
            if wait is not None:
                seen.setdefault(wait.reason, wait.until - time.monotonic())
            await asyncio.sleep(0.005)
        await asking

    with running_model_server(lambda request: [fault, FACT]) as server:
        in_loop(scene(chat_model(server.base_url, tmp_path, **options).for_caller(Caller((account,)))))
    assert 0.1 < seen[reason] < 1.0
    assert account.next_wait() is None


def test_a_retry_after_of_an_hour_ends_the_run(tmp_path: Path) -> None:
    with (
        running_model_server(lambda request: Fault("429-retry-after", retry_after_s=3600)) as server,
        pytest.raises(PipelineError, match="asks to wait 3600 s"),
    ):
        complete(chat_model(server.base_url, tmp_path), ask("Who?"))


def test_an_endpoint_that_only_fails_is_a_failure_of_the_record(tmp_path: Path) -> None:
    with (
        running_model_server(lambda request: Fault("503")) as server,
        pytest.raises(CallFailedError, match="no answer in 3 attempts; the last said: 503"),
    ):
        complete(chat_model(server.base_url, tmp_path, max_attempts=3), ask("Who?"))
    assert server.count() == 3


@pytest.mark.parametrize("fault", ["401", "403", "404"])
def test_a_lasting_error_ends_the_run_and_names_the_setting(tmp_path: Path, fault: str) -> None:
    with (
        running_model_server(lambda request: Fault(fault)) as server,
        pytest.raises(PipelineError, match=r"'test-chat' at 127\.0\.0\.1: 4.* OPENAI_API_KEY") as caught,
    ):
        complete(chat_model(server.base_url, tmp_path), ask("Who?"))
    assert not isinstance(caught.value, CallFailedError)
    assert server.count() == 1


@pytest.mark.parametrize("fault", ["402", "429-quota"])
def test_a_lack_of_credit_ends_the_run_and_does_not_blame_the_key(tmp_path: Path, fault: str) -> None:
    with (
        running_model_server(lambda request: Fault(fault)) as server,
        pytest.raises(PipelineError, match="has no credit or quota left") as caught,
    ):
        complete(chat_model(server.base_url, tmp_path), ask("Who?"))
    assert "OPENAI_API_KEY" not in str(caught.value) and server.count() == 1


def test_a_missing_server_ends_the_run(tmp_path: Path) -> None:
    with running_model_server() as server:
        gone = server.base_url
    chat = chat_model(gone, tmp_path)
    with pytest.raises(PipelineError, match=r"cannot connect .* Start the server, or correct base_url") as caught:
        complete(chat, ask("Who?"))
    assert not isinstance(caught.value, CallFailedError)
    assert chat.stats.n_retries == MAX_UNREACHED - 1


def test_a_server_that_has_answered_is_retried_as_often_as_set(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT) as server:
        chat = chat_model(server.base_url, tmp_path, max_attempts=5)
        complete(chat, ask("Who?"))
    with pytest.raises(CallFailedError, match="no answer in 5 attempts"):
        complete(chat, ask("What?"))


def test_a_server_with_one_slot_is_not_flooded(tmp_path: Path) -> None:
    """50 requests at once would wait 4 s in the queue of a server that needs 0.08 s for each."""
    with running_model_server(lambda request: FACT, latency_s=0.08, n_slots=1) as server:
        chat = chat_model(server.base_url, tmp_path, timeout_s=2.0, max_concurrency=50)
        replies = complete_all(chat, [ask(f"Who is number {i}?") for i in range(50)])
    assert all(isinstance(reply, ChatReply) for reply in replies)
    assert server.count() <= 55, "almost no request is abandoned"


def test_no_request_is_abandoned_at_a_slot_whose_queue_of_eight_outlasts_the_time_out(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT, latency_s=0.2, n_slots=1) as server:
        chat = chat_model(server.base_url, tmp_path, timeout_s=1.35, max_concurrency=50)
        replies = complete_all(chat, [ask(f"Who is number {i}?") for i in range(24)])
    assert all(isinstance(reply, ChatReply) for reply in replies)
    assert server.count() <= 25


def test_a_prompt_that_may_have_been_charged_is_counted_beside_the_answered_calls(tmp_path: Path) -> None:
    with running_model_server(lambda request: [Fault("hang"), FACT]) as server:
        chat = chat_model(server.base_url, tmp_path, timeout_s=0.4)
        complete(chat, ask("Who?"))
        stats, (spent, _) = chat.stats, chat._endpoint._spending.total()
    assert (stats.n_calls, stats.n_unanswered) == (1, 1)
    assert spent == stats.prompt_tokens + stats.completion_tokens + stats.unanswered_tokens


def test_a_request_that_times_out_alone_is_not_sent_again_and_again(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT, latency_s=5.0) as server:
        chat = chat_model(server.base_url, tmp_path, timeout_s=0.1, max_concurrency=1)
        with pytest.raises(
            CallFailedError,
            match=r"2 attempts; .* no whole answer within 0.1 s; raise timeout_s, or lower "
            r"`max_reply_tokens` in extraction.model",
        ) as caught:
            complete(chat, ask("Who?"))
    assert caught.value.is_unanswered
    assert chat.stats.n_timeouts == 1


def test_a_prompt_that_is_too_long_fails_alone(tmp_path: Path) -> None:
    with running_model_server([("long", Fault("too-long")), ("Who", FACT)]) as server:
        chat = chat_model(server.base_url, tmp_path)
        with pytest.raises(CallFailedError, match="400: This model's maximum context length"):
            complete(chat, ask("long"))
        assert complete(chat, ask("Who?")).value == FACT


def test_a_schema_is_requested_and_read(tmp_path: Path) -> None:
    with running_model_server(lambda request: {"rating": 7, "why": "ghosts"}) as server:
        assert complete(chat_model(server.base_url, tmp_path), rate("Rate it")).value == Rating(rating=7, why="ghosts")
    body = server.calls[0].body
    assert body is not None
    schema = body["response_format"]["json_schema"]["schema"]
    assert (schema["additionalProperties"], schema["required"]) == (False, ["rating", "why"])


def test_a_parameter_that_the_model_does_not_take_is_left_out(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> object:
        if "temperature" in request.body:
            return Fault(
                "400", message="Unsupported value: 'temperature'", code="unsupported_value", param="temperature"
            )
        if "max_tokens" in request.body:
            message = "Unsupported parameter: 'max_tokens' is not supported, use 'max_completion_tokens' instead."
            return Fault("400", message=message, code="unsupported_parameter", param="max_tokens")
        return FACT

    with running_model_server(answer) as server:  # type: ignore[arg-type]
        chat = chat_model(server.base_url, tmp_path, parameters={"temperature": 0, "max_tokens": 50})
        complete(chat, ask("Who?"))
        complete(chat, ask("What?"))
    assert server.count() == 4
    body = server.calls[-1].body
    assert body is not None
    assert body["max_completion_tokens"] == 50


def test_azure_is_called_at_its_deployment(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT) as server:
        complete(chat_model(server.root_url, tmp_path, api_version="2024-10-21", model="my-deployment"), ask("Who?"))
    assert server.calls[0].path == "/openai/deployments/my-deployment/chat/completions"


def test_text_that_json_and_databases_cannot_carry_is_sent_and_stored_repaired(tmp_path: Path) -> None:
    hostile = "fact \x00 \u202e\u200b '; DROP TABLE responses; --"
    with running_model_server(lambda request: hostile) as server:
        chat = chat_model(server.base_url, tmp_path)
        reply = complete(chat, ask("lone \ud800 surrogate \x00"))
        assert complete(chat, ask("lone \ud800 surrogate \x00")).is_cached
    assert reply.text == hostile.replace("\x00", "\ufffd")


@pytest.mark.parametrize("reply", ["[" * 100_000, '{"rating": 1e999, "why": NaN}', '{"a":' * 5000, "x" * 2_000_000])
def test_a_hostile_reply_fails_alone(tmp_path: Path, reply: str) -> None:
    with running_model_server([("bad", reply), ("good", json.dumps({"rating": 1, "why": ""}))]) as server:
        chat = chat_model(server.base_url, tmp_path)
        with pytest.raises(CallFailedError):
            complete(chat, rate("bad"))
        assert complete(chat, rate("good")).value.rating == 1


def test_the_budget_stops_before_the_call_that_would_break_it(tmp_path: Path) -> None:
    script = [("?", Reply(FACT, prompt_tokens=500, completion_tokens=100))]
    with running_model_server(script) as server:  # type: ignore[arg-type]
        bounded = {"max_tokens": 1000}
        chat = chat_model(server.base_url, tmp_path, BudgetSettings(max_tokens=2200), parameters=bounded)
        complete(chat, ask("one?"))
        complete(chat, ask("two?"))
        with pytest.raises(BudgetExceededError, match=r"1,200 of budget\.max_tokens = 2,200"):
            complete(chat, ask("three?"))
        assert complete(chat, ask("one?")).is_cached
        raised = chat_model(server.base_url, tmp_path, BudgetSettings(max_tokens=5000), parameters=bounded)
        assert not complete(raised, ask("three?")).is_cached
    assert server.count() == 3


def test_under_a_budget_a_reply_is_bounded_by_its_reservation(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT) as server:
        complete(chat_model(server.base_url, tmp_path), ask("free?"))
        complete(chat_model(server.base_url, tmp_path, BudgetSettings(max_tokens=10_000)), ask("bounded?"))
        bodies = [call.body or {} for call in server.calls]
    assert "max_tokens" not in bodies[0] and bodies[1]["max_tokens"] == BOUNDED_COMPLETION


def test_a_money_budget_needs_a_price(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="price of 'test-chat' is not known"):
        chat_model("http://models.example/v1", tmp_path, BudgetSettings(max_cost=1.0))
    chat_model("http://models.example/v1", tmp_path, BudgetSettings(max_cost=1.0), prompt_price=0.0)
    chat_model("http://127.0.0.1:9/v1", tmp_path, BudgetSettings(max_cost=1.0))


def test_a_reply_has_its_cost(tmp_path: Path) -> None:
    with running_model_server(
        lambda request: Reply(FACT, prompt_tokens=1_000_000, completion_tokens=500_000)
    ) as server:
        chat = chat_model(server.base_url, tmp_path, prompt_price=1.0, completion_price=2.0)
        assert complete(chat, ask("Who?")).cost == pytest.approx(2.0)
        assert complete(chat, ask("Who?")).cost == pytest.approx(2.0)  # the earlier cost
    assert chat.stats.as_metadata()["cost_usd"] == pytest.approx(2.0)
    assert chat.stats.as_metadata()["cached_calls"] == 1


def test_an_endpoint_that_needs_a_key_names_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    budget = BudgetSettings(max_tokens=10_000)
    with pytest.raises(SettingsError, match=r"api\.openai\.com needs a key: .* OPENAI_API_KEY"):
        complete(chat_model("https://api.openai.com/v1", tmp_path, budget), ask("Who?"))
    assert Spending(open_cache(tmp_path), budget).total() == (0, 0.0)  # nothing was sent: nothing is spent


@pytest.mark.parametrize("stop_loops", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "reply", [Reply(f"<think>\nHm.\n</think>\n\n{FACT}"), Reply(f"A draft of a fact.\n</think>{FACT}"),
              Reply(FACT, are_parts=True), Reply(FACT, thoughts="Hm, a fact.")],
    ids=["tag", "no opening tag", "parts", "apart"])  # fmt: skip
def test_the_thoughts_of_a_reasoning_model_are_not_its_reply(reply: Reply, stop_loops: bool, tmp_path: Path) -> None:
    with running_model_server(lambda request: reply) as server:
        assert complete(chat_model(server.base_url, tmp_path, stop_loops=stop_loops), ask("Who?")).text == FACT


@pytest.mark.parametrize("stop_loops", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("reply", "reason"),
    [(Reply("A fact of a draft.\n</think>\n"), "all its tokens were used before its first word, as by thoughts"),
     (Reply("<think>a fact"), "all its tokens were used before its first word"),
     (Reply(None, thoughts=FACT), "sent all text as thoughts"),
     *((Reply("", finish_reason=reason), f"refused: {reason}") for reason in
       ("content_filter: PROHIBITED_CONTENT", "SAFETY", "sensitive", "RECITATION"))])  # fmt: skip
def test_a_reply_without_a_text_has_a_reason(reply: Reply, reason: str, stop_loops: bool, tmp_path: Path) -> None:
    with running_model_server(lambda request: reply) as server:
        with pytest.raises(CallFailedError, match=reason):
            complete(chat_model(server.base_url, tmp_path, stop_loops=stop_loops), ask("Who?"))
        assert "refused" not in reason or server.count() == 1


REFUSED_PARAMETERS = [
    (400, "gpt-9 models don't support temperature=0.0. Only temperature=1 is supported. For gpt-9.1, temperature is "
          "supported when reasoning_effort='none'.", "temperature"),
    (400, "`temperature` is deprecated for this model.", "temperature"),
    (400, "This model does not support the temperature parameter", "temperature"),
    (400, "Unrecognized request argument supplied: frequency_penalty", "frequency_penalty"),
    (400, "`temperature` and `top_p` cannot both be specified for this model.", "temperature"),
    (400, "The parameter seed is not available here", "seed"),
    (400, "model does not accept Top-P", "top_p"),
    (400, {"error": {"message": "Invalid value", "param": "seed", "code": "bad"}}, "seed"),
    (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]},
     "seed"),
    (422, {"detail": "temperature is not permitted"}, "temperature"),
    (400, {"errorMessage": "Additional properties are not allowed ('top_p' was unexpected)"}, "top_p"),
    (400, {"message": "unknown field: seed"}, "seed"),
    (400, {"error": "unsupported option 'seed'"}, "seed"),
    (500, "generate() got an unexpected keyword argument 'frequency_penalty'", "frequency_penalty"),
    (400, "不支持参数 temperature", "temperature"),
]  # fmt: skip
PARAMETERS = {"temperature": 0, "top_p": 0.5, "seed": 1, "frequency_penalty": 1}


@pytest.mark.parametrize(("status", "said", "name"), REFUSED_PARAMETERS)
def test_a_parameter_is_left_out_in_whatever_words_and_body_it_is_refused(
    status: int, said: Any, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    message, raw = (said, None) if isinstance(said, str) else (None, said)
    refusal = Fault(str(status), message=message, raw=raw)
    with running_model_server(lambda request: refusal if name in request.body else FACT) as server:
        assert complete(chat_model(server.base_url, tmp_path, parameters=PARAMETERS), ask("Who?")).text == FACT
        assert [set(PARAMETERS) - (call.body or {}).keys() for call in server.calls] == [set(), {name}]
    assert f"does not accept the parameter {name!r}" in caplog.text


@pytest.mark.parametrize(
    "raw", [{"detail": "the harbour is closed"}, {"detail": [{"msg": "the harbour is closed"}]},
            {"message": "the harbour is closed"}, {"errorMessage": "the harbour is closed"},
            {"error": "the harbour is closed"}, "<html><p>the harbour is closed</p></html>",
            {"error": {"message": "Provider error", "metadata": {"raw": "the harbour is closed"}}}],
)  # fmt: skip
def test_the_words_of_any_body_are_in_the_reason(raw: object, tmp_path: Path) -> None:
    with (
        running_model_server(lambda request: Fault("422", raw=raw)) as server,
        pytest.raises(CallFailedError, match=r"422: .*the harbour is closed"),
    ):
        complete(chat_model(server.base_url, tmp_path, parameters=PARAMETERS), ask("Who?"))


def test_a_prompt_about_a_parameter_is_no_refusal_of_it(tmp_path: Path) -> None:
    words = "Your prompt speaks of the temperature of the sea, which is too long"
    with running_model_server(lambda request: Fault("400", message=words)) as server:
        with pytest.raises(CallFailedError, match="temperature of the sea"):
            complete(chat_model(server.base_url, tmp_path, parameters=PARAMETERS), ask("Who?"))
        assert all("temperature" in (call.body or {}) for call in server.calls)


ESCAPED = [
    ("fact: AT&amp;T and O&#39;Neil", "fact: AT&T and O'Neil", ""),
    ("fact: AT&amp;amp;T, Caf\\u00e9, \\ud83d\\ude00", "fact: AT&T, Café, \U0001f600", ""),
    ('{"fact": "the &quot;Caf\\u00e9&quot; of \\\\u00c9mile &amp; Co"}',
     '{"fact": "the \\"Caf\\u00e9\\" of Émile & Co"}', ""),
    ("fact: write &amp; for it, R\\u0026D and &lt;b&gt;", "fact: write &amp; for it, R\\u0026D and <b>",
     "HTML has &amp; and JSON \\u0026."),
    ("fact: R&D; and C:\\users", "fact: R&D; and C:\\users", ""),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "read", "prompt"), ESCAPED)
def test_escapes_in_a_reply_are_characters_unless_the_prompt_holds_them(
    reply: str, read: str, prompt: str, tmp_path: Path
) -> None:
    async def stream() -> str:
        return "".join([piece async for piece in chat.stream(ask(f"What? {prompt}"))])

    with running_model_server(lambda request: reply) as server:
        chat = chat_model(server.base_url, tmp_path)
        assert complete(chat, ask(f"Who? {prompt}")).text == read
        assert reply.startswith("{") or in_loop(stream()) == read


FILTERS = [
    (403, "The model requires moderation and your input was flagged for violence."),
    (403, "Request blocked: content policy"),
    (403, {"error": {"message": "Rejected", "code": "content_filter"}}),
    (400, {"error": {"message": "The response was filtered", "code": "content_filter"}}),
    (403, "输入内容包含敏感信息"),
]


@pytest.mark.parametrize(("status", "said"), FILTERS)
def test_a_check_of_the_content_fails_one_request(status: int, said: Any, tmp_path: Path) -> None:
    message, raw = (said, None) if isinstance(said, str) else (None, said)
    with running_model_server(lambda request: Fault(str(status), message=message, raw=raw)) as server:
        with pytest.raises(CallFailedError, match=str(status)):
            complete(chat_model(server.base_url, tmp_path), ask("Who?"))
        assert server.count() == 1


@pytest.mark.parametrize("message", ["You do not have access", "Your account was flagged and is suspended"])
def test_another_403_ends_the_run(message: str, tmp_path: Path) -> None:
    with (
        running_model_server(lambda request: Fault("403", message=message)) as server,
        pytest.raises(PipelineError, match="Check the key") as caught,
    ):
        complete(chat_model(server.base_url, tmp_path), ask("Who?"))
    assert not isinstance(caught.value, CallFailedError)


def test_stored_replies_serve_at_every_address_but_not_under_another_cache_name(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT) as first:
        before = complete(chat_model(first.base_url, tmp_path), ask("Who?"))
    with running_model_server(lambda request: "fact: another model") as second:
        moved = complete(chat_model(second.base_url, tmp_path), ask("Who?"))
        other = complete(chat_model(second.base_url, tmp_path, cache_name="larger"), ask("Who?"))
        assert second.count() == 1
    assert (moved.value, moved.is_cached, moved.request_key) == (before.value, True, before.request_key)
    assert other.value == "fact: another model" and other.request_key != before.request_key
    named, plain = (chat_model(second.base_url, tmp_path, cache_name=name).fingerprint for name in ("larger", ""))
    assert named != plain == chat_model(first.base_url, tmp_path).fingerprint


def test_a_prompt_that_the_server_cuts_silently_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    long = "Ada met Charles in London. " * 400
    with running_model_server(lambda request: Reply(FACT, prompt_tokens=1024)) as server:
        chat = chat_model(server.base_url, tmp_path)
        for question in ("Short?", f"{long} Who?", f"{long} Where?"):
            complete(chat, ask(question))
    warnings = [record.getMessage() for record in caplog.records if "without an error" in record.getMessage()]
    assert len(warnings) == 1 and "counted 1024 tokens in a prompt of about 2" in warnings[0]
    assert "OLLAMA_CONTEXT_LENGTH" in warnings[0] and "chat_model.context_window" in warnings[0]


def test_a_usage_that_is_missing_or_counts_all_is_no_sign_of_a_cut_prompt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for tokens in (None, 0, 2800):
        with running_model_server(lambda request, tokens=tokens: Reply(FACT, prompt_tokens=tokens)) as server:
            complete(chat_model(server.base_url, tmp_path / str(tokens)), ask("Ada met Charles in London. " * 400))
    assert not [record for record in caplog.records if "without an error" in record.getMessage()]
