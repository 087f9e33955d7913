"""A reranking model behind a real HTTP endpoint: forms of request and reply, batches, lengths, the store, faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.models.accounting import Caller, CallStats
from graphrag_pipeline.models.cache import ResponseCache
from graphrag_pipeline.models.endpoints.reranker import Reranker, read_scores
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.spending import Spending
from graphrag_pipeline.settings.models import BudgetSettings, RerankModelSettings
from graphrag_pipeline_tests.model_server import Fault, ModelServer, Reply, running_model_server
from graphrag_pipeline_tests.support.models.model_clients import QUICK, open_cache

QUESTION = "Who carried Tiny Tim home?"
TEXTS = ["The fog came pouring in.", "Bob Cratchit carried Tiny Tim home.", "Scrooge was at home."]


def reranker(base_url: str, folder: Path, budget: BudgetSettings | None = None, **settings: Any) -> Reranker:
    database = open_cache(folder)
    chosen = RerankModelSettings(**{"model": "test-rerank", "base_url": base_url, **QUICK, **settings})
    return Reranker(chosen, ResponseCache(database), Spending(database, budget or BudgetSettings()))


def bodies(server: ModelServer) -> list[dict[str, Any]]:
    return [call.body for call in server.calls if call.body is not None]


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/rerank", {"query": QUESTION, "documents": TEXTS, "top_n": 3}),
        ("/score", {"text_1": QUESTION, "text_2": TEXTS}),
    ],
)
def test_scores_come_in_the_order_of_the_texts_from_either_path(path: str, sent: dict, tmp_path: Path) -> None:
    with running_model_server() as server:
        found = reranker(server.base_url, tmp_path, path=path).rerank(QUESTION, TEXTS)
    assert [score is not None for score in found.scores] == [True] * 3 and not found.failure
    assert max(range(3), key=lambda i: found.scores[i] or 0) == 1
    assert bodies(server) == [{"model": "test-rerank", **sent}]


@pytest.mark.parametrize("scores", [[float("nan")] * 3, []])
def test_a_paid_reply_without_scores_is_not_requested_again(scores: list[float], tmp_path: Path) -> None:
    stats = CallStats()
    with running_model_server([("rerank", Reply(scores=scores))]) as server:
        model = reranker(server.base_url, tmp_path).for_caller(Caller((stats,)))
        found = model.rerank(QUESTION, TEXTS)
    assert found.scores == (None, None, None) and "no result has an index below 3 and a score" in found.failure
    assert server.count("rerank") == 1 and "attempts" not in found.failure
    assert (stats.n_calls, stats.n_retries) == (1, 0) and stats.prompt_tokens > 0, "it was answered, and is paid"


def test_an_equal_question_is_not_paid_twice_and_calls_are_counted(tmp_path: Path) -> None:
    stats = CallStats()
    with running_model_server() as server:
        model = reranker(server.base_url, tmp_path, prompt_price=1.0).for_caller(Caller((stats,)))
        first = model.rerank(QUESTION, TEXTS)
        assert model.rerank(QUESTION, TEXTS) == first
        model.rerank(QUESTION, TEXTS[:2])
    assert (server.count("rerank"), stats.n_calls, stats.n_cached) == (2, 2, 1)
    assert stats.prompt_tokens > 0 and stats.cost == pytest.approx(stats.prompt_tokens / 1_000_000)


def test_texts_are_sent_in_batches_and_scored_as_in_one(tmp_path: Path) -> None:
    with running_model_server() as server:
        whole = reranker(server.base_url, tmp_path / "a").rerank(QUESTION, TEXTS)
        assert reranker(server.base_url, tmp_path / "b", batch_size=2).rerank(QUESTION, TEXTS) == whole
    assert [len(body["documents"]) for body in bodies(server)[1:]] == [2, 1]


def test_the_end_of_a_long_text_is_left_out_and_counted(tmp_path: Path) -> None:
    long = "fog " * 3000
    with running_model_server() as server:
        found = reranker(server.base_url, tmp_path).rerank(QUESTION, [long, TEXTS[1]])
    [body] = bodies(server)
    assert body["documents"][0] == long[: len(body["documents"][0])] and len(body["documents"][0].split()) == 2000
    assert body["documents"][1] == TEXTS[1] and found.n_cut == 1


@pytest.mark.parametrize("dialect", ["openai", "llama.cpp"])
def test_a_refusal_for_length_halves_the_limit_for_good(dialect: Any, tmp_path: Path) -> None:
    long = "fog " * 3000
    with running_model_server(max_input_tokens=800, dialect=dialect) as server:
        model = reranker(server.base_url, tmp_path)
        assert model.rerank(QUESTION, [long, TEXTS[1]]).n_cut == 1
        n_first = server.count()
        found = model.rerank("Where is the fog?", [long, TEXTS[1]])
    assert (n_first, server.count()) == (3, 4), "2,000, 1,000 and 500 tokens, then 500 at once"
    assert None not in found.scores and not found.failure


def test_a_batch_that_fails_for_good_leaves_the_others_their_scores(tmp_path: Path) -> None:
    with running_model_server([("fog", Fault("500"))]) as server:
        found = reranker(server.base_url, tmp_path, batch_size=1).rerank(QUESTION, TEXTS)
    assert [score is None for score in found.scores] == [True, False, False]
    assert "no answer in 3 attempts" in found.failure


def test_an_endpoint_without_the_path_and_a_missing_model_are_errors(tmp_path: Path) -> None:
    with running_model_server() as server, pytest.raises(PipelineError, match="404"):
        reranker(server.base_url, tmp_path, path="/rank").rerank(QUESTION, TEXTS)
    with pytest.raises(SettingsError, match="no model is set"):
        reranker("http://127.0.0.1:9/v1", tmp_path, model="")


def test_the_budget_of_the_root_holds(tmp_path: Path) -> None:
    with running_model_server() as server, pytest.raises(PipelineError, match=r"budget\.max_tokens"):
        reranker(server.base_url, tmp_path, BudgetSettings(max_tokens=3)).rerank(QUESTION, TEXTS)
    assert server.count() == 0


@pytest.mark.parametrize(
    ("body", "scores"),
    [
        ({"results": [{"index": 1, "relevance_score": 0.5}, {"index": 0, "relevance_score": -3}]}, {1: 0.5, 0: -3.0}),
        ({"data": [{"score": 1}, {"score": 2.5}]}, {0: 1.0, 1: 2.5}),
        ([{"index": 0, "score": 0.25}], {0: 0.25}),
        (
            {"results": [{"index": "1", "relevance_score": "0.93"}, {"index": "0", "relevance_score": 1e-3}]},
            {1: 0.93, 0: 0.001},
        ),
        (
            {"results": [{"index": "0.5", "relevance_score": 1}, {"index": "one", "score": 1}, {"score": "high"},
                         {"index": 0, "score": "nan"}, {"index": 1, "score": " 2 "}]},
            {1: 2.0},
        ),
        ({"results": [{"index": 1, "relevance_score": 0.5, "document": {"text": "b"}}]}, {1: 0.5}),
        ({"results": [{"index": 0, "relevance_score": 1}, {"index": 0, "relevance_score": 2}]}, {0: 1.0}),
        (
            {"results": [{"index": 7, "relevance_score": 1}, {"index": True, "relevance_score": 1}, "x",
                         {"index": 0, "relevance_score": float("nan")}, {"index": 1, "relevance_score": 2}]},
            {1: 2.0},
        ),
    ],
)  # fmt: skip
def test_replies_of_several_products_are_read(body: object, scores: dict[int, float]) -> None:
    assert read_scores(body, 2) == scores


@pytest.mark.parametrize("body", [None, [], {}, {"results": {}}, {"results": []}, {"results": [{"index": 9}]}, "text"])
def test_a_reply_without_a_score_is_not_an_answer(body: object) -> None:
    with pytest.raises(ReplyFormatError):
        read_scores(body, 2)
