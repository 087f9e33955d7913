import pytest

from graphrag_pipeline.engines.embedded.names.capitals import MIN_SINGLE, find_capitals
from graphrag_pipeline.engines.embedded.names.folded_text import FoldedText
from graphrag_pipeline.text.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "language", "least", "expected"),
    [
        ("He saw the Ghost of Christmas Past and Object Lock. On Friday Mr. Smith came.", "en", MIN_SINGLE,
         ["Ghost of Christmas Past", "Object Lock"]),
        ("Access Control Lists\n\nThen the Object Lock was set.", "en", MIN_SINGLE, ["Object Lock"]),
        ("Die Europäische Zentralbank hat die Zinsen erhöht, sagte der Minister Frau Anna Schmidt.", "de", 1,
         ["Europäische Zentralbank", "Minister Frau Anna Schmidt"]),
        ("Le président Emmanuel Macron parle de Jeanne d'Arc à Paris.", "fr", 1,
         ["Emmanuel Macron", "Jeanne d'Arc", "Paris"]),
        ("See TASK-11 and Lock it, Lock or Lock; a lock is locked.", "en", MIN_SINGLE, ["Lock", "Lock", "Lock"]),
    ],
)  # fmt: skip
def test_runs_of_words_with_a_capital_are_names(text: str, language: str, least: int, expected: list[str]) -> None:
    folded = FoldedText(text, split_sentences(text))
    assert [folded.text[start:end] for start, end, _ in find_capitals(folded, language, least)] == expected
