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
from dataclasses import dataclass, field

from graphrag_pipeline.indexing.extraction.names.cues import (
    GIVEN_NAMES,
    OFFICES,
    PLACE_TAILS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.terms.ordinary_words import tells_story
from graphrag_pipeline.indexing.extraction.names.terms.term_signs import (
    is_common_noun,
)
from graphrag_pipeline.indexing.extraction.names.types.acronym_types import (
    SEVERAL,
    is_acronym,
    is_known_acronym,
    type_acronym,
)
from graphrag_pipeline.indexing.extraction.names.types.agent_cues import (
    AGENT,
    read_agent_cues,
)
from graphrag_pipeline.indexing.extraction.names.types.attendance import (
    choose_attendees,
    choose_surnames,
    find_attendees,
)
from graphrag_pipeline.indexing.extraction.names.types.club_cues import is_club, read_club_cues
from graphrag_pipeline.indexing.extraction.names.types.cue_types import type_by_cues
from graphrag_pipeline.indexing.extraction.names.types.kind_cues import WORK, read_kind_cues
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
from graphrag_pipeline.indexing.extraction.names.types.type_cues import QUOTED, is_vessel, read_cues
from graphrag_pipeline.indexing.extraction.names.types.weak_evidence import type_by_signs
from graphrag_pipeline.indexing.extraction.names.types.word_types import (
    CONCEPT,
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
_MIN_AMONG_PERSONS = 0.3  # of the names of a document, for fewer cues to type its unknown names
_BUSINESS = (" share", " stake", " stock", " profit", " merger", " acqui", " offer", " earnings", " revenue")
_MIN_BUSINESS, _MIN_BUSINESS_SHARE = 2, 0.01  # of the words of a report on firms
_MIN_TOWARDS = 0.5  # of a name's occurrences that follow "at", "to" or "from"


@dataclass(slots=True)
class _Evidence:
    """What one document says about its names, by written form.

    Attributes:
        names: every occurrence of a name.
        is_explaining: whether the document explains how things are, in English.
        counts: number of occurrences.
        by_words: type that the words determine; None if the cues must decide.
        cues: number of occurrences with each cue.
        attendees: forms of the persons in attendance lists.
    """

    names: list[Name]
    text: str
    is_english: bool
    is_explaining: bool
    counts: Counter[str] = field(default_factory=Counter)
    by_words: dict[str, str | None] = field(default_factory=dict)
    cues: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    attendees: Set[str] = frozenset()


def type_names(names: Iterable[Name], text: str, is_english: bool = True) -> dict[str, str]:
    """Return the type of each written form among the names of one document."""
    evidence = _read_evidence(list(names), text, is_english)
    types = _type_by_others(_type_alone(evidence), evidence)
    if not is_english or UNKNOWN not in types.values():
        return types
    return _type_by_weak_evidence(types, evidence)


def _read_evidence(names: list[Name], text: str, is_english: bool) -> _Evidence:
    evidence = _Evidence(names, text, is_english, is_explaining=is_english and explains(text))
    for name in names:
        _read_occurrence(name, evidence)
    if is_english:
        for form, cue in find_kinds(names, text):
            evidence.cues[form][cue] += 1
    if evidence.is_explaining:
        strong = {form: keep_strong_cues(evidence.counts[form], found) for form, found in evidence.cues.items()}
        evidence.cues = defaultdict(Counter, strong)
    _correct_places(evidence)
    _mark_attendees(evidence)
    return evidence


def _read_occurrence(name: Name, evidence: _Evidence) -> None:
    """Count one occurrence and its cues; a type by words is dropped where the text shows another use of the words."""
    form, text = name.form, evidence.text
    cues, by_words = evidence.cues, evidence.by_words
    evidence.counts[form] += 1
    if form not in by_words:
        is_thing = evidence.is_explaining and is_named_as_thing(form)
        by_words[form] = None if is_thing else type_by_words(form)
    is_unsure = by_words[form] == PERSON and (is_described(text, name) or is_vessel(text, name))
    if is_unsure or (by_words[form] == GEO and may_be_surname(form)):
        by_words[form] = None
    if by_words[form] is None:
        cues[form].update(read_cues(text, name))
        cues[form].update(read_agent_cues(text, name))
        if form.isupper() and text.startswith(f"{form}s", name.start):
            cues[form][SEVERAL] += 1
    if evidence.is_english and by_words[form] in (None, GEO):
        for read in _READERS:
            cues[form].update(read(text, name))


def _correct_places(evidence: _Evidence) -> None:
    """Give works and clubs with the words of a place their own type."""
    cues, by_words = evidence.cues, evidence.by_words
    places = [form for form, kind in by_words.items() if kind == GEO]
    works = {form for form in places if cues[form][WORK] > cues[form][GEO]}
    clubs = {form for form in places if form not in works and is_club(cues[form], _ends_as_place(form))}
    by_words |= dict.fromkeys(works, CONCEPT) | dict.fromkeys(clubs, ORGANIZATION)


def _mark_attendees(evidence: _Evidence) -> None:
    """Find who attends a meeting, and give them and their surnames the cue of a person."""
    by_words = evidence.by_words
    evidence.attendees = choose_attendees(by_words, find_attendees(evidence.text))
    for form in evidence.attendees | choose_surnames(by_words, evidence.attendees):
        evidence.cues[form]["person role"] += evidence.counts[form]
        by_words[form] = PERSON if by_words[form] == GEO else by_words[form]  # "Ann Hill"


def _type_alone(evidence: _Evidence) -> dict[str, str]:
    """Return the type of each form by its own words and cues."""
    counts, cues, by_words = evidence.counts, evidence.cues, evidence.by_words
    in_lower = {title_of(name.form) for name in evidence.names if not name.form.isupper()}
    acronyms = {form for form, found in by_words.items() if found is None and is_acronym(form, in_lower)}
    types = {
        form: found or type_by_cues(form, counts[form], cues[form])
        for form, found in by_words.items()
        if form not in acronyms
    }
    return types | _type_acronyms_alone(acronyms, types, evidence)


def _type_acronyms_alone(acronyms: Set[str], types: Mapping[str, str], evidence: _Evidence) -> dict[str, str]:
    """Return the types of acronyms, which depend on the names that the document mostly has.

    Args:
        types: types of the other forms.
    """
    counts, cues, attendees = evidence.counts, evidence.cues, evidence.attendees
    others = {form: kind for form, kind in types.items() if form not in attendees}
    is_story = _named_share(others, counts, acronyms) >= _MIN_NAMED_SHARE
    is_news = (is_story and not attendees) or not evidence.is_english
    if not attendees:  # what acts in a manual may be a program
        cues.update((form, Counter({cue: n for cue, n in cues[form].items() if cue != ACTOR})) for form in acronyms)
    return {form: type_acronym(form, counts[form], cues[form], is_news, evidence.is_explaining) for form in acronyms}


def _type_by_others(types: dict[str, str], evidence: _Evidence) -> dict[str, str]:
    """Return the types with what the other names of the document, and its kind of text, say of each form."""
    names, text, cues, attendees = evidence.names, evidence.text, evidence.cues, evidence.attendees
    is_english, is_explaining = evidence.is_english, evidence.is_explaining
    heads = {form.split(" of ")[0] for form, kind in types.items() if kind == PERSON}
    types = {form: type_by_relatives(form, kind, heads) for form, kind in types.items()}
    types |= {bare: ORGANIZATION for form in types if (bare := cut_legal_form(form)) in types}
    if is_explaining:
        types |= drop_persons_of_things(types)
    elif is_english:
        types |= type_by_second_mentions(names, types, cues, text)
    types |= type_by_last_words(types, cues, is_explaining)
    types |= type_by_family(types, evidence.counts, cues)
    types |= type_families(types, cues)
    types |= type_by_places(types, cues)
    types |= type_by_short_names(types)
    if is_english and tells_story(text):
        types |= type_in_story(names, types, cues, text)
    types |= _type_among_persons(types, evidence.counts, cues, attendees)
    if is_english:
        types |= type_in_passing(types, cues, attendees)
    types |= type_by_company(names, types, text, is_explaining)
    if is_english and not attendees:
        types |= _type_firms_in_business(types, cues, text)
    return types


def _type_by_weak_evidence(types: dict[str, str], evidence: _Evidence) -> dict[str, str]:
    """Return the types with those of unknown names of an English document by signs that do not decide alone."""
    names, text, cues, attendees = evidence.names, evidence.text, evidence.cues, evidence.attendees
    is_explaining = evidence.is_explaining
    types |= type_by_last_words(types, cues, is_explaining) | type_by_first_words(types, cues)
    terms, is_technical = find_terms(names, types, {form: form for form in types}, text)
    by_signs = type_by_signs(names, types, terms, text, None if is_technical else attendees)
    types |= {
        form: kind
        for form, kind in by_signs.items()
        if (" " in form or not is_explaining) and cues[form][QUOTED] < evidence.counts[form]
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
