import pytest

from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.selection.passages import sentences_of


def split(text: str) -> list[str]:
    sentences = sentences_of(TextUnitRecord("u", 0, "d", "title", text, 0, len(text), 9, 0.5))
    assert all(sentence.text == text[sentence.start : sentence.end] for sentence in sentences)
    return [sentence.folded for sentence in sentences]


def test_a_numbered_heading_is_a_sentence_of_its_own() -> None:
    text = "3. Solar roof\nThe board saw the roof. It is dry.\n\n4.1 Fish pass\nA counter is free."
    expected = ["3. Solar roof", "The board saw the roof.", "It is dry.", "4.1 Fish pass", "A counter is free."]
    assert split(text) == expected


@pytest.mark.parametrize(
    "text", ["The year was 1843. Old Mr Holt\nand his dog came home.", "12 Elm Street\nis an old house."]
)
def test_a_line_that_goes_on_is_no_heading(text: str) -> None:
    assert "Old Mr Holt" not in split(text)
    assert "12 Elm Street" not in split(text)
