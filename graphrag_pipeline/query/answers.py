"""Extractive answers: sentences that are there, quoted and cited; nothing is written that no record says.

Local and basic search answer with descriptions of the records that the question names and passages of the context's
text units, global search with findings of reports. Each is followed by a marker `[1]` whose citation resolves to
record, text unit, document and offsets. The first line says that no model wrote it. Where the context does not answer,
the text units of basic search may; where they do not either, the answer says what was looked at, quotes what shares
half of the question's words, and says "not in the index" only where none of its words is. Keep out: choosing the
context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from graphrag_pipeline.citations import split_cited, strip_citations
from graphrag_pipeline.models.extractive import is_near_repeat, is_sentence, rank_sentences, words_of
from graphrag_pipeline.query.basic_search import select_basic_context
from graphrag_pipeline.query.evidence import (
    MIN_PASSAGE_WORDS,
    CitedRecord,
    EvidenceFinder,
    Sentence,
    cite,
    passages_of,
    sentences_of,
    telling,
    text_of,
)
from graphrag_pipeline.query.question import asked_words, content_words, stem
from graphrag_pipeline.query.relevance import make_background, score_relevance
from graphrag_pipeline.query.results import Answer, Citation, Context, TextUnitRecord
from graphrag_pipeline.query.windows import is_latin
from graphrag_pipeline.sentences import split_sentences
from graphrag_pipeline.settings import AnswersSettings

if TYPE_CHECKING:
    from graphrag_pipeline.query.global_search import Point, Selection
    from graphrag_pipeline.query.graph_index import GraphIndex


@dataclass(frozen=True)
class Floor:
    """What a passage needs to be quoted: relevance, and a share of the question's words; both 0-1."""

    relevance: float
    words: float


ANSWERS = Floor(0.34, 0.0)
IS_NEAREST = Floor(0.25, 0.5)
"""Of a passage that may be quoted as the nearest where none answers."""
SAYS_ALL = 0.5
"""Least relevance of a passage that holds every word of a question of two words or more."""
MAX_NEAREST = 3
RELATIVE_FLOOR = 0.5
"""A passage worth less than this share of the best one is left out."""
MAX_GRAPH_STATEMENTS = 2
MAX_SENTENCES_PER_POINT = 2
EMPTY_INDEX = "The index has no documents: put some into the input folder and run `graphrag-pipeline index`."
NOTHING_TO_LOOK_FOR = (
    "Not answered: the question has no word to look for in the texts. Ask about a name or a subject, or use global "
    "search for an overview."
)
WEAK_SCORE = 15
"""A best point below this is as likely an accident as an answer."""


def write_answer(index: GraphIndex, question: str, context: Context, settings: AnswersSettings) -> Answer:
    """What the graph says about the entities that the question names, then the passages that answer best.

    A passage is a sentence and, where it is short, those behind it, so that "Marley was dead." is not left without its
    context. At most `max_sentences` statements and passages; passages stand in reading order.
    """
    if not index.snapshot.n_rows("documents"):
        return Answer(EMPTY_INDEX)
    if not asked_words(question):
        return Answer(NOTHING_TO_LOOK_FOR)
    stated = _state_graph(index, question, context)
    units = context.text_units
    n_left = settings.max_sentences - len(stated)
    said = stated + _quote_passages(index, question, units, n_left, stated)
    if not said or _absent_words(question, [unit.text for unit in units]):
        units = _with_basic(index, question, units)
        said = stated + _answer_from_units(index, question, units, n_left, stated)
    if said:
        return _compose(_introduce_passages(question, units, said), said)
    return _say_what_was_looked_at(index, question, units, f"looked at {_count(len(units), 'text unit')}")


def _with_basic(index: GraphIndex, question: str, units: Sequence[TextUnitRecord]) -> tuple[TextUnitRecord, ...]:
    """Text units and those of basic search that are not among them."""
    known = {unit.id for unit in units}
    found = select_basic_context(index, question, index.settings.basic_search).text_units
    return (*units, *(unit for unit in found if unit.id not in known))


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _introduce_passages(question: str, units: Sequence[TextUnitRecord], said: Sequence[Said]) -> str:
    absent = _absent_words(question, [*(unit.text for unit in units), *(text for text, _ in said)])
    without = f"; none of them says {' or '.join(absent)}" if absent and is_latin(question) else ""
    return f"Extractive answer (no model): what the sources say nearest to the question{without}."


def _absent_words(question: str, texts: Sequence[str]) -> list[str]:
    """The words a question asks about that no text says, quoted, in alphabetical order."""
    missing = asked_words(question).difference(*(content_words(text) for text in texts))
    return [f'"{word}"' for word in sorted(words_of(question)) if stem(word) in missing]


def _say_what_was_looked_at(index: GraphIndex, question: str, units: Sequence[TextUnitRecord], looked: str) -> Answer:
    """An answer that is none: the nearest passages, if any are near, or that no word of the question is there."""
    if not asked_words(question) & frozenset().union(*(content_words(unit.text) for unit in units)):
        return Answer(f"Not in the index: {looked}; no word of the question is there.")
    introduction = f"Nothing in the index is near enough to this question; {looked}."
    said = _quote_passages(index, question, units, MAX_NEAREST, floor=IS_NEAREST)
    return _compose(f"{introduction} The nearest (extractive, no model):", said) if said else Answer(introduction)


def _compose(introduction: str, said: Sequence[Said]) -> Answer:
    """One line per statement under the title of its document, numbered in that order."""
    lines = [introduction]
    document = None
    for number, (text, citation) in enumerate(said, start=1):
        if citation.document_id != document:
            lines += ["", f"**{citation.document_title}**", ""]
            document = citation.document_id
        lines.append(f"- {text} [{number}]")
    return Answer("\n".join(lines), tuple(replace(c, number=n) for n, (_, c) in enumerate(said, start=1)))


Said = tuple[str, Citation]


def _state_graph(index: GraphIndex, question: str, context: Context) -> list[Said]:
    """Sentences from descriptions: of entities that the question names, and of their relationships in the network.

    A sentence of a text unit that is short, or stands in the context, is left to the passages, which show what stands
    around it.
    """
    in_context = {unit.id for unit in context.text_units}
    named = [entity for entity in context.entities if entity.match == "name"]
    titles = {entity.title for entity in named}
    described = [("entity", entity, entity.title, entity.description) for entity in named] + [
        ("relationship", pair, f"{pair.source} {pair.target}", pair.description)
        for pair in context.relationships
        if pair.is_in_network and titles & {pair.source, pair.target}
    ]
    statements = [
        (kind, record, subject, " ".join(text[start:end].split()))
        for kind, record, subject, text in described
        for start, end in split_sentences(text)
    ]
    picked = _pick(index, question, [f"{subject}: {text}" for _, _, subject, text in statements], MAX_GRAPH_STATEMENTS)
    finder = EvidenceFinder(index)
    said = []
    for kind, record, _, text in (statements[i] for i in picked):
        cited = finder.read_record(kind, record.id)
        found = finder.find(text, [cited])
        if found:
            passage, _ = found
            is_short = len(text.split()) < MIN_PASSAGE_WORDS
            if passage[0].folded == text and (is_short or passage[0].unit.id in in_context):
                continue
            said.append((text, cite(0, passage[0].unit, passage[0].start, passage[-1].end, cited)))
    return said


def _answer_from_units(
    index: GraphIndex, question: str, units: Sequence[TextUnitRecord], n: int, said: Sequence[Said] = ()
) -> list[Said]:
    """The n passages that answer; where no text unit has all that is asked about, the nearest are among them."""
    quoted = _quote_passages(index, question, units, n, said)
    if quoted and is_latin(question) and _absent_words(question, [unit.text for unit in units]):
        return _quote_passages(index, question, units, n, said, IS_NEAREST) or quoted
    return quoted


def _quote_passages(
    index: GraphIndex,
    question: str,
    units: Sequence[TextUnitRecord],
    n: int,
    said: Sequence[Said] = (),
    floor: Floor = ANSWERS,
) -> list[Said]:
    """The n passages that answer best, in reading order; runs that touch become one."""
    passages = [passage for unit in units for passage in passages_of(sentences_of(unit))]
    known = {text for text, _ in said}
    passages = [passage for passage in passages if not any(sentence.folded in known for sentence in passage)]
    texts = [text_of(passage) for passage in passages]
    chosen = {
        (sentence.unit.human_readable_id, sentence.start): sentence
        for i in _pick(index, question, texts, n, floor)
        for sentence in passages[i]
    }
    quoted = []
    for run in _runs([chosen[key] for key in sorted(chosen)]):
        unit = run[0].unit
        record = CitedRecord("text_unit", unit.id, unit.human_readable_id, ())
        quoted.append((text_of(run), cite(0, unit, run[0].start, run[-1].end, record)))
    return quoted


def _pick(index: GraphIndex, question: str, texts: list[str], n: int, floor: Floor = ANSWERS) -> list[int]:
    """The n texts that answer best and repeat least; none below the floor.

    A question in another script than the Latin one, which vectors know little of, needs a word in common.
    """
    if n < 1 or not texts:
        return []
    vectors, words = index.embed(texts), [content_words(text) for text in texts]
    background = make_background(question, index.embed, words, vectors)
    relevance = score_relevance(background, words, vectors)
    asked = asked_words(question)
    n_shared = np.array([len(asked & held) for held in words])
    # Who says all that was asked is near, however common those words are in a corpus that repeats itself.
    says_all = (n_shared == len(asked)) & (len(asked) > 1)
    relevance = np.where(says_all, np.maximum(relevance, SAYS_ALL), relevance)
    worth = relevance * np.array([telling(text) for text in texts])
    n_needed = max(floor.words * len(asked), 0 if is_latin(question) else 1)
    worth[(relevance < floor.relevance) | (n_shared < n_needed)] = 0.0
    near = np.flatnonzero((worth > 0) & (worth >= RELATIVE_FLOOR * worth.max())).tolist()
    picked = rank_sentences([texts[i] for i in near], vectors[near], n, background.vector, worth[near])
    return [near[i] for i in picked]


def _runs(sentences: Sequence[Sentence]) -> list[list[Sentence]]:
    """Sentences in reading order, grouped where nothing stands between them."""
    runs: list[list[Sentence]] = []
    for sentence in sentences:
        last = runs[-1][-1] if runs else None
        if last and last.unit.id == sentence.unit.id and not sentence.unit.text[last.end : sentence.start].strip():
            runs[-1].append(sentence)
        else:
            runs.append([sentence])
    return runs


# ---------------------------------------------------------------------------------------------------------------global


def write_global_answer(index: GraphIndex, question: str, points: Sequence[Point], selection: Selection) -> Answer:
    """What each point's finding says, best first, shortened to the sentences nearest to the question, with evidence."""
    if not index.snapshot.n_rows("documents"):
        return Answer(EMPTY_INDEX)
    if not points:
        return _answer_from_texts(index, question, selection)
    finder = EvidenceFinder(index)
    vector = index.embed([question])[0]
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
        lines.append(f"- {_heading(point, said)}{' '.join(said)}")
    return Answer("\n".join(lines), tuple(citations))


def _answer_from_texts(index: GraphIndex, question: str, selection: Selection) -> Answer:
    """Where no report says anything: passages of the text units that basic search finds, or what was looked at."""
    looked = f"{_count(len(selection.rated), 'community report')} looked at, {len(selection.kept)} of them read"
    units = select_basic_context(index, question, index.settings.basic_search).text_units
    said = _answer_from_units(index, question, units, index.settings.answers.max_sentences)
    if said:
        return _compose(
            f"Extractive answer (no model): {looked}, but no finding answers. The texts themselves say:", said
        )
    return _say_what_was_looked_at(index, question, units, f"{looked}, then {_count(len(units), 'text unit')}")


def _introduce(points: Sequence[Point], selection: Selection) -> str:
    read = _count(len(selection.kept), "community report")
    if selection.is_overview:
        return f"Extractive answer (no model): findings of the {read} ranked highest, best first."
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


def _statements(index: GraphIndex, point: Point, vector: np.ndarray) -> list[tuple[str, str]]:
    """The sentences of a finding nearest to the question, in order, each with the citations that stand for it."""
    everything = f"{point.summary} {point.explanation}"
    statements = [
        (_close(" ".join(said[start:end].split())), citation or everything)
        for said, citation in split_cited(point.explanation or point.summary)
        for start, end in split_sentences(said)
    ]
    statements = [(said, citation) for said, citation in statements if is_sentence(said)] or statements
    texts = [said for said, _ in statements]
    picked = rank_sentences(texts, index.embed(texts), MAX_SENTENCES_PER_POINT, vector)
    return [statements[i] for i in sorted(picked)]
