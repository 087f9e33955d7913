"""Entities by the names in a question.

Static vectors blur single names. So a name that a question contains in full counts before any vector, in any script.
Simplified and traditional Chinese characters are one.
Keep out: vectors, and what a name's entity is about.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.query.question import is_asking_word, is_function_word
from graphrag_pipeline.storage.lookups import NAME_WORD, find_all_rows, find_rows, name_arrays, name_key
from graphrag_pipeline.text.languages import simplify
from graphrag_pipeline.text.late_patterns import late_re

MAX_NAME_WORDS = 8
_MAX_KNOWN = 64
"""Questions whose names are kept."""

_SPACE = late_re(r"\s+")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u201b\u02bc`\u00b4", "'"))


@dataclass(frozen=True)
class NamedSpan:
    """Words of a question that are the name of an entity.

    Attributes:
        start, end: of the words, end exclusive.
        rows: of the entities with this name.
        is_capital: one of the words starts with a capital, a digit or a letter of a script without capitals.
    """

    start: int
    end: int
    rows: tuple[int, ...]
    is_capital: bool


@dataclass(frozen=True)
class NamedQuestion:
    """A question split into the names of entities and the other words.

    Attributes:
        names: rows of the entities with each name, in reading order.
        words: the other words, folded, in order; without function words.
    """

    names: tuple[tuple[int, ...], ...]
    words: tuple[str, ...]


class NameIndex:
    """Rows of entities by name.

    Args:
        titles: one per entity.
        names: the written forms of each entity, besides its title.
    """

    def __init__(self, titles: Sequence[str], names: Iterable[Sequence[str]]) -> None:
        self._hashes, self._rows = name_arrays(titles, names)
        self._known: dict[str, tuple[list[str], list[NamedSpan]]] = {}  # no `lru_cache`: a method's is a cycle

    @classmethod
    def stored(cls, hashes: np.ndarray, rows: np.ndarray) -> NameIndex:
        """Return the index of a snapshot, from its arrays (see `storage.lookups`)."""
        index = cls([], [])
        index._hashes, index._rows = hashes, rows
        return index

    def find(self, question: str) -> list[int]:
        """Return the rows of the entities that the question names in full: longest name first, then in reading order.

        A name inside a longer one that is found (CHRISTMAS in GHOST OF CHRISTMAS PAST) does not count, and neither does
        one made of stop words. A leading article and a possessive make no difference.
        """
        return list(dict.fromkeys(row for span in self._read(question)[1] for row in span.rows))

    def find_by_key(self, name: str) -> list[int]:
        """Return the rows of the entities with a name, by its case-folded words without a leading article."""
        key = name_key(name)
        return find_all_rows(self._hashes, self._rows, key) if key else []

    def take_apart(self, question: str) -> NamedQuestion:
        """Split a question into the names of entities and its other words.

        If the question writes one name with a capital, words in small letters are not names: "the director of film
        Blood Street" wants a director, it does not name the concept DIRECTOR. Names do not overlap.
        """
        words, found = self._read(question)
        is_covered = [False] * len(words)
        spans = []
        has_capital = any(span.is_capital for span in found)
        for span in found:
            if span.is_capital == has_capital and not any(is_covered[span.start : span.end]):
                is_covered[span.start : span.end] = [True] * (span.end - span.start)
                spans.append(span)
        rest = [word.casefold() for word, covered in zip(words, is_covered, strict=True) if not covered]
        return NamedQuestion(
            names=tuple(span.rows for span in sorted(spans, key=lambda span: span.start)),
            words=tuple(word for word in rest if not is_function_word(word)),
        )

    def _read(self, question: str) -> tuple[list[str], list[NamedSpan]]:
        """Return the words of a question and its names; the steps of a search read the same question."""
        known = self._known.get(question)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            words = _read_words(question)
            known = self._known[question] = words, self.find_spans(words)
        return known

    def find_spans(self, written: Sequence[str]) -> list[NamedSpan]:
        """Return the names among the words of a question as it writes them: longest first, then in reading order."""
        words = [simplify(normalize_title(word).casefold()) for word in written]
        spans = [
            (start, start + length)
            for length in range(min(MAX_NAME_WORDS, len(words)), 0, -1)
            for start in range(len(words) - length + 1)
            if not all(map(_cannot_be_name, words[start : start + length]))
        ]
        known = self._look_up([words[start:end] for start, end in spans])
        is_covered = [False] * len(words)
        found = []
        for (start, end), rows in zip(spans, known, strict=True):
            if rows and not all(is_covered[start:end]):
                is_capital = any(not word[0].islower() for word in written[start:end])
                found.append(NamedSpan(start, end, rows, is_capital))
                is_covered[start:end] = [True] * (end - start)
        return found

    def _look_up(self, names: Sequence[list[str]]) -> list[tuple[int, ...]]:
        """Return the rows of the entities with each name, else of those with the name without its possessive."""
        bare = [[*name[:-1], name[-1].removesuffix("'s").removesuffix("'")] for name in names]
        keys = [" ".join(name) for name in (*names, *bare)]
        is_known = find_rows(self._hashes, self._rows, keys) >= 0
        written, plain = np.split(is_known, 2)
        return [
            tuple(find_all_rows(self._hashes, self._rows, keys[i if written[i] else i + len(names)]))
            if written[i] or plain[i]
            else ()
            for i in range(len(names))
        ]


def _cannot_be_name(word: str) -> bool:
    return is_function_word(word) or is_asking_word(word)


def _read_words(question: str) -> list[str]:
    """Return words as they are written, with quotes and compatibility characters folded as in names."""
    folded = unicodedata.normalize("NFKC", question).translate(_APOSTROPHES)
    return NAME_WORD.findall(_SPACE.sub(" ", folded))
