import pytest

from graphrag_pipeline.query.understanding.asked_name import read_asked_name


@pytest.mark.parametrize(
    ("question", "verb", "clause"),
    [
        ("Which company owns the cable?", "owns", "Who owns the cable?"),
        ("What firm was fined for the spill?", "fined", "Who was fined for the spill?"),
    ],
)
def test_which_company_asks_for_the_name_of_an_organization(question, verb, clause):
    asked = read_asked_name(question, frozenset())
    assert asked is not None
    assert asked.is_body
    assert asked.verb is not None
    assert (asked.kind, asked.verb.word, asked.clause) == ("person", verb, clause)


@pytest.mark.parametrize(
    "question",
    [
        "Which company did Ida Kern buy?",  # the object of a verb with a subject
        "Which company is the largest in Bonn?",
        "Which colour was the cable?",
    ],
)
def test_other_questions_with_which_ask_for_no_name(question):
    assert read_asked_name(question, frozenset()) is None


def test_who_asks_for_a_person_or_an_organization():
    asked = read_asked_name("Who owns the cable?", frozenset())
    assert asked is not None
    assert not asked.is_body
