"""Answers against reference answers: without a model, judged by one, and answers that decline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation import answer_figures
from graphrag_pipeline.evaluation.answer_figures import (
    answer_body,
    compare_answers,
    declines,
    measure_answers,
    name_failures,
    quoted_passages,
    render_answers,
)
from graphrag_pipeline.evaluation.answer_judging import cut_text, read_checks, read_reference, read_statements
from graphrag_pipeline.evaluation.conditions import ConditionAnswer, parse_condition
from graphrag_pipeline.evaluation.questions import Question
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.settings.search_names import SEARCH_METHODS, describe_conditions
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

GOLD = [
    Question("Who carried Tiny Tim home?", ("two.txt",), ("Bob Cratchit carried Tiny Tim home.", "Bob Cratchit")),
    Question("Which quasar did Zanzibar photograph?", (), ("unanswerable",)),
]


def test_answers_are_measured_without_a_model_by_every_condition(index: GraphIndex) -> None:
    methods = [parse_condition(name) for name in describe_conditions()]
    found = {row.method: row for row in measure_answers(index, GOLD, methods)}
    local = found["local"].estimates()
    assert local["contained"].mean == local["declined_rightly"].mean == 1 and local["declined_wrongly"].mean == 0
    assert 0 < found["local"].answers[0].f1 < 1 == found["local"].answers[1].f1
    assert local["covered_claims"].mean is None and found["local"].answering.replies == 0
    assert all(row.answers[0].contained == 1 for name, row in found.items() if name.split(":")[0] in ("basic", "local"))
    table = render_answers(list(found.values()))
    assert "covered claims" not in table[0] and len(table) == 1 + len(methods)
    assert measure_answers(index, GOLD, methods[:1])[0].answers[0].f1 == found["local"].answers[0].f1


def test_passages_that_hold_the_answer_first_later_and_never_are_seen(
    index: GraphIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = [Question("With whom did Fezziwig dance?", (), ("Mrs. Fezziwig",)), GOLD[1]]
    right, other = "- He danced with Mrs. Fezziwig. [1]", "- Topper sang. [2]"
    found = {}
    for lines in ((right, other), (other, right), (other,)):
        answer = ConditionAnswer("\n".join(("Extractive answer (no model).", "", *lines)), 0.1, Context(), "embedded")
        monkeypatch.setattr(answer_figures, "answer_question", lambda *given, answer=answer: answer)
        [found[lines]] = measure_answers(index, gold, [parse_condition("local")])
    shown = [[row.values(key)[0] for key in ("in_first", "in_three", "contained")] for row in found.values()]
    assert shown == [[1, 1, 1], [0, 1, 1], [0, 0, 0]]
    first, _, never = found.values()
    assert first.values("in_first")[1] is None, "an unanswerable question has no right passage"
    rows = {row.figure: row for row in compare_answers(first, never)}
    assert (rows["in three"].difference.mean, rows["in three"].wins, rows["in three"].losses) == (1, 1, 0)
    assert "in first" in render_answers([first])[0]


def test_without_a_named_model_nothing_is_judged(index: GraphIndex) -> None:
    with pytest.raises(PipelineError, match="a chat model judges the answers"):
        measure_answers(index, GOLD, [parse_condition("basic")], is_judged=True)


def scripted(request: ReceivedRequest) -> Any:
    """Two statements in the reference, one of them covered; three in the answer, two of them in the context."""
    if '"statements":' in request.prompt:
        if "Wrote: " in request.prompt:
            return {"statements": ["Bob carried Tim.", "Bob wept.", "Bob sang."], "declines": False}
        return {"statements": ["Bob carried Tim.", "Tim went home."], "declines": False}
    if '"checks":' in request.prompt:
        n = request.prompt.count("\n1. ") + request.prompt.count("\n2. ") + request.prompt.count("\n3. ")
        kept = {1} if n == 2 or ("Wrote: " not in request.prompt and "Sources" not in request.prompt) else {1, 2}
        return {"checks": [{"number": i, "reason": "", "is_supported": i in kept} for i in range(1, n + 1)]}
    return "Wrote: Bob carried Tim, wept and sang [Data: Sources (0)]." if request.kind == "answer" else None


def test_a_judge_counts_claims_precision_and_faithfulness(index: GraphIndex, tmp_path: Path) -> None:
    with running_model_server(scripted) as server:
        asking = open_with_model(index, tmp_path, server)
        [found] = measure_answers(asking, GOLD[:1], [parse_condition("basic")], is_judged=True)
        n_calls = server.count()
        measure_answers(asking, GOLD[:1], [parse_condition("basic")], is_judged=True)
        assert server.count() == n_calls, "judgements are cached"
    [one] = found.answers
    assert (one.covered_claims, one.precision) == (pytest.approx(1 / 2), pytest.approx(1 / 3))
    assert one.faithfulness == pytest.approx(2 / 3) and not one.judgement_failures
    assert found.judge == "test-chat" and (found.answering.replies, found.judging.replies) == (1, 5)


def test_a_judge_that_reads_a_refusal_in_free_words_makes_the_answer_declined(
    index: GraphIndex, tmp_path: Path
) -> None:
    def refuse(request: ReceivedRequest) -> Any:
        if '"statements":' in request.prompt:
            return {"statements": [], "declines": True}
        return "Sadly, these pages keep silent about it."

    with running_model_server(refuse) as server:
        asking = open_with_model(index, tmp_path, server)
        [found] = measure_answers(asking, GOLD[1:], [parse_condition("basic")], is_judged=True)
        [unjudged] = measure_answers(asking, GOLD[1:], [parse_condition("basic")])
    assert found.answers[0].declined_rightly == 1 == found.answers[0].f1
    assert unjudged.answers[0].declined_rightly == 0


def test_failed_judgements_are_named_and_left_out_of_the_mean(index: GraphIndex, tmp_path: Path) -> None:
    def fail_to_check_the_context(request: ReceivedRequest) -> Any:
        if '"checks":' in request.prompt and "Sources" in request.prompt:
            return "no JSON"
        return scripted(request)

    with running_model_server(fail_to_check_the_context) as server:
        asking = open_with_model(index, tmp_path, server)
        [found] = measure_answers(asking, GOLD[:1], [parse_condition("basic")], is_judged=True)
        [whole] = measure_answers(asking, GOLD[:1], [parse_condition("basic")])
    assert found.answers[0].faithfulness is None and found.estimates()["faithfulness"].mean is None
    assert found.answers[0].covered_claims == 0.5 and found.to_dict()["n_failed_judgements"] == 1
    assert name_failures(GOLD[:1], found) == [
        "basic: no judgement of faithfulness for 'Who carried Tiny Tim home?'; the mean leaves it out"
    ]
    assert [row.figure for row in compare_answers(found, whole)] == ["token F1", "ROUGE-L", "contained"]


def test_a_judge_keeps_to_the_budget_of_the_root(index: GraphIndex, tmp_path: Path) -> None:
    with running_model_server(scripted) as server:
        asking = open_with_model(index, tmp_path, server, answers={"engine": "embedded"}, budget={"max_tokens": 400})
        with pytest.raises(PipelineError, match="budget"):
            measure_answers(asking, GOLD * 3, [parse_condition("basic")], is_judged=True)


def test_replies_of_a_judge_are_read_whole_or_refused() -> None:
    assert read_statements(json.dumps({"statements": ["A b.", "A  b.", " "], "declines": False})).statements == ["A b."]
    assert not read_statements(json.dumps({"statements": ["A."], "declines": True})).statements
    with pytest.raises(ReplyFormatError, match="has no statement"):
        read_reference(json.dumps({"statements": [], "declines": False}))
    checks = [{"number": 2, "reason": "", "is_supported": True}, {"number": 1, "reason": "", "is_supported": False}]
    assert read_checks(json.dumps({"checks": checks}), 2) == [False, True]
    with pytest.raises(ReplyFormatError, match="no check of statement 3"):
        read_checks(json.dumps({"checks": checks}), 3)


def test_a_long_context_is_cut_without_losing_a_word() -> None:
    text = "\n\n".join(f"Block {i}\n" + "word " * 30 for i in range(20)) + "\n" + "x" * 3000
    pieces = cut_text(text, 60)
    assert len(pieces) > 10 and "".join("".join(pieces).split()) == "".join(text.split())
    assert cut_text("short", 60) == ("short",) and cut_text("", 60) == ()


NOWHERE = "Which quasar did Zanzibar photograph?"


@pytest.mark.parametrize("method", sorted(SEARCH_METHODS))
def test_a_search_that_finds_nothing_declines_and_one_that_answers_does_not(index: GraphIndex, method: str) -> None:
    assert declines(index.search(NOWHERE, method).answer)
    assert not declines(index.search("Who carried Tiny Tim home?", method).answer)


def test_a_model_that_says_not_in_the_index_declines(index: GraphIndex, tmp_path: Path) -> None:
    with running_model_server(lambda request: "**NOT IN THE INDEX**\nNothing near.") as server:
        asked = open_with_model(index, tmp_path, server).search("Who is Marley?", "basic")
    assert asked.answering["engine"] == "model" and declines(asked.answer)


@pytest.mark.parametrize(
    ("answer", "is_declined"),
    [
        ("I am sorry but I am unable to answer this question given the provided data.", True),
        ("The model gave no answer (timeout); the embedded engine answers instead.\n\nNot in the index: no.", True),
        ("Not in the index: 3 text units were read, but no word of the question is there.", True),
        ("I do not know whether X, but the answer is Bob.", False),
        ("Bob Cratchit. I do not know his age.", False),
    ],
)
def test_the_words_that_prompts_ask_for_decline(answer: str, is_declined: bool) -> None:
    assert declines(answer) is is_declined


def test_layout_markers_and_the_opening_line_are_not_compared() -> None:
    embedded = (
        "Extractive answer (no model): what follows.\n\n**stave_1**\n\n- Marley was dead. [1]\n- Scrooge *knew* it. [2]"
    )
    assert answer_body(embedded, "embedded") == "Marley was dead.\nScrooge knew it."
    assert (
        answer_body("## Who\n\n- **Bob Cratchit** is the clerk [1][2].", "model") == "Who\nBob Cratchit is the clerk."
    )
    replaced = f"The model gave no answer (no (more) tokens); the embedded engine answers instead.\n\n{embedded}"
    assert answer_body(replaced, "model") == "Marley was dead.\nScrooge knew it."


def test_passages_are_read_in_order_and_those_of_a_model_are_none() -> None:
    embedded = "Extractive answer (no model): two.\n\n**a**\n\n- The **clerk** wept. [1]\n\n**b**\n\n- He *sang*. [2]"
    assert quoted_passages(embedded, "embedded") == ["The clerk wept.", "He sang."]
    replaced = f"The model gave no answer (timeout); the embedded engine answers instead.\n\n{embedded}"
    assert quoted_passages(replaced, "model") == ["The clerk wept.", "He sang."]
    assert quoted_passages(embedded, "model") is None, "a model may write anything"
