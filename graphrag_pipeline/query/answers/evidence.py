"""Evidence: the passage of a text unit that supports a statement about records, and its citation.

A citation's quote is verbatim text of a document; its offsets follow from its text unit's.

Support of a statement by a text, judged by words.

A statement is supported by `WINDOW` neighbouring sentences if they have at least `LEAST_SHARE` of its content words,
all its numbers, and all its names. The rule is about words, not about meaning: it can support a false sentence made of
true words, and miss a paraphrase.

Keep out: choosing what an
answer says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.cited_records import CitedRecord, CitedRecords
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, stem
from graphrag_pipeline.query.results import Citation, TextUnitRecord
from graphrag_pipeline.query.selection.passages import (
    BULLET,
    MIN_PASSAGE_WORDS,
    Sentence,
    passages_of,
    sentences_of,
    text_of,
)
from graphrag_pipeline.query.understanding.relevance import make_background, score_relevance
from graphrag_pipeline.text.languages import detect_language
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentence_forms import LEANING, count_words, find_words, fold, is_sentence, leans_on_context
from graphrag_pipeline.text.sentences import split_sentences

LEAST_SHARE = 0.65
WINDOW = 2
"""Neighbouring sentences that support one together."""
MIN_WORDS = 2
"""Content words of a statement below which words show nothing."""
SOURCES = r"(?:data|sources?|passages?|reports?|records?|documents?|texts?|contexts?|index|information|points?)"
"""Words for what was read."""
_LEAD_IN = late_re(rf"(?:according to|based on|from|in)\s(?:[a-z]+\s){{0,3}}{SOURCES}\b[^,]{{0,40}},\s*", re.IGNORECASE)


@dataclass(frozen=True)
class StatedWords:
    """The words of a statement.

    Attributes:
        words: stems of its content words.
        musts: those of its names (words with a capital, but for the first) and numbers, which support must have.
    """

    words: frozenset[str]
    musts: frozenset[str]

    @classmethod
    def read(cls, statement: str, has_names: bool) -> StatedWords:
        """Return the words of a statement.

        Args:
            has_names: whether capitals mark names in its language (`writes_names_with_capitals`).
        """
        bare = _LEAD_IN.sub("", statement, count=1)
        written = find_words(bare)
        words = content_words(bare)
        named = (word for word in written[1:] if has_names and word[0].isupper() and word != "I")
        numbers = (word for word in written if any(map(str.isdigit, word)))
        return cls(words, frozenset(stem(fold(word)) for word in (*named, *numbers)) & words)

    def about(self, subject: str) -> StatedWords:
        """Return the words of a statement of which support must have those of its subject, too."""
        return StatedWords(self.words, self.musts | (content_words(subject) & self.words))

    def is_supported_by(self, windows: Iterable[frozenset[str]]) -> bool:
        """Return whether one of the runs of sentences of a text (`read_windows`) supports the statement."""
        if len(self.words) < MIN_WORDS:
            return False
        least = LEAST_SHARE * len(self.words)
        return any(self.musts <= window and len(self.words & window) >= least for window in windows)


def writes_names_with_capitals(text: str) -> bool:
    """Return whether capitals mark names in the language of a text; in German every noun has one."""
    return detect_language(text) != "de"


def read_windows(text: str, title: str = "") -> list[frozenset[str]]:
    """Return the stems of the content words of each run of `WINDOW` sentences, and of the title."""
    sentences = [content_words(text[start:end]) for start, end in split_sentences(text)] if text else []
    of_title = content_words(title)
    return [frozenset().union(of_title, *sentences[i : i + WINDOW]) for i in range(max(len(sentences), 1))]


MAX_UNITS_PER_STATEMENT = 5
MAX_UNITS_SEARCHED = 200
INTRODUCTION, MIN_INTRODUCTION_WORDS = 0.8, 8
_LISTS = late_re(rf"[^\W_]:\s+(?:{BULLET}|1[.)])\s")


def rate_form(text: str) -> float:
    """Return how informative a text is by its form, 0-1: a heading, a question or a shout of three words is not.

    A text that leans on its context is less informative, but not by much: an answer may begin with "He was ...". A list
    with the sentence that introduces it is as good as a sentence. A long introduction alone ("It is 3 times faster than
    the old one:") says something, too.
    """
    introduces = text.endswith(":") and count_words(text) >= MIN_INTRODUCTION_WORDS
    form = 1.0 if is_sentence(text) or _LISTS.search(text) else INTRODUCTION if introduces else 0.5
    asks = 1.0 if "." in text or not text.rstrip("'\"\u2019\u201d)]_ ").endswith(("!", "?")) else 0.6
    leans = LEANING**0.5 if leans_on_context(text) else 1.0
    return form * asks * leans * min(1.0, (count_words(text) + 2) / MIN_PASSAGE_WORDS)


def cite(number: int, unit: TextUnitRecord, start: int, end: int, record: CitedRecord) -> Citation:
    """Return a citation of a record whose quote is a span of a text unit.

    A span that begins in the table header that the text unit repeats, and ends behind it, is quoted from the rows on:
    the header stands elsewhere in the document.
    """
    document_start, document_end = unit.place_of(start, end)
    if start < unit.n_header < end:
        start = unit.n_header
    return Citation(
        number=number,
        kind=record.kind,
        id=record.id,
        human_readable_id=record.human_readable_id,
        text_unit_id=unit.id,
        document_id=unit.document_id,
        document_title=unit.document_title,
        quote=unit.text[start:end],
        start=document_start,
        end=document_end,
        text_unit=unit.human_readable_id,
        document_path=unit.document_path,
    )


def _record_of(row: int, cited: Sequence[CitedRecord]) -> CitedRecord:
    return next(record for record in cited if row in record.text_unit_rows)


class EvidenceFinder(CitedRecords):
    """Finds the passage behind a statement, and keeps the text units it has read for the next statement.

    Args:
        index: the index of the records that statements are about.
        excerpts: excerpts of text units; evidence of a text unit that has some is looked for in them alone.
    """

    _index: IndexReader

    def __init__(self, index: IndexReader, excerpts: Sequence[TextUnitRecord] = ()) -> None:
        super().__init__(index)
        rows = index.snapshot.rows_of("text_units", [unit.id for unit in excerpts]).tolist() if excerpts else []
        self._excerpts = list(zip(rows, excerpts, strict=True))
        self._passages: dict[int, list[list[Sentence]]] = {}
        self._vectors: dict[int, np.ndarray] = {}
        self._words: dict[int, list[frozenset[str]]] = {}
        self._forms: dict[int, np.ndarray] = {}

    def resolve(self, citations: str, report_row: int) -> list[CitedRecord]:
        """Return the records that a text cites (`read_cited`); if it cites none, the report."""
        return self.read_cited(citations) or [self.read_report(report_row)]

    def find(self, statement: str, cited: Sequence[CitedRecord]) -> tuple[list[Sentence], CitedRecord] | None:
        """Return the passage that supports a statement best, and the first cited record that it belongs to.

        A statement that is itself a sentence of a text unit (an extractive finding) finds that sentence. Other
        statements find the passage of highest relevance to them, among the text units that most of the cited records
        share. Without text units, return None.
        """
        return self._find_among(statement, cited, self._order_units(" ".join(statement.split()), cited)[0])

    def find_support(
        self, statement: str, subject: str, cited: Sequence[CitedRecord]
    ) -> tuple[list[Sentence], CitedRecord] | None:
        """Return what `find` does if a text unit has the statement, else the best passage that supports it, or None.

        A passage supports what a model wrote if it has the statement's words, all words of the subject
        that it has among them.
        """
        rows, has_it = self._order_units(" ".join(statement.split()), cited)
        if has_it:
            return self._find_among(statement, cited, rows)
        stated = StatedWords.read(statement, writes_names_with_capitals(statement)).about(subject)
        candidates = self._read_passages(rows)
        is_support = [stated.is_supported_by(read_windows(text_of(passage))) for _, passage in candidates]
        if not any(is_support):
            return None
        row, passage = candidates[int(np.argmax(np.where(is_support, self._rate(statement, rows), -np.inf)))]
        return passage, _record_of(row, cited)

    def _find_among(
        self, statement: str, cited: Sequence[CitedRecord], rows: Sequence[int]
    ) -> tuple[list[Sentence], CitedRecord] | None:
        folded = " ".join(statement.split())
        candidates = self._read_passages(rows)
        if not candidates:
            return None
        verbatim = [(row, passage[:1]) for row, passage in candidates if passage[0].folded == folded]
        row, passage = verbatim[0] if verbatim else candidates[int(np.argmax(self._rate(statement, rows)))]
        return passage, _record_of(row, cited)

    def _read_passages(self, rows: Sequence[int]) -> list[tuple[int, list[Sentence]]]:
        for row in rows:
            self._read_unit(row)
        return [(row, passage) for row in rows for passage in self._passages[row]]

    def _rate(self, statement: str, rows: Sequence[int]) -> np.ndarray:
        """Return how relevant each passage of some text units is to a statement."""
        words = [held for row in rows for held in self._words[row]]
        vectors = np.vstack([self._vectors[row] for row in rows])
        background = make_background(statement, self._index.embed_passages, words, vectors)
        forms = np.concatenate([self._forms[row] for row in rows])
        return score_relevance(background, words, vectors) * forms

    def _order_units(self, folded: str, cited: Sequence[CitedRecord]) -> tuple[list[int], bool]:
        """Return rows of text units to read, and whether they hold the statement.

        That is the first that holds it, else the most cited, then in reading order. Each record that a report cites
        counts as a citation.
        """
        parts = [part for record in cited for part in (record.through or (record,))]
        votes = Counter(row for record in parts for row in record.text_unit_rows)
        order = sorted(votes, key=lambda row: (-votes[row], row))[:MAX_UNITS_SEARCHED]
        texts = self._index.snapshot.take("text_units", order, ["text"])
        verbatim = [row for row, unit in zip(order, texts, strict=True) if folded in " ".join(unit["text"].split())]
        return (verbatim[:1], True) if verbatim else (order[:MAX_UNITS_PER_STATEMENT], False)

    def _read_unit(self, row: int) -> None:
        if row not in self._passages:
            units = [excerpt for of_row, excerpt in self._excerpts if of_row == row]
            units = units or list(records.read_text_units(self._index, np.array([row]), np.zeros(1)))
            self._passages[row] = [passage for unit in units for passage in passages_of(sentences_of(unit))]
            texts = [text_of(passage) for passage in self._passages[row]]
            self._vectors[row] = self._index.embed_passages(texts)
            self._words[row] = [content_words(text) for text in texts]
            self._forms[row] = np.array([rate_form(text) for text in texts])
