"""The token budget of one question: what fits is asked, in order, and what is kept back stays for the answer."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.models.ports import ChatRequest
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.token_budget import TokenBudget, fit_context
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.text.tokens import count_tokens
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

QUESTION = "Who haunted Scrooge?"
MODEL_RATES = {"rating": {"engine": "model"}}


def request(n_words: int) -> ChatRequest[str]:
    return ChatRequest("a record", [{"role": "user", "content": "word " * n_words}], str)


def test_without_a_limit_everything_is_asked() -> None:
    budget = TokenBudget()
    assert budget.admit([request(5)] * 3, 1000) == 3
    budget.settle([request(5)], ["a reply"])
    assert budget.admit([request(5)] * 3, 1000) == 3 and budget.left is None


def test_replies_and_what_is_kept_back_count() -> None:
    cost = count_tokens("word " * 10)
    budget = TokenBudget(3 * (cost + 5))
    assert budget.admit([request(10)] * 5, 5) == 3
    assert budget.admit([request(10)] * 5, 5, reserve=cost) == 2
    budget.settle([request(10)], ["one two three"])
    assert budget.spent == cost + 3
    assert "budget of" in budget.refuse("answers", request(1)).reason


@given(st.lists(st.integers(1, 40), max_size=8), st.integers(0, 200), st.integers(0, 20))
def test_what_is_admitted_fits(n_words: list[int], most: int, n_reply: int) -> None:
    requests = [request(n) for n in n_words]
    budget = TokenBudget(most)
    n_admitted = budget.admit(requests, n_reply)
    budget.settle(requests[:n_admitted], [""] * n_admitted)
    assert budget.spent + n_admitted * n_reply <= most
    cost_of_one_more = sum(count_tokens("word " * n) + n_reply for n in n_words[: n_admitted + 1])
    assert n_admitted == len(requests) or cost_of_one_more > most


def test_a_context_is_lowered_to_what_a_budget_can_pay() -> None:
    assert fit_context(Settings(), 5_000, 12_000) < 5_000
    assert fit_context(Settings(), 100_000, 12_000) == 12_000


@pytest.mark.parametrize("method", ["local", "basic", "global", "drift", "lazy"])
def test_no_question_spends_more_than_its_budget(small: GraphIndex, tmp_path: Path, method: str) -> None:
    option = "max_tokens" if method == "lazy" else "budget"
    with running_model_server() as server:
        index = open_with_model(small, tmp_path, server, **MODEL_RATES)
        for most in (1, 2_500, 8_000):
            result = index.search(QUESTION, method, **{option: most})
            used = result.usage.to_dict()["by_model"].get("test-chat", {"input_tokens": 0, "output_tokens": 0})
            assert used["input_tokens"] + used["output_tokens"] <= most
            assert result.answer and (result.answering["failure"] or result.answering["engine"] == "model")
    assert result.answering["engine"] == "model", "8,000 tokens are enough for an answer"


def test_a_question_whose_budget_is_spent_is_answered_by_the_embedded_engine(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server() as server:
        index = open_with_model(small, tmp_path, server)
        *pieces, result = index.stream(QUESTION, budget=10)
    assert not server.calls
    assert "budget of 10 tokens" in result.answering["failure"]
    assert "".join(map(str, pieces)) == result.answer
    assert "the embedded engine answers instead" in result.answer


def test_stored_replies_count_like_new_ones(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server() as server:
        index = open_with_model(small, tmp_path, server)
        first, second = (index.search(QUESTION, "drift", budget=9_000) for _ in range(2))
    assert second.usage.to_dict()["calls"] == 0
    assert first.answer == second.answer
    assert json.dumps(first.selection) == json.dumps(second.selection)


def test_auto_hands_its_budget_on(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server() as server:
        result = open_with_model(small, tmp_path, server).search(QUESTION, "auto", budget=10)
    assert result.selection["chosen"] == "local" and not server.calls


@pytest.mark.parametrize("question", ["What is said of Marley?", "What are the main themes?"])
def test_global_search_denies_nothing_that_the_budget_did_not_let_the_model_rate(
    small: GraphIndex, tmp_path: Path, question: str
) -> None:
    with running_model_server() as server:
        result = open_with_model(small, tmp_path, server, **MODEL_RATES).search(question, "global", budget=4_000)
    assert not server.calls and result.selection["kept"] == 0
    of_budget, n_rated = result.selection["options_used"]["budget"], result.selection["rated"]
    assert of_budget["rated_by_embedded"] == n_rated > 0
    reason = "the budget of 4,000 tokens for this question does not allow it"
    assert result.answering["failure"] == f"{reason}; the model rated 0 of {n_rated} community reports"
    assert result.answering["unread"]["n_failed"] == n_rated
    introduction, _, own = result.answer.partition("\n\n")
    assert introduction.endswith("the embedded engine answers instead.") and "Not in the index" not in result.answer
    assert own == small.search(question, "global").answer


def test_reports_that_the_budget_did_not_let_the_model_rate_are_no_denial_of_embedded_answers(
    small: GraphIndex, tmp_path: Path
) -> None:
    with running_model_server() as server:
        index = open_with_model(small, tmp_path, server, answers={"engine": "embedded"}, **MODEL_RATES)
        result = index.search("What is said of Marley?", "global", budget=10)
    assert not server.calls and result.answer == small.search("What is said of Marley?", "global").answer


def test_the_model_denies_what_it_rated_itself(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server([("rating", {"reason": "x", "rating": 0})]) as server:
        index = open_with_model(small, tmp_path, server, **MODEL_RATES)
        result = index.search("What is said of Marley?", "global", budget=20_000, small_reports_per_call=1)
    assert result.answer.startswith("Not in the index: 2 community reports rated, none of them relevant")


def test_a_model_that_finds_nothing_in_some_reports_denies_nothing(carol: GraphIndex, tmp_path: Path) -> None:
    replies = [("rating", {"reason": "x", "rating": 5}), ("map", {"points": []})]
    with running_model_server(replies) as server:
        index = open_with_model(carol, tmp_path, server, **MODEL_RATES)
        result = index.search("What becomes of Scrooge?", "global", budget=20_000)
    chosen = result.selection
    assert 0 < chosen["rated_by_model"] < chosen["rated"] and chosen["kept"] and not chosen["points"]
    said = f"the model rated {chosen['rated_by_model']} of {chosen['rated']} community reports"
    assert said in result.answer and "Not in the index" not in result.answer and result.citations


def test_a_repeat_needs_room_beside_what_is_under_way_and_kept_for_later() -> None:
    first, again = request(10), request(20).messages
    cost, more = count_tokens("word " * 10), count_tokens("word " * 20)
    for missing in (0, 1):
        budget = TokenBudget(2 * (cost + 5) + 7 + more + 5 - missing)
        admitted, _ = budget.gated([first, first], 5, reserve=7)
        assert admitted.repeat_gate
        reason = admitted.repeat_gate.refuse(again, "one two", 1)
        assert bool(reason) == bool(missing) and budget.spent == (0 if missing else more + 2)
        admitted.repeat_gate.count_last("one two three")
        assert budget.spent == (3 if missing else more + 5)
    assert [one.repeat_gate for one in TokenBudget().gated([first], 5)] == [None], "without a limit"


LONG = "I cannot say anything about that in the form that you want. " * 20
UNUSABLE: dict[str, Any] = {
    "rating": LONG,
    "map": {"points": [{"description": LONG, "score": 50}]},
    "answer": "",
}


@pytest.mark.thorough
@pytest.mark.parametrize("kinds", [("map",), ("rating", "map"), ("answer",)])
@pytest.mark.parametrize("budget", [12_000, 20_000, 60_000])
def test_replies_that_are_asked_for_again_stay_within_the_budget(
    carol: GraphIndex, tmp_path: Path, kinds: tuple[str, ...], budget: int
) -> None:
    n_rated = itertools.count()

    def reply(received: ReceivedRequest) -> Any:
        if received.kind == "rating" and ("rating" not in kinds or next(n_rated) % 2 == 0):
            return {"reason": "x", "rating": 5}
        return UNUSABLE[received.kind] if received.kind in kinds else None

    with running_model_server(reply) as server:
        result = open_with_model(carol, tmp_path, server, **MODEL_RATES).search(QUESTION, "global", budget=budget)
        sent = [turn["content"] for call in server.calls for turn in call.body["messages"]]
    n_tokens = sum(map(count_tokens, sent)) + result.usage.to_dict()["by_model"]["test-chat"]["output_tokens"]
    assert n_tokens <= budget
    assert re.search("not asked again|asked twice", json.dumps(result.selection) + result.answer)


def test_a_reply_that_the_budget_does_not_let_be_asked_for_again_stays_unusable_with_its_reason(
    small: GraphIndex, tmp_path: Path
) -> None:
    with running_model_server([("answer", "")]) as server:
        index = open_with_model(small, tmp_path, server)
        least = next(most for most in range(1_500, 9_000, 100) if index.search(QUESTION, budget=most) and server.calls)
        result = index.search(f"{QUESTION} Say it.", budget=least + 100)
    assert "not asked again: the budget of" in result.answering["failure"]
    assert "the embedded engine answers instead" in result.answer
