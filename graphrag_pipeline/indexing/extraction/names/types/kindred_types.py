"""Types of names that share a word or a list with another name of the document: "Hassan" beside "Fatuma Hassan".

Keep out: cues (`name_types.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from itertools import pairwise

from graphrag_pipeline.indexing.extraction.names.cues import (
    BUILDINGS,
    CLUB_HEADS,
    HEADS_ABROAD,
    HONORIFICS,
    LONERS,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    PLACE_HEADS,
    PLACE_HEADS_ABROAD,
    PLACE_TAILS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.terms.term_signs import is_code, is_common_noun
from graphrag_pipeline.indexing.extraction.names.types.word_types import EVENT, GEO, ORGANIZATION, PERSON, UNKNOWN
from graphrag_pipeline.text.late_patterns import late_regex

_MIN_ALONE_SHARE = 0.1  # of the occurrences of a given name that a verb of speaking shows to be one
_TOGETHER = late_regex(r",\s(?:not\s)?|,?\s(?:and|or|und|et|y|e)\s(?:the\s)?|\s(?:rather\sthan|instead\sof)\s")
_CLAUSE_AFTER = late_regex(r",\s(?:and|but)\s(?:\p{Lu}[\p{L}'’-]+\s){1,3}(?!(?:and|or|in|of|at|on)\b)\p{Ll}")
_CLAUSE = late_regex(r"\s(?:was|is|has|had|were|are|will|would|said|says)\s")
_MAX_ROUNDS = 3  # from name to name in a list
_MAX_BETWEEN = 14  # characters between two names that are listed together
_BEFORE_NAMES = ("River", "Lake", "Loch", "Mount")
_LOCAL_BODIES = words("council school club society commissioners parish police festival library board")
_BODY_CUES = {ORGANIZATION, "organization role", "trader", "club", "members", "agency"}
_NO_GIVEN_NAMES = HEADS_ABROAD | CLUB_HEADS | ORGANIZATION_HEADS | PLACE_HEADS | PLACE_HEADS_ABROAD | LONERS
_NO_SURNAMES = ORGANIZATION_TAILS | PLACE_TAILS | BUILDINGS
_MAX_PERSON = 3  # words
_PRIZES = words("award awards prize prizes medal medals chart charts")


def type_by_relatives(form: str, kind: str, heads: Set[str]) -> str:
    """Return PERSON for an unknown name that shares its head or singular with a person, else `kind`.

    "Ghost of Christmas Past" is a person if "Ghost" or another "Ghost of ..." is one, "Spirits" if "Spirit" is one.

    Args:
        heads: names of persons, up to the first "of".
    """
    if kind == UNKNOWN and any(
        form != head and head in heads for head in (form.split(" of ")[0], form.removesuffix("s"))
    ):
        return PERSON
    return kind


def type_by_last_words(
    types: Mapping[str, str], cues: Mapping[str, Counter[str]], is_explaining: bool = False
) -> dict[str, str]:
    """Return types of words that end the name of a person or organization: "Hassan" of "Fatuma Hassan", not in Hassan.

    A team is named by its last word: "the Lions" of "the Mombasa Lions".

    Args:
        is_explaining: whether the document is an explanation, where "Python" without a deed is no surname of "Monty
            Python".
    """
    ends: defaultdict[str, set[str]] = defaultdict(set)
    for form, kind in types.items():
        if kind in (PERSON, ORGANIZATION) and " " in form and " of " not in form and " for " not in form:
            ends[form.split()[-1]].add(kind)
    found = {}
    for form, kind in types.items():
        if len(ends[form]) != 1 or kind not in (GEO, UNKNOWN) or cues[form][GEO] or cues[form]["place role"]:
            continue
        end = min(ends[form])
        if end == PERSON and is_explaining and not cues[form][PERSON]:
            continue
        if end == PERSON or (
            form.endswith("s") and (cues[form]["named thing"] or (kind == UNKNOWN and not is_common_noun(form)))
        ):
            found[form] = end
    return found


def type_by_first_words(types: Mapping[str, str], cues: Mapping[str, Counter[str]]) -> dict[str, str]:
    """Return types of unknown words that begin the name of an organization: "Lumo" of "Lumo Sensing", not "Royal".

    A word that begins those of two local bodies is their place, and so is one that begins one and stands behind "at":
    "dues at Porthkerris" beside "Porthkerris Sailing Club".
    """
    begun: defaultdict[str, int] = defaultdict(int)
    for form, kind in types.items():
        if kind == ORGANIZATION and " " in form:
            begun[form.split()[0]] += title_of(form).split()[-1] in _LOCAL_BODIES
    able = (form for form in begun if types.get(form) == UNKNOWN and not is_common_noun(form))
    return {form: GEO if begun[form] > 1 - _is_place_of(cues[form]) else ORGANIZATION for form in able}


def _is_place_of(cues: Counter[str]) -> bool:
    return cues["towards"] + cues[GEO] > 0


def type_by_second_mentions(
    names: Iterable[Name], types: Mapping[str, str], cues: Mapping[str, Counter[str]], text: str
) -> dict[str, str]:
    """Return PERSON for full names that a report shortens to the last word: "Hiwot Tesfaye", then "Tesfaye was".

    Firms are shortened to their first word, and places not at all. A body whose words or deeds show it stays one.
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for name in names:
        if name.sentence >= 0 and not text.startswith(("the ", "The "), max(name.start - 4, 0)):
            first.setdefault(name.form, name.start)
            last[name.form] = name.start
    found: dict[str, str] = {}
    for full, start in first.items():
        given, surname = full.split()[0], full.split()[-1]
        if given == surname or types[full] not in (UNKNOWN, ORGANIZATION) or last.get(surname, -1) < start:
            continue
        is_person = _may_be_full_name(full) and given not in first and not _BODY_CUES & cues[full].keys()
        is_place = cues[surname][GEO] + cues[surname]["place role"] + cues[surname]["towards"] > 0
        if is_person and not is_place and not _BODY_CUES & cues[surname].keys():
            found |= {full: PERSON, surname: PERSON}
    return found


def _may_be_full_name(form: str) -> bool:
    """Whether two or three words may name a person: none of them is one of bodies or places, and one is rare."""
    words = title_of(form).split()
    is_written = len(words) <= _MAX_PERSON and all(part[0].isupper() and not part.isupper() for part in form.split())
    is_other = words[0] in _NO_GIVEN_NAMES or words[-1] in _NO_SURNAMES or words[-1] in load_places()
    return is_written and not is_other and not all(map(is_common_noun, form.split()))


def type_families(types: Mapping[str, str], cues: Mapping[str, Counter[str]]) -> dict[str, str]:
    """Return PERSON for the plural of a person's surname after "the": "the Crofts" beside "Admiral Croft"."""
    surnames = {form.split()[-1] for form, kind in types.items() if kind == PERSON and " " in form}
    return {
        form: PERSON
        for form, kind in types.items()
        if kind != PERSON and form.endswith("s") and form[:-1] in surnames and cues[form]["named thing"]
    }


def type_by_places(types: Mapping[str, str], cues: Mapping[str, Counter[str]]) -> dict[str, str]:
    """Return GEO for unknown names that end with the same rare word as a place of two words: "Store Arvel"."""
    ends = {form.split()[-1] for form, kind in types.items() if kind == GEO and " " in form}
    waters = (f for f in types if any(f"{head} {f}" in types for head in _BEFORE_NAMES))  # "the Gryfe", a river
    return {form: GEO for form in waters if types[form] in (UNKNOWN, ORGANIZATION)} | {
        form: GEO
        for form, kind in types.items()
        if kind == UNKNOWN
        and " " in form
        and form.split()[-1] in ends
        and not is_common_noun(form.split()[-1])
        and not cues[form][PERSON] + cues[form]["person role"]
    }


def type_by_short_names(types: Mapping[str, str]) -> dict[str, str]:
    """Return ORGANIZATION for unknown names that end with the name of one: "Real Ontiñar" of "Ontiñar"."""
    short = {
        form for form, kind in types.items() if kind == ORGANIZATION and " " not in form and not is_common_noun(form)
    }
    return {form: ORGANIZATION for form, kind in types.items() if kind == UNKNOWN and form.split()[-1] in short}


def type_by_family(
    types: Mapping[str, str], counts: Mapping[str, int], cues: Mapping[str, Counter[str]]
) -> dict[str, str]:
    """Return PERSON for the unknown full names that share a word with a person: "Rebekka Meisl" beside "Tobias Meisl".

    The first word is that of a person if it often stands alone for one ("Luise" of "Luise Brandt").
    """
    persons = [form.split() for form, kind in types.items() if kind == PERSON and " of " not in form]
    family = {words[-1] for words in persons}
    alone = {form for form in family if cues[form][PERSON] >= max(2, _MIN_ALONE_SHARE * counts[form])}
    addressed = {words[-1] for words in persons if len(words) == 2 and title_of(words[0]).rstrip(".") in HONORIFICS}
    return {
        form: PERSON
        for form, kind in types.items()
        if kind == UNKNOWN
        and 2 <= len(words := form.split()) <= 3
        and (words[0] in alone or words[-1] in family)
        and all(word.istitle() for word in words)
        and (
            not any(map(is_common_noun, words))
            or (words[-1] in addressed and title_of(words[0]) not in LONERS | PLACE_HEADS)
        )
    }


def type_by_company(names: list[Name], types: dict[str, str], text: str, is_explaining: bool) -> dict[str, str]:
    """Return types of unknown names by the names that they are listed with: "Georges Clemenceau and David Lloyd".

    Args:
        is_explaining: whether the document is an explanation, which lists terms with names ("Future and Task").
    """
    if is_explaining:
        names = [name for name in names if " " in name.form or not (is_code(name.form) or is_common_noun(name.form))]
    found: dict[str, str] = {}
    for _ in range(_MAX_ROUNDS):  # "Grangemouth, Rosyth and Methil"
        more = _read_company(names, {**types, **found}, text)
        found |= {form: kind for form, kind in more.items() if not found or kind in (GEO, PERSON)}
    return found


def _begins_clause(before: Name, name: Name, text: str) -> bool:
    """Whether a name behind a comma has a verb of its own: "Elmo is in Teska, Norvolt was in Gansk"."""
    return text[before.end : name.start] == ", " and _CLAUSE.match(text, name.end) is not None


def _shares_body(first: Name, second: Name, text: str) -> bool:
    """Whether a body is named by two words: "the Barra and Vatersay Community Council" says nothing of Barra."""
    is_tail = title_of(second.form).split()[-1] in ORGANIZATION_TAILS
    return is_tail and text.startswith("the ", max(first.start - 4, 0)) and text[first.end : second.start] == " and "


def _read_company(names: list[Name], types: Mapping[str, str], text: str) -> dict[str, str]:
    company: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for a, b in pairwise(names):
        if (
            types[a.form] == types[b.form]
            or UNKNOWN not in (types[a.form], types[b.form])
            or b.start - a.end > _MAX_BETWEEN
        ):
            continue
        if any(letter.isdecimal() for letter in a.form + b.form):
            continue
        if _TOGETHER.fullmatch(text, a.end, max(b.start, a.end)) and not _CLAUSE_AFTER.match(text, a.end):
            unknown, known = (a, b) if types[a.form] == UNKNOWN else (b, a)
            if (unknown is b and _begins_clause(a, b, text)) or _shares_body(a, b, text):
                continue
            is_prize = types[known.form] == ORGANIZATION and title_of(unknown.form).split()[-1] in _PRIZES
            if types[known.form] != EVENT and not is_prize:
                company[unknown.form][types[known.form]] += 1
    return {form: max(kinds, key=lambda kind: (kinds[kind], kind)) for form, kinds in company.items()}
