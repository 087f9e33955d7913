"""Forms of one person's name in one document: "Mr. Scrooge" and "Scrooge" are "Ebenezer Scrooge".

A short name is linked only if one full name of the document fits it: by its words, its honorifics and their sex, and
the order in which both are named. Keep out: forms of other names (`aliases.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import takewhile

import regex

from graphrag_pipeline.indexing.extraction.names.capitalization import is_common_word, token_rank
from graphrag_pipeline.indexing.extraction.names.cues import (
    DESCRIBING_HONORIFICS,
    EPITHETS,
    FEMALE_GIVEN_NAMES,
    FEMALE_HONORIFICS,
    GIVEN_NAMES,
    HONORIFICS,
    INITIAL_HONORIFICS,
    JUDGES,
    LONERS,
    MALE_HONORIFICS,
    POSTNOMINALS,
    RANKS,
    REGAL,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.types.word_types import ADJECTIVE_ENDINGS, PERSON, UNKNOWN
from graphrag_pipeline.text.late_patterns import late_regex

_INITIALS = late_regex(r"(?:\p{Lu}\.)+")
_NOT_ONE = late_regex(r" of |'s | and ", regex.IGNORECASE)  # "Vesely and Meisl" are two
_ADDRESSES = MALE_HONORIFICS | FEMALE_HONORIFICS | EPITHETS | words("dr frau fräulein messrs")
_IN_PLACE = late_regex(r"\b(?:in|at|to|from|near)\s+$")
_MAX_IN_PLACE = 4  # one of so many occurrences of the surname
_MOST_GIVEN = 4  # times as frequent as the full name: a first word of unknown type, unlike "Debian" of "Debian Jessie"
_JOBS = words("justices judges professors drs cllrs goalkeeper striker coach director engineer prefect")
_UNMARRIED = frozenset({"MISS", "MS"})
_OF_BOTH = words("""
alex alexis ali andrea ashley aubrey avery bailey beverley blair cameron charlie chris dana evelyn frances gabriel
hilary jamie jean jo jordan jude kay kelly kerry kim kit lee leigh leslie lesley lindsay lou lynn marion morgan nicky
nicola pat quinn ray riley robin rowan sam sandy sasha sidney stacey stevie taylor terry toni tracy val vivian
""")
_FRAU = frozenset({"FRAU", "FRÄULEIN"})
_MIN_RANK = 60_000  # of a rare word in lower case (see `capitalization.token_rank`): "homer", not "award"
_MIN_CAPITAL_RANK = 100_000  # of a rare word with a capital; names of companies and places are commoner


def key_of(word: str) -> str:
    """Return a word as lists of honorifics have it: in capitals, without a full stop."""
    return word.upper().rstrip(".")


def split_honorifics(form: str, known: Iterable[str] = (), language: str = "") -> tuple[list[str], list[str]]:
    """Split a person's name into (honorifics, rest); an epithet ("Old") counts as one if the rest is in `known`."""
    words = form.split()
    initials = INITIAL_HONORIFICS.get(language, frozenset())
    n = 0
    while n < len(words) - 1:
        key = key_of(words[n])
        is_epithet = key in EPITHETS and " ".join(words[n + 1 :]) in known
        is_rank = key in RANKS and key_of(words[n + 1]) in HONORIFICS
        # "General Public License"
        is_describing = key in DESCRIBING_HONORIFICS and is_common_word(key_of(words[n + 1]))
        is_address = (key in HONORIFICS and key not in REGAL and not is_describing) or key in initials
        if not (is_epithet or is_rank or is_address):
            break
        n += 1
    while len(words) > n + 1 and _is_postnominal(words, n):
        words = words[:-1]
    return words[:n], words[n:]


def _is_postnominal(words: list[str], n_honorifics: int) -> bool:
    """Whether the last word is a degree or an office behind a name: "Rosalind Amery KC", "Lorne JA", not "Tom J"."""
    key = words[-1].replace(".", "")
    n_names = len(words) - 1 - n_honorifics
    return (key in POSTNOMINALS and (n_names > 1 or n_honorifics > 0)) or (
        key in JUDGES and n_names == 1 and title_of(words[0]) not in GIVEN_NAMES
    )


def link_persons(
    counts: Counter[str], types: dict[str, str], places: Mapping[str, int], language: str
) -> dict[str, str]:
    """Link short names and names with an honorific to the only full name that fits.

    Args:
        counts: occurrences by form.
        types: type by form; persons and unknown ones are linked.
        places: first offset of each form.
        language: as `detect_language` names it.
    """
    people = [form for form in counts if types[form] in (PERSON, UNKNOWN) and not _NOT_ONE.search(form)]
    parts = {form: split_honorifics(form, counts, language) for form in people}
    full = _full_names(counts, types, parts)
    titles: defaultdict[str, set[str]] = defaultdict(set)
    for honorifics, rest in parts.values():
        titles[" ".join(rest)].update(map(key_of, honorifics))
    written = {title_of(form): form for form in counts}
    links = {}
    for form, (honorifics, rest) in parts.items():
        bare = written.get(title_of(" ".join(rest)), " ".join(rest))
        if len(rest) > 1 and not rest[0].islower():  # "van Gogh" is a last name
            links[form] = full.get(_ends(rest), bare)
            continue
        candidates = _full_names_with(rest[-1], honorifics, full, titles)
        if not candidates and _is_female(honorifics):
            candidates = _find_woman(key_of(honorifics[0]), rest[-1], full, places, places.get(form, 0))
        possible = {
            name
            for name in candidates
            if not _is_other_sex(honorifics, name)
            and (titles[name] or not _has_title(honorifics) or places.get(name, 0) < places[form])
            and (types[form] == PERSON or may_be_short(form, name, counts, places))
        }
        if len(possible) == 1:
            links[form] = next(iter(possible))
        elif honorifics and all(key_of(word) in _JOBS for word in honorifics):  # "Goalkeeper Weverton"
            links[form] = bare
        elif bare in counts and not _is_female(honorifics) and (possible == candidates or not honorifics):
            links[form] = bare  # "Lorne JA", and "Lorne"
    return {short: long for short, long in links.items() if short != long}


def may_be_short(short: str, full: str, counts: Mapping[str, int], places: Mapping[str, int]) -> bool:
    """Whether a word without evidence of its own may be short for a name: it follows it, or is not much more frequent.

    "Popen" is not "Windows Popen", which the text names later, and "Debian" not "Debian Jessie", which it begins.

    Args:
        counts: occurrences by form.
        places: first offset of each form.
    """
    is_after = not full.startswith(f"{short} ") and places.get(full, 0) <= places[short]
    return is_after or counts[short] <= _MOST_GIVEN * counts[full]


def _has_title(honorifics: list[str]) -> bool:
    """Whether an honorific is a title: "Captain Crane", named before "Tamsin Crane", may be another person."""
    return any(key_of(word) not in _ADDRESSES for word in honorifics)


def _ends(rest: list[str]) -> tuple[str, str]:
    """Return first and last word; initials are one word, so "J. R. R. Tolkien" equals "J.R.R. Tolkien"."""
    initials = "".join(takewhile(_INITIALS.fullmatch, rest[:-1])) if rest[0][-1] == "." else ""
    return title_of(initials or rest[0]).replace(".", ""), title_of(rest[-1]).removeprefix("AL-")


def _is_female(honorifics: list[str]) -> bool:
    return any(key_of(word) in FEMALE_HONORIFICS for word in honorifics)


def _is_other_sex(honorifics: list[str], full_name: str) -> bool:
    """Whether honorific and given name are of different sex: "Herr Schmidt" is not "Anna Schmidt"."""
    given = title_of(full_name.split()[0])
    keys = {key_of(word) for word in honorifics}
    if given in FEMALE_GIVEN_NAMES:
        return bool(keys & MALE_HONORIFICS)
    return given in GIVEN_NAMES and bool(keys & _FRAU)


def _full_names(
    counts: Counter[str], types: dict[str, str], parts: dict[str, tuple[list[str], list[str]]]
) -> dict[tuple[str, str], str]:
    """Return (first, last word) -> canonical form, if all forms with these words may name one person."""
    groups: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for form, (_, rest) in parts.items():
        if len(rest) > 1 and not rest[0].islower() and types[form] == PERSON:
            groups[_ends(rest)][" ".join(rest)] += counts[form]
    full = {}
    for ends, forms in groups.items():
        with_middle = [form for form in forms if len(form.split()) > 2]
        if len(with_middle) <= 1:
            full[ends] = min(forms, key=lambda form: (-forms[form], form))
    return full


def _full_names_with(
    word: str, honorifics: list[str], full: dict[tuple[str, str], str], titles: Mapping[str, set[str]]
) -> set[str]:
    """Return the full names that start or end with a word.

    After a feminine honorific they must start with it, because it may be the husband's name, or the text must write
    them with one ("Mrs Jean Tulloch"). "Miss" and "Ms." may also stand before the surname of anyone who may be a woman.

    Args:
        titles: honorifics that the text writes before a full name, in upper case.
    """
    key = title_of(word).removeprefix("AL-")  # "Burhan" of "Abdel Fattah al-Burhan"
    given = {form for (first, _), form in full.items() if first == key}
    family = {form for (_, last), form in full.items() if last == key}
    if not _is_female(honorifics):
        return given | family
    women = {form for form in family if titles.get(form, set()) & FEMALE_HONORIFICS}
    if any(key_of(honorific) in _UNMARRIED for honorific in honorifics):
        first = {form: title_of(form.split()[0]) for form in family}
        women |= {form for form in family if first[form] in FEMALE_GIVEN_NAMES}
        women = women or {form for form in family if first[form] not in GIVEN_NAMES and not titles.get(form)}
    return given | women


def _find_woman(
    honorific: str, surname: str, full: dict[tuple[str, str], str], places: Mapping[str, int], start: int
) -> set[str]:
    """Return the only full name with this surname that may be that of a woman with this honorific.

    "Ms" and "Miss" go with given names of both sexes ("Ms Boateng" is "Hilary Boateng"), "Mrs" only with those of
    women, and after the full name: "Mrs. Cratchit" may be named before her daughters.
    """
    key = title_of(surname)
    family = {form: first for (first, last), form in full.items() if last == key and places.get(form, start) < start}
    women = {form for form, first in family.items() if first in FEMALE_GIVEN_NAMES}
    if honorific in _UNMARRIED:
        women |= {form for form, first in family.items() if first in _OF_BOTH}
    return women if len(women) == 1 else set()


def find_subject_surname(subject: str, names: Iterable[Name], types: Mapping[str, str], text: str) -> set[str]:
    """Return the surname that stands alone for the person that a document is about: "Lincoln" of "Abraham Lincoln".

    Relatives bear the surname, too, and a city may. The surname alone is the person, unless it often follows "in" or
    "to".

    Args:
        subject: the title of the document as the text writes it, a person by `types`.
        names: every occurrence of a name in the document.
    """
    surname = subject.rsplit(" ", 1)[-1]
    alone = [name for name in names if name.form == surname and name.sentence >= 0]
    is_person = types.get(subject) == PERSON and " " in subject and surname.isalpha() and len(surname) > 1
    if not is_person or not alone or _NOT_ONE.search(subject) or set(surname) <= set("IVX"):
        return set()
    n_places = sum(_IN_PLACE.search(text, max(name.start - 8, 0), name.start) is not None for name in alone)
    return set() if n_places * _MAX_IN_PLACE > len(alone) else {surname}


def link_unsure(counts: Mapping[str, int], types: dict[str, str], places: dict[str, int]) -> dict[str, str]:
    """Link names of unknown type: "Scorpio" and "Homer" to "Hank Scorpio" and "Homer Simpson".

    A name is linked only to a single longer name with its word. A first word that is not a given name ("Toyota
    Corolla", "Serbian Cyrillic") must not be linked. Therefore the word must be rare in English and not an adjective,
    and the full name must come first.

    Args:
        counts: occurrences by form.
        types: type by form.
        places: first offset of each form.
    """
    if not any(kind == UNKNOWN and " " in form for form, kind in types.items()):
        return {}
    parts = {form: split_honorifics(form) for form in types}
    longer: defaultdict[str, set[str]] = defaultdict(set)
    for form, (_, rest) in parts.items():
        if len(rest) > 1:
            longer[rest[0]].add(form)
            longer[rest[-1]].add(form)
    links = {}
    for form, (honorifics, rest) in parts.items():
        if len(rest) > 1 or len(longer.get(rest[0], ())) != 1 or types[form] not in (PERSON, UNKNOWN):
            continue
        word, (full,) = rest[0], longer[rest[0]]
        if types[full] != UNKNOWN or _is_female(honorifics) or not _is_rare(word.lower(), _MIN_RANK):
            continue
        if not full.startswith(word) and not may_be_short(form, full, counts, places):
            continue
        is_fit = full.endswith(word) or (_may_be_given(word, full) and places[full] < places[form])
        if is_fit and _may_be_person(full):
            links[form] = full
    return links


def _may_be_person(form: str) -> bool:
    words = title_of(form).split()
    return (
        len(words) == 2
        and len(words[1]) > 2
        and not any(
            word in LONERS or word in load_places() or not word.isalpha() or is_common_word(word) for word in words
        )
    )


def _may_be_given(word: str, full: str) -> bool:
    is_adjective = word.upper().endswith(ADJECTIVE_ENDINGS)  # Serbian Cyrillic
    return _is_rare(word, _MIN_CAPITAL_RANK) and not is_adjective and not full.endswith("s")


def _is_rare(word: str, least: int) -> bool:
    rank = token_rank(word)
    return rank is None or rank >= least
