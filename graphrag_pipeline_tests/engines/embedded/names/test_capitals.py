import pytest

from graphrag_pipeline.engines.embedded.names.capitals import MIN_SINGLE, TURKIC, cut_suffixes, find_capitals, is_turkic
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


SUFFIXED = [
    ("Ayşe Kaya Ankara'da Kuzey şirketinde çalışıyor. Oğuz Demir Kuzey'in müdürü.", TURKIC,
     ["Ayşe Kaya", "Ankara", "Kuzey", "Oğuz Demir", "Kuzey"]),
    ("Mehmet Demir’in kardeşi Elif İzmir’de yaşıyor.", TURKIC, ["Mehmet Demir", "Elif", "İzmir"]),
    ("Matti asuu Bordeaux'ssa, ja Bordeaux on kaunis.", "", ["Bordeaux", "Bordeaux"]),
    ("Lao Ma saw Xi'an and Qur'an scholars.", "en", ["Lao Ma", "Xi'an", "Qur'an"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "language", "expected"), SUFFIXED)
def test_a_suffix_behind_an_apostrophe_ends_a_name(text: str, language: str, expected: list[str]) -> None:
    prose = cut_suffixes(text, language)
    folded = FoldedText(prose, split_sentences(text))
    assert len(prose) == len(text) and is_turkic(text) == (language == TURKIC)
    assert [folded.text[start:end] for start, end, _ in find_capitals(folded, language)] == expected
