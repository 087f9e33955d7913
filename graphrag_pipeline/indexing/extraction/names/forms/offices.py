"""Offices without a holder: "the Foreign Minister", "a Member of Parliament", "Jo Hill (Estates Manager)".

Such words say what a person is, and are no entity of a report. Minutes name who acts by the office, so there only those
behind the names of a list are dropped.

Keep out: offices before a person (`affiliations.py`), single words for offices (`cues.OFFICES`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from itertools import pairwise

from graphrag_pipeline.indexing.extraction.names.affiliations import DOMAINS
from graphrag_pipeline.indexing.extraction.names.cues import (
    GIVEN_NAMES,
    HONORIFICS,
    NATIONALITIES,
    OFFICES,
    RANKS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_countries, load_places
from graphrag_pipeline.indexing.extraction.names.kind_nouns import PERSON_NOUN, kind_of
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.types.attendance import choose_attendees, find_rolls
from graphrag_pipeline.indexing.extraction.names.types.word_types import ORGANIZATION, type_by_words
from graphrag_pipeline.text.late_patterns import late_regex

_HELD = words("minister ministers president premier secretary commissioner chancellor governor mayor mp mps officer")
_OF_STATE = late_regex(
    r"MEMBERS? OF (?:THE )?(?:PARLIAMENT|CONGRESS)|SECRETAR(?:Y|IES) OF STATE|HEADS? OF STATE|CHIEFS? OF STAFF"
)
_DESCRIBING = RANKS | DOMAINS | NATIONALITIES | HONORIFICS | words("us uk eu un")
_ROLES = OFFICES | words("manager officer lead professional representative convener convenor")
_OF = late_regex(r"\sof\s(?:the\s)?")
_PARTIES = words("""
court county trust petitioner respondent appellant claimant plaintiff defendant committee crown
""")
_SENTENCE_END = late_regex(r"[\p{Ll})]{2}\.\s")
_ASIDE = late_regex(r"(?<=\p{L}) \(\p{Lu}[^()\n]{2,60}\)")


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
    held = {a for a, b in pairwise(names) if b.start - a.end == 2 and text.startswith(", ", a.end) and _holds(a, b)}
    names = [kept for name in names for kept in (_owners(name) if name in held else (name,))] if held else names
    if not attendees:
        return names
    rolls = find_rolls(text)
    ends = {match.end() - 1 for match in _ASIDE.finditer(text)}
    present = choose_attendees((name.form for name in names), attendees)
    kept = []
    for name in names:
        is_in_label = any(label <= name.start < start for label, start, _ in rolls)
        is_in_roll = any(
            start <= name.start < end and not _SENTENCE_END.search(text, start, name.start) for _, start, end in rolls
        )
        is_shown = name.form not in present and (name.end in ends or is_in_roll)
        is_role = _is_role(title_of(name.form)) or (is_in_roll and _has_role(name.form))
        if not is_in_label and not (is_shown and is_role):
            kept.append(name)
    return kept


def _holds(office: Name, holder: Name) -> bool:
    """Whether a person in an apposition holds an office: "the Minister for Ports, Graeme Dey,"."""
    given = title_of(holder.form).split()[0]
    return " " in office.form and " " in holder.form and given in GIVEN_NAMES and _is_role(title_of(office.form))


def _owners(office: Name) -> Iterator[Name]:
    """Yield the body or place behind an office: "Relief Society" of "President of the Relief Society"."""
    match = _OF.search(office.form)
    owner = office.form[match.end() :] if match else ""
    if match and (type_by_words(owner) == ORGANIZATION or title_of(owner) in load_places()):
        yield replace(office, form=owner, start=office.end - len(owner))


def _is_office(title: str) -> bool:
    *before, last = title.split()
    return bool(before) and last in _HELD and all(word in _DESCRIBING or word in load_countries() for word in before)


def _is_role(title: str) -> bool:
    """Whether a name is what a person is: "Finance Officer", "Convener", not "Environment Agency"."""
    words = title.split(" OF ")[0].split(" FOR ")[0].split()
    if words[0] in GIVEN_NAMES:  # "Jo Baker"
        return False
    return words[-1] in _ROLES or kind_of(words[-1].lower()) == PERSON_NOUN


def _has_role(form: str) -> bool:
    """Whether a word for a person is in a name that is no body: "Vice Principal Finance"."""
    words = title_of(form).split()
    return words[0] not in GIVEN_NAMES and not _ROLES.isdisjoint(words) and type_by_words(form) != ORGANIZATION


def drop_parties(names: Iterable[Name], links: Mapping[str, str]) -> list[Name]:
    """Return the names without single words for a party or the body itself, which stand for none of the full names.

    "The City claims immunity" and "the Committee thanked her" speak of what is named elsewhere, or nowhere.

    Args:
        links: canonical form of each written form.
    """
    return [name for name in names if title_of(name.form) not in _PARTIES or links[name.form] != name.form]
