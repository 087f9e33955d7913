import pytest

from graphrag_pipeline.query.asked import read_asked
from graphrag_pipeline.query.basic_search import select_basic_context
from graphrag_pipeline.query.quoting import Floor, quote_passages


def quote(index, question, n=6, said=(), **floor):
    units = select_basic_context(index, question, index.settings.basic_search).text_units
    return quote_passages(index, read_asked(index, question, units), units, n, said, **floor)


def test_quotations_are_verbatim_and_in_reading_order(carol):
    said = quote(carol, "What did Scrooge see in the knocker?")
    assert said
    assert all(text == " ".join(citation.quote.split()) for text, citation in said)
    places = [(citation.document_id, citation.start) for _, citation in said]
    assert places == sorted(places)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_no_more_than_asked_and_nothing_that_was_said(carol, n):
    said = quote(carol, "What did Scrooge see in the knocker?", n)
    assert len(said) <= n
    assert not {text for text, _ in said} & {text for text, _ in quote(carol, "What is the knocker?", said=said)}


def test_nothing_below_the_floor_is_quoted(carol):
    assert not quote(carol, "Which knocker did Scrooge see?", floor=Floor(1.1, 0.0))
