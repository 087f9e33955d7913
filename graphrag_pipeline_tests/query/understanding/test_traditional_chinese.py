"""Questions and sentences in traditional characters are read as those in simplified ones are."""

import pytest

from graphrag_pipeline.query.question import topic_words
from graphrag_pipeline.query.understanding.chinese_definitions import (
    asked_person,
    asked_role,
    defines_person,
    states_role,
)
from graphrag_pipeline.query.understanding.question_analysis import kind_of


@pytest.mark.parametrize("question", ["林安是誰？", "林安到底是誰？", "林安是什麼人？", "林安是甚麼人？"])
def test_a_question_for_a_person_is_read(question):
    assert asked_person(question) == "林安"


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("林安是書院的學生，今年十二歲。", True),
        ("林安，號青山，住在鎮上。", True),
        ("林安為本地縣令。", True),
        ("林安是從北方來的。", False),
        ("林安是對的。", False),
    ],
)
def test_a_sentence_defines_a_person(sentence, expected):
    assert defines_person("林安", sentence) is expected


def test_the_holder_of_a_role_is_read():
    assert asked_role("誰是林安的老師？") == ("林安", "老师")
    assert asked_role("林安的老師是誰？") == ("林安", "老师")
    assert states_role("林安", "老師", "林安的老師名為王青。")
    assert states_role("林安", "老師", "王青成為林安的老師。")


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("誰救了林安？", "person"),
        ("林安住在哪裡？", "place"),
        ("林安有幾個弟弟？", "number"),
        ("林安何時回家？", "number"),
    ],
)
def test_the_kind_of_answer_is_read(question, kind):
    assert kind_of(question) == kind


def test_question_words_are_no_topic():
    assert topic_words("誰在這裡為什麼") == topic_words("谁在这里为什么")
    assert topic_words("林安是誰") == {"林", "安"}
