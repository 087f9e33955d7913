""""""

from __future__ import annotations

import pytest

from graphrag_pipeline.text.name_words import load_given_names, to_american


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("TUMOUR", "TUMOR"),
        ("TUMOURS", "TUMORS"),
        ("HAEMOGLOBIN", "HEMOGLOBIN"),
        ("LEUKAEMIA", "LEUKEMIA"),
        ("OESTROGEN", "ESTROGEN"),
        ("ORGANISATION", "ORGANIZATION"),
        ("CENTRE", "CENTER"),
        ("ANALYSE", "ANALYZE"),
        ("CATALOGUE", "CATALOG"),
        ("DEFENCE", "DEFENSE"),
        ("LABELLED", "LABELED"),
    ],
)
def test_both_spellings_have_one_key(british: str, american: str) -> None:
    assert to_american(british) == to_american(american)


@pytest.mark.parametrize(("a", "b"), [("FOUR", "FOR"), ("HOUR", "HOR"), ("METRE", "METEOR"), ("POEM", "PEM")])
def test_other_words_differ(a: str, b: str) -> None:
    assert to_american(a) != to_american(b)


def test_given_names_are_of_many_languages_and_not_words_or_places() -> None:
    _, names = load_given_names()
    assert {"LUDMILA", "AOIFE", "WANJIRU", "ELIŠKA", "TADHG", "IFEOMA", "TEO"} <= names
    assert not {"HOPE", "CARTER", "MADISON", "FLORENCE COUNTY", "NAT", "#", "OF"} & names


def test_women_have_names_that_no_man_has() -> None:
    women, names = load_given_names()
    assert women < names
    assert {"AOIFE", "LUDMILA"} <= women
    assert not {"ANDREA", "SASHA", "KIM", "TADHG"} & women
