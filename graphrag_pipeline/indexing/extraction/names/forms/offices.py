"""Offices without a holder: "the Foreign Minister", "a Member of Parliament", "Jo Hill (Estates Manager)".

Such words say what a person is, and are no entity of a report. Minutes name who acts by the office, so there only those
behind the names of a list are dropped.

Keep out: offices before a person (`affiliations.py`), single words for offices (`cues.OFFICES`).
"""

from __future__ import annotations

from collections.abc import Iterable, Set

import regex

from graphrag_pipeline.indexing.extraction.names.affiliations import DOMAINS
from graphrag_pipeline.indexing.extraction.names.cues import HONORIFICS, NATIONALITIES, OFFICES, RANKS, words
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_countries
from graphrag_pipeline.indexing.extraction.names.kind_nouns import PERSON_NOUN, kind_of
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.types.attendance import find_rolls

_HELD = words("minister ministers president premier secretary commissioner chancellor governor mayor mp mps officer")
_OF_STATE = regex.compile(
    r"MEMBERS? OF (?:THE )?(?:PARLIAMENT|CONGRESS)|SECRETAR(?:Y|IES) OF STATE|HEADS? OF STATE|CHIEFS? OF STAFF"
)
_DESCRIBING = RANKS | DOMAINS | NATIONALITIES | HONORIFICS | words("us uk eu un")
_ROLES = OFFICES | words("manager officer lead professional representative convener convenor")
_SEPARATORS = frozenset({", ", "- ", "– ", "— ", ": "})
_ASIDE = regex.compile(r"(?<=\p{L}) \(\p{Lu}[^()\n]{2,60}\)")


def drop_offices(names: Iterable[Name], text: str, attendees: Set[str]) -> list[Name]:
    """Return the names without offices of two words or more that no person holds in the text.

    Args:
        attendees: names in the attendance lists of the text. Their offices stand behind them in brackets.
    """
    names = list(names)
    forms = {name.form for name in names if " " in name.form}
    dropped = {form for form in forms if _OF_STATE.fullmatch(title_of(form))}
    if not attendees:
        dropped |= {form for form in forms if _is_office(title_of(form))}
    names = [name for name in names if name.form not in dropped] if dropped else names
    if not attendees:
        return names
    rolls = find_rolls(text)
    ends = {match.end() - 1 for match in _ASIDE.finditer(text)}
    return [
        name
        for name in names
        if not any(label <= name.start < start for label, start, _ in rolls)
        and not (
            (name.end in ends or any(start < name.start < end and _is_behind(name, text) for _, start, end in rolls))
            and _is_role(title_of(name.form))
        )
    ]


def _is_behind(name: Name, text: str) -> bool:
    """Whether a name in an attendance list stands behind another one: "Jo Hill, Estates Manager", "Bo Lee - Nurse"."""
    return text[max(name.start - 2, 0) : name.start] in _SEPARATORS


def _is_office(title: str) -> bool:
    *before, last = title.split()
    return bool(before) and last in _HELD and all(word in _DESCRIBING or word in load_countries() for word in before)


def _is_role(title: str) -> bool:
    """Whether a name is what a person is: "Finance Officer", "Convener", not "Environment Agency"."""
    head = title.split(" OF ")[0].split()[-1]
    return head in _ROLES or kind_of(head.lower()) == PERSON_NOUN
