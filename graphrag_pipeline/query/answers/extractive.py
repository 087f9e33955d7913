"""Extractive answers: sentences that are there, quoted and cited; nothing is written that no record says.

Local and basic search answer with descriptions of the records that the question names and passages of the context's
text units, global search with findings of reports. Each is followed by a marker `[1]` whose citation resolves to
record, text unit, document and offsets. The first line says that no model wrote it. Nothing is read but the context;
where no report says anything, text units join it. Where it does not answer, the answer says what was looked at, quotes
what shares half of the question's words, and says "not in the index" only where none of its words is. Keep out:
choosing the context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from graphrag_pipeline.citations import split_cited, strip_citations
from graphrag_pipeline.query.answers.evidence import EvidenceFinder, cite
from graphrag_pipeline.query.answers.quoting import IS_NEAREST, Quote, quote_passages, quote_runs, state_graph
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_latin, stem, topic_words
from graphrag_pipeline.query.results import Answer, Citation, Context, TextUnitRecord
from graphrag_pipeline.query.search.basic import read_within
from graphrag_pipeline.query.selection.passages import passages_of, sentences_of, text_of
from graphrag_pipeline.query.understanding.question_analysis import QuestionAnalysis, analyze_question
from graphrag_pipeline.settings.settings import AnswersSettings
from graphrag_pipeline.text.extractive import is_near_repeat, rank_sentences, words_of
from graphrag_pipeline.text.sentence_forms import is_sentence
from graphrag_pipeline.text.sentences import split_sentences

if TYPE_CHECKING:
    from graphrag_pipeline.query.search.global_ import Point, Selection

MAX_NEAREST = 3
MAX_SENTENCES_PER_POINT = 2
NOTHING_TO_LOOK_FOR = (
    "Not answered: the question has no word to look for in the texts. Ask about a name or a subject, or use global "
    "search for an overview."
)
NOTHING_READ = (
    "Not answered: no text unit was read. None is near the question, or none fits into `max_context_tokens`: raise it."
)
WEAK_SCORE = 15
"""A best point below this is as likely an accident as an answer."""


def write_answer(index: IndexReader, question: str, context: Context, settings: AnswersSettings) -> Answer:
    """What the graph says about the entities that the question names, then the passages that answer best.

    At most `max_sentences` statements and passages; passages stand in reading order.
    """
    if index.nothing_to_read:
        return Answer(index.nothing_to_read)
    if not topic_words(question):
        return Answer(NOTHING_TO_LOOK_FOR)
    units = context.text_units
    analysis = analyze_question(index, question, units)
    stated = state_graph(index, analysis, context)
    n_left = settings.max_sentences - len(stated)
    said = stated + quote_passages(index, analysis, units, n_left, stated)
    if not said or _absent_words(analysis, units):
        said = stated + _answer_from_units(index, analysis, units, n_left, stated)
    if said:
        return _compose(_introduce_passages(analysis, units, said), said)
    if not units:
        return Answer(NOTHING_READ)
    return _say_what_was_looked_at(index, analysis, units, f"looked at {_count(len(units), 'text unit')}")


def write_overview(index: IndexReader, question: str, context: Context, settings: AnswersSettings) -> Answer:
    """Where a question names nothing specific and no report is read: what each of the first text units says most.

    A passage that names entities with many relationships says more.
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
    read = _count(len(context.text_units), "text unit")
    introduction = f"Extractive overview (no model): the question names nothing specific; what {read} say most."
    return _compose(introduction, quote_runs(picked))


def _answer_from_units(
    index: IndexReader, analysis: QuestionAnalysis, units: Sequence[TextUnitRecord], n: int, said: Sequence[Quote] = ()
) -> list[Quote]:
    """The n passages that answer; where no text unit has all that is asked about, the nearest are among them."""
    quoted = quote_passages(index, analysis, units, n, said)
    if quoted and is_latin(analysis.question) and _absent_words(analysis, units):
        return quote_passages(index, analysis, units, n, said, IS_NEAREST) or quoted
    return quoted


def _absent_words(analysis: QuestionAnalysis, units: Sequence[TextUnitRecord], said: Sequence[Quote] = ()) -> list[str]:
    """The words a question asks about that no text says, quoted, in alphabetical order."""
    texts = [*(unit.text for unit in units), *(text for text, _ in said)]
    missing = analysis.words.difference(*(analysis.words_in(text) for text in texts))
    return [f'"{word}"' for word in sorted(words_of(analysis.question)) if stem(word) in missing]


def _introduce_passages(analysis: QuestionAnalysis, units: Sequence[TextUnitRecord], said: Sequence[Quote]) -> str:
    absent = _absent_words(analysis, units, said)
    without = f"; none of them says {' or '.join(absent)}" if absent and is_latin(analysis.question) else ""
    return f"Extractive answer (no model): what the sources say nearest to the question{without}."


def _say_what_was_looked_at(
    index: IndexReader, analysis: QuestionAnalysis, units: Sequence[TextUnitRecord], looked: str
) -> Answer:
    """An answer that is none: the nearest passages, if any are near, or that no word of the question is there."""
    if not analysis.words & frozenset().union(*(analysis.words_in(unit.text) for unit in units)):
        return Answer(f"Not in the index: {looked}; no word of the question is there.")
    introduction = f"Nothing in the index is near enough to this question; {looked}."
    said = quote_passages(index, analysis, units, MAX_NEAREST, floor=IS_NEAREST)
    return _compose(f"{introduction} The nearest (extractive, no model):", said) if said else Answer(introduction)


def _compose(introduction: str, said: Sequence[Quote]) -> Answer:
    """One line per statement under the title of its document, numbered in that order."""
    lines = [introduction]
    document = None
    for number, (text, citation) in enumerate(said, start=1):
        if citation.document_id != document:
            lines += ["", f"**{citation.document_title}**", ""]
            document = citation.document_id
        lines.append(f"- {text} [{number}]")
    return Answer("\n".join(lines), tuple(replace(c, number=n) for n, (_, c) in enumerate(said, start=1)))


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


# ---------------------------------------------------------------------------------------------------------------global


def write_global_answer(
    index: IndexReader, question: str, points: Sequence[Point], selection: Selection, max_context_tokens: int
) -> Answer:
    """What each point's finding says, best first, shortened to the sentences nearest to the question, with evidence.

    Args:
        max_context_tokens: of the texts that are read where there is no point.
    """
    if index.nothing_to_read:
        return Answer(index.nothing_to_read)
    if not points:
        return _answer_from_texts(index, question, selection, max_context_tokens)
    finder = EvidenceFinder(index)
    vector = None if selection.is_overview else index.embed_passages([question])[0]
    citations: list[Citation] = []
    lines = [_introduce(points, selection), ""]
    for point in points:
        said = []
        for statement, cited in _statements(index, point, vector):
            found = finder.find(statement, finder.resolve(cited, point.report_row))
            if found:
                passage, record = found
                citations.append(cite(len(citations) + 1, passage[0].unit, passage[0].start, passage[-1].end, record))
            said.append(f"{statement} [{len(citations)}]" if found else statement)
        heading = _heading(point, () if selection.is_overview else said)
        lines.append(f"- {heading}{' '.join(said)}")
    return Answer("\n".join(lines), tuple(citations))


def _answer_from_texts(index: IndexReader, question: str, selection: Selection, max_context_tokens: int) -> Answer:
    """Where no report says anything: passages of the text units that basic search finds, or what was looked at."""
    looked = f"{_count(len(selection.rated), 'community report')} looked at, {len(selection.kept)} of them read"
    units = read_within(index, question, max_context_tokens).text_units
    if not units:
        return Answer(f"{NOTHING_READ} {looked}; no finding answers.")
    analysis = analyze_question(index, question, units)
    said = _answer_from_units(index, analysis, units, index.settings.answers.max_sentences)
    introduction = f"Extractive answer (no model): {looked}, but no finding answers. The texts themselves say:"
    looked = f"{looked}, then {_count(len(units), 'text unit')}"
    answer = _compose(introduction, said) if said else _say_what_was_looked_at(index, analysis, units, looked)
    return replace(answer, text_units=units)


def _introduce(points: Sequence[Point], selection: Selection) -> str:
    read = _count(len(selection.kept), "community report")
    if selection.is_overview:
        n_used = len({point.report_row for point in points})
        return f"Extractive answer (no model): what {n_used} of the {read} ranked highest say, best first."
    if points[0].score < WEAK_SCORE:
        return f"Perhaps no answer (extractive, no model): the nearest findings of {read}."
    return f"Extractive answer (no model): findings of {read}, nearest to the question first."


def _heading(point: Point, said: Sequence[str]) -> str:
    heading = strip_citations(point.summary).rstrip(". ")
    repeats = is_near_repeat(words_of(heading), (words_of(statement) for statement in said))
    return "" if repeats or not heading else f"**{heading}.** "


def _close(statement: str) -> str:
    """A statement without the punctuation that its citation left behind: none in front, one mark at the end."""
    bare = statement.lstrip(".,;:) ").rstrip(",;: ")
    return bare if bare.endswith((".", "!", "?", "'", '"', "\u2019", "\u201d")) or not bare.isascii() else f"{bare}."


def _statements(index: IndexReader, point: Point, vector: np.ndarray | None) -> list[tuple[str, str]]:
    """The sentences of a finding nearest to the question, in order, each with the citations that stand for it.

    Args:
        vector: of the question; None if it names nothing specific: then the first ones, since reports put them first.
    """
    everything = f"{point.summary} {point.explanation}"
    statements = [
        (_close(" ".join(said[start:end].split())), citation or everything)
        for said, citation in split_cited(point.explanation or point.summary)
        for start, end in split_sentences(said)
    ]
    statements = [(said, citation) for said, citation in statements if is_sentence(said)] or statements
    if vector is None:
        return statements[:MAX_SENTENCES_PER_POINT]
    texts = [said for said, _ in statements]
    picked = rank_sentences(texts, index.embed_passages(texts), MAX_SENTENCES_PER_POINT, vector)
    return [statements[i] for i in sorted(picked)]
