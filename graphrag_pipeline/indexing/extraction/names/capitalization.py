"""Evidence for names in capital letters: the document's own use of a word, and its use in English.

The use in English is read from the bundled token ranks. The vocabulary of a tokenizer is ordered by frequency. If "
Future" has a much higher rank than " future", the word is common; if " London" has a much lower rank than " london", it
is a name.

Keep out: phrases (`phrases.py`) and decisions about names (`finder.py`).
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import pairwise

from graphrag_pipeline.indexing.extraction.names.cues import (
    ACRONYMS,
    ADJECTIVE_SUFFIXES,
    COMMANDS,
    DAYS,
    DESCRIBING_HONORIFICS,
    EVENT_TAILS,
    GIVEN_NAMES,
    HONORIFICS,
    JOINED_TAILS,
    LONERS,
    MONTHS,
    OPENER_SUFFIXES,
    OPENERS,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    PLACE_TAILS,
    STOPWORDS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places, load_towns
from graphrag_pipeline.indexing.extraction.names.phrases import Phrase, PhrasePiece
from graphrag_pipeline.text.late_patterns import late_regex
from graphrag_pipeline.text.tokens import load_encoding

_LOWER = late_regex(r"(?<![\p{L}'’])\p{Ll}[\p{L}\p{M}]++")
_BEFORE_FAMILY_NAME = GIVEN_NAMES | HONORIFICS
_NAMED_AS_MONTHS = GIVEN_NAMES & MONTHS
_BEFORE_MONTH = words("""
in of by since until till from to last this next early late mid during before after for and between each every on
""")
_ONE_OF_A_KIND = frozenset({"A", "AN", "ANY", "EVERY", "EACH", "WHAT", "SOME", "NO"})
_NOT_COUNTED = GIVEN_NAMES | STOPWORDS | LONERS | ACRONYMS
_TAILS = JOINED_TAILS | PLACE_TAILS | ORGANIZATION_TAILS | EVENT_TAILS | DAYS
_MIN_ORNATE = 4  # common words with a capital inside sentences
_MIN_ORNATE_SHARE = 0.12  # of all words that stand alone with a capital
_COMMON_SHARE = 2  # times as often without a capital as with one
_MAX_SHORT = 4  # letters of an acronym that the document also writes in lower case
_MOSTLY_UPPER = 4  # times as often in capitals as in lower case
_MIN_FIELDS = 3  # words that follow the name of a data type
_DATA_TYPE = late_regex(r"\p{Lu}{3,}\d+")
_MIN_RARE = 5  # letters
_OF_NOUNS = (
    *OPENER_SUFFIXES,
    "S",
    "ION",
    "ISM",
    "ITY",
    "NESS",
    "MENT",
    "IA",
    "ANCE",
    "ENCE",
    "OLOGY",
    "PATHY",
    "ER",
    "EN",
)
_ABOUT_NAME = late_regex(
    r",\s(?:the|an?|who|which|whose|based|once)\s|\sof\s\p{Lu}\p{L}+(?:\sand)?\s|\s(?:had|has|said|says|will|would|declined|refused|did)\s\p{Ll}"
)
_ENOUGH_CAPITALS = 4  # in one document: its own use of a word outweighs the language's
_PROPER_RATIO = 4.0
_MAX_FOREIGN_RANK = 100_000  # of a word in lower case that English hardly writes
_MAX_COMPOUND_RANK = 20_000  # of the parts of "lunchtime"
_COMMON_RATIO = 2.2  # between the ranks of a word with and without a capital


@lru_cache(maxsize=1 << 16)
def is_common_word(key: str) -> bool:
    """Whether English writes a word (in upper case here) mostly without a capital; False for rare words."""
    small, capital = token_rank(key.lower()), token_rank(key.capitalize())
    if small is None or (small > _MAX_FOREIGN_RANK and capital is None and _is_foreign(key)):
        return False  # "Molde", which is a word of other languages
    return capital is None or capital > _COMMON_RATIO * small


@lru_cache(maxsize=1 << 16)
def is_proper_word(key: str) -> bool:
    """Whether English writes a word (in upper case here) mostly with a capital; False for rare words."""
    small, capital = token_rank(key.lower()), token_rank(key.capitalize())
    return len(key) > 3 and capital is not None and (small is None or small > _PROPER_RATIO * capital)


@lru_cache(maxsize=1 << 16)
def token_rank(word: str) -> int | None:
    """Return the frequency rank of a word, 0 = commonest; None for a word of several tokens, which is rare."""
    tokens = load_encoding().encode_ordinary(" " + word)
    return tokens[0] if len(tokens) == 1 else None


class CapitalizationEvidence:
    """Counts of the words of one document with and without a capital."""

    def __init__(self, text: str, phrases: list[Phrase], small_words: frozenset[str] = frozenset()) -> None:
        self.lower: Counter[str] = Counter(_LOWER.findall(text))
        self.lower.update(word for word in small_words if not self.lower[word])
        self.capital: Counter[str] = Counter()
        self.alone: Counter[str] = Counter()
        self.openings: Counter[str] = Counter()  # words that begin sentences
        self.upper: Counter[str] = Counter()  # words of two to four letters in capitals
        self.kinds: Counter[str] = Counter()  # after "a" or "any"
        self.after_the: Counter[str] = Counter()
        self.pairs: set[tuple[str, str]] = set()  # neighbours in one name
        self.sure_pairs: set[tuple[str, str]] = set()  # those inside sentences
        self.family_names: set[str] = set()
        self.sure_family_names: set[str] = set()  # those after a given name that is not also a month
        self.ranks: set[str] = set()  # capitals before a given name: "DS Nicola Farrant"
        self.month_people: set[int] = (
            set()
        )  # offsets where a month may be a given name: "April Jones", not "in April Jones"
        self.is_english = is_english = not small_words or "the" in small_words
        self.upper.update(
            piece.key
            for phrase in phrases
            if not phrase.is_heading
            for piece in phrase.pieces
            if _is_short_acronym(piece)
        )
        for phrase in phrases:
            if not phrase.is_heading:
                self._count(phrase)
                if is_english:
                    self._count_article(text, phrase)
                    self._count_month(text, phrase)
        self.is_ornate = is_english and self._is_ornate()
        self.data_types = self._find_data_types()

    def _count_month(self, text: str, phrase: Phrase) -> None:
        if phrase.pieces[0].key in _NAMED_AS_MONTHS:
            before = text[max(phrase.start - 12, 0) : phrase.start].split()
            if before and before[-1].upper() not in _BEFORE_MONTH:
                self.month_people.add(phrase.start)

    def _count_article(self, text: str, phrase: Phrase) -> None:
        *articles, word = phrase.pieces
        if len(articles) > 1:
            return
        before = text[max(phrase.start - 6, 0) : phrase.start].split()
        article = articles[0].key if articles else before[-1].upper() if before else ""
        if article in _ONE_OF_A_KIND:
            self.kinds[word.key] += 1
        elif article == "THE":
            self.after_the[word.key] += 1

    def _count(self, phrase: Phrase) -> None:
        titled = False
        first, *others = phrase.pieces
        if len(others) > 1 and first.text.isupper() and others[0].key in GIVEN_NAMES:
            self.ranks.add(first.key)
        neighbours = [(a.key, b.key) for a, b in pairwise(phrase.pieces)]
        self.pairs.update(neighbours)
        self.sure_pairs.update(neighbours[phrase.is_weak :])
        for piece in phrase.pieces:
            if not piece.is_connector:
                skipped = phrase.is_weak and piece.start == 0 and not self._begins_name(phrase)
                self.openings[piece.key] += skipped
                if (titled or not skipped) and not self.is_emphasis(piece):
                    self.capital[piece.key] += 1
            titled = piece.key in HONORIFICS
        if len(phrase.pieces) == 1:
            self.alone[phrase.pieces[0].key] += not phrase.is_weak
        elif phrase.pieces[-2].key in _BEFORE_FAMILY_NAME and not phrase.pieces[-2].is_possessive:
            self.family_names.add(phrase.pieces[-1].key)
            is_described = phrase.pieces[-2].key in DESCRIBING_HONORIFICS and is_common_word(phrase.pieces[-1].key)
            if phrase.pieces[-2].key not in _NAMED_AS_MONTHS and not is_described:  # "Annual General Meeting"
                self.sure_family_names.add(phrase.pieces[-1].key)

    def _is_ornate(self) -> bool:
        """Whether the document capitalizes many common words, as Dickens does; a capital is then weak evidence."""
        alone = [key for key, count in self.alone.items() if count and len(key) > 1 and key not in _NOT_COUNTED]
        n_common = sum(map(is_common_word, alone))
        return n_common >= _MIN_ORNATE and n_common >= _MIN_ORNATE_SHARE * len(alone)

    def _find_data_types(self) -> set[str]:
        """Return words such as "CARD16" that precede the names of several fields: "CARD16 Status length"."""
        first = Counter(first for first, _ in self.pairs if _DATA_TYPE.fullmatch(first))
        return {key for key, n in first.items() if n >= _MIN_FIELDS}

    def _begins_name(self, phrase: Phrase) -> bool:
        """Whether the first word of a sentence belongs to the name: "Apple Inc. sued" but not "Old Marley said"."""
        first, *rest = phrase.pieces
        if not rest or rest[0].is_connector or first.is_possessive:
            return False
        return not (self.may_open(first.key) or first.key in STOPWORDS or first.key in LONERS)

    def is_emphasis(self, piece: PhrasePiece) -> bool:
        """Whether a word in capitals is emphasis and not an acronym: the document also writes it in lower case."""
        if not piece.text.isupper() or len(piece.text) < 2 or "." in piece.text or piece.key in ACRONYMS:
            return False
        n_lower = self.lower[piece.text.lower()]
        is_long_word = len(piece.text) > 6 and (n_lower > 0 or token_rank(piece.text.lower()) is not None)
        return self.upper[piece.key] < _MOSTLY_UPPER * n_lower or is_long_word

    def is_name(self, key: str) -> bool:
        return self.capital[key] > 0 and self.capital[key] >= self.lower[key.lower()]

    def is_opening_name(self, key: str) -> bool:
        """Whether a word that English does not know begins two sentences or more: "Vasquera knocked out"."""
        is_rare = len(key) >= _MIN_RARE and token_rank(key.lower()) is None and not key.endswith(OPENER_SUFFIXES)
        return is_rare and not self.is_ornate and self.openings[key] > 1 and not self.lower[key.lower()]

    def is_introduced(self, key: str, text: str, end: int) -> bool:
        """Whether a word that English does not know opens a sentence, and what follows is about a name.

        "Eramet of France", "Caruthersville, the county seat,", "Rothschild had put".
        """
        is_rare = len(key) >= _MIN_RARE and token_rank(key.lower()) is None and not key.endswith(_OF_NOUNS)
        is_compound = any(_is_english(key[:n]) and _is_english(key[n:]) for n in range(4, len(key) - 3))  # "Lunchtime"
        if not is_rare or is_compound or self.is_ornate or self.lower[key.lower()]:
            return False
        return _ABOUT_NAME.match(text, end) is not None

    def is_common(self, piece: PhrasePiece) -> bool:
        """Whether the document or English writes a word mostly without a capital: "Man" in one religious sentence."""
        key = piece.key
        if key in GIVEN_NAMES or key in ACRONYMS or key in self.family_names:
            return False
        if self.lower[key.lower()] > _COMMON_SHARE * self.capital[key]:
            return True
        if self.kinds[key] == self.capital[key] > 0 and not piece.text.isupper() and not is_proper_word(key):
            return True  # "an Idol": one of a kind
        is_stressed = self.is_ornate and self.capital[key] == 1 and not piece.text.isupper()
        if is_stressed and self._is_also_small(key):
            return True
        return self.alone[key] < _ENOUGH_CAPITALS and not piece.text.isupper() and is_common_word(key)

    def is_only_stressed(self, pieces: list[PhrasePiece]) -> bool:
        """Whether all words are common words that the document capitalizes only once: "the Unseen Eyes" of a ghost."""
        if pieces[0].key == "NEW" or pieces[-1].key in _TAILS:
            return False
        words = [piece for piece in pieces if not piece.is_connector]
        is_body = any(a.key in ORGANIZATION_HEADS and b.key == "OF" for a, b in pairwise(pieces))
        is_known = any(word.key in GIVEN_NAMES for word in words) or (words[0].key in ORGANIZATION_HEADS and words[1:])
        n_common = sum(is_common_word(word.key) for word in words)
        if is_known or is_body or not n_common or (self.is_ornate and n_common < len(words) == len(pieces)):
            return False
        most = 2 if self.is_ornate else 1
        return all(self.capital[word.key] <= most and self._is_also_small(word.key) for word in words)

    def _is_also_small(self, key: str) -> bool:
        if self.lower[key.lower()]:
            return True
        return self.is_ornate and token_rank(key.lower()) is not None and not is_proper_word(key)

    def is_adjective(self, key: str) -> bool:
        """Whether the ending of a word is that of an adjective; "-ic" counts only for a word that occurs once."""
        if key.endswith("ED") and len(key) > 5 and is_common_word(key) and key not in GIVEN_NAMES:
            return True
        return key.endswith(ADJECTIVE_SUFFIXES) or (key.endswith("IC") and self.capital[key] <= 1)

    def is_cut_off(self, key: str) -> bool:
        """Whether a word that occurs once is the start of another word of the document: "Scro--"."""
        return self.capital[key] == 1 and any(word != key and word.startswith(key) for word in self.capital)

    def is_proper(self, key: str) -> bool:
        """Whether English writes a word mostly with a capital, and the document always: "Toyota"."""
        return not self.lower[key.lower()] and is_proper_word(key)

    def is_given_name(self, key: str) -> bool:
        return key in GIVEN_NAMES and not self.lower[key.lower()]

    def may_open(self, key: str) -> bool:
        """Whether a capitalized word at the start of a sentence may be separate from the name after it."""
        if self.is_name(key) or key in HONORIFICS or key in GIVEN_NAMES:
            return False
        if key in COMMANDS and not self.capital[key]:
            return True
        return key in OPENERS or self.lower[key.lower()] > 0 or key.endswith(OPENER_SUFFIXES)


def _is_short_acronym(piece: PhrasePiece) -> bool:
    return 1 < len(piece.text) <= _MAX_SHORT and piece.text.isupper()


def _is_foreign(key: str) -> bool:
    """Whether a word that English hardly writes is a town, or has letters that English has not."""
    return not key.isascii() or key in load_towns() or key in load_places()


def _is_english(key: str) -> bool:
    rank = token_rank(key.lower())
    return rank is not None and rank < _MAX_COMPOUND_RANK
