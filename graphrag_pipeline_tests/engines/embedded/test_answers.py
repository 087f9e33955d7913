import re

import pytest

from graphrag_pipeline.query.answers.evidence import EvidenceFinder, rate_form
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.selection.passages import passages_of, sentences_of, text_of
from graphrag_pipeline_tests.support.citation_checks import check_citations


def unit(text):
    return TextUnitRecord("u", 0, "d", "t", text, 100, 100 + len(text), 9, 0.5)


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
    assert "Marley **haunted Scrooge**. [" in result.answer


@pytest.mark.parametrize("method", ["local", "basic", "global"])
@pytest.mark.parametrize("question", ["Who won the 2018 football world cup?", "What is quantum chromodynamics?"])
def test_what_is_not_in_the_index_is_not_answered(carol, method, question):
    result = carol.search(question, method=method)
    assert result.answer.startswith("Not in the index: ") and not result.citations


@pytest.mark.parametrize("method", ["local", "basic"])
@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Wen traf Einstein?", "Mileva Marić"),
        ("Wo studierte Einstein?", "Polytechnikum"),
        ("Wer half Einstein?", "Marcel Grossmann"),
        ("Einstein", "Einstein"),
    ],
)
def test_a_few_texts_that_share_a_name_answer_in_their_language(german, method, question, said):
    result = german.search(question, method=method)
    assert result.answer.startswith("Extractive answer")
    assert said in result.answer.replace("**", "")
    check_citations(german, result)


@pytest.mark.parametrize("method", ["local", "basic", "global"])
def test_words_that_no_text_has_are_named(german, method):
    answer = german.search("Wer gewann die Fußball-Weltmeisterschaft?", method=method).answer
    assert answer.startswith("Not in the index: ") and '"gewann"' in answer and '"weltmeisterschaft"' in answer


@pytest.mark.parametrize("method", ["local", "basic"])
def test_chinese_passages_share_a_word_with_the_question(story, method):
    result = story.search("薰儿写了什么？", method=method)
    assert "薰儿坐在窗前写信" in result.answer.replace("**", "").split("\n- ")[1]
    assert "萧炎已经站在后山" in story.search("萧炎是谁？", method=method).answer.replace("**", "")
    check_citations(story, result)


@pytest.mark.parametrize("method", ["local", "basic"])
def test_a_word_that_no_text_holds_does_not_hide_the_nearest_passages(carol, method):
    result = carol.search("How much does the clerk owe?", method=method)
    assert 'says "owe"' in result.answer and "clerk" in result.citations[0].quote
    check_citations(carol, result)


def test_local_search_does_not_fall_below_basic(carol):
    result = carol.search("What happens to Tiny Tim?", method="local")
    assert any("who did NOT die" in unit.text for unit in result.context.text_units)


def test_one_report_is_not_some_reports(story):
    assert "1 community report," in story.search("薰儿写了什么？", method="global").answer


def test_a_global_answer_without_points_says_what_was_looked_at(carol):
    answer = carol.search("What is quantum chromodynamics?", method="global").answer
    assert re.search(r"\d+ community reports looked at, 8 of them read, then \d+ text units", answer)


def test_an_overview_goes_through_the_reports_ranked_highest(carol):
    result = carol.search("What are the main themes?", method="global")
    assert "ranked highest" in result.answer
    assert f"(no model): {result.answer.count(chr(10) + '- ')} finding" in result.answer  # as many as are listed
    titles = re.findall(r"^- \*\*(.+?)\.?\*\*", result.answer, re.MULTILINE)
    kept = [report.title for report in result.context.reports]
    shown = [title for title in titles if title in kept]
    assert shown == [title for title in kept if title in shown]
    assert len(set(shown)) >= 4
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


BOX = """# Kettle

The box of the kettle contains:

- a base plate
- a limescale filter
- two spare gaskets
- a printed warranty card

The kettle has three modes:

1. Boil.
2. Keep warm.
3. Cool down.

It was made in Leeds.
"""


def test_a_list_belongs_to_the_passage_of_the_sentence_that_introduces_it():
    passages = [text_of(passage) for passage in passages_of(sentences_of(unit(BOX)))]
    box = next(text for text in passages if text.startswith("The box"))
    assert box.endswith("contains: - a base plate - a limescale filter - two spare gaskets - a printed warranty card")
    assert "The kettle has three modes: 1. Boil. 2. Keep warm. 3. Cool down." in passages
    assert rate_form(box) > rate_form("The box of the kettle contains:")
    long_item = "It has:\n\n- " + "many old parts and " * 30
    assert len(next(passages_of(sentences_of(unit(long_item))))) == 1


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


def test_texts_that_a_global_answer_reads_instead_of_reports_are_in_its_context(carol):
    question = "What is quantum chromodynamics?"
    units = carol.search(question, method="global").context.text_units
    assert units and {unit.id for unit in units} == {
        unit.id for unit in carol.search(question, method="basic").context.text_units
    }
    short = carol.search(question, method="global", max_context_tokens=100)
    assert not short.context.text_units and short.answer.startswith("Not answered: no text unit was read.")


def test_a_lazy_search_without_a_relevant_text_unit_says_how_many_it_tested(carol):
    result = carol.search("What is quantum chromodynamics?", method="lazy", budget=4)
    assert result.answer == "Not in the index: 4 text units tested, 0 of them relevant; none says anything about the " \
        "question."  # fmt: skip
    assert result.context.is_empty
