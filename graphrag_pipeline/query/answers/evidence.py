"""Evidence: the passage of a text unit that supports a statement about records, and its citation.

A citation's quote is verbatim text of a document; its offsets follow from its text unit's.
Keep out: choosing what an answer says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.cited_records import CitedRecord, CitedRecords
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words
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
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentence_forms import LEANING, count_words, is_sentence, leans_on_context

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
        first_page=unit.first_page,
        last_page=unit.last_page,
        document_date=unit.document_date,
    )


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
        folded = " ".join(statement.split())
        rows = self._order_units(folded, cited)
        candidates = self._read_passages(rows)
        if not candidates:
            return None
        verbatim = [(row, passage[:1]) for row, passage in candidates if passage[0].folded == folded]
        row, passage = verbatim[0] if verbatim else candidates[int(np.argmax(self._rate(statement, rows)))]
        return passage, next(record for record in cited if row in record.text_unit_rows)

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

    def _order_units(self, folded: str, cited: Sequence[CitedRecord]) -> list[int]:
        """Return rows of text units to read: the first that holds the statement, else the most cited.

        Ties are in reading order. Each record that a report cites counts as a citation.
        """
        parts = [part for record in cited for part in (record.through or (record,))]
        votes = Counter(row for record in parts for row in record.text_unit_rows)
        order = sorted(votes, key=lambda row: (-votes[row], row))[:MAX_UNITS_SEARCHED]
        texts = self._index.snapshot.take("text_units", order, ["text"])
        verbatim = [row for row, unit in zip(order, texts, strict=True) if folded in " ".join(unit["text"].split())]
        return verbatim[:1] or order[:MAX_UNITS_PER_STATEMENT]

    def _read_unit(self, row: int) -> None:
        if row not in self._passages:
            units = [excerpt for of_row, excerpt in self._excerpts if of_row == row]
            units = units or list(records.read_text_units(self._index, np.array([row]), np.zeros(1)))
            self._passages[row] = [passage for unit in units for passage in passages_of(sentences_of(unit))]
            texts = [text_of(passage) for passage in self._passages[row]]
            self._vectors[row] = self._index.embed_passages(texts)
            self._words[row] = [content_words(text) for text in texts]
            self._forms[row] = np.array([rate_form(text) for text in texts])
