import re

import pytest

from graphrag_pipeline.query.evidence import EvidenceFinder, passages_of, sentences_of
from graphrag_pipeline.query.results import TextUnitRecord


def unit(text):
    return TextUnitRecord("u", 0, "d", "t", text, 100, 100 + len(text), 9, 0.5)


def check_citations(index, result):
    """Every marker has its citation and every citation resolves to its record, text unit and place in the document."""
    assert re.findall(r"\[(\d+)\]", result.answer) == [str(citation.number) for citation in result.citations]
    tables = {
        "entity": "entities",
        "relationship": "relationships",
        "claim": "covariates",
        "report": "community_reports",
        "text_unit": "text_units",
    }
    for citation in result.citations:
        row = index.snapshot.rows_of(tables[citation.kind], [citation.id])[0]
        record = index.snapshot.take(tables[citation.kind], [row])[0]
        assert record["human_readable_id"] == citation.human_readable_id
        text_unit = index.snapshot.take("text_units", index.snapshot.rows_of("text_units", [citation.text_unit_id]))[0]
        document = index.snapshot.take("documents", index.snapshot.rows_of("documents", [citation.document_id]))[0]
        assert text_unit["document_id"] == document["id"]
        assert document["title"] == citation.document_title
        assert citation.quote in text_unit["text"]
        assert document["text"][citation.start : citation.end] == citation.quote


@pytest.mark.parametrize("method", ["local", "basic", "global"])
@pytest.mark.parametrize(
    "question", ["Who is Jacob Marley?", "What did Scrooge send to the Cratchits?", "What are Ignorance and Want?"]
)
def test_every_citation_resolves(carol, method, question):
    result = carol.search(question, method=method)
    assert result.citations
    check_citations(carol, result)


@pytest.mark.parametrize("method", ["local", "basic", "global"])
def test_every_citation_of_the_small_index_resolves(small, method):
    result = small.search("Whom did Marley haunt?", method=method)
    check_citations(small, result)


def test_the_answer_says_that_no_model_wrote_it_and_quotes_the_source(small):
    result = small.search("Who haunted Scrooge?")
    assert result.answer.startswith("Extractive answer (no model)")
    assert "Marley haunted Scrooge. [" in result.answer


@pytest.mark.parametrize("method", ["local", "basic", "global"])
@pytest.mark.parametrize("question", ["Who won the 2018 football world cup?", "What is quantum chromodynamics?"])
def test_what_is_not_in_the_index_is_not_answered(carol, method, question):
    result = carol.search(question, method=method)
    assert result.answer.startswith("Not in the index")
    assert not result.citations


def test_a_global_answer_without_points_says_what_was_looked_at(carol):
    answer = carol.search("What is quantum chromodynamics?", method="global").answer
    assert re.search(r"\d+ community reports were looked at and 8 of them read", answer)


def test_an_overview_question_gets_the_findings_ranked_highest(carol):
    result = carol.search("What are the main themes?", method="global")
    assert "ranked highest" in result.answer
    assert len(result.citations) >= 5
    check_citations(carol, result)


def test_sentences_know_their_place():
    text = "  Marley was dead.\n\nOld Marley was as dead  as a door-nail. "
    found = sentences_of(unit(text))
    assert [sentence.folded for sentence in found] == ["Marley was dead.", "Old Marley was as dead as a door-nail."]
    assert all(text[sentence.start : sentence.end] == sentence.text for sentence in found)


def test_a_short_sentence_takes_those_behind_it_within_its_paragraph():
    text = "Marley was dead. There is no doubt whatever about that. The register was signed.\n\nScrooge signed it."
    assert [len(passage) for passage in passages_of(sentences_of(unit(text)))] == [3, 2, 1, 1]


def test_a_verbatim_statement_is_its_own_evidence(small):
    finder = EvidenceFinder(small)
    report_row = 0
    cited = finder.resolve("[Data: Reports (0, 1, 2, 3)]", report_row)
    passage, _ = finder.find("Bob Cratchit loved Tiny Tim.", cited)
    assert [sentence.text for sentence in passage] == ["Bob Cratchit loved Tiny Tim."]


def test_citations_of_nothing_fall_back_to_the_report(small):
    finder = EvidenceFinder(small)
    for text in ("", "[Data: Entities (999999)]", "[Data: Entities (x, -1); Nonsense (1)]"):
        (record,) = finder.resolve(text, 0)
        assert record.kind == "report"
        assert record.text_unit_rows
