"""Names by their capitals: runs of words with a capital inside sentences.

In languages without a spaCy pipeline they are the only names (`extraction.spacy_model` gives better ones); in others
they are those that it overlooks, such as "Ghost of Christmas Past". The type is not known but for a form of address.
A first word of a sentence counts only if the text never writes it in small letters; a single word must be frequent. In
German, where every noun has a capital, only runs of words and acronyms count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import regex

from graphrag_pipeline.engines.embedded.names.folded_text import FoldedText
from graphrag_pipeline.text.languages import SMALL_WORDS
from graphrag_pipeline.text.late_patterns import late_regex
from graphrag_pipeline.text.name_words import GIVEN_NAMES, HONORIFICS, PERSON, UNKNOWN, key_of

MIN_SINGLE = 3
"""Occurrences inside sentences of a single word, if a pipeline does not take it for a name."""
_LONG = 4
"""Letters of a word that has a capital in a heading, and mostly none in a sentence."""
_WORD = r"\p{Lu}[\p{L}\p{M}\p{N}]*(?:['’-]\p{L}[\p{L}\p{M}]*)*"
_JOINT = r"(?:of the|of|de la|de los|de|del|della|di|da|do|dos|du|des|van der|van|von der|von|zu|la|le|y|e|d['’])"
_RUN = late_regex(
    rf"(?<![\p{{L}}\p{{N}}_.'’-]){_WORD}(?:\.(?= \p{{Lu}}))?(?:(?<![.]) (?:{_JOINT} )?{_WORD}| d['’]{_WORD})*"
    r"(?<!['’]s)(?![\p{L}\p{N}_-])"
)
_LOWER = late_regex(r"(?<![\p{L}'’-])\p{Ll}[\p{L}\p{M}]+")
_LETTERS = late_regex(r"[\p{L}'’-]+")
_SUFFIXED = late_regex(
    r"(?<![\p{L}\p{N}_.'’-])((?:\p{Lu}[\p{L}\p{M}]{0,40} ){0,3})(\p{Lu}[\p{L}\p{M}]{1,40})"
    r"(['’]\p{Ll}{1,10})(?![\p{L}'’-])"
)
_ALONE = late_regex(
    r"(?<![\p{L}\p{N}_.'’-])(?<!\p{Lu}[\p{L}\p{M}]{0,40} )\p{Lu}[\p{L}\p{M}]{1,40}(?![\p{L}\p{M}'’-])(?! \p{Lu})"
)
_TURKIC = late_regex("[ığşİə]")
_LEAST_TURKIC = 50  # characters to one of these letters; in Turkish it is 15 to 25
_AT_PLACE = late_regex(r"['’][dt][ae](?:ki)?")


TURKIC = "turkic"
"""In the place of a language: the text has the letters of Turkish and its neighbours, and their words are not known."""


def is_turkic(prose: str) -> bool:
    """Return whether a text has so many letters of Turkish and its neighbours that it is in one of them."""
    return not prose.isascii() and len(prose) < _LEAST_TURKIC * len(_TURKIC.findall(prose))


def cut_suffixes(prose: str, language: str) -> str:
    """Return a text of the same length in which a comma is where a suffix behind an apostrophe ends a name.

    Turkish and its neighbours write "İstanbul'da", others do with foreign names. A text in any other language must also
    have the name without the suffix. Before a name that is alone elsewhere, and before a place with "at", another ends.
    """
    if language not in ("", TURKIC) or not ("'" in prose or "’" in prose):
        return prose
    alone = frozenset(_ALONE.findall(prose))

    def cut(match: regex.Match[str]) -> str:
        before, name, suffix = match.groups()
        if language != TURKIC and name not in alone:
            return match[0]
        is_person = before.count(" ") > 1 or before.strip().upper() in GIVEN_NAMES
        if name in alone or (language == TURKIC and is_person and _AT_PLACE.fullmatch(suffix)):
            before = before[:-1] + "," * bool(before)
        return f"{before}{name},{' ' * (len(suffix) - 1)}"

    return _SUFFIXED.sub(cut, prose)


def find_capitals(folded: FoldedText, language: str, least: int = 1) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, type) of runs of words with a capital that are probably names.

    Args:
        least: occurrences inside sentences of a single word.
    """
    lower = Counter(_LOWER.findall(folded.text)) + Counter(SMALL_WORDS.get(language, SMALL_WORDS["en"]))
    found = [
        (start, end)
        for match in _RUN.finditer(folded.text)
        if not _is_heading(folded, match.start())
        for start, end in _without_opener(folded, match.start(), match.end(), lower)
    ]
    inside = Counter(folded.text[start:end] for start, end in found)
    for start, end in found:
        form = folded.text[start:end]
        first, _, rest = form.partition(" ")
        if not rest and (
            inside[form] < least or lower[form.lower()] >= inside[form] or len(form) < 3 or language == "de"
        ):
            continue
        yield start, end, PERSON if rest and key_of(first) in HONORIFICS else UNKNOWN


def _without_opener(folded: FoldedText, start: int, end: int, lower: Counter[str]) -> Iterator[tuple[int, int]]:
    """Yield the run without a first word that may owe its capital to the start of the sentence, and a last "Mr."."""
    first = folded.text[start:end].split(" ")[0]
    if folded.is_first(start) and (lower[first.lower()] or start + len(first) == end):
        start += len(first) + 1
    *_, last = folded.text[start:end].split(" ")
    if key_of(last) in HONORIFICS:
        end -= len(last) + 1
    if start < end:
        yield start, end


def _is_heading(folded: FoldedText, start: int) -> bool:
    """Whether the sentence at a place has a capital in every longer word, and no stop at its end."""
    first, last = folded.spans[folded.sentence_of(start)]
    if folded.text[last - 1] in ".!?":
        return False
    long = [word for word in _LETTERS.findall(folded.text, first, last) if len(word) >= _LONG]
    return all(word[0].isupper() for word in long)
