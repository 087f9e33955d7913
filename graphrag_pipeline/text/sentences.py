"""Sentence boundaries by rule, as character offsets, for text units, extraction and answers.

The rules cover full stops, question and exclamation marks of Latin and Asian scripts, paragraphs, headings, list items
and table rows. They need no model and no language detection.

Add here: abbreviations, in the sets below (English, and the commonest of other languages). Keep out: rules that look
further than the neighbouring words, because an edit must not move the sentence ends of other text.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterator

MAX_SENTENCE = 10_000  # characters

_CLOSERS = "\"'\u2019\u201d\u00bb\u203a)\\]}*_\u300d\u300f\uff09\u300b\u3011\u3015"
_OPENERS = "\"'\u2018\u201c\u201e\u00ab\u2039([{*_"
_MARKER = r"(?:[-*+\u2022\u2023\u25e6\u2013\u2014]|\d{1,3}[.)]|\(?[a-zA-Z]\))[ \t]|\|"
_STOPS = ".!?\u2026\uff0e\u0964\u0965\u061f\u06d4\u1362\u17d4"  # end a sentence only before white space
_ASIAN_STOPS = "\u3002\uff01\uff1f\uff61"  # need no white space

# Starts with one character class, which `re` finds fast. A run of stops matches only at its first (linear time).
_CANDIDATE = re.compile(
    rf"""
    [\n{_STOPS}{_ASIAN_STOPS}](?:
      (?<=\n)\s*+(?P<heading>\#{{1,6}}[ \t][^\n]*+)                  # a whole line
    | (?<=\n)[ \t\r\f\v]*+(?P<line>\n\s*+|(?={_MARKER}))           # blank line; list item, table row
    | (?<=[{_STOPS}])(?<![{_STOPS}]{{2}})
      (?P<stop>[{_STOPS}]*+[{_CLOSERS}\u201c]*+(?:\[\d{{1,3}}\])*+)(?=\s)  # [12] is a footnote
    | (?<=[{_ASIAN_STOPS}])(?<![{_ASIAN_STOPS}]{{2}})
      (?P<asian>[{_ASIAN_STOPS}]*+[{_CLOSERS}]*+)(?![\uff0c\u3001\uff1b\uff1a,;:])
    )
    """,
    re.VERBOSE,
)
_FIRST_HEADING = re.compile(r"\s*#{1,6}[ \t][^\n]*")
_SPACE = re.compile(r"\s*")
_NEXT_WORD = re.compile(rf"\s+[{re.escape(_OPENERS)}]*(\w*)")


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Never the end of a sentence: a name or explanation follows.
_TITLES = _words(
    "mr mrs ms mx dr prof st ste sr hon rev fr gen col maj capt cmdr lt sgt cpl gov sen rep pres messrs mme mlle mgr "
    "e.g i.e cf viz vs v al ca approx hr bzw z.b d.h u.a sra srta m"
)
# Not the end before a number.
_NUMBERED = _words(
    "no nos nr num vol vols p pp pg fig figs ch chap sec sect art pt para eq ed bk app tab ex jan feb mar apr jun jul "
    "aug sep sept oct nov dec"
)
# The end only before a word that often starts a sentence.
_EITHER = _words(
    "jr inc ltd co corp bros dept univ assn ave blvd rd mt ft a.m p.m ph.d m.d b.a m.a b.sc m.sc esq llc plc gmbh"
)
_STARTERS = _words(
    "a an the this that these those it its he she they we i you his her their our my there here in on at by for from "
    "to with as if when while where who what why how and but or so yet nor not no yes after before since although "
    "however then thus also once some many most all each every one both such during under over until"
)
_ACRONYM = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # a, U.S, J.R.R


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Split a text into sentences.

    Returns:
        (start, end) character offsets, in order, each 1 to `MAX_SENTENCE` characters long. Together they cover the
        whole text: white space belongs to the sentence before it, and at the start of the text to the first one.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for end in _sentence_ends(text):
        if end > start:
            spans += _cut(text, start, end)
            start = end
    return spans


def grapheme_start(text: str, index: int) -> int:
    """Return the last place at or before `index` where a cut does not separate a letter from its marks.

    Only the 32 characters before `index` are checked; without such a place, `index` is returned.
    """
    for place in range(index, max(index - 32, 0), -1):
        if place >= len(text) or not _joins(text[place - 1], text[place]):
            return place
    return index


def _sentence_ends(text: str) -> Iterator[int]:
    first = _FIRST_HEADING.match(text)
    if first:
        yield _after_space(text, first.end())
    for match in _CANDIDATE.finditer(text, first.end() if first else 0):
        if match.lastgroup == "stop":
            if _is_end(text, match.start(), match.end()):
                yield _after_space(text, match.end())
        elif match.lastgroup == "heading":
            yield match.start("heading")
            yield _after_space(text, match.end())
        else:
            yield _after_space(text, match.end())
    yield len(text)


def _after_space(text: str, index: int) -> int:
    match = _SPACE.match(text, index)
    assert match is not None
    return match.end()


def _is_end(text: str, stop: int, after: int) -> bool:
    """Whether the mark at `stop` ends a sentence; `after` is the offset after its closing quotes."""
    match = _NEXT_WORD.match(text, after)
    following = match.group(1) if match else ""
    if following[:1].islower():
        return False
    if text[stop] != "." or text[stop : stop + 2] == "..":
        return True
    word = _word_before(text, stop)
    folded = word.lower()
    if folded in _TITLES:
        return False
    if folded in _NUMBERED and following[:1].isdigit():
        return False
    if folded in _EITHER or _ACRONYM.fullmatch(word):
        return not following or following.lower() in _STARTERS
    return not (word.isdecimal() and len(word) <= 3 and _starts_line(text, stop - len(word)))


def _word_before(text: str, stop: int) -> str:
    words = text[max(stop - 24, 0) : stop].split()
    return words[-1].lstrip(_OPENERS) if words and not text[stop - 1].isspace() else ""


def _starts_line(text: str, index: int) -> bool:
    """Whether only blanks precede `index` in its line, so that "1." numbers a list item."""
    before = text[max(index - 12, 0) : index].rstrip(" \t")
    return before.endswith("\n") if before else index <= 12


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a sentence over `MAX_SENTENCE` at white space chosen by the text before it, so that edits stay local."""
    while end - start > MAX_SENTENCE:
        middle, limit = start + MAX_SENTENCE // 2, start + MAX_SENTENCE
        spaces = [match.end() for match in re.finditer(r"\s(?=\S)", text[middle:limit])]
        if spaces:
            cut = middle + min(spaces, key=lambda place: zlib.crc32(_before(text, middle + place)))
        else:
            cut = grapheme_start(text, limit)
        yield start, cut
        start = cut
    yield start, end


def _before(text: str, index: int) -> bytes:
    return text[index - 24 : index].encode("utf-8", "surrogatepass")


def _joins(left: str, right: str) -> bool:
    """Whether two neighbours form one grapheme: marks, joiners, variation selectors, skin tones, flags, CR LF."""
    if right < "\u0300":
        return left == "\r" and right == "\n"
    if unicodedata.category(right) in ("Mn", "Mc", "Me") or right == "\u200d" or left == "\u200d":
        return True
    return "\U0001f3fb" <= right <= "\U0001f3ff" or (_is_flag_half(left) and _is_flag_half(right))


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
