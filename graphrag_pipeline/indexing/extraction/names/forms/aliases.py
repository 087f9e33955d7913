"""Canonical forms of the names in one document: "Mr. Scrooge" and "Scrooge" become "Ebenezer Scrooge".

Forms are linked only if the document is unambiguous. A short name that matches two full names keeps its form, because a
wrong link is worse than a missing one. Entity resolution (`indexing/graph/resolution.py`) later compares the whole
corpus.

Keep out: forms of persons' names (`person_forms.py`), places (`finder.py`) and types (`types/`) of names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise

import regex

from graphrag_pipeline.indexing.extraction.names.cues import (
    ACRONYMS,
    BODIES,
    FEMALE_HONORIFICS,
    HONORIFICS,
    LEGAL_SUFFIXES,
    STORMS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.forms.person_forms import (
    key_of,
    link_persons,
    link_unsure,
    may_be_short,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, is_also_a_word, title_of
from graphrag_pipeline.indexing.extraction.names.types.word_types import (
    CONCEPT,
    ORGANIZATION,
    PERSON,
    UNKNOWN,
    cut_legal_form,
    type_by_words,
)
from graphrag_pipeline.text.late_patterns import late_regex

_ACRONYM = r"[\"“]?((?:\p{Lu}[.&]?){2,8}(?:e?s)?)[\"”]?"
_ACRONYM_AFTER = late_regex(rf"\s*\(\s*{_ACRONYM}\s*[),;]|,\s+(?:or|oder|ou|o)\s+{_ACRONYM}(?=[,;.)])")
_KNOWN_AS = late_regex(
    r",\s(?:(?:also|better|widely|popularly|commonly|locally)\s)?(?:known|nicknamed)\s"
    r"(?:as|by\s(?:its|his|her|their|the)\s(?:\p{L}+\s)?(?:initials|acronym|nickname|abbreviation))\s(?:the\s)?[\"“'‘]?"
)
_ABOUT_TAILS = words(
    "foundation association society committee council institute museum federation alliance union consortium group "
    "project team community"
)
_SHORT_TAILS = BODIES | words("""
society association club trust union gazette observer herald chronicle examiner telegraph mercury advertiser times
tribune wanderers rovers united athletic albion hotspur hospital school college university library foundation
""")
"""Last words of a body's name that name it alone later in the document."""
_KIN_IN_FIRMS = words("sons co company brothers daughters partners")
_SHORT_BODIES = {"CREDIT UNION", "BUILDING SOCIETY", "ALLOTMENT SOCIETY", "DRAINAGE BOARD", "HOUSING ASSOCIATION"} | {
    f"{kind} COUNCIL" for kind in ("PARISH", "TOWN", "CITY", "COUNTY", "DISTRICT", "BOROUGH")
}
_TERM_TYPES = frozenset({CONCEPT, UNKNOWN})
_MOST_GIVEN = 2  # times as often named alone, and first: "Kobopay" is not "Kobopay Credit"
_MAX_INITIALS = 6
_MAX_CODE = 3  # letters of a place's abbreviation
_SHORT_CODE = late_regex(r"\p{Lu}{1,2}\d{1,2}")
_NAMED = STORMS | words("copa coppa")
_VERSUS = late_regex(r" v\.? ")
_HELD = late_regex(r"(.+)('s \p{Ll}[\p{Ll}' ]*)$")


def find_canonical_forms(
    names: Iterable[Name], types: dict[str, str], acronyms: Mapping[str, str], language: str = ""
) -> dict[str, str]:
    """Return the canonical form of each written form of one document.

    Args:
        names: every occurrence of a name in the document.
        types: type by written form.
        acronyms: short -> long form of the acronyms that the text defines.
        language: as `detect_language` names it; "M." is an honorific in French only.
    """
    names = list(names)
    counts = Counter(name.form for name in names)
    chosen = _choose_spellings(counts)
    kept = _sum_counts(counts, chosen)
    known = [(form, kind) for form, kind in types.items() if form in chosen]
    kept_types = {chosen[form]: kind for form, kind in sorted(known, key=lambda item: item[1] == UNKNOWN)[::-1]}
    places = {chosen[name.form]: name.start for name in reversed(names)}
    links = (
        link_unsure(kept, kept_types, places)
        | link_persons(kept, kept_types, places, language)
        | _link_organizations(kept, kept_types, places)
    )
    links |= {chosen.get(short, short): chosen.get(long, long) for short, long in acronyms.items()}
    links |= _link_cases(kept_types, places) | _link_storms(kept_types)
    links |= _link_owned(kept_types, links)
    links |= _link_initials(kept_types, links)
    links |= _link_codes(kept_types, links)
    return {form: _link_held(_follow(spelling, links), links) for form, spelling in chosen.items()}


def find_acronyms(names: Iterable[Name], text: str) -> dict[str, str]:
    """Return acronym -> name where the text defines it: "World Health Organization (WHO)", "..., or WHO, ..."."""
    names = list(names)
    found = {
        after.form: name.form
        for name, after in pairwise(names)
        if after.start > name.end and _KNOWN_AS.fullmatch(text, name.end, after.start)
    }
    for name in names:
        is_place = title_of(name.form) in load_places()
        match = _ACRONYM_AFTER.match(text, name.end) if " " in name.form or is_place else None
        if match is None:
            continue
        bracketed, after_or = match.groups()
        if is_place and bracketed and _abbreviates(bracketed, name.form):  # "Connecticut (CT)"
            found[bracketed] = name.form
            continue
        if " " not in name.form:
            continue
        short = bracketed or after_or
        is_spelled = is_acronym_of(short, name.form) or (bracketed and _is_spelled_along(short, name.form))
        is_spelled = is_spelled or bool(bracketed and _skips_one_word(short, name.form))
        if is_spelled or _is_institution(short, name.form):
            found[short] = name.form
            if not short.isupper():  # "Autonomous Systems (ASes)"
                found.setdefault(short.rstrip("es"), name.form)
    return found


def _abbreviates(short: str, place: str) -> bool:
    """Whether the capitals of `short` are letters of a place in this order, its first one included."""
    letters = iter(place.upper())
    return short[0] == place[0] and len(short) <= _MAX_CODE and all(letter in letters for letter in short)


def _skips_one_word(short: str, long: str) -> bool:
    """Whether an acronym has the initials of a name but for one: "Volume Shadow Copy Service (VSS)"."""
    initials = "".join(word[0] for word in long.split() if word[0].isupper())
    shorter = {initials[:n] + initials[n + 1 :] for n in range(1, len(initials))}
    return len(short) > 2 and short in shorter


def _is_institution(short: str, long: str) -> bool:
    """Whether a long form is an institution, whose acronym may have other letters: "Hamburg Port Authority (HAPA)"."""
    return len(short) > 2 and long.count(" ") > 1 and short[0] == long[0] and type_by_words(long) == ORGANIZATION


def is_acronym_of(short: str, long: str) -> bool:
    """Whether the capitals of `short` are the initials of the words of `long`.

    Words in lower case and a legal form at the end are optional: "IBM" is "International Business Machines
    Corporation".
    """
    letters = "".join(letter for letter in short if letter.isupper())
    words = regex.findall(r"[\p{L}\p{M}]+", long)
    spellings = [words, words[:-1]] if words and words[-1].upper() in LEGAL_SUFFIXES else [words]
    initials = {"".join(word[0] for word in spelling).upper() for spelling in spellings}
    capitals = {"".join(word[0] for word in spelling if word[0].isupper()) for spelling in spellings}
    return len(letters) > 1 and letters in initials | capitals


def _is_spelled_along(short: str, long: str) -> bool:
    """Whether the letters of `short` start the words of `long`, and some are inside a word, as in German compounds.

    "EZB" is "Europäische Zentralbank".
    """
    words = [word for word in regex.findall(r"[\p{L}\p{M}]+", long) if word[0].isupper()]
    letters = [letter for letter in short if letter.isupper()]
    if len(words) < 2 or len(letters) <= len(words):
        return False
    return regex.fullmatch("[^ ]*? ?".join(letters) + "[^ ]*", " ".join(words).upper()) is not None


def _choose_spellings(counts: Counter[str]) -> dict[str, str]:
    """Choose, of the forms with one key, the most frequent one that is not all in capitals."""
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


def _follow(form: str, links: dict[str, str]) -> str:
    seen = {form}
    while form in links and links[form] not in seen:
        form = links[form]
        seen.add(form)
    return form


def _link_held(form: str, links: dict[str, str]) -> str:
    """Drop honorifics: "Mr. Scrooge's nephew" becomes "Scrooge's nephew", with the short name of the owner."""
    match = _HELD.match(form)
    if match is None:
        return form
    owner = match.group(1).split()
    while len(owner) > 1 and key_of(owner[0]) in HONORIFICS - FEMALE_HONORIFICS:
        owner = owner[1:]
    return " ".join(owner) + match.group(2)


def _link_owned(types: Mapping[str, str], links: Mapping[str, str]) -> dict[str, str]:
    """Link a long term, or its plural, to itself with its owner's acronym: "General Public License" to "GNU ..."."""
    owned: defaultdict[str, set[str]] = defaultdict(set)
    for form in types:
        owner, _, rest = form.partition(" ")
        if owner.isupper() and len(owner) > 1 and rest.count(" ") > 1:
            owned[rest].add(form)
    found = {}
    for form, kind in types.items():
        longs = owned.get(form) or owned.get(form.removesuffix("s"), set())
        if kind in _TERM_TYPES and form not in links and len(longs) == 1:
            found[form] = min(longs)
    return found


def _link_cases(types: Mapping[str, str], places: Mapping[str, int]) -> dict[str, str]:
    """Link the word by which a text cites a case afterwards: "Ferreira" of "Attorney General v Ferreira"."""
    parts = Counter(word for form in types for word in set(form.split()))
    found: defaultdict[str, set[str]] = defaultdict(set)
    for case in types:
        for party in _VERSUS.split(case) if types[case] == CONCEPT and _VERSUS.search(case) else ():
            for word in {party.split()[0], party.split()[-1]}:
                if word in types and parts[word] == 2 and places[word] > places[case]:
                    found[word].add(case)
    return {word: min(cases) for word, cases in found.items() if len(cases) == 1}


def _link_storms(types: Mapping[str, str]) -> dict[str, str]:
    """Link the name of a storm or a cup to its full form: "Dikeledi" to "Cyclone Dikeledi"."""
    longs = {form.split()[-1]: form for form in types if form.count(" ") == 1 and title_of(form).split()[0] in _NAMED}
    return {form: longs[form] for form in types if form in longs and title_of(form) not in load_places()}


def _link_initials(types: Mapping[str, str], links: Mapping[str, str]) -> dict[str, str]:
    """Link an acronym of three letters or more that only one name has as its initials, and "GNU GPL" after "GPL"."""
    able = {form for form, kind in types.items() if kind in _TERM_TYPES or kind == ORGANIZATION}
    follow = dict(links)
    longs = [form for form in able if " " in form and all(len(word) > 1 for word in form.split())]
    found = {}
    for form in sorted(able):
        owner, _, short = form.rpartition(" ")
        least = 2 if form in ACRONYMS and types[form] == ORGANIZATION else 3  # "EU"
        if not (least <= len(short) <= _MAX_INITIALS and short.isalpha() and short.isupper()) or form in links:
            continue
        start = f"{owner} " if owner else ""
        fitting = {
            _follow(long, follow)
            for long in longs
            if long.count(" ") > least - 2 and long.startswith(start) and is_acronym_of(short, long.removeprefix(start))
        }
        if len(fitting) == 1:
            found[form] = min(fitting)
    return {short: long for short, long in found.items() if short != long}


def _link_codes(types: Mapping[str, str], links: Mapping[str, str]) -> dict[str, str]:
    """Link a short code to the only name that ends with it: "S3" to "Amazon S3"."""
    longs: defaultdict[str, set[str]] = defaultdict(set)
    for form, kind in types.items():
        owner, _, code = form.rpartition(" ")
        if owner.isalpha() and not is_also_a_word(owner) and kind in _TERM_TYPES and _SHORT_CODE.fullmatch(code):
            longs[code].add(form)
    return {
        code: min(forms)
        for code, forms in longs.items()
        if len(forms) == 1 and types.get(code) in _TERM_TYPES and code not in links
    }


def _link_organizations(counts: Counter[str], types: dict[str, str], places: Mapping[str, int]) -> dict[str, str]:
    """Link "Apple Inc" to "Apple", and "Harvard" to "Harvard University", if the document contains both."""
    organizations = [form for form in counts if types[form] == ORGANIZATION and " " in form]
    surnames = {form.split()[-1] for form in counts if types[form] == PERSON and " " in form}
    links = {}
    starts: defaultdict[str, set[str]] = defaultdict(set)
    for form in organizations:
        words = form.replace(",", "").split()
        if key_of(words[-1]) in LEGAL_SUFFIXES and " ".join(words[:-1]) in counts:
            links[form] = " ".join(words[:-1])
        elif " of " not in form and not _joins_two(form):
            starts[words[0]].add(form)
    for short in counts:
        bodies = [form for form in organizations if short in form.split()]
        if short.upper() in BODIES and len(bodies) == 1 and bodies[0].startswith(f"{short} of "):
            links[short] = bodies[0]  # "the Board" of "Board of Trustees"
        elif short.upper() in _SHORT_TAILS and len(bodies) == 1 and _ends_with(bodies[0], short):
            links[short] = bodies[0]  # "the Observer" of "Harwick Observer"
        elif short.upper() in _SHORT_BODIES and short not in links:  # "the Credit Union"
            longs = {form for form in organizations if form.endswith(f" {short}")}
            links |= {short: min(longs)} if len(longs) == 1 else {}
    for short, longs in starts.items():
        is_other = short in surnames or title_of(short) in load_places()
        if len(longs) != 1 or is_other:
            continue
        (long,) = longs
        is_about = key_of(long.split()[-1]) in _ABOUT_TAILS  # the Python Software Foundation is not Python
        is_named_after = is_about and counts[short] > counts[long]
        is_older = (
            places.get(short, 0) < places[long] and counts[short] > _MOST_GIVEN * counts[long]
        )  # the parent of a firm
        if is_older and not cut_legal_form(long):
            continue
        is_unsure = types.get(short) in (UNKNOWN, CONCEPT) and not is_about
        if is_unsure and places[short] < places[long] and not may_be_short(short, long, counts, places):
            continue  # "Debian" is not "Debian Security Advisories"
        if (types.get(short) == ORGANIZATION and not is_named_after) or is_unsure:
            links[short] = long
    return links


def _joins_two(form: str) -> bool:
    """Whether "and" joins two names in one: "Saltby and District Drainage Board" is not Saltby; "Ball and Sons" is."""
    _, _, second = form.partition(" and ")
    return bool(second) and second.upper().rstrip(".") not in _KIN_IN_FIRMS


def _ends_with(long: str, short: str) -> bool:
    """Whether a word is the last of a name, and no part of it of its own: not "Parliament" of "Act of Parliament"."""
    return long.endswith(f" {short}") and not long.endswith((f" of {short}", f" of the {short}", f" for {short}"))
