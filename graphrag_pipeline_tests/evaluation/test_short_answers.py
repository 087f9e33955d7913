"""Names in the first line of an answer: right, wrong or none, in English and in Chinese."""

from __future__ import annotations

import pytest

from graphrag_pipeline.evaluation.questions import Question
from graphrag_pipeline.evaluation.short_answers import is_named_rightly, is_named_wrongly, may_name


def asked(*answers: str, question: str = "Who is Scrooge's clerk?") -> Question:
    return Question(question, (), answers)


@pytest.mark.parametrize(
    ("name", "answers", "right", "wrong"),
    [
        ("Bob Cratchit", ("Bob Cratchit",), 1, 0),
        ("bob cratchit", ("Robert Cratchit", "Bob Cratchit"), 1, 0),
        ("Fezziwig", ("old Fezziwig",), 1, 0),
        ("his clerk Bob Cratchit", ("Bob Cratchit",), 1, 0),
        ("19 December 1843", ("on 19 December 1843",), 1, 0),
        ("seven", ("seventy",), 0, 1),
        ("December", ("on 19 December 1843",), 0, 1),
        ("Mrs Cratchit", ("Bob Cratchit",), 0, 1),
        ("Tiny Tim", ("Bob Cratchit",), 0, 1),
        ("", ("Bob Cratchit",), 0, 0),
        ("Tiny Tim", ("unanswerable",), None, 1),
        ("", ("unanswerable",), None, 0),
        ("Tiny Tim", ("He is a man whom Scrooge pays fifteen shillings.",), None, None),
        ("沈清荷", ("沈清荷",), 1, 0),
        ("陸知遠", ("陆知远",), 1, 0),
        ("知远", ("陆知远",), 1, 0),
        ("沈砚秋", ("陆知远",), 0, 1),
        ("城南的老码头边上", ("城南的老码头边上",), 1, 0),
        ("沈砚秋", ("沈砚秋唯一的徒弟，后来接管了药铺",), None, None),
    ],
)
def test_a_name_is_right_wrong_or_does_not_count(
    name: str, answers: tuple[str, ...], right: float | None, wrong: float | None
) -> None:
    question = asked(*answers)
    assert (is_named_rightly(name, question), is_named_wrongly(name, question)) == (right, wrong)
    assert may_name(question) is (wrong is not None)


def test_english_articles_do_not_make_a_name_wrong() -> None:
    assert is_named_rightly("the Ghost", asked("The Ghost")) == is_named_rightly("Ghost", asked("the Ghost")) == 1
