"""Acronyms and their long forms where the text pairs them: "computed tomography (CT)", "CT (computed tomography)".

The long form is found by the algorithm of Schwartz and Hearst (2003): from right to left, every letter of the short
form occurs in the long form, and its first letter starts a word. Where the shortest such form is none ("and
Gynecologists" of ACOG), the next one is tried.

Keep out: long forms that are names (`aliases.find_acronyms`) and types (`types/`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import regex

from graphrag_pipeline.indexing.extraction.names.cues import words
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.terms.background import load_ranks
from graphrag_pipeline.indexing.extraction.names.terms.word_forms import singular_of
from graphrag_pipeline.indexing.extraction.names.types.word_types import ORGANIZATION, type_by_words
from graphrag_pipeline.text.initials import count_initials, letters_of
from graphrag_pipeline.text.late_patterns import late_regex

MAX_SHORT, MIN_SHORT = 10, 2  # characters
_MIN_WORD_RATIO = 4  # letters of a word for each letter of its short form

_PAIR = late_regex(r"(?<=[\p{L}\p{Nd})])[\"”’']?\s+[(\[]\s*+([^()\[\]]{2,80}?)\s*+[)\];,]")
_FOR = late_regex(r"\b(\p{Lu}{3,8})(?:\s+(?:stands|is\s+short|is\s+an\s+abbreviation))?\s+for\s+[\"“']?")
_INITIAL = late_regex(r"(?<![\p{L}\p{Nd}'’])\p{L}")
_WORD = late_regex(r"[^\s()\[\]]+")
_SHORT = late_regex(r"(?=\P{Lu}*\p{Lu})(?:\p{Lu}|\p{Ll}+\p{Lu})[\p{L}\p{Nd}/-]*+(?<=\p{Lu}.*|\p{Lu}\p{Nd}+)")
_PLURAL = late_regex(r"(\p{Lu}{2,})e?s")
_GAP = r"\s+(?:>\s+)?"
_LONG = late_regex(r"[\p{Ll}\p{Lu}\p{Nd}][\p{L}\p{Nd}'’\s,/-]+")
_BRACKET = late_regex(r"[()\[\]]")
_NO_START = frozenset(
    word.lower()
    for word in words("a an the of for and or in on with by to is are was as at from its their this that called")
)


@dataclass(frozen=True, slots=True)
class AcronymPair:
    """A short form and its long form as the text writes them, with the offsets of the long form."""

    short: str
    long: str
    start: int
    end: int


def find_acronym_pairs(text: str) -> Iterator[AcronymPair]:
    """Yield the pairs of a text in reading order."""
    for match in _PAIR.finditer(text):
        inside = match.group(1)
        if _is_short(inside):
            start = _start_of_initials(inside, text, match.start())
            if start is None:
                start = find_long_form(inside, text, _first_word(text, match.start(), len(inside)), match.start())
            if start is not None:
                end = match.start() - 2 * (text[match.start() - 2 : match.start()] in ("'s", "’s"))
                yield AcronymPair(inside, _fold(text[start:end]), start, end)
            continue
        before = _last_word(text, match.start())
        if before and _is_short(before) and _LONG.fullmatch(inside):
            start, end = match.span(1)
            if find_long_form(before, text, start, end) == start and " " in inside:
                yield AcronymPair(before, _fold(inside), start, end)


def find_spelled_pairs(text: str) -> Iterator[AcronymPair]:
    """Yield the pairs of an acronym and words with its initials after "for": "ACL stands for access control list"."""
    for match in _FOR.finditer(text):
        short = match.group(1)
        start = match.end()
        found = regex.compile(rf"(?:\p{{L}}[\p{{L}}'’-]*\s+){{{len(short) - 1}}}\p{{L}}[\p{{L}}'’-]*").match(
            text, start
        )
        if found and [word[0].upper() for word in found.group().split()] == list(short):
            yield AcronymPair(short, _fold(found.group()), start, found.end())


def place_acronyms(names: Iterable[Name], text: str, starts: list[int]) -> tuple[list[Name], dict[str, str]]:
    """Add the long forms of acronyms that are not names, such as "computed tomography", and all their acronyms.

    Args:
        names: the names of the document, in reading order.
        starts: start offset of each sentence, in order.

    Returns:
        The names with the new ones, in reading order, without those inside a long form; and short -> long form.
    """
    names = list(names)
    whole = {(name.start, name.end) for name in names}
    pairs: dict[str, str] = {}
    begins = [name.start for name in names]
    for pair in chain(find_acronym_pairs(text), find_spelled_pairs(text)):
        pair = _include_name(pair, names, begins, text)
        if (pair.start, pair.end) not in whole and pair.short not in pairs:
            short, long = _fold_plural(pair.short, _spell_long(pair.long))
            pairs.setdefault(short, long)
    if not pairs:
        return names, {}
    forms = {title_of(long): long for long in pairs.values()}
    placed = [
        Name(_form_of(match.group(), forms), match.start(), match.end(), bisect_right(starts, match.start()) - 1)
        for match in _written(pairs).finditer(text)
    ]
    placed = _drop_inside_bodies(placed, names)
    spans = [(name.start, name.end) for name in placed]
    begins = [start for start, _ in spans]
    kept = [name for name in names if not _overlaps(name, spans, begins)]
    plurals = {f"{short}s": long for short, long in pairs.items() if not short.endswith("s")}
    return sorted(kept + placed, key=lambda name: (name.start, name.end)), plurals | pairs


def _include_name(pair: AcronymPair, names: list[Name], begins: list[int], text: str) -> AcronymPair:
    """Return a pair whose long form starts with the name that it would cut: "International Federation of ... (FIGO)".

    A long form whose capitals are the acronym is whole: "US Environmental Protection Agency (EPA)".
    """
    before = bisect_right(begins, pair.start) - 1
    start = names[before].start if before >= 0 and names[before].end > pair.start else pair.start
    is_whole = "".join(letter for letter in pair.long if letter.isupper()) == pair.short
    return (
        pair
        if start == pair.start or is_whole
        else AcronymPair(pair.short, _fold(text[start : pair.end]), start, pair.end)
    )


def _fold_plural(short: str, long: str) -> tuple[str, str]:
    """Return the singular of a plural acronym and of its long form: "link state advertisements (LSAs)"."""
    match = _PLURAL.fullmatch(short)
    first, space, last = long.rpartition(" ")
    singular = singular_of(last, load_ranks()) if match else None
    return (match.group(1), f"{first}{space}{singular}") if match and singular else (short, long)


def _drop_inside_bodies(placed: list[Name], names: list[Name]) -> list[Name]:
    """Drop long forms that are part of an organization's name: "Atrial Fibrillation" of a society for it."""
    begins = [name.start for name in names]
    kept = []
    for long in placed:
        before = bisect_right(begins, long.start)
        around = names[before - 1] if before else None
        is_part = around is not None and around.end > long.end and type_by_words(around.form) == ORGANIZATION
        if not is_part:
            kept.append(long)
    return kept


def _written(pairs: dict[str, str]) -> regex.Pattern[str]:
    longs = sorted(set(pairs.values()), key=lambda long: (-len(long), long))
    spaced = "|".join(_GAP.join(map(regex.escape, long.split())) for long in longs)
    shorts = "|".join(sorted(map(regex.escape, pairs), key=lambda short: (-len(short), short)))
    return regex.compile(
        rf"(?<![\p{{L}}\p{{Nd}}_-])(?:(?i:(?:{spaced})(?:s|es)?)|(?:{shorts})s?)(?![\p{{L}}\p{{Nd}}_]|-\p{{L}})"
    )


def _form_of(written: str, forms: dict[str, str]) -> str:
    """Return the long form in the singular for a written long form, and an acronym as it is."""
    title = title_of(_fold(written))
    return next((forms[key] for key in (title, title[:-1], title[:-2]) if key in forms), written)


def _overlaps(name: Name, spans: list[tuple[int, int]], begins: list[int]) -> bool:
    before = bisect_right(begins, name.end - 1)
    return any(end > name.start for _, end in spans[max(before - 2, 0) : before])


def _spell_long(long: str) -> str:
    """Return a long form without the capital of a sentence's start."""
    first, space, rest = long.partition(" ")
    is_opening = first[1:].islower() and len(first) > 1
    return long if not is_opening or any(letter.isupper() for letter in rest) else f"{first.lower()}{space}{rest}"


def find_long_form(short: str, text: str, start: int, end: int) -> int | None:
    """Return where the long form of `short` starts in text[start:end], or None.

    The long form ends at `end`. The match of the first letter must be at the start of a word.
    """
    first, *letters = letters_of(short)
    small = text[start:end].lower()
    place = len(small)
    places: list[int] = []
    for letter in reversed(letters):
        if (place := small.rfind(letter, 0, place)) < 0:
            return None
        places.append(place)
    while (place := small.rfind(first, 0, place)) >= 0:
        is_start = not place or not small[place - 1].isalnum()
        long = text[start + place : end]
        if _BRACKET.search(long):  # "online (OL) and on battery (OB)"
            return None
        if is_start and (_is_long(short, long) or _is_in_each_word(short, [*places, place], long, place)):
            return start + place
    return None


def _is_in_each_word(short: str, places: list[int], long: str, start: int) -> bool:
    """Whether a short form of capitals has a letter of each of two words: "alanine aminotransferase (ALT)"."""
    spans = [match.span() for match in regex.finditer(r"\S+", long)]
    is_short = short.isupper() and short.isalpha() and len(short) == 3 and len(spans) == 2 and long.islower()
    return is_short and all(any(a <= place - start < b for place in places) for a, b in spans)


def _is_long(short: str, long: str) -> bool:
    parts = regex.findall(r"[\p{L}\p{Nd}'’]+", long)
    n_letters = sum(letter.isalnum() for letter in short)
    if len(parts) == 1 and n_letters > MIN_SHORT:  # "electrocardiogram (ECG)"
        return short.isupper() and long.islower() and len(long) >= _MIN_WORD_RATIO * n_letters
    if len(parts) < 2 or len(parts) > min(n_letters + 5, 2 * n_letters) or len(long) <= len(short):
        return False
    if "," in long and len(parts) != n_letters:  # "(red, green, blue color channels)" lists
        return False
    if parts[0].lower() in _NO_START or short in long.split() or regex.search(r"[.!?;:]\s", long):
        return False
    return count_initials(letters_of(short), parts) * 2 >= n_letters


def _is_short(written: str) -> bool:
    if not MIN_SHORT <= len(written) <= MAX_SHORT or not _SHORT.fullmatch(written):
        return False
    n_capitals = sum(letter.isupper() for letter in written)
    return n_capitals >= 2 or (n_capitals == 1 and any(letter.isdecimal() for letter in written))


def _start_of_initials(short: str, text: str, end: int) -> int | None:
    """Return where the words start whose initials are the letters of an acronym: "proton pump inhibitor (PPI)"."""
    begins = [
        match.start() for match in _INITIAL.finditer(text, max(text.rfind("\n\n", 0, end) + 1, end - 200, 0), end)
    ]
    n_letters = len(short)
    if not short.isalpha() or len(begins) < n_letters or n_letters < 3:
        return None
    start = begins[-n_letters]
    is_spelled = "".join(text[begin] for begin in begins[-n_letters:]).lower() == short.lower()
    return start if is_spelled and _is_long(short, text[start:end]) else None


def _first_word(text: str, end: int, n_letters: int) -> int:
    """Return the start of the earliest word that may begin the long form before `end`."""
    least = max(text.rfind("\n\n", 0, end) + 1, end - 200, 0)
    begins = [match.start() for match in _WORD.finditer(text, least, end)]
    return begins[-min(n_letters + 5, 2 * n_letters) :][0] if begins else end


def _last_word(text: str, end: int) -> str:
    match = regex.search(r"[\p{L}\p{Nd}/-]+$", text[max(end - 12, 0) : end])
    return match.group() if match else ""


def _fold(written: str) -> str:
    """Return words without line breaks, also where a quotation in Markdown goes on: "Zone\\n> Key"."""
    return " ".join(word for word in written.split() if word != ">")
