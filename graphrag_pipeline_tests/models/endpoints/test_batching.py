"""Requests that go in batches, through the Batch API of a real HTTP endpoint."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.models.accounting import Caller, CallStats
from graphrag_pipeline.models.database import BATCH_ITEMS, SharedDatabase
from graphrag_pipeline.models.endpoints import batching
from graphrag_pipeline.models.endpoints.batching import BatchDesk, sending_batches
from graphrag_pipeline.models.event_loop import CallScope
from graphrag_pipeline.models.pool import complete_all
from graphrag_pipeline.models.ports import ChatReply, Failure
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.settings.models import BudgetSettings
from graphrag_pipeline_tests.model_server import Fault, ModelServer, ReceivedRequest, running_model_server
from graphrag_pipeline_tests.model_server.batch_api import Ending
from graphrag_pipeline_tests.support.command_line import Call, environment, program
from graphrag_pipeline_tests.support.models.litellm_proxy import litellm_proxy
from graphrag_pipeline_tests.support.models.model_clients import ask, chat_model, complete, embedder, open_cache
from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, ModelIndex, make_model_root

FACT = "fact: Marley was dead"
PRICES = {"prompt_price": 1.0, "completion_price": 2.0}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "QUIET_S", 0.1)
    monkeypatch.setattr(batching, "POLL_S", 0.05)


@contextmanager
def batches(folder: Path, database: SharedDatabase | None = None) -> Iterator[BatchDesk]:
    with sending_batches(database or open_cache(folder), lambda line: None) as desk:
        yield desk


def ask_all(chat: Any, names: list[str]) -> list[ChatReply[str] | Failure]:
    return complete_all(chat, [ask(f"Question {name}?") for name in names])


def names(start: int, end: int) -> list[str]:
    return [f"n{number:03d}" for number in range(start, end)]


def sent_in_batches(server: ModelServer) -> list[list[str]]:
    """The custom ids of each batch."""
    api = server.batch_api
    lines = ([json.loads(line) for line in api.files[one["input_file_id"]].splitlines()] for one in api.batches)
    return [[line["custom_id"] for line in some] for some in lines]


def count_direct(server: ModelServer) -> int:
    return sum(not call.is_batched for call in server.calls)


def test_requests_wait_for_each_other_and_cost_half(tmp_path: Path) -> None:
    stats = CallStats()
    with running_model_server(lambda request: FACT) as server, batches(tmp_path) as desk:
        chat = chat_model(server.base_url, tmp_path, **PRICES).for_caller(Caller((stats,)))
        replies = ask_all(chat, names(0, 30))
    assert all(isinstance(reply, ChatReply) and not reply.is_cached for reply in replies)
    [items] = sent_in_batches(server)
    first, *others = replies
    assert [reply.request_key for reply in others] == items and desk.rounds == {"extraction": 1}
    assert count_direct(server) == 1  # the first one shows at once what would fail
    costs = [reply.cost for reply in (first, *others) if isinstance(reply, ChatReply)]
    assert costs[0] and costs[1:] == [costs[0] / 2] * 29
    assert stats.cost == pytest.approx(costs[0] * (1 + 29 / 2)) and stats.n_calls == 30
    with running_model_server() as other:
        found = ask_all(chat_model(other.base_url, tmp_path), names(0, 30))
        assert all(isinstance(reply, ChatReply) and reply.is_cached for reply in found) and other.count() == 0


def test_a_correction_is_another_round(tmp_path: Path) -> None:
    script = [("cannot be used: there is no fact", FACT), ("n002", "gossip"), ("Question", FACT)]
    with running_model_server(script) as server, batches(tmp_path) as desk:
        replies = ask_all(chat_model(server.base_url, tmp_path), names(0, 4))
        assert [getattr(reply, "value", reply) for reply in replies] == [FACT] * 4
    assert desk.rounds == {"extraction": 2} and [len(items) for items in sent_in_batches(server)] == [3, 1]


def test_batches_keep_the_limits_of_the_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_model_server(lambda request: FACT) as server:
        monkeypatch.setattr(batching, "MAX_REQUESTS", 8)
        with batches(tmp_path):
            ask_all(chat_model(server.base_url, tmp_path), names(0, 9))  # the first one, and eight
        assert [len(items) for items in sent_in_batches(server)] == [8]
        line = len(server.batch_api.files[server.batch_api.batches[0]["input_file_id"]]) // 8
        monkeypatch.setattr(batching, "MAX_REQUESTS", 1000)
        monkeypatch.setattr(batching, "MAX_BYTES", 5 * line)
        with batches(tmp_path):
            ask_all(chat_model(server.base_url, tmp_path), names(100, 112))
        assert [len(items) for items in sent_in_batches(server)][1:] == [5, 5, 1]
    with running_model_server() as server:
        monkeypatch.setattr(batching, "MAX_BYTES", 10**9)
        monkeypatch.setattr(batching, "MAX_INPUTS", 10)
        with batches(tmp_path):
            model = embedder(server.base_url, tmp_path, batch_size=4)
            vectors = model.embed([f"text {number}" for number in range(24)])
        assert [len(items) for items in sent_in_batches(server)] == [2, 2, 1]  # of four texts each, after the first
        alone = embedder(server.base_url, tmp_path / "alone").embed([f"text {number}" for number in range(24)])
        assert (vectors == alone).all()


@pytest.mark.parametrize("is_noted", [True, False])
def test_the_batch_of_a_killed_run_is_found_and_not_paid_again(is_noted: bool, tmp_path: Path) -> None:
    database, stopped = open_cache(tmp_path), CallScope()
    requests = [ask(f"Question {name}?") for name in names(0, 10)]
    with running_model_server(lambda request: FACT) as server, ThreadPoolExecutor(1) as pool:
        server.batch_api.batch_s = 1000.0
        with batches(tmp_path):
            running = pool.submit(complete_all, chat_model(server.base_url, tmp_path), requests, scope=stopped)
            noted = select(BATCH_ITEMS).where(BATCH_ITEMS.c.batch_id.is_not(None))
            wait_until(lambda: bool(database.read(noted)))
            stopped.cancel()
            assert isinstance(running.exception(), CancelledError)
        if not is_noted:  # as if it ended before the answer arrived
            database.submit(lambda to: to.execute(update(BATCH_ITEMS).values(batch_id=None))).result()
        server.batch_api.finish()
        with batches(tmp_path):
            replies = ask_all(chat_model(server.base_url, tmp_path), names(0, 10))
        assert all(isinstance(reply, ChatReply) for reply in replies)
        assert [len(items) for items in sent_in_batches(server)] == [9] and count_direct(server) == 1


def test_a_claim_whose_process_ended_before_the_batch_was_made_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "CLAIM_S", 60.0)
    database, question = open_cache(tmp_path), ask("Question n001?")
    digest = batching.stable_hash("batched", batching.canonical_json(question.messages))
    with running_model_server(lambda request: FACT) as server, batches(tmp_path):
        chat = chat_model(server.base_url, tmp_path)
        row = {"request_key": chat._key_of(question), "digest": digest, "batch": "lost", "claimed_at": time.time() - 61}
        database.submit(lambda to: to.execute(BATCH_ITEMS.insert(), [row])).result()
        assert all(isinstance(reply, ChatReply) for reply in ask_all(chat, names(0, 3)))
        assert sum(map(len, sent_in_batches(server))) == 2


def test_what_an_expired_batch_left_is_sent_directly(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT) as server, batches(tmp_path):
        server.batch_api.endings = [Ending("expired", 6)]
        replies = ask_all(chat_model(server.base_url, tmp_path), names(0, 11))
        assert all(isinstance(reply, ChatReply) for reply in replies)
        assert count_direct(server) == 1 + 4 and len(server.calls) == 11


@pytest.mark.parametrize(
    ("ending", "said", "n_left"),
    [
        (Ending("expired", 0), "is expired, and 9 of its requests", 9),
        (Ending("cancelled", 5), "is cancelled, and 4 of its requests", 4),
        (Ending("failed", errors=(("invalid_json_line", "line 3 is no JSON"),)), "line 3 is no JSON", 9),
    ],
)
def test_a_batch_that_fails_stops_the_run_and_the_next_one_sends_the_rest(
    ending: Ending, said: str, n_left: int, tmp_path: Path
) -> None:
    with running_model_server(lambda request: FACT) as server:
        server.batch_api.endings = [ending]
        with batches(tmp_path), pytest.raises(PipelineError, match=said) as caught:
            ask_all(chat_model(server.base_url, tmp_path), names(0, 10))
        assert "again" in str(caught.value)
        with batches(tmp_path):
            replies = ask_all(chat_model(server.base_url, tmp_path), names(0, 10))
        assert all(isinstance(reply, ChatReply) for reply in replies)
        first, *later = sent_in_batches(server)
        assert len(first) == 9 and sum(map(len, later)) + count_direct(server) - 1 == n_left


def test_a_batch_over_the_limit_of_the_account_is_sent_in_halves_one_after_the_other(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT) as server, batches(tmp_path):
        server.batch_api.endings = [Ending("failed", errors=(("token_limit_exceeded", "Limit: 90,000"),))]
        replies = ask_all(chat_model(server.base_url, tmp_path), names(0, 10))
        assert all(isinstance(reply, ChatReply) for reply in replies)
        whole, first, second = sent_in_batches(server)
        assert (len(first), len(second)) == (4, 5) and [*first, *second] == whole
        assert server.batch_api.most_under_way == 1


def test_a_server_that_is_away_for_a_while_only_delays_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "_RETRIES", 0)
    lines: list[str] = []
    with running_model_server(lambda request: FACT) as server, ThreadPoolExecutor(1) as pool:
        server.batch_api.batch_s = 1000.0
        with sending_batches(open_cache(tmp_path), lines.append):
            requests = [ask(f"Question {name}?") for name in names(0, 6)]
            running = pool.submit(complete_all, chat_model(server.base_url, tmp_path), requests)
            wait_until(lambda: any("in_progress" in line for line in lines))
            server.batch_api.is_away = True
            wait_until(lambda: any("is not known now (503" in line for line in lines))
            server.batch_api.is_away = False
            server.batch_api.finish()
            assert all(isinstance(reply, ChatReply) for reply in running.result())
    assert [len(items) for items in sent_in_batches(server)] == [5]


def wait_until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.02)


def test_errors_of_single_requests_are_those_of_their_records(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> object:
        if "n003" in request.prompt:
            return Fault("400", message="no such thing")
        if "n005" in request.prompt and request.attempt == 1:
            return Fault("500")
        return FACT

    with running_model_server(answer) as server, batches(tmp_path):
        replies = ask_all(chat_model(server.base_url, tmp_path), names(0, 8))
        failed = [reply for reply in replies if isinstance(reply, Failure)]
        assert [failure.record for failure in failed] == ["Question n003?"] and "no such thing" in failed[0].reason
        assert count_direct(server) == 2  # the first one, and the one that failed at the server


def test_a_parameter_that_is_refused_is_found_before_a_batch_is_sent(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> object:
        refused = Fault("400", message="Unsupported parameter: 'top_k'", param="top_k")
        return refused if "top_k" in request.body else FACT

    with running_model_server(answer) as server, batches(tmp_path):
        replies = ask_all(chat_model(server.base_url, tmp_path, parameters={"top_k": 5}), names(0, 8))
        assert all(isinstance(reply, ChatReply) for reply in replies)
        assert [len(items) for items in sent_in_batches(server)] == [7]


def test_a_server_without_a_batch_api_and_azure_are_refused(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT) as server, batches(tmp_path):
        server.batch_api.is_served = False
        with pytest.raises(PipelineError, match=r"no Batch API .*without --batch"):
            ask_all(chat_model(server.base_url, tmp_path), names(0, 3))
        with pytest.raises(SettingsError, match="Azure"):
            ask_all(chat_model(server.root_url, tmp_path, api_version="2024-10-21"), names(3, 6))


def test_a_root_without_models_has_nothing_to_send(tmp_path: Path, call: Call) -> None:
    assert call("init", tmp_path / "root").status == 0
    refused = call("index", "--batch", "--root", tmp_path / "root")
    assert refused.status == 1 and "no step of the index uses a model" in refused.err


def test_a_budget_counts_half_and_a_second_run_does_not_count_twice(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT) as server:
        with running_model_server(lambda request: FACT) as other:
            single = complete(chat_model(other.base_url, tmp_path / "one", **PRICES), ask("Question n000?"))
        assert single.cost
        budget = BudgetSettings(max_cost=7.5 * single.cost)
        options: dict[str, Any] = {"parameters": {"max_tokens": single.completion_tokens}, **PRICES}
        with batches(tmp_path):
            replies = ask_all(chat_model(server.base_url, tmp_path, budget, **options), names(0, 10))
        assert all(isinstance(reply, ChatReply) for reply in replies)


def test_two_processes_put_a_request_into_one_batch(postgres_url: str, tmp_path: Path) -> None:
    shared = SharedDatabase(postgres_url)
    with running_model_server(lambda request: FACT) as server:
        for folder in ("one", "two"):
            with batches(tmp_path, shared):  # caches of their own, as if the second began before a reply was stored
                replies = ask_all(chat_model(server.base_url, tmp_path / folder), names(0, 6))
            assert all(isinstance(reply, ChatReply) for reply in replies)
        ids = [key for items in sent_in_batches(server) for key in items]
        assert len(ids) == len(set(ids)) == 5  # the first question of each run is sent directly
    shared.close()


@pytest.mark.parametrize("gateway", ["none", "LiteLLM"])
def test_an_index_in_batches_survives_a_kill_and_equals_one_by_single_calls(
    indexed_by_model: ModelIndex, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, gateway: str
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with running_model_server() as server, ExitStack() as held:
        address = (
            held.enter_context(litellm_proxy(server.base_url, KEY, tmp_path)) if gateway != "none" else server.base_url
        )
        root = make_model_root(tmp_path / "root", address, 6, chat_model=PRICES)
        server.batch_api.batch_s = 1000.0
        usual, half = (
            {one["stage"]: one["cost"] for one in json.loads(call("index", "--dry-run", *more).out)["estimates"]}
            for more in (["--json", "--root", root.path], ["--json", "--batch", "--root", root.path])
        )
        assert half["extracted_graph"] == usual["extracted_graph"] / 2 > 0
        assert half["community_reports"] == usual["community_reports"] > 0
        shown = call("index", "--dry-run", "--batch", "--root", root.path).out
        assert re.search("in batches, at half price: extracted_graph,.*_embeddings", shown) and "_reports," not in shown
        command = program("--root", root.path, "index", "--batch")
        killed = subprocess.Popen(command, env=environment(**{KEY_VARIABLE: KEY}), stderr=subprocess.DEVNULL)
        while not server.batch_api.batches:
            assert killed.poll() is None
            time.sleep(0.05)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        server.batch_api.finish()
        done = call("index", "--batch", "--root", root.path)
        assert done.status == 0, done.err
        assert "rounds of batches: extraction 1, descriptions 1, embeddings 3" in done.out
        ids = [key for items in sent_in_batches(server) for key in items]
        asked = [call.key for call in server.calls if call.kind in ("extraction", "gleaning", "summary", "report")]
        assert len(ids) == len(set(ids)) and len(asked) == len(set(asked))
        assert "index --batch" in call("costs", "--by", "command", "--root", root.path).out
    assert versions(root) == versions(indexed_by_model.root)


def versions(root: Root) -> dict[str, str]:
    tables = ("entities", "relationships", "descriptions", "community_reports")
    return {table: root.tables.need(table).data_version for table in tables}
