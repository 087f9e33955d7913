"""Sentences that say who a person is."""

from __future__ import annotations

import re

import pytest

from graphrag_pipeline.query.understanding.definitions import (
    ASKS,
    RELATES,
    SAYS_SOMETHING,
    SAYS_WHO,
    is_addressed,
    rate_definition,
    rate_thing,
    read_what_is,
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


def test_a_narrated_sentence_that_names_a_relative_relates_a_person():
    assert rate_definition("Then came Ada, the mother, with a lamp, and Ivo Lang upon her arm.", NAME) == RELATES
    assert rate_definition("Then came Ada, the miller, with a lamp, and Ivo Lang upon her arm.", NAME) == 0.0


def test_a_speech_that_asks_for_a_person_says_less_than_a_statement():
    assert rate_definition("'And your brother, Ivo Lang?' asked Ada.", NAME) == ASKS
    assert rate_definition("'This is my brother, Ivo Lang,' she said.", NAME) == SAYS_WHO
    assert rate_definition("Poor Ivo Lang, he bore a heavy sack.", NAME) == SAYS_SOMETHING


@pytest.mark.parametrize(
    ("question", "thing"),
    [
        ("What is peat?", "peat"),
        ("What are the side shoots?", "side shoots"),
        ("Who is Tim?", ""),
        ("What did Tim say?", ""),
    ],
)
def test_the_thing_of_a_question_is_read(question, thing):
    assert read_what_is(question) == thing


@pytest.mark.parametrize(
    ("text", "strength"),
    [
        ("Peat is a soil of dead moss.", SAYS_WHO),
        ("In autumn, peat (PT) is the best litter.", SAYS_WHO),
        ("Peat, a soil of dead moss, burns slowly.", SAYS_WHO),
        ("Burn a slow fuel such as peat.", RELATES),
        ("Peat is preferred in winter.", 0.0),
        ("The price of peat is a secret.", 0.0),
    ],
)
def test_a_sentence_defines_a_thing(text, strength):
    assert rate_thing(text, re.compile("peat", re.IGNORECASE)) == strength
