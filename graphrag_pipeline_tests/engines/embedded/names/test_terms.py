from graphrag_pipeline.engines.embedded.names.folded_text import FoldedText
from graphrag_pipeline.engines.embedded.names.terms import find_terms
from graphrag_pipeline.text.sentences import split_sentences

TEXT = (
    "The connection pool is full. A full connection pool blocks the query planner. The query planner waits for the "
    "connection\npool. Many people say so. Many people wait. Restart the service quickly, or wait for the service."
)


def terms(text: str, taken: tuple = ()) -> list[tuple[str, str]]:
    folded = FoldedText(text, split_sentences(text))
    return [(folded.text[start:end], term) for start, end, term in find_terms(folded, taken)]


def test_noun_phrases_that_repeat_are_terms_and_other_phrases_are_not() -> None:
    assert {term for _, term in terms(TEXT)} == {"connection pool", "query planner"}
    assert [term for _, term in terms(TEXT)].count("connection pool") == 3


def test_a_plural_is_the_term_in_the_singular() -> None:
    found = terms("A retention policy holds. Retention policies differ, and a retention policy is kept.")
    assert found == [("retention policy", "retention policy"), ("Retention policies", "retention policy"),
                     ("retention policy", "retention policy")]  # fmt: skip


def test_a_term_is_outside_of_names() -> None:
    place = TEXT.index("connection pool")
    assert len(terms(TEXT, ((place, place + 15, "x"),))) == len(terms(TEXT)) - 1


def test_a_document_without_words_has_no_terms() -> None:
    assert terms("") == terms("1 2 3.") == []
