"""Canonical forms of the names of one document: "Mr. Scrooge" and "Scrooge" become "Ebenezer Scrooge".

Forms are linked only if the document leaves no doubt: a short name that fits two full names keeps its form, because a
wrong link is worse than a missing one. Resolution (`indexing/graph/resolution.py`) later compares the whole corpus.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.text.name_words import (
    CONCEPT,
    FEMALE_GIVEN_NAMES,
    FEMALE_HONORIFICS,
    GEO,
    LEGAL_SUFFIXES,
    MALE_HONORIFICS,
    PERSON,
    UNKNOWN,
    is_acronym_of,
    key_of,
    split_honorifics,
)

_LEAST_ACRONYM = 3
"""Letters of an acronym that is linked to a long form without a definition."""


def link_forms(counts: Mapping[str, int], types: Mapping[str, str], acronyms: Mapping[str, str]) -> dict[str, str]:
    """Return the canonical form of each written form of one document.

    Args:
        counts: occurrences of each form.
        types: type of each form.
        acronyms: short -> long form of the acronyms that the document defines.
    """
    chosen = _choose_spellings(counts)
    kinds = {spelling: types.get(spelling, UNKNOWN) for spelling in chosen.values()}
    links = _link_persons(kinds) | _link_companies(kinds) | _link_acronyms(kinds)
    links |= {chosen.get(short, short): chosen.get(long, long) for short, long in acronyms.items()}
    return {form: _follow(spelling, links) for form, spelling in chosen.items()}


def _choose_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """Return for each form the most frequent one of the same title that is not all in capitals."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for form in counts:
        groups[normalize_title(form)].append(form)
    best = {
        title: min(forms, key=lambda form: (form.isupper(), -counts[form], form)) for title, forms in groups.items()
    }
    return {form: best[title] for title, forms in groups.items() for form in forms}


def _link_persons(kinds: Mapping[str, str]) -> dict[str, str]:
    """Link "Scrooge", "Mr. Scrooge" and "Ebenezer" to the only full name that ends or starts with the word.

    A form of address is no part of a full name. It shows the sex: "Mrs. Cratchit" is not Bob Cratchit.
    """
    addressed: defaultdict[str, set[str]] = defaultdict(set)
    full: defaultdict[str, set[str]] = defaultdict(set)
    links = {}
    for form, kind in kinds.items():
        honorifics, rest = split_honorifics(form)
        if len(rest) < 2 or kind not in (PERSON, UNKNOWN) or (kind == UNKNOWN and not honorifics):
            continue
        bare = " ".join(rest)
        addressed[bare] |= {key_of(word) for word in honorifics}
        full[rest[0]].add(bare)
        full[rest[-1]].add(bare)
        if honorifics:
            links[form] = bare
    for form, kind in kinds.items():
        honorifics, rest = split_honorifics(form)
        if len(rest) == 1 and kind in (PERSON, UNKNOWN, GEO):
            keys = {key_of(word) for word in honorifics}
            fitting = [name for name in full[rest[0]] if _may_address(keys, rest[0], name, addressed[name])]
            if len(fitting) == 1:
                links[form] = fitting[0]
            elif not fitting and keys and not keys & FEMALE_HONORIFICS and rest[0] in kinds:
                links[form] = rest[0]
    return links


def _may_address(honorifics: set[str], word: str, full: str, known: set[str]) -> bool:
    """Whether forms of address before a word may mean a full name, which the document has with `known` ones."""
    if honorifics and not full.endswith(word):
        return False
    is_woman = bool(known & FEMALE_HONORIFICS) or full.split()[0].upper() in FEMALE_GIVEN_NAMES
    return is_woman if honorifics & FEMALE_HONORIFICS else not (is_woman and honorifics & MALE_HONORIFICS)


def _link_companies(kinds: Mapping[str, str]) -> dict[str, str]:
    """Link "Apple Inc." to "Apple" if the document has both."""
    links = {}
    for form in kinds:
        bare, _, last = form.replace(",", "").rpartition(" ")
        if key_of(last) in LEGAL_SUFFIXES and bare in kinds:
            links[form] = bare
    return links


def _link_acronyms(kinds: Mapping[str, str]) -> dict[str, str]:
    """Link an acronym to the only name of the document with its initials."""
    names = [form for form, kind in kinds.items() if " " in form and kind != PERSON]
    links = {}
    for form, kind in kinds.items():
        if form.isupper() and form.isalpha() and len(form) >= _LEAST_ACRONYM and kind != PERSON:
            fitting = {name for name in names if is_acronym_of(form, name)}
            if len(fitting) == 1:
                links[form] = min(fitting)
    return links


def _follow(form: str, links: Mapping[str, str]) -> str:
    seen = {form}
    while form in links and links[form] not in seen:
        form = links[form]
        seen.add(form)
    return form


def vote_types(counts: Mapping[str, int], types: Mapping[str, str], links: Mapping[str, str]) -> dict[str, str]:
    """Return the type of each canonical form: that of most occurrences of its forms, known types first.

    A name with a form of address is a person's.
    """
    votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    addressed = set()
    for form, canonical in links.items():
        votes[canonical][types.get(form, UNKNOWN)] += counts.get(form, 1)
        if types.get(form) == PERSON and split_honorifics(form)[0]:
            addressed.add(canonical)
    return {
        form: PERSON
        if form in addressed
        else min(found, key=lambda kind: (kind == UNKNOWN, kind == CONCEPT, -found[kind], kind))
        for form, found in votes.items()
    }
