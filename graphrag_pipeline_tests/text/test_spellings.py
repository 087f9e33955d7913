from __future__ import annotations

import pytest

from graphrag_pipeline.text.spellings import to_american


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
