"""One model at several real HTTP endpoints: shared load, fail-over, keys and headers that no message shows."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.models.endpoints import endpoint, places
from graphrag_pipeline.models.pool import complete_all
from graphrag_pipeline.models.ports import CallFailedError, ChatReply, Failure
from graphrag_pipeline.models.spending import Rate, Spending
from graphrag_pipeline.settings.models import BudgetSettings, ChatModelSettings
from graphrag_pipeline_tests.model_server import Fault, ModelServer, running_model_server
from graphrag_pipeline_tests.support.models.model_clients import ask, chat_model, complete, embedder, open_cache

FACT = "fact: Marley was dead"
SECRET = "gw-0123456789-secret-of-the-gateway"


def both(one: ModelServer, other: ModelServer, folder: Path, **settings: Any) -> Any:
    return chat_model(one.base_url, folder, endpoints=[{"base_url": other.base_url}], **settings)


def ask_all(chat: Any, n: int, progress: Any = None) -> list[ChatReply[str] | Failure]:
    return complete_all(chat, [ask(f"Question {number}?") for number in range(n)], progress)


def test_endpoints_share_the_load_and_a_server_that_dies_loses_no_call(tmp_path: Path) -> None:
    with ExitStack() as mortal, running_model_server(lambda request: FACT, latency_s=0.2) as other:
        one = mortal.enter_context(running_model_server(lambda request: FACT, latency_s=0.2))
        replies = ask_all(both(one, other, tmp_path), 150, lambda done, n: mortal.close() if done >= 10 else None)
    assert all(isinstance(reply, ChatReply) for reply in replies)
    assert one.count() >= 10 and other.count() >= 75
    keys = Counter(call.key for call in (*one.calls, *other.calls) if call.is_clean)
    assert len(keys) == 150


def test_the_reply_of_one_endpoint_is_found_when_another_one_is_asked(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT) as one, running_model_server(lambda request: FACT) as other:
        paid = complete(chat_model(one.base_url, tmp_path), ask("Who?"))
        found = complete(both(other, one, tmp_path, headers={"X-Team": "research"}), ask("Who?"))
        assert found.is_cached and found.request_key == paid.request_key and other.count() == 0
        plain = chat_model(one.base_url, tmp_path)
        assert both(other, one, tmp_path, headers={"X-Team": "research"}).fingerprint == plain.fingerprint


@pytest.mark.parametrize("fault", [Fault("401"), Fault("403"), Fault("404"), Fault("429-quota"),
                                   Fault("429-retry-after", retry_after_s=1000.0)])  # fmt: skip
def test_an_endpoint_that_refuses_rests_and_the_other_one_answers(
    fault: Fault, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running_model_server(lambda request: fault) as one, running_model_server(lambda request: FACT) as other:
        replies = ask_all(both(one, other, tmp_path, max_concurrency=1), 10)
        assert all(isinstance(reply, ChatReply) for reply in replies)
        assert one.count() <= 2 and other.count() == 10
    assert "takes no calls of test-chat" in caplog.text


@pytest.mark.parametrize("fault", ["500", "503", "drop", "429-retry-after"])
def test_a_failing_endpoint_is_avoided_and_tried_again_later(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "FIRST_REST_S", 0.2)
    with (
        running_model_server(lambda request: Fault(fault), retry_after_s=0.2) as one,
        running_model_server(lambda request: FACT, latency_s=0.05) as other,
    ):
        chat, started = both(one, other, tmp_path, max_concurrency=2), time.monotonic()
        assert all(isinstance(reply, ChatReply) for reply in ask_all(chat, 20))
        n_rests = math.log2(1 + (time.monotonic() - started) / 0.2)  # each is twice as long as the one before
        assert one.count() <= 2 * (1 + n_rests) and other.count() == 20, "two calls may try it at once"
        one.reset()
        one.push((lambda request: True, FACT))
        asyncio.run(asyncio.sleep(2.5))
        assert all(isinstance(reply, ChatReply) for reply in complete_all(chat, [ask(f"Again {n}?") for n in range(9)]))
        assert one.count() >= 3


def test_if_no_endpoint_answers_the_error_has_the_words_of_each(tmp_path: Path) -> None:
    with running_model_server(lambda request: Fault("401")) as one, running_model_server() as other:
        other.push((lambda request: True, Fault("404")))
        with pytest.raises(PipelineError) as refused:
            complete(both(one, other, tmp_path), ask("Who?"))
        other.push((lambda request: True, Fault("500", message="out of memory")))
        with pytest.raises(CallFailedError) as failed:
            complete(both(one, other, tmp_path, max_attempts=3), ask("Who?"))
    for error in (refused, failed):
        assert f"127.0.0.1:{one.port}: 401: Incorrect API key" in str(error.value)
    assert f"127.0.0.1:{other.port}: 404" in str(refused.value) and "Check the key" in str(refused.value)
    assert f"127.0.0.1:{other.port}: 500: out of memory" in str(failed.value)


def test_servers_that_are_all_down_end_the_run(tmp_path: Path) -> None:
    chat = chat_model("http://127.0.0.1:9/v1", tmp_path, endpoints=[{"base_url": "http://127.0.0.1:10/v1"}])
    with pytest.raises(PipelineError, match=r"127\.0\.0\.1:9: .*127\.0\.0\.1:10: .*Start the server"):
        complete(chat, ask("Who?"))


def test_a_request_that_one_endpoint_rejects_is_not_sent_to_the_other(tmp_path: Path) -> None:
    fault = Fault("400", message="no such thing")
    with running_model_server(lambda request: fault) as one, running_model_server(lambda request: FACT) as other:
        with pytest.raises(CallFailedError, match="no such thing"):
            complete(both(one, other, tmp_path), ask("Who?"))
        assert one.count() == 1 and other.count() == 0


def test_several_keys_at_one_address_share_the_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST_KEY", "sk-first-key-of-the-test")
    monkeypatch.setenv("SECOND_KEY", "sk-second-key-of-the-test")
    with running_model_server(lambda request: FACT, keep_keys=True, latency_s=0.05) as server:
        chat = chat_model(server.base_url, tmp_path, api_key_env="FIRST_KEY", endpoints=[{"api_key_env": "SECOND_KEY"}])
        ask_all(chat, 40)
    used = Counter(call.headers["authorization"] for call in server.calls)
    assert used.keys() == {"Bearer sk-first-key-of-the-test", "Bearer sk-second-key-of-the-test"}
    assert min(used.values()) >= 10


def test_a_call_goes_where_its_rate_limit_lets_it_begin_first(tmp_path: Path) -> None:
    spending = Spending(open_cache(tmp_path), BudgetSettings())
    narrow, wide = Rate("narrow", 60, None), Rate("wide", 600, None)

    async def take() -> list[int]:
        return [(await spending.take_turn([narrow, wide, Rate("none", None, None)][:n], 1))[0] for n in (2, 2, 2, 3)]

    assert asyncio.run(take()) == [0, 1, 1, 2]


def test_embeddings_are_shared_too(tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(60)]
    with ExitStack() as mortal, running_model_server(latency_s=0.02) as other:
        one = mortal.enter_context(running_model_server(latency_s=0.02))
        model = embedder(one.base_url, tmp_path, batch_size=2, endpoints=[{"base_url": other.base_url}])
        alone = embedder(other.base_url, tmp_path / "alone", batch_size=2)
        assert model.fingerprint == alone.fingerprint
        vectors, failures = model.try_embed(texts[:40])
        mortal.close()
        more, failures_after = model.try_embed(texts)
        assert not failures and not failures_after
        assert (more[:40] == vectors).all() and (more == alone.embed(texts)).all()
    assert one.count() >= 5


def test_headers_reach_their_endpoint_and_no_message_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", SECRET)
    monkeypatch.setattr(endpoint, "FIRST_BACKOFF_S", 0.001)
    headers = {"X-Team": "research", "X-Gateway-Key": "Bearer $GATEWAY_KEY"}
    with running_model_server() as one, running_model_server(lambda request: FACT) as other:
        one.push((lambda request: True, Fault("403", message=f"bad gateway key {SECRET}")))
        chat = both(one, other, tmp_path, headers=headers)
        complete(chat, ask("Who?"))
        sent, elsewhere = one.calls[0].headers, other.calls[0].headers
        assert (sent["x-team"], sent["x-gateway-key"]) == ("research", f"Bearer {SECRET}")
        assert "x-gateway-key" not in elsewhere and "x-team" not in elsewhere
        with pytest.raises(PipelineError) as caught:
            complete(chat_model(one.base_url, tmp_path, headers=headers), ask("Whom?"))
        for said in (str(caught.value), caplog.text):
            assert "bad gateway key ***" in said and SECRET not in said
        monkeypatch.delenv("GATEWAY_KEY")
        with pytest.raises(SettingsError, match="X-Gateway-Key: set the environment variable GATEWAY_KEY"):
            complete(chat_model(one.base_url, tmp_path, headers=headers), ask("Whom?"))


def test_variables_that_a_model_needs_are_known_before_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_KEY", SECRET)
    for variable in ("OPENAI_API_KEY", "SECOND_KEY", "TEAM"):
        monkeypatch.delenv(variable, raising=False)
    headers = {"X-Gateway-Key": "Bearer $GATEWAY_KEY", "X-Team": "${TEAM}"}
    others = [{"api_key_env": "SECOND_KEY"}, {"base_url": "http://127.0.0.1:9/v1", "api_key_env": "NOT_NEEDED"}]
    model = ChatModelSettings(model="gpt-4o-mini", headers=headers, endpoints=others)
    assert places.find_unset(model) == ["OPENAI_API_KEY", "TEAM", "SECOND_KEY"]
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert places.find_unset(model) == ["TEAM", "SECOND_KEY"]
