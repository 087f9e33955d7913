"""What a capital letter is worth: the document's own use of a word, and how English uses it.

The second is read off the bundled token ranks: a tokenizer's vocabulary is ordered by frequency, so " Future" standing
far behind " future" says that the word is common, and " London" far before " london" that it is a name.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import regex

from graphrag_pipeline.indexing.name_cues import (
    ACRONYMS,
    GIVEN_NAMES,
    HONORIFICS,
    LONERS,
    OPENER_SUFFIXES,
    OPENERS,
    STOPWORDS,
)
from graphrag_pipeline.indexing.phrases import Phrase, Piece
from graphrag_pipeline.tokens import load_encoding

_LOWER = regex.compile(r"(?<![\p{L}'’])\p{Ll}[\p{L}\p{M}]++")
_COMMON_SHARE = 2  # times as often without a capital as with one
_ENOUGH_CAPITALS = 4  # in one document: its own use of a word outweighs the language's
_COMMON_RATIO = 2.2  # between the ranks of a word with and without a capital


@lru_cache(maxsize=1 << 16)
def is_common_word(key: str) -> bool:
    """Whether English writes a word (upper case here) mostly without a capital; False for words it hardly has."""
    small, capital = _token_rank(key.lower()), _token_rank(key.capitalize())
    return small is not None and (capital is None or capital > _COMMON_RATIO * small)


def _token_rank(word: str) -> int | None:
    tokens = load_encoding().encode_ordinary(" " + word)
    return tokens[0] if len(tokens) == 1 else None


class Evidence:
    """What the document's own use of capitals says about a word."""

    def __init__(self, text: str, phrases: list[Phrase]) -> None:
        self.lower: Counter[str] = Counter(_LOWER.findall(text))
        self.capital: Counter[str] = Counter()
        self.alone: Counter[str] = Counter()
        self.family_names: set[str] = set()
        for phrase in phrases:
            if not phrase.is_heading:
                self._count(phrase)

    def _count(self, phrase: Phrase) -> None:
        titled = False
        for piece in phrase.pieces:
            skipped = phrase.is_weak and piece.start == 0 and not self._begins_name(phrase)
            if not piece.is_connector and (titled or not skipped) and not self.is_emphasis(piece):
                self.capital[piece.key] += 1
            titled = piece.key in HONORIFICS
        if len(phrase.pieces) == 1:
            self.alone[phrase.pieces[0].key] += not phrase.is_weak
        elif phrase.pieces[-2].key in GIVEN_NAMES | HONORIFICS and not phrase.pieces[-2].is_possessive:
            self.family_names.add(phrase.pieces[-1].key)

    def _begins_name(self, phrase: Phrase) -> bool:
        """Whether the first word of a sentence goes with the second: "Apple Inc. sued" but not "Old Marley said"."""
        first, *rest = phrase.pieces
        if not rest or rest[0].is_connector or first.is_possessive:
            return False
        return not (self.may_open(first.key) or first.key in STOPWORDS or first.key in LONERS)

    def is_emphasis(self, piece: Piece) -> bool:
        """A word in capitals that the document also writes in lower case: shouted, no acronym."""
        if len(piece.text) < 2 or not piece.text.isupper() or "." in piece.text or piece.key in ACRONYMS:
            return False
        return self.lower[piece.text.lower()] > 0 or len(piece.text) > 6

    def is_name(self, key: str) -> bool:
        return self.capital[key] > 0 and self.capital[key] >= self.lower[key.lower()]

    def is_common(self, piece: Piece) -> bool:
        """A word mostly written without a capital, by the document or by English: "Man" in one pious sentence."""
        key = piece.key
        if key in GIVEN_NAMES or key in ACRONYMS or key in self.family_names:
            return False
        if self.lower[key.lower()] > _COMMON_SHARE * self.capital[key]:
            return True
        return self.alone[key] < _ENOUGH_CAPITALS and not piece.text.isupper() and is_common_word(key)

    def is_cut_off(self, key: str) -> bool:
        """Whether the document knows a longer word that this one begins: "Scro--"."""
        return self.capital[key] == 1 and any(word != key and word.startswith(key) for word in self.capital)

    def is_given_name(self, key: str) -> bool:
        return key in GIVEN_NAMES and not self.lower[key.lower()]

    def may_open(self, key: str) -> bool:
        """Whether a capitalised word may stand at the start of a sentence without being part of the name after it."""
        if self.is_name(key) or key in HONORIFICS or key in GIVEN_NAMES:
            return False
        return key in OPENERS or self.lower[key.lower()] > 0 or key.endswith(OPENER_SUFFIXES)
