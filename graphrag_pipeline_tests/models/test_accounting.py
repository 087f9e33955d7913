"""Counts of calls that add up."""

from __future__ import annotations

from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from graphrag_pipeline.models.accounting import Caller, CallStats
from graphrag_pipeline.models.event_loop import CallScope
from graphrag_pipeline.models.pool import complete_all
from graphrag_pipeline.models.ports import ChatReply
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.models.model_clients import ask, chat_model, complete, embedder
from graphrag_pipeline_tests.support.roots import make_root


def test_each_caller_counts_its_own_calls_and_the_model_counts_all(tmp_path: Path) -> None:
    one, other = CallStats(), CallStats()
    with running_model_server(lambda asked: "a fact") as server, running_model_server() as embedding_server:
        chat = chat_model(server.base_url, tmp_path)
        for account, question in ((one, "first"), (one, "second"), (other, "first")):
            complete(chat.for_caller(Caller((account,))), ask(question))
        vectors = embedder(embedding_server.base_url, tmp_path)
        vectors.for_caller(Caller((other,))).embed(["Marley"])
    assert (one.n_calls, one.n_cached) == (2, 0)
    assert (other.n_calls, other.n_cached) == (1, 1)
    assert (chat.stats.n_calls, chat.stats.n_cached, vectors.stats.n_calls) == (2, 1, 1)


def test_a_cancelled_scope_stops_the_calls_of_its_caller_alone(tmp_path: Path) -> None:
    scope = CallScope()
    scope.cancel()
    with running_model_server(lambda asked: "a fact") as server, running_model_server() as embedding_server:
        chat, vectors = chat_model(server.base_url, tmp_path), embedder(embedding_server.base_url, tmp_path)
        with pytest.raises(CancelledError):
            complete_all(chat, [ask("cancelled")], scope=scope)
        with pytest.raises(CancelledError):
            vectors.for_caller(Caller(scope=scope)).embed(["cancelled"])
        [reply] = complete_all(chat, [ask("not cancelled")])
        assert vectors.embed(["not cancelled"]).any()
    assert (chat.stats.n_calls, vectors.stats.n_calls) == (1, 1)
    assert isinstance(reply, ChatReply) and reply.text == "a fact"


def test_roots_of_one_folder_share_clients_and_keep_their_accounts(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root", {})
    run, stage = CallStats(), CallStats()
    counted = root.counted_in(run).counted_in(stage)
    assert counted.accounts == (run, stage) and root.accounts == ()
    assert counted.models.spending is root.models.spending
    assert counted.models.cache is root.models.cache


def counted(*seconds: float) -> CallStats:
    stats = CallStats()
    for one in seconds:
        stats.add_call(10, 2, 0.5, one)
    return stats


def test_percentiles_are_near_the_latencies() -> None:
    stats = counted(*(number / 100 for number in range(1, 101)))
    assert stats.latency_s(0.5) == pytest.approx(0.5, rel=0.05)
    assert stats.latency_s(0.95) == pytest.approx(0.95, rel=0.05)
    assert CallStats().latency_s(0.5) == 0.0


def test_merged_counts_are_those_of_all_calls() -> None:
    one, other = counted(0.1, 0.2), counted(3.0)
    other.add_cached(4)
    other.add_retry()
    one.n_records, other.n_records = 2, 1
    other.add_call(1, 1, None, 0.0)
    merged = one.merge(other)
    assert merged.as_metadata() == counted(0.1, 0.2, 3.0, 0.0).as_metadata() | {
        "cached_calls": 4,
        "retries": 1,
        "unpriced_calls": 1,
        "prompt_tokens": 31,
        "completion_tokens": 7,
        "cost_usd": 1.5,
    }
    assert (one.n_calls, merged.n_records) == (2, 3)
