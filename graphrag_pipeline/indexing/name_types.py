"""What kind of thing a name names, by its own words, by a gazetteer and by the words around it.

Types are those of Microsoft GraphRAG's default prompt: PERSON, ORGANIZATION, GEO, EVENT; UNKNOWN where nothing tells.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import regex

from graphrag_pipeline.indexing.dates import is_date
from graphrag_pipeline.indexing.gazetteer import load_places
from graphrag_pipeline.indexing.name_cues import (
    EVENT_HEADS,
    EVENT_TAILS,
    EVENTS,
    GIVEN_NAMES,
    HOLDINGS,
    HONORIFICS,
    KIN,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    ORGANIZATIONS,
    PERSON_VERBS,
    PLACE_HEADS,
    PLACE_PREPOSITIONS,
    PLACE_TAILS,
)
from graphrag_pipeline.indexing.names import Name
from graphrag_pipeline.tables import normalize_title

PERSON, ORGANIZATION, GEO, EVENT, UNKNOWN = "PERSON", "ORGANIZATION", "GEO", "EVENT", "UNKNOWN"

_BEFORE = regex.compile(r"(\p{L}+)\s+(?:the\s+)?$")
_BEFORE_PLACE = regex.compile(r"(\p{L}+)\s+$")
_AFTER = regex.compile(r"\s+(\p{Ll}+)")
_LANGUAGE = ("ISH", "ESE", "IAN", "CH", "AN", "IC")
_MIN_PLACE_SHARE = 0.3  # of a name's occurrences that follow "in", "at", ...


def type_names(names: Iterable[Name], text: str) -> dict[str, str]:
    """The type of each written form among the names of one document."""
    counts: Counter[str] = Counter()
    person_cues: Counter[str] = Counter()
    place_cues: Counter[str] = Counter()
    by_words: dict[str, str | None] = {}
    for name in names:
        form = name.form
        counts[form] += 1
        if form not in by_words:
            by_words[form] = type_by_words(form)
        if by_words[form] is None:
            person_cues[form] += _is_person_here(text, name)
            place_cues[form] += _is_place_here(text, name)
    in_lower = {normalize_title(form) for form in by_words if not form.isupper()}
    types = {
        form: found
        or _type_by_cues(form, _is_acronym(form, in_lower), counts[form], person_cues[form], place_cues[form])
        for form, found in by_words.items()
    }
    return {form: _type_by_relatives(form, kind, types) for form, kind in types.items()}


def vote_types(names: Iterable[Name], types: dict[str, str], ties: dict[str, str]) -> dict[str, str]:
    """The type of each form that stands for others: the one most occurrences have, UNKNOWN last, ties by name."""
    votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name in names:
        votes[ties[name.form]][types[name.form]] += 1
    return {form: min(kinds, key=lambda kind: (kind == UNKNOWN, -kinds[kind], kind)) for form, kinds in votes.items()}


def type_by_words(form: str) -> str | None:
    """The type that the words of a name tell by themselves; None if they leave it to the context."""
    if is_date(form):
        return EVENT
    words = [word.rstrip(".,") for word in normalize_title(form).split()]
    if form[-1:].islower() and "'s " in form:
        held = words[-1]
        if held in KIN or held in HOLDINGS:
            return PERSON if held in KIN else GEO
    first, last = words[0], words[-1]
    if (
        first in EVENTS
        or words[:2] == ["NEW", "YEAR"]
        or (len(words) > 1 and (last in EVENT_TAILS or (first in EVENT_HEADS and words[1] == "OF")))
    ):
        return EVENT
    if first in ORGANIZATION_HEADS and "OF" in words:
        return ORGANIZATION
    if len(words) == 1:
        return ORGANIZATION if first in ORGANIZATIONS else None
    if last in ORGANIZATION_TAILS or "&" in words:
        return ORGANIZATION
    if last in PLACE_TAILS:
        return GEO
    if first in HONORIFICS and "OF" not in words[:2]:
        return PERSON
    if first in PLACE_HEADS:
        return GEO
    return None


def _type_by_relatives(form: str, kind: str, types: dict[str, str]) -> str:
    """ "Ghost of Christmas Past" and "Spirits" are persons where "Ghost" and "Spirit" are."""
    if kind != UNKNOWN:
        return kind
    for relative in (form.split(" of ")[0], form.removesuffix("s")):
        if relative != form and types.get(relative) == PERSON:
            return PERSON
    return UNKNOWN


def _is_person_here(text: str, name: Name) -> bool:
    after = _AFTER.match(text, name.end)
    if after and after.group(1).upper() in PERSON_VERBS:
        return True
    before = _BEFORE.search(text[max(0, name.start - 24) : name.start])
    return before is not None and before.group(1).upper() in PERSON_VERBS


def _is_place_here(text: str, name: Name) -> bool:
    before = _BEFORE_PLACE.search(text[max(0, name.start - 24) : name.start])
    return before is not None and before.group(1).upper() in PLACE_PREPOSITIONS


def _is_acronym(form: str, in_lower: set[str]) -> bool:
    """One short word in capitals that the document never writes otherwise."""
    letters = form.replace(".", "")
    return form.isupper() and letters.isalpha() and 2 <= len(letters) <= 6 and normalize_title(form) not in in_lower


def _type_by_cues(form: str, is_acronym: bool, n_names: int, n_person: int, n_place: int) -> str:
    title = normalize_title(form)
    words = title.split()
    if title in load_places():
        return PERSON if n_person > n_place and title in GIVEN_NAMES else GEO
    if words[0] in GIVEN_NAMES and "OF" not in words:
        return PERSON
    if len(words) > 1 and words[-1] in GIVEN_NAMES and "OF" not in words:  # Tiny Tim
        return PERSON
    if is_acronym:
        return ORGANIZATION
    if n_person and n_person >= n_place:
        return PERSON
    if n_place / n_names >= _MIN_PLACE_SHARE and not title.endswith(_LANGUAGE):
        return GEO
    return UNKNOWN
