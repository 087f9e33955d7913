"""Sentences that say who a person is."""

from __future__ import annotations

import re

import pytest

from graphrag_pipeline.query.understanding.definitions import (
    SAYS_SOMETHING,
    SAYS_WHO,
    is_addressed,
    rate_definition,
    read_who_is,
    relates_addressee,
)

NAME = re.compile(r"\bIvo Lang\b")


@pytest.mark.parametrize(
    "text",
    [
        "Ivo Lang, the harbour master, laughed.",
        "Ivo Lang, head of purchasing, reported a loss.",
        "Ivo Lang, a bachelor of sixty who bred bees, laughed.",
        "Ivo Lang was a stout man.",
        "And your brother, Ivo Lang?",
        "The novelist Ivo Lang won a prize.",
        "Her successor is Ivo Lang, who came from Galway.",
        "His steward, a silent Welshman called Ivo Lang, left.",
        "The union's spokesman, Dr. Ivo Lang, said no.",
    ],
)
def test_a_sentence_says_who_a_person_is(text):
    assert rate_definition(text, NAME) == SAYS_WHO


@pytest.mark.parametrize("text", ["Ivo Lang, who had a plaintive voice, sang.", "Ivo Lang owned the mill."])
def test_a_sentence_says_something_of_a_person(text):
    assert rate_definition(text, NAME) == SAYS_SOMETHING


@pytest.mark.parametrize(
    "text",
    [
        "Present were Ada Brock, Ivo Lang and Tom Pruitt.",
        "After the dinner Ivo Lang left.",
        "'Past?' inquired Ivo Lang, observant of its stature.",
        "Ivo Lang was late.",
        "The river rose, and Ivo Lang ran.",
    ],
)
def test_a_sentence_that_only_names_a_person_says_nothing(text):
    assert rate_definition(text, NAME) == 0.0


@pytest.mark.parametrize(
    ("question", "name"), [("Who is Tiny Tim?", "Tiny Tim"), ("Who sang?", ""), ("Where is Tim?", "")]
)
def test_the_name_of_a_question_is_read(question, name):
    assert read_who_is(question) == name


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("Will you let me in, Ivo Lang?", True),
        ("'Ivo Lang,' she said, 'come here.'", True),
        ("My dear Ivo Lang!", True),
        ("Ivo Lang, the baker, came in.", False),
        ("She saw Ivo Lang.", False),
    ],
)
def test_a_person_is_addressed(text, is_so):
    assert is_addressed(text, NAME) is is_so


def test_a_speech_relates_its_listener():
    assert relates_addressee("It's I. Your uncle Scrooge. Will you let me in?")
    assert relates_addressee("I am your new doctor.")
    assert not relates_addressee("Give me your coat and your letter.")
    assert not relates_addressee("My uncle is here.")
