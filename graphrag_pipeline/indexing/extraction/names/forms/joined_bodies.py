"""Bodies whose names have an "and" inside: "Fisheries and Oceans Canada", "the Wye and Usk Foundation".

The words around "and" decide, because the first half is no name of its own. Two everyday words are the field of one
body ("Police and Crime Commissioner"). Two rare words behind "the" share the noun of the second half, if the document
has neither half alone.

Keep out: fields behind "of" or "for" (`phrases.py`), patterns of one kind of body (`composites.py`), firms of two names
(`firm_pairs.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from graphrag_pipeline.indexing.extraction.names.brands import load_organizations
from graphrag_pipeline.indexing.extraction.names.cues import (
    BODIES,
    BUILDINGS,
    EVENT_TAILS,
    GIVEN_NAMES,
    HONORIFICS,
    JOINED_TAILS,
    LONERS,
    NATIONALITIES,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    ORGANIZATIONS,
    PLACE_TAILS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_countries, load_places
from graphrag_pipeline.indexing.extraction.names.kind_nouns import PERSON_NOUN, kind_of, kind_of_plural
from graphrag_pipeline.indexing.extraction.names.name_limits import FIELD_ENDINGS
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, is_also_a_word, title_of
from graphrag_pipeline.indexing.extraction.names.terms.background import english_rank
from graphrag_pipeline.text.late_patterns import late_regex

_AND = " and "
_FIRST_HALF = late_regex(r"\b\p{Lu}[\p{L}’'-]*+(?: \p{Lu}[\p{L}’'-]*+){0,3}+$")
_LISTED_BEFORE = late_regex(r"\b(\p{Lu}\p{Ll}++(?: \p{Lu}\p{Ll}++){0,2}), $")
_MAX_FIRST = 48  # characters of the first half
_BODY_TAILS = (
    ORGANIZATION_TAILS
    | JOINED_TAILS
    | words("scheme programme program project commissioner initiative festival enterprise")
)
_SHARED_TAILS = words("""
foundation trust society board partnership association committee commission institute hospital project
federation club league bank union council company festival initiative area
""")
_SPLITS = ORGANIZATION_TAILS | ORGANIZATIONS | PLACE_TAILS | BUILDINGS | EVENT_TAILS
_PERSONAL = GIVEN_NAMES | HONORIFICS
_NO_FIELDS = (
    _PERSONAL
    | LONERS
    | ORGANIZATIONS
    | ORGANIZATION_HEADS
    | (ORGANIZATION_TAILS - words("police energy insurance records services"))
    | words("federal national international regional local")
)
_GIFTS = words("foundation trust fund charity")
_GROUPS = words("child children women men families family youth students workers")
_MAX_WORDS = 4  # of a half
_MAX_EVERYDAY_RANK = 9_000


def find_joined_bodies(names: Sequence[Name], text: str) -> Iterator[Name]:
    """Yield the bodies that "and" joins, for names in reading order that have the second half."""
    if _AND not in text and _AND.upper() not in text:
        return
    counts = Counter(name.form for name in names)
    found = [read for name in names if (read := _read_body(name, text))]
    seconds = Counter(second for _, _, second in found)
    firsts = Counter(first for _, first, _ in found)
    for name in names:
        if " and " in name.form and name.form.split()[-1].upper() in ORGANIZATION_TAILS:
            start = _start_of_list(name.start, text)
            if start < name.start:
                yield Name(f"{text[start : name.start]}{name.form}", start, name.end, name.sentence)
    for body, first, second in found:
        if counts[first] <= firsts[first] and counts[second] <= seconds[second]:
            yield body


def _read_body(second: Name, text: str) -> tuple[Name, str, str] | None:
    """Return the body that a name ends, and the forms of its halves."""
    end = second.start - len(_AND)
    joint = _AND.upper() if second.form.isupper() else _AND
    if not text.startswith(joint, max(end, 0)) or not (second.form.isupper() or _may_end_body(second.form)):
        return None
    match = _FIRST_HALF.search(text, max(end - _MAX_FIRST, 0), end)
    if match is None:
        return None
    start = match.start()
    first = match.group()
    is_after_the = text.startswith(("the ", "The "), start - 4)
    if first.startswith(("The ", "A ")):
        start, first, is_after_the = start + first.index(" ") + 1, first.partition(" ")[2], True
    listed = _start_of_list(start, text) if _are_fields(first, second.form) else start
    if listed < start:  # "Transport, Energy and Dock Workers Union"
        first, start, is_after_the = text[listed : match.end()], listed, False
        return Name(f"{first}{joint}{second.form}", start, second.end, second.sentence), first, second.form
    is_body = _are_fields(first, second.form) or (is_after_the and _are_shared(first, second.form))
    is_body = is_body or _are_givers(first, second.form)
    if not is_body and not _is_whole_line(start, second, text):
        return None
    return Name(f"{first}{joint}{second.form}", start, second.end, second.sentence), first, second.form


def _start_of_list(start: int, text: str) -> int:
    """Return where the list of fields begins that goes on at `start`: "Housing, Planning and Heritage Board"."""
    while match := _LISTED_BEFORE.search(text, max(start - _MAX_FIRST, 0), start):
        field = match.group(1)
        words = title_of(field).split()
        is_field = (
            all(is_also_a_word(word) or word.endswith(FIELD_ENDINGS) for word in words)
            and _PERSONAL.isdisjoint(words)
            and words[-1] not in BODIES
        )
        if not is_field or title_of(field) in load_places():
            break
        start = match.start() + 4 * field.startswith("The ")
    return start


def _may_end_body(form: str) -> bool:
    parts = title_of(form).split(" OF ")[0].split()
    is_giver = parts[0] in GIVEN_NAMES and parts[-1] in _GIFTS
    if len(parts) < 2 or len(parts) > _MAX_WORDS or not form[0].isupper():
        return False
    if parts[0] in _PERSONAL and not is_giver:
        return False
    is_national = parts[-1] in load_countries() and title_of(form) not in load_places() and parts[0] not in LONERS
    return parts[-1] in _BODY_TAILS | _SHARED_TAILS or is_national


def _are_fields(first: str, second: str) -> bool:
    """Whether everyday words stand on both sides of "and": "Utility and Review Board", not "Hill and Review Board"."""
    *before, last = title_of(first).split()
    following, *_ = title_of(second).split()
    if not is_also_a_word(last) or not (is_also_a_word(following) or kind_of_plural(following.lower()) == PERSON_NOUN):
        return False
    if last in _NO_FIELDS or following in NATIONALITIES or following in load_places():
        return False
    if before and (last in _SPLITS or not _PERSONAL.isdisjoint(before)):
        return False
    return last in _GROUPS or kind_of(last.lower()) != PERSON_NOUN


def _are_givers(first: str, second: str) -> bool:
    """Whether two given names stand before the noun of a foundation: "Bill and Melinda Gates Foundation"."""
    parts = title_of(second).split()
    return title_of(first) in GIVEN_NAMES and parts[0] in GIVEN_NAMES and parts[-1] in _GIFTS


def _is_whole_line(start: int, second: Name, text: str) -> bool:
    """Whether a body in capitals fills a line, as the title of minutes does: "LARKFIELD AND WENLOW SOCIETY"."""
    begin = text.rfind("\n", 0, start) + 1
    line = text[begin : text.find("\n", second.end)] if "\n" in text[second.end :] else text[begin:]
    is_body = title_of(second.form).split()[-1] in _BODY_TAILS
    return (
        is_body and begin == start and line.rstrip().endswith(second.form) and line.isupper() and line.count("AND") == 1
    )


def _are_shared(first: str, second: str) -> bool:
    """Whether two rare words share the noun behind them: "Wye and Usk Foundation"."""
    one, (other, *rest) = title_of(first), title_of(second).split(" OF ")[0].split()  # "Area of Conservation"
    is_known = one in ORGANIZATIONS | NATIONALITIES | _PERSONAL or one in load_organizations() | load_countries()
    if " " in one or not 0 < len(rest) < _MAX_WORDS or rest[-1] not in _SHARED_TAILS or is_known or first.isupper():
        return False
    is_place = other in load_places() and one in load_places()
    return is_place or not (_is_everyday(one) or _is_everyday(other) or other in NATIONALITIES)


def _is_everyday(key: str) -> bool:
    rank = english_rank(key.lower())
    return is_also_a_word(key) and rank is not None and rank < _MAX_EVERYDAY_RANK
