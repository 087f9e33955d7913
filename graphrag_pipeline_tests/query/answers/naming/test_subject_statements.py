"""The subject of a question's verb, and the parts of sentences that may have it."""

import re

import pytest

from graphrag_pipeline.query.answers.naming.subject_statements import read_asked_subject, read_subject_parts
from graphrag_pipeline.query.understanding.asked_verb import read_asked_verb
from graphrag_pipeline.query.understanding.spoken_roles import without_speakers


@pytest.mark.parametrize(
    ("question", "names", "expected"),
    [
        ("When did Stadler order the trains?", {"stadl"}, {"stadler"}),
        ("When was the congress first held?", set(), {"congress"}),
        ("When did the vicar of Moss open the fair?", {"mos"}, {"vicar"}),
        ("How much will the lifting bridge cost?", set(), {"bridg"}),
        ("How many babies were found?", set(), set()),
    ],
)
def test_the_subject_of_a_question_is_between_its_helper_and_its_verb(question, names, expected):
    assert read_asked_subject(question, read_asked_verb(question), frozenset(names)) == expected


@pytest.mark.parametrize(
    ("question", "text", "verb", "expected"),
    [
        ("When did Max die?", "Ida spoke of Max Kern, a smith who died in 1921.", "died", ["Max Kern, a smith", ""]),
        ("When did Tessel order the trains?", "The line ordered trains from Tessel.", "ordered", ["The line"]),
        ("When was the fair held?", "The fair, first held in 1895, is new.", "held", ["The fair", ""]),
        (
            "When did the mill close?",
            "The mill was closed in 1990 by Ansel.",
            "closed",
            ["The mill", "The mill", "Ansel"],
        ),
        ("When was the mill closed?", "Ansel closed the mill in 1990.", "closed", ["the mill in 1990"]),
    ],
)
def test_a_sentence_says_a_verb_of_its_subject(question, text, verb, expected):
    parts = read_subject_parts(text, re.search(verb, text), read_asked_verb(question))
    assert len(parts) == len(expected)
    assert all(said in part.text for part, said in zip(parts, expected, strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'He is dead,' said Silas.", False),
        ("'He is dead,' Silas replied.", False),
        ("'I am dead,' said Silas.", True),
        ("Silas said that he was dead.", True),
    ],
)
def test_a_speech_says_nothing_of_its_speaker_unless_it_says_i(text, expected):
    assert ("Silas" in without_speakers(text)) is expected
