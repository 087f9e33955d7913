"""Two conditions compared by a judge: both orders, the control, ties, significance, and honest accounts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.comparison import (
    CRITERIA,
    compare_conditions,
    compare_raters,
    count_verdicts,
    read_verdict,
    render_comparison,
    render_raters,
)
from graphrag_pipeline.evaluation.conditions import answer_question, parse_condition
from graphrag_pipeline.evaluation.confidence import sign_test
from graphrag_pipeline.evaluation.questions import Question
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.prompts import load_prompt
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

QUESTIONS = [Question("What becomes of Scrooge?"), Question("Who is Tiny Tim?")]
Verdicts = list[tuple[int | None, int | None]]


def test_a_question_is_won_by_more_of_both_verdicts() -> None:
    figures = count_verdicts("diversity", [(1, 2), (1, 0), (2, 1), (1, 1), (0, 0), (None, 1)])
    assert (figures.wins, figures.losses, figures.ties, figures.n_failed) == (2, 1, 2, 1)
    assert figures.win_rate.mean == 0.6 and figures.first_share.mean == 5 / 7


verdicts = st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.sampled_from([0, 1, 2])), max_size=30)


@given(verdicts)
def test_swapping_the_answers_swaps_wins_and_losses(given_verdicts: Verdicts) -> None:
    one = count_verdicts("x", given_verdicts)
    other = count_verdicts("x", [(second, first) for first, second in given_verdicts])
    assert (one.wins, one.losses, one.ties) == (other.losses, other.wins, other.ties)
    if given_verdicts:
        assert one.win_rate.mean == pytest.approx(1 - other.win_rate.mean)
    assert one.p_value == pytest.approx(other.p_value)


def test_the_sign_test_is_the_binomial_one() -> None:
    assert sign_test(0, 0) == sign_test(3, 3) == 1
    assert sign_test(5, 0) == sign_test(0, 5) == pytest.approx(2 / 2**5)
    assert sign_test(7, 2) == pytest.approx(2 * (1 + 9 + 36) / 2**9)


@pytest.mark.parametrize(
    ("winner", "read"), [(1, 1), ("2", 2), (0, 0), (3, None), (True, None), ("A", None), ("0, 1 or 2", None)]
)
def test_a_verdict_is_0_1_or_2(winner: object, read: int | None) -> None:
    reply = json.dumps({"reason": "x", "winner": winner})
    if read is None:
        with pytest.raises(ReplyFormatError, match="not 0, 1 or 2"):
            read_verdict(reply)
    else:
        assert read_verdict(reply) == read


def test_a_verdict_whose_reason_is_that_of_the_prompt_is_refused() -> None:
    echoes = load_prompt(None, "judge_answers").echoes
    assert read_verdict('{"reason": "Answer 2 says less.", "winner": 1}', echoes) == 1
    with pytest.raises(ReplyFormatError, match="repeats the prompt"):
        read_verdict('{"reason": "One or two sentences", "winner": 1}', echoes)


def prefer_scrooge(request: ReceivedRequest) -> Any:
    """Global search says MORE. The judge prefers that answer; by directness it always prefers the first one."""
    if "The criterion is" in request.prompt:
        first, second = request.prompt.split("Answer 2:\n")
        says = ["MORE" in first.split("Answer 1:\n")[1], "MORE" in second]
        if "The criterion is directness" in request.prompt:
            return {"reason": "It stands first.", "winner": 1}
        return {"reason": "It says more.", "winner": 0 if says[0] == says[1] else 1 + says.index(True)}
    if request.kind == "answer":
        is_global = "Analyst" in request.prompt
        return f"{'MORE' if is_global else 'Less'} {len(request.prompt)} [Data: Reports (0)]."
    if request.kind == "map":
        return {"points": [{"description": "Scrooge changes [Data: Reports (0)].", "score": 80}]}
    return None


@pytest.mark.parametrize("other", ["SS", "basic"])
def test_the_better_answer_wins_in_both_orders_and_bias_makes_ties(
    index: GraphIndex, tmp_path: Path, other: str
) -> None:
    with running_model_server(prefer_scrooge) as server:
        asking = open_with_model(index, tmp_path, server)
        first, second = parse_condition("C0"), parse_condition(other)
        found = compare_conditions(asking, QUESTIONS, first, second)
        n_calls = server.count()
        again = compare_conditions(asking, QUESTIONS, first, second)
        assert server.count() == n_calls, "nothing is paid twice"
    by_name = {figures.criterion: figures for figures in found.verdicts}
    assert list(by_name) == list(CRITERIA)
    assert by_name["diversity"].wins == 2 and by_name["diversity"].win_rate.mean == 1
    assert by_name["directness"].ties == 2 and by_name["directness"].first_share.mean == 1
    assert all(figures.ties == 2 for figures in found.control), "the same text is a tie without a call"
    assert found.conditions[0].calls.tokens > 0 and found.judge.calls.replies == 2 * 2 * len(CRITERIA)
    for one, two in zip((*found.conditions, found.judge), (*again.conditions, again.judge), strict=True):
        assert one.calls == two.calls, "stored replies count like new ones"
    assert f"A = C0, B = {other}, 2 questions" in render_comparison(found)[0]


@pytest.mark.parametrize("name", ["TS", "C3", "global:dynamic:max_level=1", "local:graph", "lazy", "bm25"])
def test_every_condition_answers(index: GraphIndex, tmp_path: Path, name: str) -> None:
    with running_model_server() as server:
        for answering in (index, open_with_model(index, tmp_path, server)):
            answered = answer_question(parse_condition(name), answering, "Who is Bob Cratchit?")
            assert "Cratchit" in answered.text and not answered.failure


def test_source_text_is_mapped_whole(index: GraphIndex, tmp_path: Path) -> None:
    mapped: list[str] = []

    def note(request: ReceivedRequest) -> None:
        if request.kind == "map":
            mapped.append(request.prompt)

    with running_model_server(note) as server:
        asking = open_with_model(index, tmp_path, server, lazy_search={"max_context_tokens": 120})
        answer_question(parse_condition("TS"), asking, QUESTIONS[0].question)
    assert len(mapped) > 1
    for unit in index.snapshot.table("text_units").to_pylist():
        assert sum(unit["text"][:40] in prompt for prompt in mapped) == 1


def test_without_a_model_nothing_is_compared(index: GraphIndex) -> None:
    with pytest.raises(PipelineError, match="a chat model judges the answers"):
        compare_conditions(index, QUESTIONS, parse_condition("C0"), parse_condition("TS"))


def test_two_raters_are_compared_by_agreement_kept_reports_and_tokens(index: GraphIndex, tmp_path: Path) -> None:
    def rate(request: ReceivedRequest) -> Any:
        if request.kind not in ("rating", "ratings"):
            return None
        rating = 4 if request.body["model"] == "generous" else 0
        numbers = re.findall(r"^\[(\d+)\]", request.prompt, re.MULTILINE)
        several = {"ratings": [{"number": int(number), "rating": rating} for number in numbers]}
        return several if request.kind == "ratings" else {"reason": "so", "rating": rating}

    with running_model_server(rate) as server:
        asking = open_with_model(index, tmp_path, server)
        root = asking._root
        assert root
        same = compare_raters(root, asking, QUESTIONS, ("generous", "generous"))
        opposite = compare_raters(root, asking, QUESTIONS, ("generous", "harsh"))
        free = compare_raters(root, asking, QUESTIONS, ("embedded", "harsh"))
    assert same.agreement.mean == same.equal.mean == same.kept_again.mean == 1 and same.raters[0] == same.raters[1]
    assert opposite.agreement.mean < 1 and opposite.raters[0].kept > 0 == opposite.kept_again.mean
    assert opposite.raters[0].calls.tokens > 0 < opposite.raters[1].calls.tokens
    assert free.raters[0].calls.tokens == 0 < free.raters[0].kept
    assert render_raters(opposite)[-1].startswith("harsh keeps 0.000 [") and "generous" in render_raters(opposite)[1]
