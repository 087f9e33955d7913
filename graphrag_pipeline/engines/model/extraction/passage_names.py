"""Names of a model's reply that the passage holds in some form.

A small model names entities that the passage does not mention, often those of its prompt's example. A name is in a
passage if one of these holds:

- all its words are there, in any order, case, inflection and punctuation ("Scrooge, Ebenezer", "Danes" for "Dane");
  articles, honorifics and legal forms are left out
- it is an acronym of words there, or an acronym there is its own ("WHO")
- at least half of its words are, one of them with a capital, and no missing word says what it is: "Ebenezer Scrooge"
  for "Scrooge", but not "Paris Observatory" for "Paris"
- in scripts without spaces, half of its characters are there in a row
- it is the narrator of a text in the first person
- it is in another script than the passage, such as a translated name: that cannot be judged

The first two hold for an exact form, which names of a prompt's example need. Keep out: what happens to other names.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection
from functools import cache, cached_property

from graphrag_pipeline.text.languages import SMALL_WORDS
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.name_words import (
    EVENT_TAILS,
    HONORIFICS,
    LEGAL_SUFFIXES,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    PLACE_HEADS,
    PLACE_TAILS,
)

_TITLES = HONORIFICS | LEGAL_SUFFIXES
_OPTIONAL = (
    frozenset().union(*SMALL_WORDS.values()) | {word.casefold() for word in _TITLES} | {"group", "holding", "holdings"}
)
_KINDS = {
    word.casefold() for word in ORGANIZATION_TAILS | ORGANIZATION_HEADS | PLACE_TAILS | PLACE_HEADS | EVENT_TAILS
} - _OPTIONAL
"""Words that say what a named thing is: with another one, the name is another one."""
_NARRATORS = {"narrator", "author", "writer", "speaker"}
_FIRST_PERSON = {"i", "me", "my", "ich", "mein", "je", "moi", "yo", "io", "eu", "ik"}
_ENDINGS_TEXT = "s es e n en er ern em ns i a um us ae os o as y ies ed ing d an ian ean ese ish ic ics al r h t"
_ENDINGS = frozenset(("", *_ENDINGS_TEXT.split()))
"""What the forms of one word in Latin script may end with, behind what they share."""
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR")
_INFLECTED = ("CYRILLIC", "GREEK")
_WORD = late_re(r"[^\W_]+")
_NUMBER = late_re(r"(\d+)(?:st|nd|rd|th|er|e)?")
_UMLAUT_E = late_re("(?<=[aou])e")
_CAPITALS = late_re(r"[^\W\d_][\w'\u2019-]*(?:[ \t\n]+(?:[a-z]{1,4}[ \t\n]+){0,2}(?=[A-Z\u00c0-\u00de])[\w'\u2019-]+)+")
_ACRONYM = late_re(r"\b(?:[^\W\d_]\.?){2,8}(?!\w)")


class PassageNames:
    """The forms of names that a passage holds.

    Args:
        text: of the passage, as the model read it.
    """

    def __init__(self, text: str) -> None:
        self._text = unicodedata.normalize("NFKC", text)

    def hold(self, name: str, is_exact: bool = False) -> bool:
        """Return whether the passage holds a name, or only a form with all its words if `is_exact`."""
        name = unicodedata.normalize("NFKC", name)
        script = _script_of(name)
        if script and script not in self._scripts:
            return not is_exact
        if script in _UNSPACED:
            return self._hold_characters(name, is_exact)
        words = list(dict.fromkeys(_content_words(name)))
        short = self._shortened(words)
        found = [word for word in words if word in short or self._hold_word(word, self._words_by_start)]
        if len(found) == len(words) or self._hold_acronym(name, words):
            return True
        return not is_exact and (self._hold_most(words, found) or self._hold_narrator(words))

    def share_of(self, text: str) -> float:
        """Return the share of the longer words of a text that the passage holds; 0 if it has none."""
        words = [word for word in _WORD.findall(unicodedata.normalize("NFKC", text)) if len(word) > 3]
        return self.share_of_words(words)

    def share_of_words(self, words: Collection[str]) -> float:
        """Return the share of some words that the passage holds in any form; 0 without a word."""
        folded = map(_fold_word, words)
        return sum(self._hold_word(word, self._words_by_start) for word in folded) / max(len(words), 1)

    def _shortened(self, words: list[str]) -> set[str]:
        """Return the neighbouring words that the passage has as an acronym, such as "united states" for "U.S."."""
        if not self._acronyms:
            return set()
        pairs = ((i, j) for i in range(len(words)) for j in range(i + 2, len(words) + 1))
        found = (words[i:j] for i, j in pairs if "".join(word[0] for word in words[i:j]) in self._acronyms)
        return {word for some in found for word in some}

    def _hold_most(self, words: list[str], found: list[str]) -> bool:
        has_kind = any(word in _KINDS for word in words if word not in found)
        is_named = any(word not in _KINDS and self._hold_word(word, self._capitalized) for word in found)
        return is_named and not has_kind and 2 * len(found) >= len(words)

    def _hold_narrator(self, words: list[str]) -> bool:
        return bool(_NARRATORS & set(words)) and any(word in self._words_by_start[word[:3]] for word in _FIRST_PERSON)

    def _hold_word(self, word: str, words_by_start: dict[str, set[str]]) -> bool:
        near = words_by_start.get(word[:3], ())
        return word in near or any(_are_forms(word, other) for other in near) or self._is_joined(word)

    def _is_joined(self, word: str) -> bool:
        """Whether the passage writes a word in parts, such as "co-op" for "coop"."""
        return len(word) > 3 and word in self._joined_pairs

    def _hold_characters(self, name: str, is_exact: bool) -> bool:
        runs = ["".join(_WORD.findall(part)).casefold() for part in re.split(r"[\s\u00b7\u30fb]+", name)]
        runs = [run for run in runs if run]
        if all(run in self._joined for run in runs):
            return True
        least = max(2, math.ceil(max(map(len, runs), default=0) / 2))
        parts = (run[start : start + least] for run in runs for start in range(len(run) - least + 1))
        return not is_exact and any(part in self._joined for part in parts)

    def _hold_acronym(self, name: str, words: list[str]) -> bool:
        letters = name.replace(".", "")
        if 2 <= len(letters) <= 8 and letters.isalpha() and sum(map(str.isupper, letters)) >= 2:
            return any(letters.casefold() in initials for initials in self._initials)
        every = [word.casefold() for word in _WORD.findall(name)]
        own = {"".join(word[0] for word in some) for some in (words, every) if len(some) > 1}
        return bool(own & self._acronyms)

    @cached_property
    def _words(self) -> list[str]:
        return [_fold_word(word) for word in _WORD.findall(self._text)]

    @cached_property
    def _words_by_start(self) -> dict[str, set[str]]:
        return _by_start(self._words)

    @cached_property
    def _capitalized(self) -> dict[str, set[str]]:
        return _by_start([_fold_word(word) for word in _WORD.findall(self._text) if not word[0].islower()])

    @cached_property
    def _joined(self) -> str:
        return "".join(_WORD.findall(self._text)).casefold()

    @cached_property
    def _joined_pairs(self) -> set[str]:
        return {f"{first}{second}" for first, second in zip(self._words, self._words[1:], strict=False)}

    @cached_property
    def _scripts(self) -> set[str]:
        words = [self._text] if self._text.isascii() else set(_WORD.findall(self._text))
        return {script for word in words if (script := _script_of(word))}

    @cached_property
    def _initials(self) -> set[str]:
        """The initials of each run of capitalised words, with and without the small words between them."""
        runs = [_WORD.findall(match.group()) for match in _CAPITALS.finditer(self._text)]
        every = {"".join(word[0] for word in run).casefold() for run in runs}
        return every | {"".join(word[0] for word in run if not word[0].islower()).casefold() for run in runs}

    @cached_property
    def _acronyms(self) -> set[str]:
        found = (match.group().replace(".", "") for match in _ACRONYM.finditer(self._text))
        return {acronym.casefold() for acronym in found if sum(map(str.isupper, acronym)) >= 2}


def _by_start(words: list[str]) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for word in words:
        found[word[:3]].add(word)
    return found


def _content_words(name: str) -> list[str]:
    """Return the folded words of a name without articles, honorifics and initials, or all if there are no others."""
    words = [_fold_word(word) for word in _WORD.findall(name)]
    content = [word for word in words if word not in _OPTIONAL and (len(word) > 1 or word.isdigit())]
    return content or words


def _fold_word(word: str) -> str:
    """Return a word without case, marks, the "e" of a written-out umlaut, and the ending of an ordinal number."""
    bare = word.lower() if word.isascii() else _without_marks(word.casefold())
    if bare[:1].isdecimal() and (number := _NUMBER.fullmatch(bare)):
        return number.group(1).lstrip("0") or "0"
    return _UMLAUT_E.sub("", bare) if len(bare) > 3 and "e" in bare else bare


def _without_marks(word: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFKD", word) if not unicodedata.combining(letter))


def _are_forms(word: str, other: str) -> bool:
    """Return whether two words are forms of one: they share a start and differ in their endings."""
    shared = next((i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))
    rests = {word[shared:], other[shared:]}
    if _script_of(word) in _INFLECTED:
        return shared >= 4 and all(len(rest) <= 3 for rest in rests)
    return rests <= _ENDINGS and (shared > 3 or (shared == 3 and ("" in rests or rests == {"y", "ies"})))


def _script_of(text: str) -> str:
    """Return the script of the first letter, such as LATIN; CJK for Chinese and Japanese; "" without letters."""
    for character in text:
        if character.isalpha():
            return "LATIN" if character.isascii() else _script_of_letter(character)
    return ""


@cache
def _script_of_letter(letter: str) -> str:
    script = unicodedata.name(letter, "").split(" ")[0].split("-")[0]
    return "CJK" if script in ("HIRAGANA", "KATAKANA") else script
