"""Mentions of names in a text: as whole words, by all content words of a name, or by half of them.

Words are compared by their stems (`question.py`), so that a plural of a name is found. Keep out: which texts are
searched, and what is cut around a mention (`excerpts.py`).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from graphrag_pipeline.query.question import content_words
from graphrag_pipeline.text.extractive import words_of
from graphrag_pipeline.text.languages import is_unspaced, joins, simplify
from graphrag_pipeline.text.sentences import split_sentences

MAX_SENTENCES = 3
"""Neighbouring sentences in which all words of a name must stand to count as a mention."""

Span = tuple[int, int]
"""Character offsets in a text."""


def find_mentions(text: str, names: Sequence[str]) -> list[Span]:
    """Return the places of names in a text, in reading order: whole words in any case; longer names first."""
    written = {simplify(" ".join(name.split())) for name in names if name.strip()}
    folded = _fold(text)
    is_same_length = len(folded) == len(text)
    found = [span for name in written for span in _places(folded, name.lower())] if is_same_length else []
    if not found:  # more white space between words, or letters whose case changes the length
        possible = [n for n in written if not is_same_length or all(word in folded for word in n.lower().split())]
        pattern = "|".join(_pattern_of(name) for name in sorted(possible, key=lambda name: (-len(name), name)))
        found = [place.span() for place in re.finditer(pattern, simplify(text), re.IGNORECASE)] if pattern else []
    kept: list[Span] = []
    for start, end in sorted(found, key=lambda span: (span[0], -span[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


@dataclass(frozen=True)
class WordedText:
    """A text with the offsets of its sentences and the content words of each."""

    text: str
    sentences: tuple[Span, ...]
    words: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, text: str) -> WordedText:
        """Return a text divided into sentences and words."""
        sentences = tuple(split_sentences(text))
        return cls(text, sentences, tuple(content_words(_without_accents(text[slice(*span)])) for span in sentences))

    def span_of(self, first: int, last: int) -> Span:
        """Return the span of some sentences without outer white space."""
        return strip_span(self.text, self.sentences[first][0], self.sentences[last][1])


def find_words(worded: WordedText, wanted: Sequence[frozenset[str]]) -> Span | None:
    """Return the first of the shortest runs of sentences that has all words of one of some names.

    Args:
        wanted: the content words of each name (`words_of_name`).
    """
    in_text = frozenset().union(*worded.words)
    possible = [words for words in wanted if words <= in_text]
    if not possible:
        return None
    for n_sentences in range(1, MAX_SENTENCES + 1):
        for first in range(len(worded.sentences) - n_sentences + 1):
            together = frozenset().union(*worded.words[first : first + n_sentences])
            if any(words <= together for words in possible):
                return worded.span_of(first, first + n_sentences - 1)
    return None


def find_half(texts: Sequence[WordedText], wanted: Sequence[frozenset[str]]) -> tuple[int, Span] | None:
    """Return the sentence that tells most of one of some names, if it has at least half of its words.

    That is the sentence with the largest part of a name's words, then the one with the rarest words: a word in few of
    the sentences tells more than one in many. The first of equal ones is taken. Words of one letter do not count, nor
    do names in scripts without spaces, whose letters are in many other words.

    Args:
        wanted: the content words of each name (`words_of_name`).

    Returns:
        The position of the text, and the span of the sentence.
    """
    names = [words for name in wanted if (words := _long_words(name))]
    counts = Counter(word for text in texts for held in text.words for word in held)
    n_sentences = sum(len(text.words) for text in texts)
    best, found = (0.0, 0.0), None
    for place, text in enumerate(texts):
        for at, held in enumerate(text.words):
            for words in names:
                shared = words & held
                if 2 * len(shared) < len(words):
                    continue
                telling = (
                    len(shared) / len(words),
                    sum(math.log(n_sentences / counts[word]) for word in sorted(shared)),
                )
                if telling > best:
                    best, found = telling, (place, text.span_of(at, at))
    return found


def _long_words(words: frozenset[str]) -> frozenset[str]:
    """Return the words of more than one letter; none if the name has words of a script without spaces."""
    if any(is_unspaced(letter) for word in words for letter in word):
        return frozenset()
    return frozenset(word for word in words if len(word) > 1)


def words_of_name(name: str) -> Iterator[frozenset[str]]:
    """Yield the words of a name and, of "Scrooge's nephew (Fred)", those outside and inside the brackets."""
    plain = _without_accents(name)
    for part in dict.fromkeys((plain, *re.split(r"[()]", plain))):
        if words := content_words(part) or frozenset(words_of(part)):
            yield words


def is_named(text: str, names: Sequence[str]) -> bool:
    """Return whether a text has one of the names as whole words, in any case; white space is as in the name."""
    return bool(find_named(text, [names]))


def find_named(text: str, names_of: Sequence[Sequence[str]]) -> list[int]:
    """Return the positions of the entities, each with its names, that a text names as `is_named` says."""
    folded = _fold(text)
    return [
        entity
        for entity, names in enumerate(names_of)
        if any(True for name in names for _ in _places(folded, _fold_name(name)))
    ]


@lru_cache(8192)
def _fold_name(name: str) -> str:
    return simplify(" ".join(name.lower().split()))


def _fold(text: str) -> str:
    return simplify(text.lower().replace("\n", " ").replace("\t", " ").replace("\r", " "))


def _places(folded: str, name: str) -> Iterator[Span]:
    start = folded.find(name) if name else -1
    while start >= 0:
        end = start + len(name)
        if not (joins(folded[start - 1 : start], name[0]) or joins(name[-1], folded[end : end + 1])):
            yield start, end
        start = folded.find(name, start + 1)


def _pattern_of(name: str) -> str:
    """Return a pattern for a name as whole words; white space in the text may differ."""
    before, after = (r"(?<![^\W_])" if _is_spaced(name[0]) else "", r"(?![^\W_])" if _is_spaced(name[-1]) else "")
    return before + r"\s+".join(map(re.escape, name.split())) + after


def _is_spaced(letter: str) -> bool:
    return letter.isalnum() and not is_unspaced(letter)


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


def strip_span(text: str, start: int, end: int) -> Span:
    """Return a span without outer white space."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
