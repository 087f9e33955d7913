"""The verb of a question, and what is asked of it."""

import pytest

from graphrag_pipeline.query.understanding.asked_verb import read_asked_verb


@pytest.mark.parametrize(
    ("question", "verb", "is_passive", "asks_object", "preposition"),
    [
        ("Where was the stolen vase found?", "found", True, False, ""),
        ("Where was the vase taken from?", "taken", True, False, "from"),
        ("Where did the old barge strike a pier?", "strike", False, False, ""),
        ("Where will the barge be mended next year?", "mended", True, False, ""),
        ("Where do the men of the village sleep?", "sleep", False, False, ""),
        ("Where did Ivo Lang die?", "die", False, False, ""),
        ("When should the pump be stopped?", "stopped", True, False, ""),
        ("Who brought the charge against the mill?", "brought", False, False, ""),
        ("Who will chair the board?", "chair", False, False, ""),
        ("Who is going to open the fair?", "open", False, False, ""),
        ("Where is Ida going to play in June?", "play", False, False, ""),
        ("Who was hurt when the wall fell?", "hurt", True, False, ""),
        ("Whom did Ida Kern beat?", "beat", False, True, ""),
        ("Who did Ida Kern meet?", "meet", False, True, ""),
        ("How can growers fight the new weevil?", "fight", False, False, ""),
        ("How many barges were saved?", "saved", True, False, ""),
        ("Which towns joined the league?", "joined", False, False, ""),
    ],
)
def test_the_verb_of_a_question_is_read(question, verb, is_passive, asks_object, preposition):
    asked = read_asked_verb(question)
    found = (asked.word, asked.is_passive, asked.asks_object, asked.preposition)
    assert found == (verb, is_passive, asks_object, preposition)


@pytest.mark.parametrize(
    "question", ["Who is Ivo Lang?", "Who is the judge of the inquiry?", "Where are the keys?", "Wo wurde es gefunden?"]
)
def test_a_question_with_no_verb_but_be_has_none(question):
    assert read_asked_verb(question) is None
