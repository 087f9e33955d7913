"""Firms that two names make: "Accounts are examined by Moore and Smalley".

Two words that a document has nowhere else, joined by "and" behind "by", "with" or "from", are one firm in a document
that lists its persons; so are two surnames behind "of" and a person
who has one of them. Elsewhere they may be two authors.

Keep out: "and" before "Sons" or "Company" (`phrases.py`), two names with an ampersand (`types/word_types.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import regex

from graphrag_pipeline.indexing.extraction.names.brands import load_organizations, load_programs
from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.types.attendance import find_attendees

_BEHIND = regex.compile(r"(?:\b(?:by|with|through)|(?<!s\s)\bfrom)\s+$")
_PERSON_OF = regex.compile(r"\p{Lu}\p{Ll}+\s(\p{Lu}[\p{L}’'-]+),?\s+of\s+$")
_AND = regex.compile(r"\s+and\s+")
_LISTED = regex.compile(r",|\s+(?:and|of|in|at)\s+\p{Lu}")
_ADDED = regex.compile(r",?\s+and\s+\p{Lu}")


def join_firm_pairs(names: Sequence[Name], text: str) -> tuple[list[Name], set[str]]:
    """Return the names, with the two halves of each firm as one, and the forms of these firms."""
    if not find_attendees(text):
        return list(names), set()
    counts = Counter(word for name in names for word in name.form.split())
    pairs = {
        a: b
        for a, b in pairwise(names)
        if _is_pair(a, b, counts, text) and _AND.fullmatch(text, a.end, max(b.start, a.end))
        if not (_LISTED if not _is_partnership(a, b, text) else _ADDED).match(text, b.end)
    }
    seconds = set(pairs.values())
    joined = [
        replace(name, form=f"{name.form} and {pairs[name].form}", end=pairs[name].end) if name in pairs else name
        for name in names
        if name not in seconds
    ]
    return joined, {f"{a.form} and {b.form}" for a, b in pairs.items()}


def _is_pair(first: Name, second: Name, counts: Counter[str], text: str) -> bool:
    are_halves = _may_be_half(first, counts) and _may_be_half(second, counts)
    is_behind = are_halves and _BEHIND.search(text, max(first.start - 12, 0), first.start)
    return bool(is_behind) or _is_partnership(first, second, text)


def _is_partnership(first: Name, second: Name, text: str) -> bool:
    """Whether one of two surnames is that of the person before "of": "Lorna Pickles of Pickles and Dean"."""
    person = _PERSON_OF.search(text, max(first.start - 48, 0), first.start)
    return person is not None and person.group(1) in (first.form, second.form) and " " not in first.form + second.form


def _may_be_half(name: Name, counts: Counter[str]) -> bool:
    """Whether a name is a word with a capital that the document has once, and that names nothing else."""
    title = title_of(name.form)
    is_known = title in GIVEN_NAMES or title in load_places() or title in load_organizations() | load_programs()
    return name.form.istitle() and name.form.isalpha() and counts[name.form] == 1 and not is_known
