import pytest

from graphrag_pipeline.indexing.extraction.names.terms.coined_words import is_coined
from graphrag_pipeline.indexing.extraction.names.terms.concepts import choose_concepts


@pytest.mark.parametrize(
    "word",
    ["bronchoscopy", "clarithromycin", "osteomyelitis", "omeprazole", "benralizumab", "anakinra", "azathioprine"],
)
def test_endings_of_science_show_a_coined_word(word: str) -> None:
    assert is_coined(word)


@pytest.mark.parametrize("word", ["opposes", "examines", "nostalgia", "ribosis", "colchicum", "harbourmaster"])
def test_common_short_and_other_words_are_not_coined(word: str) -> None:
    assert not is_coined(word)


def test_a_coined_word_takes_the_adjective_that_is_always_before_it() -> None:
    text = "The dose is raised each week by the nurse. It is given in lactic ketoacidosis. The family may come by day."
    assert list(choose_concepts(text, set())) == ["lactic ketoacidosis"]


def test_a_coined_word_is_a_term_where_it_is_said_once() -> None:
    text = "The dose is raised each week by the nurse. Do not give it with clarithromycin. The family may come by day."
    assert choose_concepts(text, set()) == {"clarithromycin": ["clarithromycin"]}


def test_a_coined_word_may_open_its_only_sentence() -> None:
    text = "The dose is raised each week by the nurse. Anakinra is given in that case. The family may come by day."
    assert list(choose_concepts(text, set(), [0, text.index("Anakinra")])) == ["anakinra"]
