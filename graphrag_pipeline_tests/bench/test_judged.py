"""Scores of the bench of judged passages, and its data: a document answers each question that has answers."""

from __future__ import annotations

import html
import re

import pytest

from graphrag_pipeline_tests.bench.judged import (
    CONTEXT,
    KINDS,
    STRIDE,
    WINDOW,
    JudgedQuestion,
    Outcome,
    WindowRanking,
    answers_question,
    cut_windows,
    pack,
    read_documents,
    read_questions,
    shown_passages,
    summarize,
)

ASKED = JudgedQuestion("q01", "minutes", "Who chairs?", (r"Ann\W+chairs",), "Ann chairs.", "a.md", False)
NOT_SAID = JudgedQuestion("q03", "minutes", "Who pays?", (), "", "", False)


@pytest.mark.parametrize("kind", KINDS)
def test_the_named_document_answers_each_question_of_a_kind(kind: str) -> None:
    questions = [one for half in (False, True) for one in read_questions(half) if one.kind == kind]
    texts = {document["path"]: document["text"] for document in read_documents(kind)}
    for one in (question for question in questions if question.answers):
        text = texts[one.document]
        text = html.unescape(re.sub("<[^>]+>", " ", text)) if one.document.endswith(".html") else text
        assert answers_question(text, one.answers), one
    assert [bool(one.answers) for one in questions].count(False) == 3
    assert len(questions) == 19


def test_shown_passages_are_the_quotations_in_the_order_of_the_answer() -> None:
    answer = "Extractive answer:\n\n**Minutes**\n\n- Ann chairs.\n- Bob\n  writes. [1]\n\n**Plan**\n\n- It ends. [2]"
    assert shown_passages(answer) == ("Ann chairs.\n- Bob\n  writes.", "It ends.")
    steps = "**T**\n\n3. Stop it.\n4. Start it. [1]\n\n- Look:\n\n1. First.\n\n```\nls\n```\n\n [2]\n\n[1] T: “3. Stop”"
    assert shown_passages(steps) == ("3. Stop it.\n4. Start it.", "Look:\n\n1. First.\n\n```\nls\n```\n\n")


def test_a_passage_is_right_whatever_its_white_space_case_and_marks() -> None:
    assert answers_question("So **ANN**\n `chairs` it.", ASKED.answers)
    assert answers_question(r"the [SQLITE\_BUSY](errors.html) error", (r"the SQLITE_BUSY error",))
    assert not answers_question("Ann writes. Bob chairs.", ASKED.answers)


def test_shares_count_answerable_and_other_questions_apart() -> None:
    outcomes = [
        Outcome(ASKED, ("Bob writes.", "Ann chairs."), contexts={CONTEXT: "Ann left."}),
        Outcome(ASKED, ("Ann chairs.",), is_refusal=True),
        Outcome(NOT_SAID, (), is_refusal=True),
    ]
    shares = {figure.what: figure.measured for figure in summarize("minutes: local", outcomes)}
    assert shares == {
        "minutes: local, first passage": 0.5,
        "minutes: local, first three": 1.0,
        "minutes: local, false refusals": 0.5,
        "minutes: local, right refusals": 1.0,
        "minutes: local, context of 2,400 tokens": 0.5,
    }


def test_windows_cover_a_document_and_the_best_share_rare_words() -> None:
    words = [f"w{i}" for i in range(300)]
    windows = cut_windows(" ".join(words))
    assert {word for window in windows for word in window.split()} == set(words)
    assert windows[1].split()[0] == words[STRIDE] and len(windows[0].split()) == WINDOW
    ranking = WindowRanking(["the board met and the board left", "the treasurer met the board"])
    assert ranking.rank("The treasurer?")[0] == "the treasurer met the board"
    assert ranking.rank("nobody") == []


def test_packing_stops_before_the_passage_that_does_not_fit() -> None:
    assert pack(["one two", "three " * 50, "four"], 10) == ["one two"]
