"""Firms that two names make: "Accounts are examined by Moore and Smalley".

Two words that a document has nowhere else, joined by "and" behind "by", "with" or "from", are one firm in a document
that lists its persons; so are two surnames behind "of" and a person
who has one of them. Elsewhere they may be two authors. In every document they are one firm behind a noun for firms
("the accountants Moore and Smalley"), before what firms have ("Moore and Smalley's clients"), and if they are well
known with an ampersand.

Keep out: "and" before "Sons" or "Company" (`phrases.py`), two names with an ampersand (`types/word_types.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

import regex

from graphrag_pipeline.indexing.extraction.names.brands import load_organizations, load_programs
from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.kind_nouns import BODY_NOUN, kind_of, kind_of_plural
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, text_before, title_of
from graphrag_pipeline.indexing.extraction.names.types.attendance import find_attendees
from graphrag_pipeline.text.late_patterns import late_regex

_BEHIND = late_regex(r"(?:\b(?:by|with|through)|(?<!s\s)\bfrom)\s+$")
_PERSON_OF = late_regex(r"\p{Lu}\p{Ll}+\s(\p{Lu}[\p{L}’'-]+),?\s+of\s+$")
_AND = late_regex(r"\s+and\s+")
_MAX_AND = 8  # characters between two names
_LISTED = late_regex(r",|\s+(?:and|of|in|at)\s+\p{Lu}")
_ADDED = late_regex(r",?\s+and\s+\p{Lu}")


_FIRM_BEFORE = late_regex(r"\b(\p{L}\p{Ll}{3,})\s$")
_STAFF_FROM = late_regex(
    r"\b(?:[Ll]awyers?|[Aa]ccountants?|[Aa]uditors?|[Aa]nalysts?|[Cc]onsultants?|[Ee]ngineers?|[Aa]rchitects?|[Ss]urveyors?"
    r"|[Bb]rokers?|[Pp]artners?|[Ee]conomists?|[Ss]pokes\p{Ll}+)\s(?:from|at|of|for|with)\s$"
)
_HAS = late_regex(
    r"['’]s?\s(?:clients?|shares|profits?|customers|offices|employees|staff)\b"
    r"|\s(?:shares|spokes\p{Ll}+|plc|[Ll]td|is\sa\sfirm|said\sits?\s(?:will|has|had|would|clients))\b"
)


def join_firm_pairs(names: Sequence[Name], text: str) -> tuple[list[Name], set[str]]:
    """Return the names, with the two halves of each firm as one, and the forms of these firms."""
    names = list(names)
    has_list = bool(find_attendees(text))
    counts = Counter(word for name in names for word in name.form.split())
    pairs = {
        a: b
        for a, b in pairwise(names)
        if 0 < b.start - a.end <= _MAX_AND
        and _AND.fullmatch(text, a.end, b.start)
        and (_is_named_firm(a, b, text) or (has_list and _is_pair(a, b, counts, text)))
        if not (_ADDED if _is_partnership(a, b, text) else _LISTED).match(text, b.end)
    }
    seconds = set(pairs.values())
    joined = [
        replace(name, form=f"{name.form} and {pairs[name].form}", end=pairs[name].end) if name in pairs else name
        for name in names
        if name not in seconds
    ]
    firms = {f"{a.form} and {b.form}" for a, b in pairs.items()}
    return _join_known(joined, text, firms)


def _is_pair(first: Name, second: Name, counts: Counter[str], text: str) -> bool:
    are_halves = _may_be_half(first, counts) and _may_be_half(second, counts)
    is_behind = are_halves and _BEHIND.search(text, max(first.start - 12, 0), first.start)
    return bool(is_behind) or _is_partnership(first, second, text)


@cache
def _known_pairs() -> regex.Pattern[str]:
    pairs = (title.split(" & ") for title in sorted(load_organizations()) if title.count(" & ") == 1)
    written = (rf"{regex.escape(a.title())}\s+and\s+{regex.escape(b.title())}" for a, b in pairs)
    return regex.compile(rf"\b(?:{'|'.join(written)})\b")


def _join_known(names: list[Name], text: str, firms: set[str]) -> tuple[list[Name], set[str]]:
    """Return the names with those of well-known firms that texts also write with "and": "Marks and Spencer"."""
    for match in _known_pairs().finditer(text) if " and " in text else ():
        inside = [n for n, name in enumerate(names) if match.start() <= name.start < match.end()]
        if inside:
            form = " ".join(match.group().split())
            firms.add(form)
            names[inside[0] : inside[-1] + 1] = [
                replace(names[inside[0]], form=form, start=match.start(), end=match.end())
            ]
    return names, firms


def _is_named_firm(first: Name, second: Name, text: str) -> bool:
    """Whether two surnames stand behind a noun for firms, or before what firms have: "lawyers from Allen and Rusk"."""
    if not (_may_be_surname(first) and _may_be_surname(second)):
        return False
    before = _FIRM_BEFORE.search(text_before(text, first, 32))
    is_firm = before is not None and BODY_NOUN in (kind_of(before.group(1)), kind_of_plural(before.group(1)))
    return (
        is_firm
        or _STAFF_FROM.search(text_before(text, first, 32)) is not None
        or _HAS.match(text, second.end) is not None
    )


def _may_be_surname(name: Name) -> bool:
    title = title_of(name.form)
    is_known = title in GIVEN_NAMES or title in load_places() or title in load_organizations() | load_programs()
    return name.form.istitle() and name.form.isalpha() and not is_known


def _is_partnership(first: Name, second: Name, text: str) -> bool:
    """Whether one of two surnames is that of the person before "of": "Lorna Pickles of Pickles and Dean"."""
    person = _PERSON_OF.search(text, max(first.start - 48, 0), first.start)
    return person is not None and person.group(1) in (first.form, second.form) and " " not in first.form + second.form


def _may_be_half(name: Name, counts: Counter[str]) -> bool:
    """Whether a name is a word with a capital that the document has once, and that names nothing else."""
    title = title_of(name.form)
    is_known = title in GIVEN_NAMES or title in load_places() or title in load_organizations() | load_programs()
    return name.form.istitle() and name.form.isalpha() and counts[name.form] == 1 and not is_known
