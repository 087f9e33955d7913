"""Extractive answers: quoted and cited sentences of the index, laid out; no other statement is made.

Local and basic search answer with descriptions of the records that the question names and with passages of the
context's text units, global search with findings of reports. Each statement has a marker `[1]` whose citation resolves
to record, text unit, document and offsets. A sentence that a model wrote in a description is only cited with a passage
that supports it (`support.py`). Without one it is left out, or marked if nothing else answers. The first line says that
no model wrote the answer. If the question asks for a name or a number and the texts clearly give one
(`naming/named_answers.py`), the first line gives it, and the first quotation is the sentence that supports it. Only the
context is read; if no report answers, text units are read as well, and for the name those of the named entities and of
basic search. If nothing answers, the answer lists what was looked at and quotes passages that share half of the
question's words. It says "not in the index" if no text has what the question asks for besides names, nor any word near
to it (`understanding/covered_words.py`).
Keep out: choosing the context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from graphrag_pipeline.citations import split_cited, strip_citations
from graphrag_pipeline.query.answers.declining import (
    absent_words,
    answer_with_nearest,
    decline,
    decline_by_reports,
    describe_reports,
    name_absent_words,
    read_coverage,
)
from graphrag_pipeline.query.answers.evidence import EvidenceFinder, cite
from graphrag_pipeline.query.answers.layout import compose, introduce_name, show_descriptions
from graphrag_pipeline.query.answers.naming.chinese_answers import find_chinese_answer
from graphrag_pipeline.query.answers.naming.named_answers import (
    NamedAnswer,
    find_named_answer,
    read_named_units,
)
from graphrag_pipeline.query.answers.quoting import (
    IS_NEAREST,
    Quote,
    quote_passages,
    quote_runs,
    quote_whole,
    state_graph,
)
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_latin, repeats_question, topic_words
from graphrag_pipeline.query.results import Answer, Context, TextUnitRecord
from graphrag_pipeline.query.search.basic import read_within
from graphrag_pipeline.query.selection.passages import passages_of, sentences_of, text_of
from graphrag_pipeline.query.understanding.chinese_definitions import asks_in_chinese
from graphrag_pipeline.query.understanding.covered_words import Coverage
from graphrag_pipeline.query.understanding.question_analysis import QuestionAnalysis, analyze_question
from graphrag_pipeline.settings.settings import AnswersSettings
from graphrag_pipeline.text.counted import counted
from graphrag_pipeline.text.extractive import is_near_repeat, rank_sentences, words_of
from graphrag_pipeline.text.sentence_forms import is_sentence
from graphrag_pipeline.text.sentences import split_sentences

if TYPE_CHECKING:
    from graphrag_pipeline.query.search.community_selection import Selection
    from graphrag_pipeline.query.search.global_ import Point

MAX_SENTENCES_PER_POINT = 2
NOTHING_TO_LOOK_FOR = (
    "Not answered: the question has no word to look for in the texts. Ask about a name or a subject, or use global "
    "search for an overview."
)
NOTHING_READ = (
    "Not answered: no text unit was read. None is near the question, or none fits into `max_context_tokens`: raise it."
)
WEAK_SCORE = 15
"""A best point below this score is as likely a coincidence as an answer."""


def write_answer(index: IndexReader, question: str, context: Context, settings: AnswersSettings) -> Answer:
    """Return what the graph says about the entities in the question, then the passages that answer best.

    At most `max_sentences` statements and passages; the document of the best passage is first, and the
    passages of a document are in reading order.
    """
    if index.nothing_to_read:
        return Answer(index.nothing_to_read)
    if not topic_words(question):
        return Answer(NOTHING_TO_LOOK_FOR)
    units = context.text_units
    analysis = analyze_question(index, question, units)
    lead = _find_lead(index, question, units)
    coverage = Coverage() if lead.quotes else read_coverage(index, question, units)
    looked = f"looked at {counted(len(units), 'text units')}"
    if not coverage.is_covered:
        return decline(index, analysis, units, looked, coverage)
    stated, unsupported = state_graph(index, analysis, context)
    n_left = settings.max_sentences - len(stated) - len(lead.quotes)
    quotes = stated + quote_passages(index, analysis, units, n_left, [*stated, *lead.sentences])
    if not quotes or absent_words(analysis, units):
        quotes = stated + _answer_from_units(index, analysis, units, n_left, [*stated, *lead.sentences])
    if quotes or lead.quotes:
        quotes = [*lead.quotes, *quotes]
        introduction = lead.text or _introduce_passages(analysis, units, quotes)
        return replace(compose(introduction, quotes), text_units=lead.read)
    if unsupported:
        return show_descriptions(unsupported)
    if not units:
        return Answer(NOTHING_READ)
    return answer_with_nearest(index, analysis, units, looked, coverage)


@dataclass(frozen=True)
class _Lead:
    """How an answer begins if the texts name what is asked for; empty if they do not.

    Attributes:
        text: the line that gives the name, with its citation.
        quotes: the quotation that supports it, if any.
        sentences: its sentences, one by one, not to be quoted again.
        read: the text unit of the quotation, if it is not in the context.
    """

    text: str = ""
    quotes: tuple[Quote, ...] = ()
    sentences: tuple[Quote, ...] = ()
    read: tuple[TextUnitRecord, ...] = ()


def _find_lead(index: IndexReader, question: str, units: Sequence[TextUnitRecord]) -> _Lead:
    """Return the name that the text units of the context, of the named entities and of basic search give."""
    further = read_named_units(index, question, has_context=bool(units))
    shown = {(unit.id, unit.start, unit.end) for unit in units}
    found = [*units, *(unit for unit in further if (unit.id, unit.start, unit.end) not in shown)]
    named = (find_chinese_answer if asks_in_chinese(question) else find_named_answer)(index, question, found)
    return _lead_with(named, {unit.id for unit in units}) if named else _Lead()


def _lead_with(named: NamedAnswer, in_context: set[str]) -> _Lead:
    text, citation = quote_whole(named.sentences)
    sentences = tuple((sentence.folded, citation) for sentence in named.sentences)
    unit = named.sentences[0].unit
    read = () if unit.id in in_context else (unit,)
    introduction = introduce_name(named.name) if named.name else ""
    return _Lead(introduction, ((text, citation),), sentences, read)


def write_overview(index: IndexReader, question: str, context: Context, settings: AnswersSettings) -> Answer:
    """Return the most central passage of each of the first text units, for a question that names nothing specific.

    Passages that name entities with many relationships count more.
    """
    if context.is_empty:
        return write_answer(index, question, context, settings)
    degrees = index.column("entities", "degree")
    picked = []
    for unit in context.text_units[: settings.max_sentences]:
        passages = list(passages_of(sentences_of(unit)))
        texts = [text_of(passage) for passage in passages]
        prior = 1 + np.log1p([degrees[index.names.find(text)].sum() for text in texts])
        picked += [passages[i] for i in rank_sentences(texts, index.embed_passages(texts), 1, prior=prior)]
    read = counted(len(context.text_units), "text units")
    introduction = f"Extractive overview (no model): the question names nothing specific; what {read} say most."
    return compose(introduction, quote_runs(picked))


def _answer_from_units(
    index: IndexReader,
    analysis: QuestionAnalysis,
    units: Sequence[TextUnitRecord],
    n: int,
    quotes: Sequence[Quote] = (),
) -> list[Quote]:
    """Return the n passages that answer; if no text unit has all words of the question, also the nearest ones."""
    quoted = quote_passages(index, analysis, units, n, quotes)
    if quoted and is_latin(analysis.question) and absent_words(analysis, units):
        return quote_passages(index, analysis, units, n, quotes, IS_NEAREST) or quoted
    return quoted


def _introduce_passages(analysis: QuestionAnalysis, units: Sequence[TextUnitRecord], quotes: Sequence[Quote]) -> str:
    without = name_absent_words(analysis, units, quotes)
    return f"Extractive answer (no model): what the sources say nearest to the question{without}."


# ---------------------------------------------------------------------------------------------------------------global


def write_global_answer(
    index: IndexReader, question: str, points: Sequence[Point], selection: Selection, max_context_tokens: int
) -> Answer:
    """Return the findings of the points, best first, shortened to the sentences nearest to the question, cited.

    Args:
        max_context_tokens: of the texts that are read if there is no point.
    """
    if index.nothing_to_read:
        return Answer(index.nothing_to_read)
    if not points:
        return _answer_from_texts(index, question, selection, max_context_tokens)
    lead = _Lead() if selection.is_overview else _find_lead(index, question, ())
    declined = None if lead.quotes else decline_by_reports(index, question, selection, max_context_tokens)
    if declined:
        return declined
    finder = EvidenceFinder(index)
    vector = None if selection.is_overview else index.embed_passages([question])[0]
    citations = [replace(citation, number=1) for _, citation in lead.quotes]
    lines = [lead.text or _introduce(points, selection), "", *(f"- {text} [1]" for text, _ in lead.quotes)]
    for point in points:
        statements = []
        for statement, cited in _statements(index, question, point, vector):
            found = finder.find(statement, finder.resolve(cited, point.report_row))
            if found:
                passage, record = found
                citations.append(cite(len(citations) + 1, passage[0].unit, passage[0].start, passage[-1].end, record))
            statements.append(f"{statement} [{len(citations)}]" if found else statement)
        heading = _heading(point, () if selection.is_overview else statements)
        lines.append(f"- {heading}{' '.join(statements)}")
    return Answer("\n".join(lines), tuple(citations), text_units=lead.read)


def _answer_from_texts(index: IndexReader, question: str, selection: Selection, max_context_tokens: int) -> Answer:
    """Return passages of the text units of basic search, or what was looked at, if no report answers."""
    looked = describe_reports(selection)
    units = read_within(index, question, max_context_tokens).text_units
    if not units:
        return Answer(f"{NOTHING_READ} {looked}; no finding answers.")
    analysis = analyze_question(index, question, units)
    lead = _find_lead(index, question, units)
    coverage = Coverage() if lead.quotes else read_coverage(index, question, units)
    if not coverage.is_covered:
        looked = f"{looked}, then {counted(len(units), 'text units')}"
        return replace(decline(index, analysis, units, looked, coverage), text_units=units)
    n = index.settings.answers.max_sentences - len(lead.quotes)
    quotes = [*lead.quotes, *_answer_from_units(index, analysis, units, n, lead.sentences)]
    texts_say = f"Extractive answer (no model): {looked}, but no finding answers. The texts themselves say:"
    looked = f"{looked}, then {counted(len(units), 'text units')}"
    answer = (
        compose(lead.text or texts_say, quotes)
        if quotes
        else answer_with_nearest(index, analysis, units, looked, coverage)
    )
    return replace(answer, text_units=units)


def _introduce(points: Sequence[Point], selection: Selection) -> str:
    n_used = len({point.report_row for point in points})
    if selection.is_overview:
        read = counted(len(selection.kept), "community reports")
        said = f"{counted(len(points), 'findings')} of {n_used} of the {read} ranked highest"
        return f"Extractive answer (no model): {said}, best first."
    used = counted(n_used, "community reports")
    if points[0].score < WEAK_SCORE:
        return f"Perhaps no answer (extractive, no model): the nearest findings of {used}."
    return f"Extractive answer (no model): findings of {used}, nearest to the question first."


def _heading(point: Point, statements: Sequence[str]) -> str:
    heading = strip_citations(point.summary).rstrip(". ")
    repeats = is_near_repeat(words_of(heading), (words_of(statement) for statement in statements))
    return "" if repeats or not heading else f"**{heading}.** "


def _close(statement: str) -> str:
    """Return a statement without the punctuation around its removed citation: none in front, one mark at the end."""
    bare = statement.lstrip(".,;:) ").rstrip(",;: ")
    return bare if bare.endswith((".", "!", "?", "'", '"', "\u2019", "\u201d")) or not bare.isascii() else f"{bare}."


def _statements(index: IndexReader, question: str, point: Point, vector: np.ndarray | None) -> list[tuple[str, str]]:
    """Return the sentences of a finding nearest to the question, in order, each with its citations.

    Args:
        vector: of the question. None if it names nothing specific: then the first sentences, since reports put the most
            important first.
    """
    everything = f"{point.summary} {point.explanation}"
    statements = [
        (_close(" ".join(text[start:end].split())), citation or everything)
        for text, citation in split_cited(point.explanation or point.summary)
        for start, end in split_sentences(text)
        if not repeats_question(question, text[start:end])
    ]
    statements = [(text, citation) for text, citation in statements if is_sentence(text)] or statements
    if vector is None:
        return statements[:MAX_SENTENCES_PER_POINT]
    texts = [text for text, _ in statements]
    picked = rank_sentences(texts, index.embed_passages(texts), MAX_SENTENCES_PER_POINT, vector)
    return [statements[i] for i in sorted(picked)]
