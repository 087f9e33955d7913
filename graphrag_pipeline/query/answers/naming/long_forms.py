"""The long form of an abbreviation, for "What does MART stand for?": "maintenance and reliever therapy (MART)".

A text pairs them by brackets, or says what the short form stands for. The long form is found by the algorithm of
Schwartz and Hearst (2003): from right to left, every letter of the short form occurs in the long form, and its first
letter starts a word. Keep out: what a thing is (`who_is.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.selection.passages import Sentence, sentences_of
from graphrag_pipeline.text.initials import count_initials, letters_of
from graphrag_pipeline.text.late_patterns import late_re

MAX_EXTRA_WORDS = 5
"""Words of a long form beyond the letters of its short form."""
_WORD = late_re(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_NO_START = frozenset("a an the of for and or in on with by to as at from its their this that called".split())  # noqa: SIM905
_STANDS_FOR = (
    r"\s*(?:,\s*)?(?:\b(?:stands|is\s+short|is\s+an?\s+(?:abbreviation|acronym))\s+(?:for|of)|\bmeans|,\s*or)\s+"
)


def find_long_form(short: str, units: Sequence[TextUnitRecord]) -> tuple[str, Sentence] | None:
    """Return the long form of an abbreviation, and the first sentence that pairs them; None if no sentence does."""
    for unit in units:
        if short in unit.text:
            for sentence in sentences_of(unit):
                if long := next(_read_long_forms(short, sentence.folded), None):
                    return long, sentence
    return None


def _read_long_forms(short: str, text: str) -> Iterator[str]:
    """Yield the long forms that a sentence gives for an abbreviation."""
    written = re.escape(short)
    for found in re.finditer(rf"(?:\s*[(\[]|,)\s*[\"\u201c]?{written}[\"\u201d]?\s*[)\];,]", text):
        if long := _end_long_form(short, text[: found.start()].rstrip("\"'\u201d\u2019, ")):
            yield long
    for found in re.finditer(rf"\b{written}\s*[(\[]\s*([^()\[\]]+?)\s*[)\];,]", text):
        if _end_long_form(short, found[1]) == found[1]:
            yield found[1]
    for found in re.finditer(rf"\b{written}{_STANDS_FOR}[\"\u201c]?", text):
        if long := _begin_long_form(short, text[found.end() :]):
            yield long


def _end_long_form(short: str, before: str) -> str:
    """Return the words at the end of a text that an abbreviation stands for; "" if they have not its letters."""
    letters = letters_of(short)
    most = min(len(letters) + MAX_EXTRA_WORDS, 2 * len(letters))
    words = list(_WORD.finditer(before))[-most:]
    clause = max((found.end() for found in re.finditer(r"[.;:!?]\s", before)), default=0)
    for word in reversed(words):
        long = before[word.start() :]
        if word.start() >= clause and len(_WORD.findall(long)) > 1 and is_spelled_by(short, long):
            return long
    return ""


def _begin_long_form(short: str, behind: str) -> str:
    """Return the words at the beginning of a text whose initials are an abbreviation; "" if they are not."""
    words = list(_WORD.finditer(behind))[: 2 * len(short)]
    for word in words[1:]:
        long = behind[: word.end()]
        initials = "".join(one[0] for one in _WORD.findall(long) if one.lower() not in _NO_START)
        if initials.lower() == short.lower():
            return long
    return ""


def is_spelled_by(short: str, long: str) -> bool:
    """Return whether the letters of an abbreviation occur in a phrase in order, at least half of them as initials.

    The first letter is that of the phrase.
    """
    letters = letters_of(short)
    words = _WORD.findall(long)
    if not letters or not words or words[0].lower() in _NO_START or words[0][0].lower() != letters[0] or short in words:
        return False
    place, text = 0, long.lower()
    for letter in letters:
        place = text.find(letter, place) + 1
        if not place:
            return False
    return 2 * count_initials(letters, words) >= len(letters)
