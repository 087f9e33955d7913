"""Sentences and passages of text units, with their offsets.

A passage is a few neighbouring sentences, long enough to be read alone. Keep out: the choice of passages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentence_forms import count_words
from graphrag_pipeline.text.sentences import split_sentences

MIN_PASSAGE_WORDS = 18
MAX_PASSAGE_SENTENCES = 3
MAX_PASSAGE_WORDS = 90
"""Most words of a passage with a list."""
BULLET = r"[-*+\u2022]"
"""A pattern of the sign before an item of a list without numbers."""
_ITEM = late_re(rf"(?:{BULLET}|\d{{1,3}}[.)])\s")
_NUMBERED_HEADING = late_re(r"\s*\d+(?:\.\d+)*\.?[ \t]+[A-Z][^\n.!?;]{1,70}\n(?=[A-Z\"'\u2018\u201c])")
"""The line "3. Solar roof", which ends with no full stop."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of a text unit: `unit.text[start:end] == text`."""

    unit: TextUnitRecord
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.unit.text[self.start : self.end]

    @property
    def folded(self) -> str:
        """Text of the sentence on one line."""
        return " ".join(self.text.split())

    @property
    def is_item(self) -> bool:
        """Whether it is, or begins with, an item of a list."""
        return _ITEM.match(self.text) is not None

    @property
    def is_introduction(self) -> bool:
        """Whether it introduces what follows: "It has two modes:"."""
        return self.text.endswith(":")


def sentences_of(unit: TextUnitRecord) -> list[Sentence]:
    """Return the sentences of a text unit, without outer white space; a numbered heading is one of its own."""
    found = []
    for start, end in split_sentences(unit.text):
        heading = _NUMBERED_HEADING.match(unit.text, start, end)
        for first, last in ((start, heading.end()), (heading.end(), end)) if heading else ((start, end),):
            text = unit.text[first:last]
            if text.strip():
                found.append(Sentence(unit, first + len(text) - len(text.lstrip()), first + len(text.rstrip())))
    return found


def passages_of(sentences: Sequence[Sentence]) -> Iterator[list[Sentence]]:
    """Yield the passage that starts at each sentence.

    It ends with the paragraph, at `MIN_PASSAGE_WORDS` words or after `MAX_PASSAGE_SENTENCES` sentences. One that comes
    to an introduction and its list ends with the list, or with the last item that fits into `MAX_PASSAGE_WORDS` words.
    """
    for first in range(len(sentences)):
        passage = [sentences[first]]
        n_words = count_words(passage[0].folded)
        is_in_list = False
        for following in sentences[first + 1 :]:
            n_further = count_words(following.folded)
            is_listed = following.is_item and (is_in_list or passage[-1].is_introduction)
            if is_listed:
                ends = n_words + n_further > MAX_PASSAGE_WORDS
            else:
                gap = following.unit.text[passage[-1].end : following.start]
                is_full = len(passage) >= MAX_PASSAGE_SENTENCES or n_words >= MIN_PASSAGE_WORDS
                ends = is_in_list or is_full or gap.count("\n") > 1
            if ends:
                break
            is_in_list = is_listed
            passage.append(following)
            n_words += n_further
        yield passage


def text_of(passage: Sequence[Sentence]) -> str:
    """Return neighbouring sentences on one line, with a space where their text unit has white space."""
    return " ".join(passage[0].unit.text[passage[0].start : passage[-1].end].split())
