"""Tying the ways one document writes a name to one form: "Mr. Scrooge" and "Scrooge" to "Ebenezer Scrooge".

Only where the document leaves no doubt: a short name with two full names that it could stand for stays itself. Wrong
ties are worse than missed ones, and `resolution.py` gets another chance with the whole corpus.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import regex

from graphrag_pipeline.indexing.gazetteer import load_places
from graphrag_pipeline.indexing.name_cues import EPITHETS, FEMALE_HONORIFICS, HONORIFICS, LEGAL_SUFFIXES, RANKS, REGAL
from graphrag_pipeline.indexing.name_types import ORGANIZATION, PERSON, UNKNOWN
from graphrag_pipeline.indexing.names import Name, title_of

_ACRONYM_AFTER = regex.compile(r"\s*\(\s*[\"“]?((?:\p{Lu}[.&]?){2,8}s?)[\"”]?\s*[),;]")
_HELD = regex.compile(r"(.+)('s \p{Ll}[\p{Ll}' ]*)$")


def tie_names(names: Iterable[Name], types: dict[str, str], text: str) -> dict[str, str]:
    """The form that stands for each written form of one document.

    Args:
        names: every place where the document names something.
        types: type by written form.
        text: the document.
    """
    names = list(names)
    counts = Counter(name.form for name in names)
    chosen = _choose_spellings(counts)
    kept = _sum_counts(counts, chosen)
    kept_types = {chosen[form]: kind for form, kind in sorted(types.items(), key=lambda item: item[1] == UNKNOWN)[::-1]}
    ties = _tie_persons(kept, kept_types) | _tie_organizations(kept, kept_types)
    ties |= {chosen.get(short, short): chosen.get(long, long) for short, long in find_acronyms(names, text).items()}
    return {form: _tie_held(_follow(spelling, ties), ties) for form, spelling in chosen.items()}


def find_acronyms(names: Iterable[Name], text: str) -> dict[str, str]:
    """Acronyms that the text introduces itself: "World Health Organization (WHO)"."""
    found = {}
    for name in names:
        match = _ACRONYM_AFTER.match(text, name.end) if " " in name.form else None
        if match and is_acronym_of(match.group(1), name.form):
            found[match.group(1)] = name.form
    return found


def is_acronym_of(short: str, long: str) -> bool:
    """Whether the capitals of `short` are the initials of the words of `long`, small words counted or not."""
    letters = "".join(letter for letter in short if letter.isupper())
    words = regex.findall(r"[\p{L}\p{M}]+", long)
    initials = "".join(word[0] for word in words).upper()
    capitals = "".join(word[0] for word in words if word[0].isupper())
    return len(letters) > 1 and letters in (initials, capitals)


def _choose_spellings(counts: Counter[str]) -> dict[str, str]:
    """Of the forms with one key, the most frequent that is not all in capitals."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for form in counts:
        groups[title_of(form)].append(form)
    chosen = {}
    for forms in groups.values():
        best = min(forms, key=lambda form: (form.isupper(), -counts[form], form))
        chosen.update(dict.fromkeys(forms, best))
    return chosen


def _sum_counts(counts: Counter[str], chosen: dict[str, str]) -> Counter[str]:
    total: Counter[str] = Counter()
    for form, count in counts.items():
        total[chosen[form]] += count
    return total


def _follow(form: str, ties: dict[str, str]) -> str:
    seen = {form}
    while form in ties and ties[form] not in seen:
        form = ties[form]
        seen.add(form)
    return form


def _tie_held(form: str, ties: dict[str, str]) -> str:
    """ "Mr. Scrooge's nephew" is "Scrooge's nephew"; the owner's short name stays, it is how people say it."""
    match = _HELD.match(form)
    if match is None:
        return form
    words = match.group(1).split()
    while len(words) > 1 and _key(words[0]) in HONORIFICS - FEMALE_HONORIFICS:
        words = words[1:]
    return " ".join(words) + match.group(2)


def _key(word: str) -> str:
    return word.upper().rstrip(".")


def split_honorifics(form: str, known: Iterable[str] = ()) -> tuple[list[str], list[str]]:
    """(honorifics, rest) of a person's name; an epithet ("Old") counts as one if the rest is known without it."""
    words = form.split()
    n = 0
    while n < len(words) - 1:
        key = _key(words[n])
        is_epithet = key in EPITHETS and " ".join(words[n + 1 :]) in known
        is_rank = key in RANKS and _key(words[n + 1]) in HONORIFICS
        if not (is_epithet or is_rank) and (key not in HONORIFICS or key in REGAL):
            break
        n += 1
    return words[:n], words[n:]


def _tie_persons(counts: Counter[str], types: dict[str, str]) -> dict[str, str]:
    people = [form for form in counts if types[form] in (PERSON, UNKNOWN) and " of " not in form and "'s " not in form]
    parts = {form: split_honorifics(form, counts) for form in people}
    full = _full_names(counts, types, parts)
    ties = {}
    for form, (honorifics, rest) in parts.items():
        bare = " ".join(rest)
        if len(rest) > 1:
            ties[form] = full.get(_ends(rest), bare)
            continue
        match = _only_full_name(rest[0], honorifics, full)
        if match is not None:
            ties[form] = match
        elif honorifics and bare in counts and not _is_female(honorifics):
            ties[form] = bare
    return {short: long for short, long in ties.items() if short != long}


def _ends(rest: list[str]) -> tuple[str, str]:
    return title_of(rest[0]), title_of(rest[-1])


def _is_female(honorifics: list[str]) -> bool:
    return any(_key(word) in FEMALE_HONORIFICS for word in honorifics)


def _full_names(
    counts: Counter[str], types: dict[str, str], parts: dict[str, tuple[list[str], list[str]]]
) -> dict[tuple[str, str], str]:
    """(first, last word) -> the form that stands for it, where all forms with these ends can be one person's."""
    groups: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for form, (_, rest) in parts.items():
        if len(rest) > 1 and types[form] == PERSON:
            groups[_ends(rest)][" ".join(rest)] += counts[form]
    full = {}
    for ends, forms in groups.items():
        with_middle = [form for form in forms if len(form.split()) > 2]
        if len(with_middle) <= 1:
            full[ends] = min(forms, key=lambda form: (-forms[form], form))
    return full


def _only_full_name(word: str, honorifics: list[str], full: dict[tuple[str, str], str]) -> str | None:
    key = title_of(word)
    given = {form for (first, _), form in full.items() if first == key}
    family = {form for (_, last), form in full.items() if last == key}
    candidates = given if _is_female(honorifics) else given | family
    return next(iter(candidates)) if len(candidates) == 1 else None


def _tie_organizations(counts: Counter[str], types: dict[str, str]) -> dict[str, str]:
    """ "Apple Inc" to "Apple", and "Harvard" to "Harvard University", where both are written."""
    organizations = [form for form in counts if types[form] == ORGANIZATION and " " in form]
    ties = {}
    starts: defaultdict[str, set[str]] = defaultdict(set)
    for form in organizations:
        words = form.replace(",", "").split()
        if _key(words[-1]) in LEGAL_SUFFIXES and " ".join(words[:-1]) in counts:
            ties[form] = " ".join(words[:-1])
        elif " of " not in form:
            starts[words[0]].add(form)
    for short, longs in starts.items():
        if len(longs) == 1 and types.get(short) in (ORGANIZATION, UNKNOWN) and title_of(short) not in load_places():
            ties[short] = next(iter(longs))
    return ties
