"""Persons in the attendance lists of minutes: "Present: Ines Carvalho, Wei Zhang (product)", "Apologies: T. Nance".

An attendance list shows who is a person where nothing else does: names of any language, and first names, which minutes
then use alone ("Wei thinks").

Keep out: honorifics (`word_types.py`) and what persons do (`agent_cues.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from functools import lru_cache

import regex

from graphrag_pipeline.indexing.extraction.names.cues import (
    BUILDINGS,
    DAYS,
    GIVEN_NAMES,
    HONORIFICS,
    MONTHS,
    OFFICES,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    ORGANIZATIONS_IN_CAPITALS,
    PLACE_TAILS,
    TERMS_IN_CAPITALS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import title_of
from graphrag_pipeline.indexing.extraction.names.terms.background import english_rank
from graphrag_pipeline.indexing.extraction.names.terms.term_signs import is_common_noun
from graphrag_pipeline.text.late_patterns import late_regex

_ROLL = (
    r"(?:(?:also|those|people|committee|board|staff|non-executive|executive) |(?:members|directors|governors|trustees"
    r"|councillors|officers|delegates) )*(?:present|there|here|not there|attend(?:ing|ees|ance)|in attendance"
    r"|(?:with )?apologies(?: for absence| received from| from)?|absent|absen(?:t with apologies|ces)|participants?"
    r"|sederunt|facilitators?|moderators?|note[- ]?takers?|notes|scribes?|minutes by|minute[- ]takers?|guests?|invited"
    r"|chaired by|chair|recorders?|observers?|in the (?:room|chair)|remote(?:ly)?|online|dialled in"
    r"|on (?:leave|holiday|the call|call)|off sick|away|out|regrets|members|governors|trustees|directors|councillors"
    r"|delegates|officers|staff|team|speakers?|proposer|seconder|signed)"
)
_LABELS = (  # three patterns take a quarter of the time of one with alternatives
    late_regex(
        rf"^[ \t*_#>|\d./-]*+{_ROLL}(?:[*_]*+\s*+:[*_ \t]*|(?<=^[*_# \t]*{_ROLL})[*_ \t]*$)",
        regex.IGNORECASE | regex.MULTILINE,
    ),
    late_regex(rf"(?<=\p{{L}}[.;)]) {_ROLL}[*_]*\s*:[*_ \t]*", regex.IGNORECASE),
    late_regex(r"\bapologies\s(?:for absence\s)?(?:(?:were|had been)\s)?(?:received\s)?from\s", regex.IGNORECASE),
)
_NEXT_LABEL = late_regex(rf"[.;)]\s+{_ROLL}\s*:", regex.IGNORECASE)
_ASIDE = late_regex(r"\(([^()\n]*)\)")
_SHORT = late_regex(r"(\p{Lu}[^,;\n()]*)\s\((\p{Lu}[\p{L}'’-]+)\)")
_ITEM = late_regex(r"\s*(?:[-*•]\s+)?(?:and\s+\p{Lu}|\d+\s\p{L}|\p{Lu})")
_NAME = late_regex(r"(?:\p{Lu}[\p{L}'’-]*\.?)(?:\s+\p{Lu}[\p{L}'’-]*\.?)*")
_AND = late_regex(r"\s+and\s+(?=\p{Lu})")
_SENTENCE_END = late_regex(r"(?<=\p{Ll}{2})\.(?=\s|$)")
_INITIALS_AFTER = late_regex(r"(\p{Lu}[^,;:()\n]*\p{Ll})\s\((\p{Lu}{2,4})\b[^()\n]*\)")
_MAX_INITIALS = 4
_KNOWN_CAPITALS = ORGANIZATIONS_IN_CAPITALS | TERMS_IN_CAPITALS
_MAX_WORDS = 8  # of an item, without asides
_MAX_ABBREVIATION = 3  # characters of "Jr."
_MAX_EVERYDAY_RANK = 9_000
_MIN_NAMED_ITEMS = 0.6
_BODY_WORDS = (
    (
        ORGANIZATION_TAILS
        | ORGANIZATION_HEADS
        | BUILDINGS
        | PLACE_TAILS
        | MONTHS
        | DAYS
        | words("flat item minutes agenda")
    )
    - GIVEN_NAMES
    - words("sons bros brothers kg sa se ag nv bv press senate park hill lake street lane field court church weir")
)


@lru_cache(maxsize=4)  # several rules ask about one document
def find_attendees(text: str) -> frozenset[str]:
    """Return the names in the attendance lists of a text: full names, their first names, and short ones in brackets."""
    found = set[str]()
    for _, start, end in find_rolls(text):
        listed = text[start:end]
        found |= {aside for name, aside in _SHORT.findall(listed) if _is_short_name(aside, name)}
        is_body = False
        for item in _split_items(listed):
            if not (
                is_body and " " not in _SENTENCE_END.split(item)[0].strip()
            ):  # "Ann Hill, Raigmore Hospital, Inverness"
                found |= _read_item(item)
            is_body = not _BODY_WORDS.isdisjoint(title_of(item).split())
    return frozenset(found)


def _is_short_name(aside: str, name: str) -> bool:
    """Whether a word in brackets is short for a name, as "Tom" of "Thomas Hill (Tom)", and no firm of the person."""
    initials = {word[0] for word in name.split()}
    return aside[0] in initials and title_of(aside) not in HONORIFICS and title_of(aside) not in OFFICES


def find_initials(forms: Iterable[str], text: str) -> dict[str, str]:
    """Return initials -> full name of the only attendee who has them: "RS to circulate" where Raj Sundaram is present.

    Minutes name who acts so. Initials behind a name of the list, "Raj Sundaram (RS)", count before others.
    """
    attendees = find_attendees(text)
    if not attendees:
        return {}
    forms = set(forms)
    people = {form for form in choose_attendees(forms, attendees) if " " in form}
    given = {
        initials: name
        for _, start, end in find_rolls(text)
        for name, initials in _INITIALS_AFTER.findall(text, start, end)
        if name in forms
    }
    bearers: defaultdict[str, set[str]] = defaultdict(set)
    for form in people:
        words = _without_honorifics(form.split())
        for parts in (words, [part for word in words for part in word.split("-")]):
            bearers["".join(part[0] for part in parts)].add(" ".join(words))
    able = {form for form in forms if 1 < len(form) <= _MAX_INITIALS and form.isupper() and form.isalpha()}
    found = {
        form: min(form_of for form_of in people if form_of.endswith(min(bearers[form])))
        for form in able - _KNOWN_CAPITALS
        if len(bearers[form]) == 1
    }
    return found | {form: given[form] for form in able & given.keys()}


def choose_attendees(forms: Iterable[str], attendees: Set[str]) -> set[str]:
    """Return the forms that are names of attendees, also with a form of address: "Cllr R. Ashby" of "R. Ashby"."""
    return {form for form in forms if " ".join(_without_honorifics(form.split())) in attendees}


def choose_surnames(forms: Iterable[str], attendees: Set[str]) -> set[str]:
    """Return the forms that are surnames of attendees, and neither everyday words nor places: "Asante" welcomed us."""
    surnames = {form.split()[-1] for form in attendees if " " in form}
    return {
        form for form in forms if form in surnames and not _is_everyday(form) and title_of(form) not in load_places()
    }


def _without_honorifics(parts: list[str]) -> list[str]:
    n = next((n for n, part in enumerate(parts) if title_of(part).rstrip(".") not in HONORIFICS), len(parts))
    return parts[n:]


def _split_items(listed: str) -> list[str]:
    """Return the items of a list. A comma in one of several lines, or between semicolons, leads to a role."""
    bare = _ASIDE.sub("", listed)
    rows = [row for row in regex.split(r"[;\n]", bare) if row.strip()]
    if len(rows) > 1 and all(row.count(",") <= 1 for row in rows):
        return [row.split(",")[0] for row in rows]
    return [part for row in rows for item in row.split(",") for part in _AND.split(item) if part.strip()]


def _read_item(item: str) -> set[str]:
    """Return the name at the start of an item, and its first name."""
    name = _NAME.search(_SENTENCE_END.split(item)[0])
    parts = _without_honorifics(name.group().split() if name else [])
    if parts and len(parts[-1]) > _MAX_ABBREVIATION:
        parts[-1] = parts[-1].rstrip(".")
    if all(map(_is_everyday, parts)):
        return set()
    if {title_of(part) for part in parts} & _BODY_WORDS or (parts[0].isupper() and len(parts[0].rstrip(".")) > 1):
        return set()  # "CDS Co-operatives"
    has_first = len(parts[0].rstrip(".")) > 1 and (len(parts) > 1 or title_of(parts[0]) not in OFFICES)
    return {" ".join(parts), parts[0]} if has_first else {" ".join(parts)}


def _is_everyday(word: str) -> bool:
    """Whether a word is no rare one: "Head" and "Platform", not "Bao" and "Tran"."""
    rank = english_rank(word.lower())
    return is_common_noun(word) and rank is not None and rank < _MAX_EVERYDAY_RANK


@lru_cache(maxsize=4)
def find_rolls(text: str) -> tuple[tuple[int, int, int], ...]:
    """Return the attendance lists of a text: start of the label, start and end of the list, in reading order."""
    return tuple(_find_rolls(text))


def _find_rolls(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield what stands behind a label, or on the lines below it."""
    labels = sorted(label.span() for labels in _LABELS for label in labels.finditer(text))
    for label, start in labels:
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        following = _NEXT_LABEL.search(text, start, end)
        end = following.start() if following else end
        if not text[start:end].strip():  # the list is below
            end = text.find("\n\n", end + 1)
            end = len(text) if end < 0 else end
        if _is_list(text[start:end]):
            yield label, start, end


def _is_list(text: str) -> bool:
    """Whether a text is a list of short items with capitals; one in four may be another ("the Hill family")."""
    items = [item for item in regex.split(r"[,;\n]", _ASIDE.sub("", text)) if item.strip()]
    n_named = sum(_ITEM.match(item) is not None for item in items)
    return n_named > 0 and n_named >= _MIN_NAMED_ITEMS * len(items) and all(map(_is_short, items))


def _is_short(item: str) -> bool:
    return all(len(part.split()) <= _MAX_WORDS for part in _SENTENCE_END.split(item)[0].split(" and "))
