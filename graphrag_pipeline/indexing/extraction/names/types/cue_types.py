"""Type of one name by the cues that the document gives for it, and by its words where a cue leaves several types.

Keep out: what the cues are (`type_cues.py` and the other `*_cues.py`), names whose words decide alone
(`word_types.py`), what other names of the document say (`name_types.py`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from graphrag_pipeline.indexing.extraction.names.brands import is_well_known, load_organizations
from graphrag_pipeline.indexing.extraction.names.cues import (
    BUILDINGS,
    GIVEN_NAMES,
    HONORIFICS,
    LONERS,
    PLACE_HEADS_ABROAD,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_countries, load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import title_of
from graphrag_pipeline.indexing.extraction.names.terms.term_signs import is_code, is_common_noun
from graphrag_pipeline.indexing.extraction.names.types.acronym_types import MIN_PERSON_SHARE, begins_with_acronym
from graphrag_pipeline.indexing.extraction.names.types.agent_cues import (
    AGENT,
    FIRM,
    is_given_firm,
    is_room,
    may_be_firm,
)
from graphrag_pipeline.indexing.extraction.names.types.body_words import (
    acts_as_thing,
    is_body_of_country,
    is_named_as_body,
    is_national_body,
)
from graphrag_pipeline.indexing.extraction.names.types.club_cues import CLUB, is_club_of_place
from graphrag_pipeline.indexing.extraction.names.types.kind_cues import OF_EVENT, OF_THING, WORK
from graphrag_pipeline.indexing.extraction.names.types.place_cues import may_be_surname, type_as_surname
from graphrag_pipeline.indexing.extraction.names.types.trade_cues import ACTOR
from graphrag_pipeline.indexing.extraction.names.types.type_cues import MEMBERS
from graphrag_pipeline.indexing.extraction.names.types.word_types import (
    ADJECTIVE_ENDINGS,
    CONCEPT,
    EVENT,
    GEO,
    ORGANIZATION,
    PERSON,
    UNKNOWN,
)

_MIN_COMMON_SHARE = 0.1  # of a name's occurrences that show a person, for a common word after "the"
_SURNAME_PREFIXES = ("Mc", "Mac", "De", "Di", "Du", "La", "Le", "Van", "Von", "Fitz", "O")
_MIN_TITLE = 4  # words of a name that is no byname: "Community Shares Standard Mark"
_MIN_PLACE_SHARE = 0.3  # of a name's occurrences that follow "in", "at", ...


@dataclass(frozen=True, slots=True)
class _CuedName:
    """A name whose words leave its type open.

    Attributes:
        title: its key, with the words in upper case.
        words: the words of `title`.
        n_names: number of its occurrences.
        cues: number of its occurrences with each cue.
    """

    form: str
    title: str
    words: list[str]
    n_names: int
    cues: Counter[str]


def type_by_cues(form: str, n_names: int, cues: Counter[str]) -> str:
    """Return the type of a name, UNKNOWN without evidence.

    Each rule below returns a type, or None to pass the name on. The first that does not pass it on decides.
    """
    title = title_of(form)
    name = _CuedName(form, title, title.split(), n_names, cues)
    return (
        _type_thing(name)
        or _type_known_name(name)
        or _type_building(name)
        or _type_firm_or_term_by_given_name(name)
        or _type_place_or_body_by_few_words(name)
        or _type_person_by_given_name(name)
        or _type_body_by_roles(name)
        or _type_code(name)
        or _type_body_by_words_and_deeds(name)
        or _type_person_by_deeds(name)
        or _type_placed(name)
        or UNKNOWN
    )


def _type_thing(name: _CuedName) -> str | None:
    """Type ships, works, things and events by the noun beside them."""
    cues = name.cues
    if cues["vessel"] or (cues[WORK] and not cues["person role"] and name.title not in load_places()):
        return CONCEPT
    n_roles = cues["person role"] + cues["organization role"] + cues["place role"] + cues[PERSON]
    if cues[OF_THING] + cues[OF_EVENT] > n_roles and name.title not in load_places():
        return CONCEPT if cues[OF_THING] >= cues[OF_EVENT] else EVENT
    return None


def _type_known_name(name: _CuedName) -> str | None:
    """Type places and organizations that a list has, and bodies and clubs that such a place names."""
    title, cues = name.title, name.cues
    if cues["place role"]:
        return GEO
    is_person_or_placed = cues["person role"] + cues[GEO] > 0
    if not is_person_or_placed and title in load_organizations() and is_well_known(title):
        return ORGANIZATION
    if not is_person_or_placed and is_national_body(name.words, name.form):
        return ORGANIZATION
    if title not in load_places():
        return None
    if cues[CLUB] > cues[GEO] + cues["place role"] and title not in load_countries():
        return ORGANIZATION  # "three points behind Gillingham"
    return PERSON if cues[PERSON] > cues[GEO] and title in GIVEN_NAMES else GEO


def _type_building(name: _CuedName) -> str | None:
    """Type buildings, which are organizations where they act, and rooms."""
    words, cues = name.words, name.cues
    if words[-1] in BUILDINGS and words[0] not in GIVEN_NAMES and len(words) > 1:
        return ORGANIZATION if cues[PERSON] + cues["agency"] or name.title in load_organizations() else GEO
    return GEO if is_room(name.form, cues) else None


def _type_firm_or_term_by_given_name(name: _CuedName) -> str | None:
    """Type firms and terms that a given name begins."""
    words, cues = name.words, name.cues
    is_firm = cues[AGENT] + cues[FIRM] > 0 or words[-1].endswith("S")
    if is_firm and not cues["person role"] and is_given_firm(words):  # "Tamar Gallery has agreed", "Eden Cabs"
        return ORGANIZATION
    if len(words) > 1 or name.title not in GIVEN_NAMES:
        return None
    if cues["describes"] == name.n_names and not cues[PERSON]:
        return CONCEPT  # "the Allan deviation"
    n_body = _n_body(cues)
    is_body = n_body > cues[PERSON] + cues["person role"] and 2 * n_body >= name.n_names
    return ORGANIZATION if is_body else None  # "an analyst at Davy"


def _type_place_or_body_by_few_words(name: _CuedName) -> str | None:
    """Type names by one word of theirs and a weak cue."""
    words, cues = name.words, name.cues
    if words[0] in PLACE_HEADS_ABROAD and len(words) > 1 and not _n_body(cues) + cues[PERSON] + cues["person role"]:
        return GEO  # "Monte Cinta"
    if cues[MEMBERS] > max(cues[GEO], cues["person role"]) and _may_have_members(name.title):
        return ORGANIZATION  # "a Fatah leader"
    if may_be_surname(name.form):  # "Ann Hill"
        return type_as_surname(words[-1], cues)
    is_acting = cues[PERSON] + cues[AGENT] + cues[ACTOR] > 0
    if is_club_of_place(words, cues) or (is_acting and begins_with_acronym(name.form)):  # "TÜV Süd asked"
        return ORGANIZATION
    return None


def _type_person_by_given_name(name: _CuedName) -> str | None:
    """Type persons by a given name at the beginning, or behind a byname: "Tiny Tim"."""
    words, cues = name.words, name.cues
    if "OF" in words:
        return None
    is_placed = len(words) == 1 and cues[GEO] > 0 and not cues[PERSON] + cues["person role"]  # "flown from Sion to"
    if words[0] in GIVEN_NAMES and not is_placed:
        is_ship = len(words) > 1 and cues["named thing"] == name.n_names  # the ship "the Mary Rose"
        return CONCEPT if is_ship else PERSON
    if len(words) == 1 or words[-1] not in GIVEN_NAMES:
        return None
    is_byname = is_common_noun(words[0]) or words[0] in HONORIFICS or words[0] in LONERS
    is_title = len(words) >= _MIN_TITLE and all(map(is_common_noun, name.form.split()[:-1]))
    return PERSON if is_byname and not is_title else None


def _type_body_by_roles(name: _CuedName) -> str | None:
    """Type bodies, also those that "said" something, by the roles that the text gives them."""
    cues = name.cues
    if cues["organization role"] + cues[CLUB] > cues["person role"] and cues[GEO] < name.n_names:
        return ORGANIZATION
    if cues[AGENT] + cues[PERSON] + cues["agency"] > 0 and not cues["person role"] and may_be_firm(name.form):
        return ORGANIZATION
    is_weak_body = cues[GEO] >= cues[ORGANIZATION] + cues["agency"]  # "our engineers at Teska", and "in Teska"
    if not is_weak_body and 2 * cues[ORGANIZATION] + cues["agency"] > cues[PERSON] + 2 * cues["person role"]:
        return ORGANIZATION
    return None


def _type_code(name: _CuedName) -> str | None:
    """Type what is written like a word of code: a body if it speaks, else UNKNOWN, whatever other cues it has."""
    form = name.form
    if not is_code(form):
        return None
    is_speaking = name.cues[PERSON] > 0 and form.isalpha() and not form.isupper()  # "CalMac said"
    return ORGANIZATION if is_speaking and not form.startswith(_SURNAME_PREFIXES) else UNKNOWN


def _type_body_by_words_and_deeds(name: _CuedName) -> str | None:
    """Type bodies that act and whose words are those of no person."""
    form, cues = name.form, name.cues
    if is_body_of_country(name.words) and cues[PERSON] + cues[AGENT] > 0 and not cues["person role"]:
        return ORGANIZATION  # "the Integrated Bar of the Philippines said"
    if acts_as_thing(form, name.n_names, cues):  # "the Rijksmuseum asked"
        return ORGANIZATION
    if cues[PERSON] and not cues["person role"] and is_named_as_body(form):  # "Penrith Private Hire asked"
        return ORGANIZATION
    return None


def _type_person_by_deeds(name: _CuedName) -> str | None:
    """Type persons by what they say and what they are called."""
    form, n_names, cues = name.form, name.n_names, name.cues
    n_person = cues[PERSON] + 2 * cues["person role"]
    is_defined = len(name.words) == 1 and is_common_noun(form) and cues["named thing"] > n_names / 2  # "the Customer"
    least = _MIN_COMMON_SHARE if is_defined else MIN_PERSON_SHARE
    return PERSON if n_person >= max(cues[GEO], 1) and n_person >= least * n_names else None


def _type_placed(name: _CuedName) -> str | None:
    """Type places by the prepositions before them."""
    form, words = name.form, name.words
    if name.cues[GEO] / name.n_names < _MIN_PLACE_SHARE:
        return None
    is_adjective = name.title.endswith(ADJECTIVE_ENDINGS)
    is_acronym = form.isupper() and len(words) == 1  # "in MEDLINE"
    if is_adjective or is_acronym or len(words[-1]) == 1 or all(map(is_common_noun, form.split())):
        return None
    return GEO


def _n_body(cues: Counter[str]) -> int:
    return cues[ORGANIZATION] + cues["organization role"]


def _may_have_members(title: str) -> bool:
    """Whether a name before "leader" or "fighters" may be a body: not "F-16", "Berber" or a given name."""
    is_adjective = title.endswith((*ADJECTIVE_ENDINGS, "IST", "ER"))
    return title.replace(" ", "").isalpha() and not is_adjective and title.split()[0] not in GIVEN_NAMES
