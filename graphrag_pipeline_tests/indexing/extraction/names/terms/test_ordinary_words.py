import pytest

from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.terms.ordinary_words import drop_ordinary_words, reports


def test_words_of_every_day_and_for_persons_go() -> None:
    forms = ["border", "sandbar", "skippers", "firefighter", "border post"]
    kept = drop_ordinary_words(Name(form, 0, len(form), 0) for form in forms)
    assert [name.form for name in kept] == ["sandbar", "border post"]


@pytest.mark.parametrize(
    ("text", "n_proper", "expected"),
    [
        ("Ann Hill was there. It was late.", 1, True),
        ("The valve was open. " + "He said that he was there. " * 8, 2, False),
        ("The valve is open. It is safe and it can close.", 0, False),
        ("The valve is open. " + "It is safe and it can be shut by hand. " * 4, 2, False),
        ("The valve was open. " + "It was safe and it was shut by hand there. " * 4, 2, True),
        ("The minister says the valve was open, and she can see it. She says so. " + "It is safe. " * 8, 1, True),
        ("", 0, False),
    ],
)
def test_a_text_reports_if_it_is_full_of_names(text: str, n_proper: int, expected: bool) -> None:
    assert reports(text, n_proper) is expected
