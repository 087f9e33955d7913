"""Entity types of names, by their own words, by a gazetteer, and by the words around them.

The types are those of Microsoft GraphRAG's default prompt: PERSON, ORGANIZATION, GEO, EVENT. CONCEPT is the type of a
term: a key phrase, an acronym without evidence of an organization, a form with a digit or written like a word of code,
a name of common words, and a name that the text uses like an adjective ("the Gleason score"). UNKNOWN is the type of
any other name without evidence.

Keep out: places of names (`finder.py`), word lists (`cues.py`), the words of one name (`word_types.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set

from graphrag_pipeline.indexing.extraction.names.brands import is_well_known, load_organizations
from graphrag_pipeline.indexing.extraction.names.cues import (
    BUILDINGS,
    GIVEN_NAMES,
    HONORIFICS,
    LONERS,
    OFFICES,
    PLACE_HEADS_ABROAD,
    PLACE_TAILS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_countries, load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.terms.ordinary_words import tells_story
from graphrag_pipeline.indexing.extraction.names.terms.term_signs import (
    is_code,
    is_common_noun,
)
from graphrag_pipeline.indexing.extraction.names.types.acronym_types import (
    MIN_PERSON_SHARE,
    SEVERAL,
    begins_with_acronym,
    is_acronym,
    is_known_acronym,
    type_acronym,
)
from graphrag_pipeline.indexing.extraction.names.types.agent_cues import (
    AGENT,
    FIRM,
    is_given_firm,
    is_room,
    may_be_firm,
    read_agent_cues,
)
from graphrag_pipeline.indexing.extraction.names.types.attendance import (
    choose_attendees,
    choose_surnames,
    find_attendees,
)
from graphrag_pipeline.indexing.extraction.names.types.body_words import (
    acts_as_thing,
    is_body_of_country,
    is_named_as_body,
    is_national_body,
)
from graphrag_pipeline.indexing.extraction.names.types.club_cues import CLUB, is_club, is_club_of_place, read_club_cues
from graphrag_pipeline.indexing.extraction.names.types.kind_cues import OF_EVENT, OF_THING, WORK, read_kind_cues
from graphrag_pipeline.indexing.extraction.names.types.kind_lists import find_kinds
from graphrag_pipeline.indexing.extraction.names.types.kindred_types import (
    type_by_company,
    type_by_family,
    type_by_first_words,
    type_by_last_words,
    type_by_places,
    type_by_relatives,
    type_by_second_mentions,
    type_by_short_names,
    type_families,
)
from graphrag_pipeline.indexing.extraction.names.types.known_types import type_in_passing
from graphrag_pipeline.indexing.extraction.names.types.place_cues import (
    may_be_surname,
    read_place_cues,
    type_as_surname,
)
from graphrag_pipeline.indexing.extraction.names.types.registers import (
    drop_persons_of_things,
    explains,
    is_named_as_thing,
    keep_strong_cues,
    type_things,
)
from graphrag_pipeline.indexing.extraction.names.types.story_types import type_in_story
from graphrag_pipeline.indexing.extraction.names.types.term_types import find_terms
from graphrag_pipeline.indexing.extraction.names.types.trade_cues import ACTOR, read_trade_cues
from graphrag_pipeline.indexing.extraction.names.types.type_cues import MEMBERS, QUOTED, is_vessel, read_cues
from graphrag_pipeline.indexing.extraction.names.types.weak_evidence import type_by_signs
from graphrag_pipeline.indexing.extraction.names.types.word_types import (
    ADJECTIVE_ENDINGS,
    CONCEPT,
    EVENT,
    GEO,
    ORGANIZATION,
    PERSON,
    PROPER,
    UNKNOWN,
    cut_legal_form,
    is_described,
    type_by_words,
)

_READERS = (read_trade_cues, read_kind_cues, read_place_cues, read_club_cues)  # of English
_COMPASS = words("north south east west northern southern eastern western central upper lower")
_MIN_NAMED_SHARE = 0.5  # of the names of a document that is about persons, organizations and places
_MIN_TERM_SHARE = 0.5  # of the names of a document that explains terms
_MIN_PERSONS = 0.4  # of the names of a document that tells of persons; a common word may name one there ("the Phantom")
_MIN_AMONG_PERSONS = 0.3  # the same, of a document whose unknown names are typed by fewer cues
_MIN_COMMON_SHARE = 0.1  # the same of a common word after "the"
_BUSINESS = (" share", " stake", " stock", " profit", " merger", " acqui", " offer", " earnings", " revenue")
_MIN_BUSINESS, _MIN_BUSINESS_SHARE = 2, 0.01  # of the words of a report on firms
_MIN_TOWARDS = 0.5  # of a name's occurrences that follow "at", "to" or "from"
_SURNAME_PREFIXES = ("Mc", "Mac", "De", "Di", "Du", "La", "Le", "Van", "Von", "Fitz", "O")
_MIN_TITLE = 4  # words of a name that is no byname: "Community Shares Standard Mark"
_MIN_PLACE_SHARE = 0.3  # of a name's occurrences that follow "in", "at", ...


def type_names(names: Iterable[Name], text: str, is_english: bool = True) -> dict[str, str]:
    """Return the type of each written form among the names of one document."""
    names = list(names)
    counts: Counter[str] = Counter()
    cues: defaultdict[str, Counter[str]] = defaultdict(Counter)
    by_words: dict[str, str | None] = {}
    in_lower = {title_of(name.form) for name in names if not name.form.isupper()}
    is_explaining = is_english and explains(text)
    for name in names:
        form = name.form
        counts[form] += 1
        if form not in by_words:
            by_words[form] = None if is_explaining and is_named_as_thing(form) else type_by_words(form)
        is_unsure = by_words[form] == PERSON and (is_described(text, name) or is_vessel(text, name))
        if is_unsure or (by_words[form] == GEO and may_be_surname(form)):
            by_words[form] = None
        if by_words[form] is None:
            cues[form].update(read_cues(text, name))
            cues[form].update(read_agent_cues(text, name))
            if form.isupper() and text.startswith(f"{form}s", name.start):
                cues[form][SEVERAL] += 1
        if is_english and by_words[form] in (None, GEO):
            for read in _READERS:
                cues[form].update(read(text, name))
    if is_english:
        for form, cue in find_kinds(names, text):
            cues[form][cue] += 1
    if is_explaining:
        cues = defaultdict(Counter, {form: keep_strong_cues(counts[form], found) for form, found in cues.items()})
    by_words |= {form: CONCEPT for form, kind in by_words.items() if kind == GEO and cues[form][WORK] > cues[form][GEO]}
    clubs = (form for form, kind in by_words.items() if kind == GEO and is_club(cues[form], _ends_as_place(form)))
    by_words |= dict.fromkeys(clubs, ORGANIZATION)
    attendees = choose_attendees(by_words, find_attendees(text))
    for form in attendees | choose_surnames(by_words, attendees):
        cues[form]["person role"] += counts[form]
        by_words[form] = PERSON if by_words[form] == GEO else by_words[form]  # "Ann Hill"
    acronyms = {form for form, found in by_words.items() if found is None and is_acronym(form, in_lower)}
    types = {
        form: found or _type_by_cues(form, counts[form], cues[form])
        for form, found in by_words.items()
        if form not in acronyms
    }
    others = {form: kind for form, kind in types.items() if form not in attendees}
    is_story = _named_share(others, counts, acronyms) >= _MIN_NAMED_SHARE
    is_news = (is_story and not attendees) or not is_english
    if not attendees:  # what acts in a manual may be a program
        cues.update((form, Counter({cue: n for cue, n in cues[form].items() if cue != ACTOR})) for form in acronyms)
    types |= {form: type_acronym(form, counts[form], cues[form], is_news, is_explaining) for form in acronyms}
    heads = {form.split(" of ")[0] for form, kind in types.items() if kind == PERSON}
    types = {form: type_by_relatives(form, kind, heads) for form, kind in types.items()}
    types |= {bare: ORGANIZATION for form in types if (bare := cut_legal_form(form)) in types}
    if is_explaining:
        types |= drop_persons_of_things(types)
    if is_english and not is_explaining:
        types |= type_by_second_mentions(names, types, cues, text)
    types |= type_by_last_words(types, cues, is_explaining)
    types |= type_by_family(types, counts, cues)
    types |= type_families(types, cues)
    types |= type_by_places(types, cues)
    types |= type_by_short_names(types)
    if is_english and tells_story(text):
        types |= type_in_story(names, types, cues, text)
    types |= _type_among_persons(types, counts, cues, attendees)
    if is_english:
        types |= type_in_passing(types, cues, attendees)
    types |= type_by_company(names, types, text, is_explaining)
    if is_english and not attendees:
        types |= _type_firms_in_business(types, cues, text)
    if not is_english or UNKNOWN not in types.values():
        return types
    types |= type_by_last_words(types, cues, is_explaining) | type_by_first_words(types, cues)
    terms, is_technical = find_terms(names, types, {form: form for form in types}, text)
    by_signs = type_by_signs(names, types, terms, text, None if is_technical else attendees)
    types |= {
        form: kind
        for form, kind in by_signs.items()
        if (" " in form or not is_explaining) and cues[form][QUOTED] < counts[form]
    }
    types |= {} if attendees else _type_firms_in_business(types, cues, text)
    types |= type_by_company(names, types, text, is_explaining)
    types |= type_things(types) if is_explaining else {}
    guesses = {form: _guess(form, cues[form]) for form, kind in types.items() if kind == UNKNOWN}
    return types | {form: kind for form, kind in guesses.items() if kind}


def _guess(form: str, cues: Counter[str]) -> str | None:
    """Return the type of a name of several words without other evidence: "North Sumatra", and quoted titles."""
    first, *others = title_of(form).split()
    if not others:
        return None
    is_side = first in _COMPASS and len(others) == 1 and not is_common_noun(form.split()[-1]) and not cues[AGENT]
    is_side = is_side or (others[-1] in _COMPASS and len(others) == 1 and not is_common_noun(form.split()[0]))
    return GEO if is_side else CONCEPT if cues[QUOTED] else None


def vote_types(names: Iterable[Name], types: dict[str, str], links: dict[str, str]) -> dict[str, str]:
    """Return the type of each canonical form: the commonest of its occurrences, UNKNOWN last, ties by name.

    An acronym has no vote if its long form has the type of a name: "NDA" says less than "National Deposits Authority".
    """
    votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name in names:
        form, long = name.form, links[name.form]
        if types.get(long) == CONCEPT and (" v " in long or " v. " in long):  # a case, by whatever party
            votes[long][CONCEPT] += 1
            continue
        if cut_legal_form(long):
            votes[long][ORGANIZATION] += 1
            continue
        is_acronym = form != long and form.isupper() and " " not in form
        votes[long][types[long] if is_acronym and types.get(long) in PROPER else types[form]] += 1
    return {form: min(kinds, key=lambda kind: (kind == UNKNOWN, -kinds[kind], kind)) for form, kinds in votes.items()}


def _type_among_persons(
    types: Mapping[str, str], counts: Mapping[str, int], cues: Mapping[str, Counter[str]], attendees: Set[str]
) -> dict[str, str]:
    """Return types of unknown names in a document about persons; those who attend a meeting do not make it one.

    GEO is for those that it mostly writes after "at", "to" or "from", ORGANIZATION for other words that act: persons
    have honorifics or given names there.
    """
    n_persons = sum(counts[form] for form, kind in types.items() if kind == PERSON and form not in attendees)
    if n_persons < _MIN_AMONG_PERSONS * sum(counts[form] for form in types):
        return {}
    unknown = [form for form, kind in types.items() if kind == UNKNOWN and not cues[form][PERSON]]
    places = {form: GEO for form in unknown if _MIN_TOWARDS * counts[form] <= _n_towards(cues[form])}
    parts = {word for form in types if " " in form for word in form.split()}
    able = [form for form in unknown if " " not in form and form not in parts and title_of(form) not in OFFICES]
    firms = [form for form in able if cues[form][AGENT] and not is_common_noun(form)]
    return dict.fromkeys(firms, ORGANIZATION) | places


def _type_firms_in_business(types: Mapping[str, str], cues: Mapping[str, Counter[str]], text: str) -> dict[str, str]:
    """Return the firms among the words that are persons by their deeds only, in a report on firms: "Esselte said".

    Such reports give persons with their full names first. A word without one, and without a role, is a firm.
    """
    parts = {word for form, kind in types.items() if kind == PERSON and " " in form for word in form.split()}
    firms = [
        form
        for form, kind in types.items()
        if kind == PERSON and " " not in form and form not in parts and not cues[form]["person role"]
        if title_of(form) not in GIVEN_NAMES and title_of(form) not in OFFICES
    ]
    if not firms or not any(map(cut_legal_form, types)):
        return {}
    is_business = sum(map(text.count, _BUSINESS)) >= max(_MIN_BUSINESS, _MIN_BUSINESS_SHARE * len(text.split()))
    return dict.fromkeys(firms, ORGANIZATION) if is_business else {}


def _n_towards(cues: Counter[str]) -> int:
    return cues["towards"] + cues[GEO]


def _named_share(types: Mapping[str, str], counts: Mapping[str, int], acronyms: Iterable[str]) -> float:
    """Return the share of persons, organizations, places and events among the names; 0 without names.

    Args:
        acronyms: forms that are not in `types`; those of no known organization or place count as other names.
    """
    n_others = sum(counts[form] for form in acronyms if not is_known_acronym(title_of(form)))
    n_names = sum(counts[form] for form in types) + n_others
    return sum(counts[form] for form, kind in types.items() if kind in PROPER) / n_names if n_names else 0.0


def _ends_as_place(form: str) -> bool:
    return title_of(form).split()[-1] in PLACE_TAILS


def _may_have_members(title: str) -> bool:
    """Whether a name before "leader" or "fighters" may be a body: not "F-16", "Berber" or a given name."""
    is_adjective = title.endswith((*ADJECTIVE_ENDINGS, "IST", "ER"))
    return title.replace(" ", "").isalpha() and not is_adjective and title.split()[0] not in GIVEN_NAMES


def _type_by_cues(form: str, n_names: int, cues: Counter[str]) -> str:
    title = title_of(form)
    words = title.split()
    if cues["vessel"] or (cues[WORK] and not cues["person role"] and title not in load_places()):
        return CONCEPT
    n_roles = cues["person role"] + cues["organization role"] + cues["place role"] + cues[PERSON]
    if cues[OF_THING] + cues[OF_EVENT] > n_roles and title not in load_places():
        return CONCEPT if cues[OF_THING] >= cues[OF_EVENT] else EVENT
    if cues["place role"]:
        return GEO
    if title in load_organizations() and is_well_known(title) and not cues["person role"] + cues[GEO]:
        return ORGANIZATION
    if not cues["person role"] + cues[GEO] and is_national_body(words, form):
        return ORGANIZATION
    if cues[CLUB] > cues[GEO] + cues["place role"] and title in load_places() and title not in load_countries():
        return ORGANIZATION  # "three points behind Gillingham"
    if title in load_places():
        return PERSON if cues[PERSON] > cues[GEO] and title in GIVEN_NAMES else GEO
    if words[-1] in BUILDINGS and words[0] not in GIVEN_NAMES and len(words) > 1:
        return ORGANIZATION if cues[PERSON] + cues["agency"] or title in load_organizations() else GEO
    if is_room(form, cues):
        return GEO
    is_firm = cues[AGENT] + cues[FIRM] > 0 or words[-1].endswith("S")
    if is_firm and not cues["person role"] and is_given_firm(words):  # "Tamar Gallery has agreed", "Eden Cabs"
        return ORGANIZATION
    if cues["describes"] == n_names and not cues[PERSON] and len(words) == 1 and words[0] in GIVEN_NAMES:
        return CONCEPT  # "the Allan deviation"
    n_body = cues[ORGANIZATION] + cues["organization role"]
    n_person = cues[PERSON] + cues["person role"]
    if len(words) == 1 and n_body > n_person and 2 * n_body >= n_names and title in GIVEN_NAMES:
        return ORGANIZATION  # "an analyst at Davy"
    if words[0] in PLACE_HEADS_ABROAD and len(words) > 1 and n_body + n_person == 0:  # "Monte Cinta"
        return GEO
    if cues[MEMBERS] > max(cues[GEO], cues["person role"]) and _may_have_members(title):
        return ORGANIZATION  # "a Fatah leader"
    if may_be_surname(form):  # "Ann Hill"
        return type_as_surname(words[-1], cues)
    is_acting = cues[PERSON] + cues[AGENT] + cues[ACTOR] > 0
    if is_club_of_place(words, cues) or (is_acting and begins_with_acronym(form)):  # "TÜV Süd asked"
        return ORGANIZATION
    is_placed = len(words) == 1 and cues[GEO] > 0 and not cues[PERSON] + cues["person role"]  # "flown from Sion to"
    if words[0] in GIVEN_NAMES and "OF" not in words and not is_placed:
        return CONCEPT if len(words) > 1 and cues["named thing"] == n_names else PERSON  # the ship "the Mary Rose"
    is_byname = is_common_noun(words[0]) or words[0] in HONORIFICS | LONERS
    is_title = len(words) >= _MIN_TITLE and all(map(is_common_noun, form.split()[:-1]))
    if len(words) > 1 and not is_title and words[-1] in GIVEN_NAMES and "OF" not in words and is_byname:  # Tiny Tim
        return PERSON
    if (
        cues["organization role"] + cues[CLUB] > cues["person role"] and cues[GEO] < n_names
    ):  # also one that "said" something
        return ORGANIZATION
    if cues[AGENT] + cues[PERSON] + cues["agency"] > 0 and not cues["person role"] and may_be_firm(form):
        return ORGANIZATION
    is_weak_body = cues[GEO] >= cues[ORGANIZATION] + cues["agency"]  # "our engineers at Teska", and "in Teska"
    if not is_weak_body and 2 * cues[ORGANIZATION] + cues["agency"] > cues[PERSON] + 2 * cues["person role"]:
        return ORGANIZATION
    if is_code(form):
        is_speaking = cues[PERSON] > 0 and form.isalpha() and not form.isupper()  # "CalMac said"
        return ORGANIZATION if is_speaking and not form.startswith(_SURNAME_PREFIXES) else UNKNOWN
    if is_body_of_country(words) and cues[PERSON] + cues[AGENT] > 0 and not cues["person role"]:
        return ORGANIZATION  # "the Integrated Bar of the Philippines said"
    if acts_as_thing(form, n_names, cues):  # "the Rijksmuseum asked"
        return ORGANIZATION
    if cues[PERSON] and not cues["person role"] and is_named_as_body(form):  # "Penrith Private Hire asked"
        return ORGANIZATION
    n_person = cues[PERSON] + 2 * cues["person role"]
    is_defined = len(words) == 1 and is_common_noun(form) and cues["named thing"] > n_names / 2  # "the Customer"
    least = _MIN_COMMON_SHARE if is_defined else MIN_PERSON_SHARE
    if n_person >= max(cues[GEO], 1) and n_person >= least * n_names:
        return PERSON
    if (
        cues[GEO] / n_names >= _MIN_PLACE_SHARE
        and not title.endswith(ADJECTIVE_ENDINGS)
        and len(words[-1]) > 1
        and not all(map(is_common_noun, form.split()))
        and not (form.isupper() and len(words) == 1)  # "in MEDLINE"
    ):
        return GEO
    return UNKNOWN
