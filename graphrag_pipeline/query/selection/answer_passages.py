"""Passages that answer a question: windows of text units, ranked by words and vectors.

A window is a run of neighbouring sentences, list items or table rows of one section, of `MIN_WORDS` to `MAX_WORDS`
words where the section has as many. It carries the headings above it, and a table row carries the header of its table.

    score = BM25 / largest BM25 + s * z(cosine of the window to the question)       (`hybrid_ranking.fuse`, weight 1)
          + DOCUMENT_WEIGHT * mean score of the best windows of its document

BM25 counts the words of the title and the headings with `TITLE_WEIGHT`, since a section is about its heading without
repeating it. idf is that of the windows that are compared. Vectors are the bundled static ones. Unlike whole text
units, windows are short enough for vectors to weigh as much as words. They know Latin scripts only.

A question that has no word but names ("Who is Ana?") does not tell the windows that name her apart. So the words of the
entity's description count, too, with `DESCRIPTION_WEIGHT`, and its vector is added to the question's.

    confidence = (coverage + largest cosine) / 2

where `coverage` is the share of the idf of the question's words that one of the best windows has. A question with less
than `MIN_CONFIDENCE` is not answered by them. `graphrag_pipeline_tests/bench/judged.py` measures both. Keep
out: the choice of text units, and the layout of an answer.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import (
    content_words,
    find_identifiers,
    is_latin,
    is_overview_word,
    repeats_question,
    topic_words,
)
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.selection.hybrid_ranking import fuse
from graphrag_pipeline.query.understanding.named_documents import asks_for_document, find_named_documents
from graphrag_pipeline.text.document_names import DOCUMENT
from graphrag_pipeline.text.extractive import is_near_repeat, words_of
from graphrag_pipeline.text.languages import detect_language, is_other_language
from graphrag_pipeline.text.sentence_forms import count_words, find_words, fold
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline.text.stems import stem
from graphrag_pipeline.text.structure import (
    CODE,
    FRONT_MATTER,
    HIDDEN,
    LIST,
    TABLE,
    TITLE,
    Block,
    Headings,
    ReadableText,
    read_structure,
)
from graphrag_pipeline.text.word_ranks import UNKNOWN_RANK, load_prose_ranks

MIN_WORDS, MAX_WORDS = 60, 100
"""Words of a window: enough to be read alone, and few enough to be read at a glance."""
MAX_CHARACTERS = 600
"""The same in a text without words, such as one of signs alone."""
TITLE_WEIGHT, TITLE_WORDS = 0.5, 10.0
"""What a word of the title counts among the words of a window, and the whole title in its vector."""
DESCRIPTION_WEIGHT = 0.25
"""Of a word of a description beside one of the question: descriptions only decide where the question cannot."""
DOCUMENT_WEIGHT = 0.6
"""Of the score of a window's document: where several windows match, the document is about the question."""
K1, B = 1.2, 0.75
"""The usual parameters of BM25."""
MIN_SHARE = 0.3
"""Least score of a passage, as a share of the best one's."""
MIN_CONFIDENCE = 0.4
"""The highest floor that declines no question of the development half of the bench `judged` that the texts answer."""
MAX_ENGLISH_RANK = 3_000
"""Rank in English prose below which a word of a question counts as English; few words of other languages have one."""
N_BEST = 3
"""Best windows that are looked at for the coverage, and for the score of a document."""

_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")


@dataclass(frozen=True)
class AnswerPassage:
    """A window of a text unit.

    Attributes:
        start, end: character offsets in the text of the text unit.
        text: as a reader sees it, on one line.
        headings: above it, the outermost first.
        parts: (kind of block, text) of its sentences, list items, table rows and lines of code; () if not known.
    """

    unit: TextUnitRecord
    start: int
    end: int
    text: str
    headings: tuple[str, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """Title of the document and the headings, such as "Runbook > Rollback"."""
        parts = [self.unit.document_title, *self.headings]
        return " > ".join(part for place, part in enumerate(parts) if part and part not in parts[:place])

    @property
    def title_in_document(self) -> str:
        """The headings alone; the title of the document without any."""
        return self.title.removeprefix(f"{self.unit.document_title} > ")

    def overlaps(self, other: AnswerPassage) -> bool:
        """Return whether another passage shows a part of the same document, or of the same text unit."""
        if self.unit.document_id != other.unit.document_id:
            return False
        (start, end), (first, last) = (item.unit.place_of(item.start, item.end) for item in (self, other))
        if start is None or end is None or first is None or last is None:
            return self.unit.id == other.unit.id and self.start < other.end and other.start < self.end
        return start < last and first < end


@dataclass(frozen=True)
class RankedPassages:
    """The passages that answer a question best.

    Attributes:
        passages: best first.
        confidence: that they answer, 0-1.
        absent: words of the question that no window has, in the order of the alphabet.
        unknown: identifiers of the question that no text has, such as a ticket that does not exist.
    """

    passages: tuple[AnswerPassage, ...] = ()
    confidence: float = 0.0
    absent: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def is_answer(self) -> bool:
        """Whether the passages are near enough to the question to answer it, and all its identifiers are known."""
        return bool(self.passages) and self.confidence >= MIN_CONFIDENCE and not self.unknown


def rank_passages(index: IndexReader, question: str, units: Sequence[TextUnitRecord], n: int) -> RankedPassages:
    """Return the n best windows of text units that do not overlap or repeat each other.

    Sentences that are the question itself are left out.
    """
    scored = _score(index, question, units)
    if scored is None:
        return RankedPassages()
    least = MIN_SHARE * scored.scores.max()
    best = (passage for passage, score in scored.in_order() if score >= least)
    passages, confidence = tuple(_pick(best, n)), scored.confidence
    asked = find_identifiers(question)
    unknown = _find_unknown(asked, units)
    # Passages about the identifiers of a question are an answer, whatever its other words. A word of another language
    # is absent anyway.
    if (asked and not unknown) or (passages and _is_foreign(question, passages)):
        confidence = max(confidence, MIN_CONFIDENCE)
    return RankedPassages(passages, confidence, scored.absent, unknown)


def _is_foreign(question: str, passages: Sequence[AnswerPassage]) -> bool:
    """Return whether a question about English texts is in another language: most of its words are not English."""
    written = _WORD.findall(question)
    words = [word.lower() for place, word in enumerate(written) if word.islower() or (not place and word.isalpha())]
    ranks = load_prose_ranks()
    n_english = sum(ranks.get(word, UNKNOWN_RANK) < MAX_ENGLISH_RANK for word in words)
    if 2 * n_english >= len(words) and not is_other_language(question, "en"):
        return False
    return detect_language(" ".join(passage.text for passage in passages)) == "en"


def _find_unknown(asked: Sequence[str], units: Sequence[TextUnitRecord]) -> tuple[str, ...]:
    """Return the asked identifiers that no text unit has in its text, title or path."""
    texts = [f"{unit.text} {unit.document_title} {unit.document_path}".casefold() for unit in units] if asked else []
    return tuple(name for name in asked if not any(name.casefold() in text for text in texts))


def order_passages(index: IndexReader, question: str, units: Sequence[TextUnitRecord]) -> Iterator[AnswerPassage]:
    """Yield all windows of text units, best first; none if the question has no word to look for."""
    scored = _score(index, question, units)
    if scored is not None:
        yield from (passage for passage, _ in scored.in_order())


@dataclass(frozen=True)
class _Scored:
    """The windows of some text units, in reading order, with their scores, float (windows,)."""

    windows: list[tuple[_Section, tuple[int, int]]]
    scores: np.ndarray
    confidence: float
    absent: tuple[str, ...]

    def in_order(self) -> Iterator[tuple[AnswerPassage, float]]:
        """Yield the windows with their scores, best first, ties in reading order."""
        for place in np.argsort(-self.scores, kind="stable").tolist():
            section, window = self.windows[place]
            yield section.passage(*window), self.scores[place]


def _score(index: IndexReader, question: str, units: Sequence[TextUnitRecord]) -> _Scored | None:
    """Score all windows of text units; None if there is no window, or no word to look for."""
    asked = _Asked.read(index, question)
    sections = [section for unit in units for section in _sections(unit, question)]
    if not sections or not asked.words:
        return None
    frequencies = _count(sections, asked)
    gains, held = score_words(frequencies)
    n_asked = len(asked.words)
    by_words = gains[:n_asked].sum(axis=0) + DESCRIPTION_WEIGHT * gains[n_asked:].sum(axis=0)
    frequencies, held = frequencies[:n_asked], held[:n_asked]
    near = _measure_nearness(index, f"{question} {asked.description}", sections)
    scores = fuse(by_words, near, 1.0)
    scores = scores + DOCUMENT_WEIGHT * _rate_documents(sections, scores)
    named = find_named_documents(index, question)
    if named:
        weights = np.array([named.get(section.unit.document_id, 0.0) for section in sections for _ in section.windows])
        is_text = [not section.is_labels for section in sections for _ in section.windows]
        read_whole = asks_for_document(index, question)
        scores = np.where(weights > 0, weights + is_text, scores) if read_whole else scores + weights
    best = np.argsort(-scores, kind="stable")[:N_BEST].tolist()
    n_holding = (frequencies > 0).sum(axis=1).tolist()
    absent = {word for word, n_held in zip(asked.words, n_holding, strict=True) if not n_held}
    return _Scored(
        [(section, window) for section in sections for window in section.windows],
        scores,
        _measure_confidence(held, near, best),
        tuple(
            word
            for word in sorted(words_of(question))
            if stem(word) in absent and not (named and is_overview_word(word))
        ),
    )


def _rate_documents(sections: Sequence[_Section], scores: np.ndarray) -> np.ndarray:
    """Return for each window the mean score of the best `N_BEST` windows of its document."""
    _, documents = np.unique([one.unit.document_id for one in sections for _ in one.windows], return_inverse=True)
    means = [np.mean(np.sort(scores[documents == number])[-N_BEST:]) for number in range(documents.max() + 1)]
    return np.array(means)[documents]


def show_span(unit: TextUnitRecord, start: int, end: int) -> AnswerPassage:
    """Return a span of a text unit as a passage."""
    headings = tuple(title for _, title in unit.headings_at(start))
    text = " ".join(read_structure(unit.text).readable.between(start, end).split())
    return AnswerPassage(unit, start, end, text, headings)


def cut_passages(unit: TextUnitRecord) -> Iterator[AnswerPassage]:
    """Yield the windows of a text unit, in reading order."""
    for section in _sections(unit, ""):
        for first, last in section.windows:
            yield section.passage(first, last)


@dataclass(frozen=True)
class _Shown:
    """A sentence, an item of a list, a row of a table or a line of code: offsets in the text unit, and what is read.

    Attributes:
        text: on one line.
        kind: of its block.
        indent: white space before it, of a line of code.
    """

    start: int
    end: int
    text: str
    kind: str
    indent: str = ""


@dataclass(frozen=True)
class _Section:
    """What a text unit says under one heading, or the rows of one table, or the labels of a document."""

    unit: TextUnitRecord
    parts: list[_Shown]
    headings: tuple[str, ...] = ()
    is_labels: bool = False

    @property
    def title(self) -> str:
        return ". ".join([self.unit.document_title, *self.headings])

    @property
    def folders(self) -> str:
        """The folders of the document, which often say its kind, such as `runbooks`."""
        return " ".join((self.unit.document_path or "").split("/")[:-1])

    @cached_property
    def sizes(self) -> list[float]:
        return [count_words(part.text) for part in self.parts]

    @cached_property
    def windows(self) -> list[tuple[int, int]]:
        """The first and last sentence of each window; the last window ends the section."""
        found = []
        for first in range(len(self.parts)):
            last, n_words = first, self.sizes[first]
            while last + 1 < len(self.sizes) and n_words < MIN_WORDS and n_words + self.sizes[last + 1] <= MAX_WORDS:
                last += 1
                n_words += self.sizes[last]
            found.append((first, last))
            if last + 1 == len(self.sizes):
                break
        return found

    def passage(self, first: int, last: int) -> AnswerPassage:
        shown = self.parts[first : last + 1]
        start, end, text = shown[0].start, shown[-1].end, " ".join(part.text for part in shown)
        if first == last and self.sizes[first] > MAX_WORDS:  # one endless sentence, or code
            words = list(_WORD.finditer(text))
            n_kept = words[MAX_WORDS - 1].end() if len(words) > MAX_WORDS else MAX_CHARACTERS
            end = min(start + n_kept, end)
            text = text[:n_kept]
            return AnswerPassage(self.unit, start, end, text, self.headings)
        parts = tuple((part.kind, part.indent + part.text) for part in shown)
        return AnswerPassage(self.unit, start, end, text, self.headings, parts)


def _sections(unit: TextUnitRecord, question: str) -> Iterator[_Section]:
    """Yield the parts of a text unit that no heading and no beginning or end of a table divides, by sentences."""
    structure = read_structure(unit.text)
    first = structure.headings_at(0)
    section: _Section | None = None
    place: tuple[Headings, int | None] | None = None
    for number, block in enumerate(structure.blocks):
        is_own = block.kind in (TABLE, FRONT_MATTER) or bool(block.labels)
        here = (block.headings, number if is_own else None)
        if section and (here != place or block.kind == TITLE):
            yield section
            section = None
        if block.kind in (TITLE, HIDDEN):
            continue
        for shown in _read_block(block, unit.text):
            if section and repeats_question(question, shown.text):
                yield section
                section = None
            elif not repeats_question(question, shown.text):
                headings = tuple(title for _, title in unit.above(block.headings, first))
                section = section or _Section(unit, [], headings, is_own and block.kind != TABLE)
                section.parts.append(shown)
        place = here
    if section:
        yield section


def _read_block(block: Block, written: str) -> Iterator[_Shown]:
    """Yield the sentences of a block of a written text, and whole rows and items of at most `MAX_WORDS` words."""
    for piece in block.pieces:
        is_whole = block.kind in (TABLE, LIST, CODE) and count_words(piece.text) <= MAX_WORDS
        readable = ReadableText(piece.text, piece.runs)
        for start, end in [(0, len(piece.text))] if is_whole else split_sentences(piece.text):
            text = " ".join(piece.text[start:end].split())
            if text and (source := readable.source_of(start, end)):
                yield _Shown(*source, text, block.kind, _indent_of(written, source[0]) if block.kind == CODE else "")


def _indent_of(text: str, place: int) -> str:
    """Return the white space between the beginning of a line and a place; "" if there is other text."""
    before = text[text.rfind("\n", 0, place) + 1 : place]
    return before if before.isspace() else ""


@dataclass(frozen=True)
class _Asked:
    """The words of a question, and the names of the entities in it.

    A text that has any written form of an entity has all words of the question's name for it: "Scrooge" says "Ebenezer
    Scrooge", and "SLO" says "service level objective".

    Attributes:
        words: stems, in the order of the alphabet.
        names: pattern of all written forms of an entity, or of an identifier, and the places in `words` of its name in
            the question.
        description: of the entities, if the question has no other words; else "".
    """

    words: list[str]
    names: list[tuple[re.Pattern[str], list[int]]]
    description: str = ""

    @cached_property
    def all_words(self) -> list[str]:
        """The words of the question, then those of the description."""
        return [*self.words, *sorted(content_words(self.description).difference(self.words))]

    @classmethod
    def read(cls, index: IndexReader, question: str) -> _Asked:
        identifiers = sorted(map(fold, find_identifiers(question)))
        words = [*sorted(topic_words(question)), *identifiers]
        names, descriptions = [], []
        for rows in index.names.take_apart(question).names:
            columns = ["title", "names", "description", "type"]
            # Another name of a document, such as a part of its title, names a topic in a text.
            found = [one for one in index.snapshot.take("entities", list(rows), columns) if one["type"] != DOCUMENT]
            if not found:
                continue
            descriptions += [entity["description"] or "" for entity in found]
            forms = {fold(form) for entity in found for form in (entity["title"], *(entity["names"] or ()))}
            own = {stem(word) for form in forms for word in find_words(form)}
            written = sorted(filter(None, map(re.escape, forms)), key=lambda form: (-len(form), form))
            places = [place for place, word in enumerate(words) if word in own or word in forms]
            names.append((re.compile(rf"(?<!\w)(?:{'|'.join(written)})(?!\w)"), places))
        is_named = {place for _, places in names for place in places} == set(range(len(words)))
        for name in identifiers:
            names.append((re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)"), [words.index(name)]))
        return cls(words, names, " ".join(descriptions) if is_named else "")

    def count(self, text: str) -> np.ndarray:
        """Return how often a text has each of `all_words`, float (words,)."""
        folded = fold(text)
        held = Counter(map(stem, find_words(folded)))
        counts = np.array([held[word] for word in self.all_words], dtype=np.float64)
        for pattern, places in self.names:
            if places and (n_named := len(pattern.findall(folded))):
                counts[places] = np.maximum(counts[places], n_named)
        return counts


def _count(sections: Sequence[_Section], asked: _Asked) -> np.ndarray:
    """Return how often windows have each of all words, in relation to their length, float (words, windows).

    Words of the title and the headings count alike in long and in short windows, as in BM25F (Robertson and Zaragoza
    2009), since they do not grow with the window.
    """
    columns, titles, lengths = [], [], []
    for section in sections:
        rows = np.array([asked.count(part.text) for part in section.parts])
        before = np.vstack([np.zeros(len(asked.all_words)), rows.cumsum(axis=0)])  # so that a window is a difference
        of_title = TITLE_WEIGHT * (asked.count(f"{section.title}. {section.folders}") > 0)
        columns += [before[last + 1] - before[first] for first, last in section.windows]
        titles += [of_title] * len(section.windows)
        lengths += [sum(section.sizes[first : last + 1]) for first, last in section.windows]
    norm = 1 - B + B * np.array(lengths, dtype=np.float64) / max(float(np.mean(lengths)), 1.0)
    return np.array(columns).T / norm + np.array(titles).T


def _measure_nearness(index: IndexReader, question: str, sections: Sequence[_Section]) -> np.ndarray:
    """Return the cosine of each window to the question; a window's vector is the sum of those of its sentences."""
    if not is_latin(question):
        return np.zeros(sum(len(section.windows) for section in sections))
    texts = [text for section in sections for text in (section.title, *(part.text for part in section.parts))]
    asked, *vectors = index.embed_passages([question, *texts])
    sums, start = [], 0
    for section in sections:
        above, own = vectors[start], np.array(vectors[start + 1 : start + 1 + len(section.parts)])
        start += 1 + len(section.parts)
        sums += [
            np.array(section.sizes[first : last + 1]) @ own[first : last + 1] + TITLE_WORDS * above
            for first, last in section.windows
        ]
    rows = np.array(sums)
    return rows @ asked / np.maximum(np.linalg.norm(rows, axis=1), 1e-9)


def score_words(frequencies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return BM25 of each word in each window, and its idf where the window has it, both float (words, n).

    Args:
        frequencies: of each word in each window, in relation to its length, float (words, n).
    """
    n_holding = (frequencies > 0).sum(axis=1)
    idf = np.log(1 + (frequencies.shape[1] - n_holding + 0.5) / (n_holding + 0.5))[:, None]
    return idf * frequencies * (K1 + 1) / (frequencies + K1), np.where(frequencies > 0, idf, 0.0)


def _measure_confidence(held: np.ndarray, near: np.ndarray, best: Sequence[int]) -> float:
    """Return the mean of coverage and cosine of the best windows; the coverage alone if no vector says anything.

    A word that no window has counts as much as one that a single window has.
    """
    most = math.log(1 + (held.shape[1] - 0.5) / 1.5) or 1.0
    weights = held.max(axis=1)
    total = float(np.where(weights > 0, weights, most).sum())
    coverage = float(held[:, list(best)].sum(axis=0).max(initial=0.0)) / total
    return (coverage + float(near.max())) / 2 if near.any() else coverage


def _pick(best: Iterable[AnswerPassage], n: int) -> Iterator[AnswerPassage]:
    """Yield the first n passages that do not overlap or nearly repeat an earlier one."""
    picked: list[AnswerPassage] = []
    words: list[frozenset[str]] = []
    for passage in best:
        if len(picked) == n:
            return
        if any(passage.overlaps(other) for other in picked):
            continue
        own = words_of(passage.text)
        if own and not is_near_repeat(own, words):
            picked.append(passage)
            words.append(own)
            yield passage
