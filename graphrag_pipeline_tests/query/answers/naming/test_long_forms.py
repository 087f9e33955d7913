"""What an abbreviation stands for."""

import pytest

from graphrag_pipeline.query.answers.naming.long_forms import find_long_form, is_spelled_by
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.understanding.definitions import read_short_form


def unit(text: str) -> TextUnitRecord:
    return TextUnitRecord("u", 0, "d", "title", text, 0, len(text), 9, 0.5)


@pytest.mark.parametrize(
    ("short", "text", "long"),
    [
        ("MART", "Begin with maintenance and reliever therapy (MART) at low dose.", "maintenance and reliever therapy"),
        ("FeNO", "Measure fractional exhaled nitric oxide (FeNO).", "fractional exhaled nitric oxide"),
        ("EM", "Suspect it if there is a rash (erythema migrans, EM).", "erythema migrans"),
        ("CT", "A CT (computed tomography) follows.", "computed tomography"),
        ("ACL", "ACL stands for access control list in every manual.", "access control list"),
        ("MHRA", "The Medicines and Healthcare products Regulatory Agency (MHRA) met.",
         "Medicines and Healthcare products Regulatory Agency"),
    ],
)  # fmt: skip
def test_the_sentence_that_pairs_them_gives_the_long_form(short, text, long):
    found = find_long_form(short, [unit(f"Nothing here. {text} The {short} is used.")])
    assert found
    assert found[0] == long
    assert found[1].folded == text


@pytest.mark.parametrize("text", ["The AIR2 trial (AIR2) ended.", "We met in Rome (AIR2).", "AIR2 is new."])
def test_without_its_letters_nothing_is_the_long_form(text):
    assert find_long_form("AIR2", [unit(text)]) is None


def test_half_of_the_letters_are_initials():
    assert is_spelled_by("WHO", "World Health Organization")
    assert not is_spelled_by("WHO", "what she thought to be so")
    assert not is_spelled_by("WHO", "the World Health Organization")


@pytest.mark.parametrize(
    ("question", "short"),
    [
        ("What does MART stand for?", "MART"),
        ("What do the letters NHS stand for?", "NHS"),
        ("What is FeNO short for?", "FeNO"),
        ("What is the full name of the WHO?", "WHO"),
        ("What does Anna stand for?", ""),
        ("What does Scrooge mean?", ""),
        ("What is MART?", ""),
    ],
)
def test_a_question_for_a_long_form_has_an_abbreviation(question, short):
    assert read_short_form(question) == short
