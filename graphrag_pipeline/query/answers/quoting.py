"""Quotations that answer a question: passages of text units and sentences of descriptions, chosen and cited.

    worth = relevance (`understanding/relevance.py`) x form (`evidence.rate_form`)
            x `NAMES_NO_ANSWER`, if the text names nothing of the kind that the question asks for
            (`understanding/question_analysis.py`) x `ONLY_NAMES`, if it shares a name with the question and no other
            word of it

If a question is about names alone, every text with these names shares all its words. Then sentences of the entities'
descriptions are lifted, and the form counts once more.

A passage loses the sentences at its ends that are not about the question. Neighbours become one quotation, or several
even ones of at most `MAX_PASSAGE_SENTENCES` sentences and about `MAX_PASSAGE_WORDS` words.

Texts below the `Floor`, or below a share of the best, are left out. Of the rest the best that repeat each other least
are taken (`text/extractive.py`). Documents are in the order of their best passages, and the passages of a document in
reading order. Keep out: the text around quotations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from graphrag_pipeline.query.answers.evidence import EvidenceFinder, cite, rate_form
from graphrag_pipeline.query.cited_records import CitedRecord
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_latin, repeats_question
from graphrag_pipeline.query.results import Citation, Context, TextUnitRecord
from graphrag_pipeline.query.selection.passages import (
    MAX_PASSAGE_SENTENCES,
    MAX_PASSAGE_WORDS,
    Sentence,
    passages_of,
    runs_without_question,
    text_of,
)
from graphrag_pipeline.query.understanding.question_analysis import QuestionAnalysis
from graphrag_pipeline.query.understanding.relevance import make_background, score_relevance
from graphrag_pipeline.text.extractive import pick_diverse
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentence_forms import (
    count_words,
    has_open_quote,
    has_pronoun,
    is_sentence,
    leans_on_context,
    weigh_form,
)
from graphrag_pipeline.text.sentences import split_sentences

Quote = tuple[str, Citation]
"""A statement and its citation, not yet numbered."""


@dataclass(frozen=True)
class Floor:
    """Least relevance, and least share of the question's words, of a passage that is quoted; both 0-1."""

    relevance: float
    words: float


ANSWERS = Floor(0.34, 0.0)
IS_NEAREST = Floor(0.25, 0.5)
"""The floor of a passage that is quoted as the nearest where none answers."""
SAYS_ALL = 0.5
"""Least relevance of a passage that holds every word of a question of two words or more."""
SAYS_ALL_AND_ANSWERS = 0.65
"""The same if it also names an answer of the right kind."""
RELATIVE_FLOOR = 0.65
"""A passage worth less than this share of the best one is left out."""
NAMES_NO_ANSWER = 0.8
NO_NUMBER = 0.6
"""The same for a number, which a text with the answer can hardly leave out."""
DESCRIBES = 0.9
"""Least relevance of a sentence of the description if a question is about names alone."""
ONLY_NAMES = 0.75
MAX_GRAPH_STATEMENTS = 2
IN_OTHER_WORDS, CARRIED = 0.85, 0.7
"""Weights of a word of the question that a text says by another one, and of one that stands before it, to its own."""
SUBJECT_WORDS = 4
"""First words of a sentence that have its subject."""
_PRONOUN_FIRST = late_re(r"\W*(?:It|They|He|She)\b(?! is \w+ (?:that|to)\b)")
N_BEFORE = 6
"""Sentences before a passage that may name what it goes on about: "Owner Jakob Mendel said ..."."""
N_BEHIND = 3
"""Sentences behind a question in a text that may answer it."""
_ASKS = late_re(r"\?[\W_]*\Z")


@dataclass(frozen=True)
class _Words:
    """Words of the question that a text has itself, those that it says in any words, and those before it."""

    own: frozenset[str]
    said: frozenset[str]
    before: frozenset[str] = frozenset()

    @classmethod
    def read(cls, analysis: QuestionAnalysis, text: str) -> _Words:
        own = analysis.words & analysis.own_words_in(text)
        return cls(own, own | analysis.other_words_in(text))

    @classmethod
    def join(cls, parts: Sequence[_Words], before: frozenset[str]) -> _Words:
        return cls(
            frozenset().union(*(one.own for one in parts)), frozenset().union(*(one.said for one in parts)), before
        )


_NO_WORDS = _Words(frozenset(), frozenset())


def quote_passages(
    index: IndexReader,
    analysis: QuestionAnalysis,
    units: Sequence[TextUnitRecord],
    n: int,
    quoted: Sequence[Quote] = (),
    floor: Floor = ANSWERS,
) -> list[Quote]:
    """Return at most n passages that answer best, ordered as by `_runs`, without those in `quoted`.

    A passage is a sentence and, if it is short, those behind it, so that "Marley was dead." keeps its context.
    """
    runs_of = (run for unit in units for run in runs_without_question(unit, analysis.question))
    known = {text for text, _ in quoted}
    passages, words, behind = [], [], []
    for run in runs_of:
        read = [_Words.read(analysis, sentence.text) for sentence in run]
        subjects = _subjects_before(analysis, run)
        for i, (passage, before) in enumerate(zip(passages_of(run), _words_before(analysis, run, read), strict=True)):
            if not any(sentence.folded in known for sentence in passage):
                passages.append(passage)
                words.append(_Words.join([*read[i : i + len(passage)], subjects[i]], before))
                behind.append(run[i + len(passage) :][:N_BEHIND])
    picked = _pick_texts(index, analysis, [text_of(passage) for passage in passages], words, n, floor)
    trimmed = [_trim(analysis, _go_on(analysis, passages[i], behind[i])) for i in picked]
    runs = _runs(trimmed)
    while len(runs) > n:  # a long run was divided: drop the parts that answer least
        trimmed.pop()
        runs = _runs(trimmed)
    return [_quote(run) for run in runs]


def _go_on(analysis: QuestionAnalysis, passage: Sequence[Sentence], behind: Sequence[Sentence]) -> list[Sentence]:
    """Return a passage that names no answer with the sentences behind it up to the first one that does, if they fit.

    "The captain of a ferry was sentenced to six years on Thursday. Rashid Omari had let too many people board." That is
    the next sentence of the paragraph. What answers a question in the text ("'Was I apprenticed here?'") may be
    `N_BEHIND` sentences behind it, in the next paragraphs, too.
    """
    whole, asks = list(passage), bool(_ASKS.search(passage[-1].folded))
    if analysis.answer is None or analysis.is_answered_by(text_of(passage)):
        return whole
    for sentence in behind if asks else behind[:1]:
        gap = sentence.unit.text[whole[-1].end : sentence.start]
        whole.append(sentence)
        if (gap.count("\n") > 1 and not asks) or sum(count_words(one.folded) for one in whole) > MAX_PASSAGE_WORDS:
            break
        if analysis.is_answered_by(sentence.folded):
            return whole
    return list(passage)


def _words_before(
    analysis: QuestionAnalysis, run: Sequence[Sentence], read: Sequence[_Words]
) -> Iterator[frozenset[str]]:
    """Yield the words of the question before each sentence: in at most `N_BEFORE` sentences, the heading, the title."""
    title = _Words.read(analysis, run[0].unit.document_title).said if run else frozenset()
    heading: frozenset[str] = frozenset()
    for i, sentence in enumerate(run):
        yield title.union(heading, *(words.said for words in read[max(i - N_BEFORE, 0) : i]))
        if read[i].said and not is_sentence(sentence.folded):
            heading = read[i].said


def _subjects_before(analysis: QuestionAnalysis, run: Sequence[Sentence]) -> list[_Words]:
    """Return the words of the question in the subject that a pronoun at the beginning of each sentence goes on about.

    "Gout is the most common arthritis. It is caused by crystals." The subject is in the first words of a sentence.
    """
    subjects, subject, end = [], _NO_WORDS, 0
    for sentence in run:
        if sentence.unit.text[end : sentence.start].count("\n") > 1:
            subject = _NO_WORDS
        goes_on = bool(_PRONOUN_FIRST.match(sentence.folded))
        subjects.append(subject if goes_on else _NO_WORDS)
        if not goes_on:
            subject = _Words.read(analysis, " ".join(sentence.folded.split()[:SUBJECT_WORDS]))
        end = sentence.start + len(sentence.text.rstrip())
    return subjects


def quote_runs(passages: Sequence[Sequence[Sentence]]) -> list[Quote]:
    """Return passages ordered as by `_runs`; neighbours become one quotation."""
    return [_quote(run) for run in _runs(passages)]


def quote_whole(sentences: Sequence[Sentence]) -> Quote:
    """Return neighbouring sentences that make one statement, undivided."""
    return _quote(list(sentences))


def _trim(analysis: QuestionAnalysis, passage: Sequence[Sentence]) -> list[Sentence]:
    """Return a passage without the sentences at its ends that are not about the question; if all are not, the whole.

    A following sentence may be about the same person as "he", and a leading one may name that person: both stay. A
    quotation inside the passage is not broken, and a list stays whole, since its items may be the answer.
    """
    says = [_says_something(analysis, sentence.folded) for sentence in passage]
    if not any(says):
        return list(passage)
    first, last = says.index(True), len(says) - 1
    while first and leans_on_context(passage[first].folded):
        first -= 1
    while not says[last] and not has_pronoun(passage[last].folded):
        last -= 1
    while last + 1 < len(passage) and passage[last + 1].is_item:
        last += 1
    trimmed = list(passage[first : last + 1])
    is_broken = has_open_quote(text_of(trimmed)) and not has_open_quote(text_of(passage))
    return list(passage) if is_broken else trimmed


def _says_something(analysis: QuestionAnalysis, text: str) -> bool:
    """Return whether a sentence has a word of the question, or names an answer."""
    return bool(analysis.words & analysis.words_in(text)) or (
        analysis.answer is not None and analysis.is_answered_by(text)
    )


def state_graph(
    index: IndexReader, analysis: QuestionAnalysis, context: Context
) -> tuple[list[Quote], list[tuple[str, CitedRecord]]]:
    """Return sentences from descriptions of the entities that a question names and of relationships in the network.

    A sentence of a text unit in the context is left to the passages, which show its context.

    Returns:
        The sentences that the texts have or support, each with its citation; those that a model wrote and no passage
        supports, each with the record that it describes.
    """
    statements = [one for one in _describe(context) if not repeats_question(analysis.question, one[-1])]
    texts = [f"{subject}: {text}" for _, _, subject, text in statements]
    in_context = {unit.id for unit in context.text_units}
    finder = EvidenceFinder(index)
    quotes, unsupported = [], []
    words = [_Words.read(analysis, text) for text in texts]
    for i in _pick_texts(index, analysis, texts, words, MAX_GRAPH_STATEMENTS, ANSWERS):
        kind, record_id, subject, text = statements[i]
        cited = finder.read_record(kind, record_id)
        found = finder.find_support(text, subject, [cited])
        if found is None:
            unsupported.append((text, cited))
        elif not _is_left_to_passages(text, found[0], in_context):
            passage, _ = found
            quotes.append((text, cite(0, passage[0].unit, passage[0].start, passage[-1].end, cited)))
    return quotes, unsupported


def _describe(context: Context) -> list[tuple[str, str, str, str]]:
    """Return (kind, record id, subject, sentence) of every description that may be quoted."""
    named = [entity for entity in context.entities if entity.match == "name"]
    titles = {entity.title for entity in named}
    described = [("entity", entity.id, entity.title, entity.description) for entity in named] + [
        ("relationship", pair.id, f"{pair.source} {pair.target}", pair.description)
        for pair in context.relationships
        if pair.is_in_network and titles & {pair.source, pair.target}
    ]
    return [
        (kind, record_id, subject, " ".join(text[start:end].split()))
        for kind, record_id, subject, text in described
        for start, end in split_sentences(text)
    ]


def _is_left_to_passages(text: str, passage: Sequence[Sentence], in_context: set[str]) -> bool:
    is_verbatim = passage[0].folded == text
    return is_verbatim and passage[0].unit.id in in_context


def _pick_texts(
    index: IndexReader, analysis: QuestionAnalysis, texts: list[str], words: Sequence[_Words], n: int, floor: Floor
) -> list[int]:
    """Return the n texts that answer best and repeat least; none below the floor.

    A text that says what is asked also answers for the words before it.
    Vectors know little of scripts other than Latin, so a question in another script needs a word in common.
    """
    if n < 1 or not texts:
        return []
    vectors, own, said = index.embed_passages(texts), [one.own for one in words], [one.said for one in words]
    background = make_background(analysis.question, index.embed_passages, _count_once(words), vectors, analysis.words)
    rest = analysis.words - analysis.name_words
    asked = rest or (analysis.words if analysis.asks_number else rest)
    further = [
        dict.fromkeys(one.before, CARRIED if asked & one.said else 0.0) | dict.fromkeys(one.said, IN_OTHER_WORDS)
        for one in words
    ]
    n_shared = np.array([len(held) for held in said])
    names_answer = np.array([analysis.is_answered_by(text) for text in texts])
    relevance = _lift(
        score_relevance(background, own, vectors, further), n_shared == len(analysis.words), names_answer, analysis
    )
    if analysis.description:
        is_described = np.array([analysis.is_described_by(text) for text in texts])
        relevance = np.where(is_described, np.maximum(relevance, DESCRIBES), relevance)
        relevance *= np.sqrt([weigh_form(text) for text in texts])
    only_names = np.array([bool(rest) and not rest & held for held in said])
    worth = relevance * np.array([rate_form(text) for text in texts])
    worth *= np.where(names_answer, 1.0, NO_NUMBER if analysis.asks_number else NAMES_NO_ANSWER) * np.where(
        only_names, ONLY_NAMES, 1.0
    )
    n_needed = max(floor.words * len(analysis.words), 0 if is_latin(analysis.question) else 1)
    n_own = np.array([len(held) for held in own])
    worth[(relevance < floor.relevance) | (n_own < n_needed)] = 0.0
    near = np.flatnonzero((worth > 0) & (worth >= RELATIVE_FLOOR * worth.max())).tolist()
    return [near[i] for i in pick_diverse([texts[i] for i in near], vectors[near], worth[near], n)]


def _count_once(words: Sequence[_Words]) -> list[frozenset[str]]:
    """Return the words by which texts are counted: in other words only those that no text has itself."""
    literal = frozenset().union(*(one.own for one in words))
    return [one.own | (one.said - literal) for one in words]


def _lift(
    relevance: np.ndarray, says_all: np.ndarray, names_answer: np.ndarray, analysis: QuestionAnalysis
) -> np.ndarray:
    """Raise the relevance of texts with all words of the question: such words may be common in a repetitive corpus."""
    if len(analysis.words) < 2:
        return relevance
    least = np.where(names_answer & (analysis.answer is not None), SAYS_ALL_AND_ANSWERS, SAYS_ALL)
    return np.where(says_all, np.maximum(relevance, least), relevance)


def _runs(passages: Sequence[Sequence[Sentence]]) -> list[list[Sentence]]:
    """Return the sentences of passages, adjacent ones grouped, long runs divided.

    Documents are in the order of their first passages, and the sentences of a document in reading order.
    """
    documents: dict[str, int] = {}
    for passage in passages:
        documents.setdefault(passage[0].unit.document_id, len(documents))
    chosen = {
        (documents[s.unit.document_id], s.unit.human_readable_id, s.start): s for passage in passages for s in passage
    }
    runs: list[list[Sentence]] = []
    for _, sentence in sorted(chosen.items(), key=lambda item: item[0]):
        last = runs[-1][-1] if runs else None
        is_next_list = last is not None and last.is_item and sentence.is_introduction
        is_adjacent = (
            last and last.unit.id == sentence.unit.id and not last.unit.text[last.end : sentence.start].strip()
        )
        if is_adjacent and not is_next_list:
            runs[-1].append(sentence)
        else:
            runs.append([sentence])
    return [part for run in runs for part in _divide(run)]


def _divide(run: Sequence[Sentence]) -> list[list[Sentence]]:
    """Divide a run into as few even parts as hold no more than a quotation may; a list counts by its words alone."""
    n_words = sum(count_words(sentence.folded) for sentence in run)
    if n_words <= MAX_PASSAGE_WORDS and any(sentence.is_item for sentence in run):
        return [list(run)]
    n_parts = max(math.ceil(len(run) / MAX_PASSAGE_SENTENCES), math.ceil(n_words / MAX_PASSAGE_WORDS))
    n_parts = min(n_parts, len(run))
    cuts = [len(run) * part // n_parts for part in range(n_parts + 1)]
    return [list(run[start:end]) for start, end in pairwise(cuts)]


def _quote(run: Sequence[Sentence]) -> Quote:
    unit = run[0].unit
    record = CitedRecord("text_unit", unit.id, unit.human_readable_id, ())
    return text_of(run), cite(0, unit, run[0].start, run[-1].end, record)
