"""Entity types that the words of a name determine: "Bank of France", "Mr. Scrooge", "Battle of Hastings".

The types are those of Microsoft GraphRAG's default prompt, CONCEPT and UNKNOWN (see `name_types.py`).

Keep out: the words around a name (`type_cues.py`).
"""

from __future__ import annotations

import regex

from graphrag_pipeline.indexing.extraction.names.capitalization import is_common_word
from graphrag_pipeline.indexing.extraction.names.cues import (
    DESCRIBING_HONORIFICS,
    GIVEN_NAMES,
    HOLDINGS,
    HONORIFICS,
    KIN,
    LEGAL_SUFFIXES,
    NATIONALITIES,
    ORGANIZATION_TAILS,
    ORGANIZATIONS,
    PERSON_ROLES,
    PLACE_HEADS,
    PLACE_TAILS,
    RANKS,
    REGAL,
    SAINTS,
    SHIPS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.dates import is_date
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.kind_nouns import THING_NOUN, kind_of
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, is_also_a_word, title_of
from graphrag_pipeline.indexing.extraction.names.types.name_words import (
    NameWords,
    is_about_organization,
    is_body_by_ending,
    is_body_by_first_word,
    is_body_with_field,
    is_event,
    is_german_firm,
    is_kind_of_state,
    is_office_holder,
    is_post,
    is_ruler,
    is_written_as_person,
    split_words,
)
from graphrag_pipeline.text.late_patterns import late_regex

PERSON, ORGANIZATION, GEO, EVENT, UNKNOWN = "PERSON", "ORGANIZATION", "GEO", "EVENT", "UNKNOWN"
PROPER = frozenset({PERSON, ORGANIZATION, GEO, EVENT})  # types of what has a name of its own
CONCEPT = "CONCEPT"  # of key phrases, which are not names (see `terms/concepts.py`)

_ONE_OF_SEVERAL = late_regex(r"\b(?:an?|any|each|every|that|such|no)\s+[\"“]?$", regex.IGNORECASE)
ADJECTIVE_ENDINGS = ("ISH", "ESE", "IAN", "CH", "AN", "IC")  # of languages and peoples
_WEAK_PLACES = words(
    "pass close crescent mews area zone region farm arms point reef port state states channel bridge drive province"
)  # "Client Port"
_SCOPES = words("""
northern southern eastern western central regional international national european american african asian global world
federal royal united
""")
_WEAK_TAILS = words("""
software systems networks records services service technologies forces groups chemical chemicals semiconductor
semiconductors insurance energy petroleum financial electronics therapeutics telecom logistics securities mutual
library symphony shipping refrigeration haulage gazette observer herald chronicle examiner telegraph mercury advertiser
""")
_UNDERTAKINGS = words("operation project")
_LETTERED = words("building block wing pier terminal pavilion")
_WATERS = words("sound firth vale forest mouth strath pass")  # "Sound of Islay"
_OFFICERS = PERSON_ROLES & HONORIFICS | words("secretary minister")
_PLANS = words("plan protocol payment allowance prize medal award scholarship fellowship")
_SANCTUARIES = words("church chapel cathedral abbey priory minster")
_PARTIES = words("democrats republicans greens liberals conservatives socialists nationalists")
_MIN_PEOPLE, _MIN_DOCTRINE = 4, 5  # letters
_RELIGIONS = words("christianity islam christendom hinduism judaism sikhism")
_TITLES = (REGAL - SAINTS) | words("""
count countess baron baroness earl marquis marquess viscount landgrave margrave elector
""")
SURNAMES = words("hill wood woods brooks marsh banks rivers dale fields close")
"""Last words of places that are rather surnames behind a given name: "Ann Hill"."""
RARE_SURNAMES = words("park ridge lane glen moor forest church castle lake bridge bridges brook field green ford weir")
_ADDRESSES = words("mr mrs ms miss dr prof professor senator sen judge justice councillor cllr minister president")
_FORMS_OF_ADDRESS = HONORIFICS - REGAL
_HOLDERS = words("archbishop bishop patriarch caliph president ambassador chancellor")
_SCOPED_TAILS = words("network initiative register service services library mutual forces")


def type_by_words(form: str) -> str | None:
    """Return the type that the words of a name determine; None if the context must decide.

    Each rule below returns a type, UNKNOWN if the context must decide whatever later rules say, or None to pass the
    name on. The first that does not pass it on decides.
    """
    if is_date(form):
        return EVENT
    name = split_words(form)
    kind = (
        _type_held(name)
        or (EVENT if is_event(name) else None)
        or (PERSON if is_post(name) else None)
        or _type_labelled(name)
        or _type_weak_body(name)
        or (ORGANIZATION if is_body_with_field(name) or is_body_by_first_word(name) else None)
        or _type_river_or_court(name)
        or _type_officer(name)
        or _type_like_body(name)
        or _type_doctrine_or_people(name)
        or _type_ruler_or_arab(name)
        or _type_single_word(name)  # the rules below read several words
        or (ORGANIZATION if is_body_by_ending(name) else None)
        or _type_common_words(name)
        or _type_person_before_place(name)
        or _type_by_last_word_of_place(name)
        or _type_honoured(name)
        or _type_by_first_word_of_place(name)
        or (PERSON if is_written_as_person(name) else None)
    )
    return None if kind == UNKNOWN else kind


def _type_held(name: NameWords) -> str | None:
    """Type the kin and the holdings of a holder: "Scrooge's nephew", "Old Joe's shop"."""
    if "'s " not in name.form or not name.form[-1:].islower() or not name.form.rsplit(" ", 1)[-1].islower():
        return None
    held = name.words[-1]
    return PERSON if held in KIN else GEO if held in HOLDINGS else None


def _type_labelled(name: NameWords) -> str | None:
    """Type what a label and a name or a letter name."""
    first, n_words, written = name.first, len(name.words), name.form.split()
    if first in _UNDERTAKINGS and n_words == 2 and written[-1].istitle():  # "Operation Thistle"
        return CONCEPT
    if first in SHIPS and n_words > 1 and written[0].isupper():  # "MV Santa Rosalia"
        return CONCEPT
    if first in _LETTERED and n_words == 2 and len(name.last) == 1:  # "Building C"
        return GEO
    return None


def _type_weak_body(name: NameWords) -> str | None:
    """Type bodies of a scope; leave common words before a last word of bodies and of things to the context."""
    parts, last = name.words, name.last
    if name.first in _SCOPES and len(parts) > 2 and last in _SCOPED_TAILS and "OF" not in parts:
        return ORGANIZATION  # "International Lymphoma Network"
    if last not in _WEAK_TAILS:
        return None
    is_common = "OF" in parts or all(map(is_common_word, parts[:-1]))  # "Covered Software"
    is_common = is_common or (last == "LIBRARY" and all(map(is_also_a_word, parts[:-1])))
    return UNKNOWN if is_common else None


def _type_river_or_court(name: NameWords) -> str | None:
    """Type courts of a place; a river before several words may begin the name of a body."""
    first, n_words = name.first, len(name.words)
    if first == "RIVER" and n_words > 2 and "OF" not in name.words:  # "River Watch Wessex"
        return UNKNOWN
    if name.last == "COURT" and n_words == 2 and not is_also_a_word(first.capitalize()) and first not in load_places():
        return GEO  # "Garrioch Court", not "Crown Court"
    return None


def _type_officer(name: NameWords) -> str | None:
    """Type members and officers of a body: "President of the Nordic Council", "Member of Parliament"."""
    is_tailed = name.last in ORGANIZATION_TAILS or name.last in PLACE_TAILS
    is_officer = is_tailed and name.head in _OFFICERS and f"{name.head} OF THE" in " ".join(name.words)
    if name.first != "MEMBER" and not is_officer:
        return None
    return PERSON if "OF" in name.words else UNKNOWN


def _type_like_body(name: NameWords) -> str | None:
    """Type what only ends as a body, a plan or a state."""
    parts, last = name.words, name.last
    if last in ORGANIZATION_TAILS and " ".join(parts) in load_places():  # "West Bank"
        return GEO
    if last in ORGANIZATION_TAILS and is_about_organization(parts):
        return UNKNOWN
    if len(parts) > 1 and last in _PLANS and "OF" not in parts:  # "Kirkby Neighbourhood Plan"
        return CONCEPT
    return UNKNOWN if last == "STATES" and is_kind_of_state(parts) else None


def _type_doctrine_or_people(name: NameWords) -> str | None:
    """Type religions and doctrines, and the people of a nation."""
    first, last, n_words = name.first, name.last, len(name.words)
    if n_words == 1 and (first in _RELIGIONS or (first.endswith("ISM") and len(first) > _MIN_DOCTRINE)):
        return CONCEPT
    is_people = n_words < 3 and len(last) > _MIN_PEOPLE and last.endswith("S") and last[:-1] in NATIONALITIES
    if is_people and (n_words == 1 or first not in load_places()):  # not "Houston Texans"
        return PERSON  # "Israelis", "South Africans"
    return None


def _type_ruler_or_arab(name: NameWords) -> str | None:
    """Type rulers and nobles by "of", and bodies and persons by an Arabic first word."""
    parts, first, last = name.words, name.first, name.last
    if name.head and is_ruler(parts):
        return PERSON
    if len(parts) == 2 and first == "AL" and last.replace("'", "") in ORGANIZATIONS:
        return ORGANIZATION
    if len(parts) == 2 and first == "ABU" and " ".join(parts) not in load_places():
        return PERSON
    if first in _TITLES and parts[1:2] == ["OF"] and parts[2] != "THE" and last not in ORGANIZATION_TAILS:
        return PERSON  # "Duke of Madrid"
    return None


def _type_single_word(name: NameWords) -> str | None:
    """Type known bodies and parties of one word; leave any other word alone to the context."""
    if len(name.words) > 1:
        return None
    first = name.first
    bare = first.replace("'", "").removeprefix("AL-")
    is_known = bare in ORGANIZATIONS or first in ORGANIZATIONS or first in _PARTIES
    return ORGANIZATION if is_known or is_german_firm(name.words) else UNKNOWN


def _type_common_words(name: NameWords) -> str | None:
    """Type offices, churches, markets and parties by common words at their ends."""
    parts, first, last = name.words, name.first, name.last
    if is_office_holder(parts):
        return PERSON
    if (first in SAINTS and len(parts) > 2 and last in _SANCTUARIES) or parts[-2:] == ["MARKET", "PLACE"]:
        return GEO  # "St Wilfrid's Church"
    if last in _PARTIES:  # "Liberal Democrats"
        return ORGANIZATION
    if first in SAINTS and name.form.endswith("'s"):  # the church, hospital or school of that name
        return GEO
    if parts[-2:] == ["STOCK", "EXCHANGE"]:
        return ORGANIZATION
    if parts[-2:] == ["OF", "STATE"]:
        return PERSON if name.head in _OFFICERS else UNKNOWN
    if last in PLACE_TAILS and name.form.islower():  # "solid-state drive"
        return UNKNOWN
    return None


def _type_person_before_place(name: NameWords) -> str | None:
    """Type holders of an office, and persons whose surname is also the last word of places."""
    parts, first, last = name.words, name.first, name.last
    if last in _HOLDERS and first not in GIVEN_NAMES:
        return PERSON  # "Anglican Archbishop"
    is_addressed = first in _FORMS_OF_ADDRESS and parts[1] in GIVEN_NAMES and len(parts) == 3
    if (is_addressed or (first in _ADDRESSES and len(parts) == 2)) and last in SURNAMES | RARE_SURNAMES:
        return PERSON  # "Justice Elena Park"
    return None


def _type_by_last_word_of_place(name: NameWords) -> str | None:
    """Type places by their last word; common words before a weak one decide nothing: "Client Port"."""
    if name.last not in PLACE_TAILS:
        return None
    return UNKNOWN if name.last in _WEAK_PLACES and all(map(is_common_word, name.words[:-1])) else GEO


def _type_honoured(name: NameWords) -> str | None:
    """Type persons by their honorific."""
    parts, first = name.words, name.first
    is_honoured = first in HONORIFICS or (first in RANKS and parts[1] in HONORIFICS)
    if not is_honoured or "OF" in parts[:2]:
        return None
    is_describing = first in DESCRIBING_HONORIFICS and is_common_word(parts[1])
    return UNKNOWN if is_describing else PERSON  # "General Public License"


def _type_by_first_word_of_place(name: NameWords) -> str | None:
    """Type places by their first word, if no thing follows."""
    parts, first = name.words, name.first
    if first in PLACE_HEADS and len(parts) > 2 and kind_of(name.last.lower()) == THING_NOUN:
        return CONCEPT  # "Port Marine Safety Code"
    is_water = first in _WATERS and parts[1] == "OF" and len(parts) == 3  # "Sound of Islay"
    return GEO if first in PLACE_HEADS or is_water else None


def is_described(text: str, name: Name) -> bool:
    """Whether an honorific only describes a noun after an article: "that Major Component", not "Major Baker"."""
    first, _, rest = title_of(name.form).partition(" ")
    if first not in DESCRIBING_HONORIFICS or not is_also_a_word(rest):
        return False
    return _ONE_OF_SEVERAL.search(text, max(name.start - 8, 0), name.start) is not None


def cut_legal_form(form: str) -> str:
    """Return the name of a firm without its legal form: "Northgate Marine" of "Northgate Marine Ltd"; else ""."""
    bare, _, last = form.replace(",", "").rpartition(" ")
    return bare if last.upper().rstrip(".") in LEGAL_SUFFIXES else ""
