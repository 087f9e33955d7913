"""Sentences without a citation, as small models wrote them, and what supports them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.model.answers.uncited import ShownText, check_sentences, show_points
from graphrag_pipeline.query.answers.notes import BESIDE, UNCITED, note_uncited, note_unread, partial_text, strip_notes
from graphrag_pipeline.query.results import UncitedSentence, Unread
from graphrag_pipeline.query.search.global_ import Point

FIRE = ShownText(
    "Sources",
    3,
    "The fire at Pier Nine",
    "On the night of 14 February 2023 a fire destroyed the northern third of the hall. The hall was rented by Quillon "
    "Robotics. The fire began where batteries were charged. A charger had been set to the wrong voltage. Leonie Akabua "
    "accepted the report of the marshal Petra Solheim.",
)
OTHER = ShownText("Sources", 4, "Lowmoor", "Production started again in a rented shed in Lowmoor in April 2023.")


def check(answer: str) -> dict[str, int | None]:
    return {c.text: c.support.number if c.support else None for c in check_sentences(answer, [FIRE, OTHER])}


@pytest.mark.parametrize(
    ("sentence", "source"),
    [
        ("The fire at Pier Nine was caused by a charger having been set to the wrong voltage.", 3),
        ("According to the passage, the hall was rented by Quillon Robotics.", 3),
        ("In April 2023 production started again in Lowmoor.", 4),
        ("The company was founded by Leonie Akabua, who was a senior engineer at Quillon Robotics.", None),
        ("In April 2024 production started again in Lowmoor.", None),
        ("The hall was rented by Kestrel Marine.", None),
    ],
)
def test_a_sentence_is_supported_by_its_words_names_and_numbers(sentence: str, source: int | None) -> None:
    assert check(sentence) == {sentence: source}


def test_a_sentence_with_a_citation_needs_no_other() -> None:
    assert check("The hall burned down [1]. The mayor of Velden fled. [2]\n\n- Kestrel Marine paid [3].") == {}


def test_a_citation_at_the_end_of_a_line_covers_what_has_no_foreign_name_or_number() -> None:
    assert check("Much of the building was lost. Nobody put it out in time [1].") == {}
    assert check("Hamlet lost much of the building. Nobody put it out in time [1].") == {}, "first words are no names"
    assert check("Much was lost by Hamlet there. Nobody put it out in time [1].") == {
        "Much was lost by Hamlet there.": None
    }


@pytest.mark.parametrize(
    "text",
    ["## The fire of Velden", "The main themes of these documents are:", "Who fled to Velden?", "| Velden | fled |",
     "The sources do not say who fled to Velden.", "No information about Velden is given.", "So it is.", ""],
)  # fmt: skip
def test_what_states_nothing_is_left_out(text: str) -> None:
    assert check(text) == {}


def test_german_nouns_are_no_names_and_characters_count_as_words() -> None:
    german = ShownText("Sources", 1, "", "Das Feuer zerst\u00f6rte die Halle im Hafen von Tarnby.")
    text = "Das Feuer zerst\u00f6rte im Hafen von Tarnby die ganze Halle und nicht das Dach."
    assert check_sentences(text, [german])[0].support == german
    chinese = ShownText("Sources", 1, "", "\u5b54\u4e59\u5df1\u662f\u7ad9\u7740\u559d\u9152\u7684\u4eba\u3002")
    assert check_sentences("\u5b54\u4e59\u5df1\u7ad9\u7740\u559d\u9152\u3002", [chinese])[0].support == chinese


def test_a_point_supports_by_the_record_that_it_cites() -> None:
    cited, bare = "The hall burned [Data: Reports (7); Entities (2)].", "Lowmoor produced robots."
    assert show_points([Point(0, "", cited, 9), Point(0, "", bare, 9)]) == [ShownText("Reports", 7, "", cited)]


@given(st.text(max_size=200))
def test_any_answer_is_checked(answer: str) -> None:
    check_sentences(answer, [FIRE])


def test_notes_can_be_told_from_the_answer() -> None:
    sentences = [UncitedSentence("A.", 2), UncitedSentence("B.")]
    unread = Unread("batches of reports", 2, 5, ("time-out",))
    assert note_unread(unread) == "\n\n(2 of 5 batches of reports could not be read (time-out).)"
    for note in (note_unread(unread), note_uncited(sentences), UNCITED, f"{UNCITED}{BESIDE}Quoted. [1]"):
        assert strip_notes(f"The answer.\n\n(In brackets.){note}") == "The answer.\n\n(In brackets.)"
    assert partial_text("Not in the index: nothing.") == "No answer in what could be read: nothing."
