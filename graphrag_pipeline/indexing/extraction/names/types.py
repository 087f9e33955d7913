"""Entity types of names, by their own words, by a gazetteer, and by the words around them.

The types are those of Microsoft GraphRAG's default prompt: PERSON, ORGANIZATION, GEO, EVENT. CONCEPT is the type of a
term: a key phrase, an acronym without evidence of an organization, a form with a digit or written like a word of code,
a name of common words, and a name that the text uses like an adjective ("the Gleason score"). UNKNOWN is the type of
any other name without evidence.

Keep out: places of names (`finder.py`) and word lists (`cues.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import regex

from graphrag_pipeline.indexing.extraction.names.capitalization import is_common_word
from graphrag_pipeline.indexing.extraction.names.cues import (
    AGENT_VERBS,
    BODY,
    BYNAMES,
    DESCRIBING_HONORIFICS,
    EVENT_HEADS,
    EVENT_TAILS,
    EVENTS,
    GIVEN_NAMES,
    HOLDINGS,
    HONORIFICS,
    INDUSTRY,
    KIN,
    MAKING,
    ORGANIZATION_HEADS,
    ORGANIZATION_NOUNS,
    ORGANIZATION_ROLES,
    ORGANIZATION_TAILS,
    ORGANIZATIONS,
    ORGANIZATIONS_IN_CAPITALS,
    PERSON_ROLES,
    PERSON_VERBS,
    PLACE_HEADS,
    PLACE_PREPOSITIONS,
    PLACE_ROLES,
    PLACE_TAILS,
    RANKS,
    STAFF,
    STOCK,
    STORMS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.dates import is_date
from graphrag_pipeline.indexing.extraction.names.finder import Name, title_of
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.term_signs import (
    describes_noun,
    find_lower_words,
    is_code,
    is_common_noun,
    is_term,
    read_term_uses,
)

PERSON, ORGANIZATION, GEO, EVENT, UNKNOWN = "PERSON", "ORGANIZATION", "GEO", "EVENT", "UNKNOWN"
CONCEPT = "CONCEPT"  # of key phrases, which are not names (see `concepts.py`)

_BEFORE = regex.compile(r"(\p{L}+)(,?\s+(?:the\s+|of\s+|by\s+)?)$")
_LIFE = regex.compile(
    r"\s*\(\s*(?:born|died|b\.|d\.|(?:c\.\s*)?\d{4}\s*[-–—]\s*\d{4}|"
    r"(?:\d{1,2}\s\p{Lu}\p{Ll}+|\p{Lu}\p{Ll}+\s\d{1,2},)\s\d{3,4}\s*[-–—])"
)
_AFTER = regex.compile(r"(['’]s)?\s+(?:(?:has|had|have|later|also|once|then|ha|a|hat)\s+)?(\p{Ll}+)")
_BYNAMES = frozenset(BYNAMES.upper().split("|"))
_NUMERAL = regex.compile(r"[IVX]+")
_INITIALED = regex.compile(r"(?!U\. ?[SKN]\b)(?:\p{Lu}\. ){2,}\p{Lu}[\p{L}'-]*\p{Ll}")  # J. R. R. Tolkien
_TOGETHER = regex.compile(r",\s|,?\s(?:and|or|und|et|y|e)\s")
ADJECTIVE_ENDINGS = ("ISH", "ESE", "IAN", "CH", "AN", "IC")  # of languages and peoples
_WEAK_TAILS = words("""
software systems networks records services service technologies forces groups chemical chemicals semiconductor
semiconductors insurance energy petroleum financial electronics therapeutics telecom logistics securities mutual
library
""")
_NAMED = frozenset({PERSON, ORGANIZATION, GEO, EVENT})
_AMONG = words("at for")
_MIN_NAMED_SHARE = 0.5  # of the names of a document that is about persons, organizations and places
_MIN_TERM_SHARE = 0.5  # of the names of a document that explains terms
_MIN_PERSONS = 0.4  # of the names of a document that tells of persons; a common word may name one there ("the Phantom")
_MIN_PERSON_SHARE = 0.04  # of a name's occurrences that a verb of speaking or a role shows to be a person
_MIN_PLACE_SHARE = 0.3  # of a name's occurrences that follow "in", "at", ...


def type_names(names: Iterable[Name], text: str, is_english: bool = True) -> dict[str, str]:
    """Return the type of each written form among the names of one document."""
    names = list(names)
    counts: Counter[str] = Counter()
    cues: defaultdict[str, Counter[str]] = defaultdict(Counter)
    by_words: dict[str, str | None] = {}
    in_lower = {title_of(name.form) for name in names if not name.form.isupper()}
    for name in names:
        form = name.form
        counts[form] += 1
        if form not in by_words:
            by_words[form] = type_by_words(form)
        if by_words[form] is None:
            cues[form].update(_read_cues(text, name))
    acronyms = {form for form, found in by_words.items() if found is None and _is_acronym(form, in_lower)}
    types = {
        form: found or _type_by_cues(form, counts[form], cues[form])
        for form, found in by_words.items()
        if form not in acronyms
    }
    is_story = _named_share(types, counts) >= _MIN_NAMED_SHARE
    types |= {form: _type_acronym(form, cues[form], is_story or not is_english) for form in acronyms}
    heads = {form.split(" of ")[0] for form, kind in types.items() if kind == PERSON}
    types = {form: _type_by_relatives(form, kind, heads) for form, kind in types.items()}
    types |= _type_by_last_words(types, cues)
    return types | _type_by_company(names, types, text)


def type_terms(names: Iterable[Name], types: Mapping[str, str], links: Mapping[str, str], text: str) -> dict[str, str]:
    """Return the types with CONCEPT for each name of type UNKNOWN that is a term.

    In a document whose names are mostly terms, every name without evidence is one.

    Args:
        names: every occurrence of a name in the document.
        types: type by canonical form.
        links: canonical form of each written form.
    """
    names = list(names)
    counts: Counter[str] = Counter()
    uses: defaultdict[str, Counter[str]] = defaultdict(Counter)
    n_persons = sum(types[links[name.form]] == PERSON for name in names)
    is_story = n_persons >= _MIN_PERSONS * len(names)
    for name in names:
        form = links[name.form]
        if types[form] == UNKNOWN:
            counts[form] += 1
            uses[form].update(read_term_uses(text, name))
    lower = find_lower_words(text) if counts else set()
    terms = {
        form for form, n in counts.items() if is_code(form) or (not is_story and is_term(form, n, uses[form], lower))
    }
    n_terms = sum(counts[form] for form in terms) + sum(types[links[name.form]] == CONCEPT for name in names)
    is_technical = n_terms >= _MIN_TERM_SHARE * len(names)
    return dict(types) | dict.fromkeys(counts if is_technical else terms, CONCEPT)


def type_acronyms(types: dict[str, str], acronyms: Mapping[str, str]) -> dict[str, str]:
    """Give acronyms the types of their long forms; a long form in lower case is a term if its words say nothing else.

    Args:
        types: type of each written form of the document.
        acronyms: short -> long form.
    """
    typed = dict(types)
    for short, long in acronyms.items():
        kind = type_by_words(long)
        if kind is None and long.islower():
            kind = CONCEPT
        elif kind is None and types.get(long, UNKNOWN) == UNKNOWN:
            kind = ORGANIZATION if types.get(short) == ORGANIZATION else CONCEPT
        typed[long] = kind or types[long]
        if short in typed:
            typed[short] = typed[long]
    return typed


def vote_types(names: Iterable[Name], types: dict[str, str], links: dict[str, str]) -> dict[str, str]:
    """Return the type of each canonical form: the commonest of its occurrences, UNKNOWN last, ties by name."""
    votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name in names:
        votes[links[name.form]][types[name.form]] += 1
    return {form: min(kinds, key=lambda kind: (kind == UNKNOWN, -kinds[kind], kind)) for form, kinds in votes.items()}


def type_by_words(form: str) -> str | None:
    """Return the type that the words of a name determine; None if the context must decide."""
    if is_date(form):
        return EVENT
    words = [word.rstrip(".,") for word in title_of(form).split()]
    if form[-1:].islower() and "'s " in form:
        held = words[-1]
        if held in KIN or held in HOLDINGS:
            return PERSON if held in KIN else GEO
    if _is_event(words):
        return EVENT
    first, last = words[0], words[-1].replace(".", "")  # "S.A" is SA
    if last in _WEAK_TAILS and (
        "OF" in words or all(is_common_word(word) for word in words[:-1])
    ):  # "Covered Software"
        return None
    if first in ORGANIZATION_HEADS and "OF" in words:
        return ORGANIZATION
    if "CORPS" in words[:-2] and "OF" in words:  # "Army Corps of Engineers"
        return ORGANIZATION
    if len(words) == 1:
        return ORGANIZATION if first in ORGANIZATIONS else None
    if last in ORGANIZATION_TAILS or "&" in words:
        return ORGANIZATION
    if last in PLACE_TAILS:
        return GEO
    if (first in HONORIFICS or (first in RANKS and words[1] in HONORIFICS)) and "OF" not in words[:2]:
        return (
            None if first in DESCRIBING_HONORIFICS and is_common_word(words[1]) else PERSON
        )  # "General Public License"
    if first in PLACE_HEADS:
        return GEO
    is_person = (words[1] == "THE" and last in _BYNAMES) or (form[1] == "." and _INITIALED.fullmatch(form))
    return PERSON if is_person else None


def _is_event(words: list[str]) -> bool:
    if words[0] in EVENTS or words[:2] == ["NEW", "YEAR"]:
        return True
    if len(words) < 2:
        return False
    last = words[-2] if len(words) > 2 and _NUMERAL.fullmatch(words[-1]) else words[-1]  # World War II
    is_storm = words[0] in STORMS and len(words) == 2 and not is_common_word(words[1])
    return is_storm or last in EVENT_TAILS or (words[0] in EVENT_HEADS and words[1] == "OF")


def _type_by_relatives(form: str, kind: str, heads: set[str]) -> str:
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


def _type_by_last_words(types: Mapping[str, str], cues: Mapping[str, Counter[str]]) -> dict[str, str]:
    """Return types of words that end the name of a person or organization: "Hassan" of "Fatuma Hassan", not in Hassan.

    A team is named by its last word: "the Lions" of "the Mombasa Lions".
    """
    ends: defaultdict[str, set[str]] = defaultdict(set)
    for form, kind in types.items():
        if kind in (PERSON, ORGANIZATION) and " " in form and " of " not in form:
            ends[form.split()[-1]].add(kind)
    found = {}
    for form, kind in types.items():
        if len(ends[form]) != 1 or kind not in (GEO, UNKNOWN) or cues[form][GEO] or cues[form]["place role"]:
            continue
        end = min(ends[form])
        if end == PERSON or form.endswith("s"):
            found[form] = end
    return found


def _type_by_company(names: list[Name], types: dict[str, str], text: str) -> dict[str, str]:
    """Return types of unknown names by the names that they are listed with: "Georges Clemenceau and David Lloyd"."""
    company: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for a, b in pairwise(names):
        if types[a.form] == types[b.form] or UNKNOWN not in (types[a.form], types[b.form]) or b.start - a.end > 8:
            continue
        if _TOGETHER.fullmatch(text, a.end, max(b.start, a.end)):
            unknown, known = (a, b) if types[a.form] == UNKNOWN else (b, a)
            if types[known.form] != EVENT:
                company[unknown.form][types[known.form]] += 1
    return {form: max(kinds, key=lambda kind: (kinds[kind], kind)) for form, kinds in company.items()}


def _read_cues(text: str, name: Name) -> Iterator[str]:
    """Yield the types that the words next to a name suggest, and "describes" for an adjective's place."""
    if name.form.isupper() and describes_noun(text, name):
        yield "describes"
    if _is_team(text, name):
        yield "agency"
    if text.startswith(("(", " ("), name.end) and _LIFE.match(text, name.end):
        yield "person role"
    after = _AFTER.match(text, name.end)
    if after:
        following = after.group(2).upper()
        if following in PERSON_VERBS or (after.group(1) and following in BODY):
            yield PERSON
        elif following in ORGANIZATION_NOUNS:
            yield ORGANIZATION
        if following in AGENT_VERBS and _is_agency(text, name):
            yield "agency"
    before = _BEFORE.search(text[max(0, name.start - 24) : name.start])
    if before is None:
        return
    word, between = before.group(1), before.group(2)
    key = word.upper()
    if key in PERSON_VERBS:
        yield PERSON
    elif key in PLACE_PREPOSITIONS and between.isspace():
        yield GEO
    elif (key in STOCK and "of" in between) or (key in _AMONG and _last_word(text, before, name) in STAFF):
        yield ORGANIZATION
    elif word.islower():
        if (key in KIN and "of" in between) or (key in MAKING and "by" in between) or key == "STARRING":
            yield "person role"
        elif key in INDUSTRY and "by" in between:
            yield ORGANIZATION
        elif "by" in between:
            return
        elif key in PLACE_ROLES and "," not in between:
            yield "place role"
        elif key in PERSON_ROLES and "of" not in between:
            yield "person role"
        elif key in ORGANIZATION_ROLES and "of" not in between:
            yield "organization role"


def _is_team(text: str, name: Name) -> bool:
    """Whether a name is "the", a place and a plural: "the Kisumu Rovers"."""
    first, _, last = name.form.partition(" ")
    return last.endswith("s") and last.isalpha() and title_of(first) in load_places() and _follows_the(text, name)


def _follows_the(text: str, name: Name) -> bool:
    return text[max(name.start - 4, 0) : name.start].lower() == "the "


def _last_word(text: str, before: regex.Match[str], name: Name) -> str:
    """Return the word before the match of `_BEFORE`, in upper case; "" at the start of the text."""
    parts = text[max(0, name.start - 40) : name.start - len(before.group())].split()
    return parts[-1].upper() if parts else ""


def _is_agency(text: str, name: Name) -> bool:
    """Whether a name of several words without "of" stands after "the"."""
    return (
        _follows_the(text, name)
        and " " in name.form
        and " of " not in name.form
        and title_of(name.form) not in load_places()
    )


def _is_acronym(form: str, in_lower: set[str]) -> bool:
    """Whether a form is one short word in capitals that the document never writes in lower case."""
    letters = form.replace(".", "")
    return form.isupper() and letters.isalpha() and 2 <= len(letters) <= 6 and title_of(form) not in in_lower


def _named_share(types: Mapping[str, str], counts: Mapping[str, int]) -> float:
    """Return the share of persons, organizations, places and events among the names; 0 without names."""
    n_names = sum(counts[form] for form in types)
    return sum(counts[form] for form, kind in types.items() if kind in _NAMED) / n_names if n_names else 0.0


def _type_acronym(form: str, cues: Counter[str], is_story: bool) -> str:
    """Return the type of an acronym without a long form.

    Args:
        is_story: whether the document is about persons, organizations and places, as news are.
    """
    title = title_of(form)
    if title in load_places():
        return GEO
    if title in ORGANIZATIONS_IN_CAPITALS or cues[ORGANIZATION] or cues["organization role"] or cues[PERSON]:
        return ORGANIZATION
    return ORGANIZATION if is_story and not cues["describes"] else CONCEPT


def _type_by_cues(form: str, n_names: int, cues: Counter[str]) -> str:
    title = title_of(form)
    words = title.split()
    if cues["place role"]:
        return GEO
    if title in load_places():
        return PERSON if cues[PERSON] > cues[GEO] and title in GIVEN_NAMES else GEO
    if words[0] in GIVEN_NAMES and "OF" not in words:
        return PERSON
    if len(words) > 1 and words[-1] in GIVEN_NAMES and "OF" not in words:  # Tiny Tim
        return PERSON
    if cues["organization role"] > cues["person role"]:  # also one that "said" something
        return ORGANIZATION
    if 2 * cues[ORGANIZATION] + cues["agency"] > cues[PERSON] + 2 * cues["person role"]:
        return ORGANIZATION
    if is_code(form):
        return UNKNOWN
    n_person = cues[PERSON] + 2 * cues["person role"]
    if n_person >= max(cues[GEO], 1) and n_person >= _MIN_PERSON_SHARE * n_names:
        return PERSON
    if (
        cues[GEO] / n_names >= _MIN_PLACE_SHARE
        and not title.endswith(ADJECTIVE_ENDINGS)
        and len(words[-1]) > 1
        and not is_common_noun(words[-1])
    ):
        return GEO
    return UNKNOWN
