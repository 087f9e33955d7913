"""Entity types that the words of a name determine: "Bank of France", "Mr. Scrooge", "Battle of Hastings".

The types are those of Microsoft GraphRAG's default prompt, CONCEPT and UNKNOWN (see `name_types.py`).

Keep out: the words around a name (`type_cues.py`).
"""

from __future__ import annotations

import regex

from graphrag_pipeline.indexing.extraction.names.capitalization import (
    is_common_word,
    is_proper_word,
    token_rank,
)
from graphrag_pipeline.indexing.extraction.names.cues import (
    BYNAMES,
    CLUB_HEADS,
    DAY_NAMES_BEFORE,
    DAYS,
    DESCRIBING_HONORIFICS,
    EVENT_HEADS,
    EVENT_TAILS,
    EVENTS,
    GIVEN_NAMES,
    HEADS_ABROAD,
    HOLDINGS,
    HONORIFICS,
    JOINED_TAILS,
    JUDGES,
    KIN,
    LEGAL_SUFFIXES,
    NATIONALITIES,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    ORGANIZATIONS,
    PERSON_ROLES,
    PLACE_HEADS,
    PLACE_TAILS,
    POSTNOMINALS,
    RANKS,
    REGAL,
    SAINTS,
    SHIPS,
    STORMS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.dates import is_date
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.kind_nouns import THING_NOUN, is_trade, kind_of
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, is_also_a_word, title_of
from graphrag_pipeline.indexing.extraction.names.terms.background import english_rank

PERSON, ORGANIZATION, GEO, EVENT, UNKNOWN = "PERSON", "ORGANIZATION", "GEO", "EVENT", "UNKNOWN"
PROPER = frozenset({PERSON, ORGANIZATION, GEO, EVENT})  # types of what has a name of its own
CONCEPT = "CONCEPT"  # of key phrases, which are not names (see `terms/concepts.py`)

_BYNAMES = frozenset(BYNAMES.upper().split("|"))
_ONE_OF_SEVERAL = regex.compile(r"\b(?:an?|any|each|every|that|such|no)\s+[\"“]?$", regex.IGNORECASE)
_HEADS_OF = words("director head chair dean manager registrar commissioner comptroller treasurer controller warden")
_NUMERAL = regex.compile(r"[IVX]+")
_INITIALED = regex.compile(r"(?!U\. ?[SKN]\b)(?:\p{Lu}\. ){2,}\p{Lu}[\p{L}'-]*\p{Ll}")  # J. R. R. Tolkien
ADJECTIVE_ENDINGS = ("ISH", "ESE", "IAN", "CH", "AN", "IC")  # of languages and peoples
_AUTHOR = regex.compile(r"(?![NS]\.)\p{Lu}\. \p{Lu}[\p{L}'-]*\p{Ll}")  # L. Abeni
_WEAK_PLACES = words(
    "pass close crescent mews area zone region farm arms point reef port state states channel bridge drive province"
)  # "Client Port"
_INSTITUTIONS = (ORGANIZATION_HEADS & ORGANIZATION_TAILS) | words(
    "hospital infirmary museum observatory hospice diocese archdiocese nation party club friends"
)
_SCOPES = words("""
northern southern eastern western central regional international national european american african asian global world
federal royal united
""")
_WEAK_TAILS = words("""
software systems networks records services service technologies forces groups chemical chemicals semiconductor
semiconductors insurance energy petroleum financial electronics therapeutics telecom logistics securities mutual
library symphony shipping refrigeration haulage gazette observer herald chronicle examiner telegraph mercury advertiser
""")
_HEADS_ON = words(
    "court council committee commission board panel network institute group"
)  # "Council on Foreign Relations"
_DESCRIBED = {
    "ASSEMBLY": words("national general legislative state provincial regional constituent federal people's"),
    "GUARD": words("coast national home revolutionary presidential republican civil"),
}
_STATES = words("u.s u.s. u.n u.n.")
_UNDERTAKINGS = words("operation project")
_LETTERED = words("building block wing pier terminal pavilion")
_ESTATES = words("duchy archduchy")
_JOINED_FIRMS = JOINED_TAILS | words("son nephew nephews daughter daughters associates")
_WATERS = words("sound firth vale forest mouth strath pass")  # "Sound of Islay"
_GERMAN_FIRMS = (
    *("WERKE", "BAHN", "BANK", "BETRIEBE", "VERBAND", "VEREIN", "GESELLSCHAFT", "GENOSSENSCHAFT", "VERSICHERUNG"),
    *("SPARKASSE", "VERLAG", "KLINIKUM", "MUSEUM", "UNIVERSITEIT", "UNIVERSITÄT", "HOCHSCHULE", "STIFTUNG"),
)
_MIN_COMPOUND = 7  # letters
_SHOWS = words("harvest flower air motor boat horse dog county agricultural trade fashion produce summer spring autumn")
_CUPS_ABROAD = words("copa coppa coupe trofeo")
_OFFICE_HOLDERS = words("""
commissioner inspector officer clerk surveyor warden keeper treasurer librarian sheriff constable secretary trustee
""")
_MASTERS = words("harbour harbor station head house choir grand post")  # before "Master"
_OFFICERS = PERSON_ROLES & HONORIFICS | words("secretary minister")
_OFFICES = words("office assembly centre center commission foundation alliance movement")
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
_HOLDERS = words("archbishop bishop patriarch caliph president ambassador chancellor")
_KINDRED = words("bin ibn bint binti ibnu")  # "son of" between names
_AIMS = words("to for against")
_CAMPAIGNS = words("campaign committee coalition")
_SCOPED_TAILS = words("network initiative register service services library mutual forces")


def type_by_words(form: str) -> str | None:
    """Return the type that the words of a name determine; None if the context must decide."""
    if is_date(form):
        return EVENT
    words = [word.rstrip(".,") for word in title_of(form).split()]
    if form[-1:].islower() and "'s " in form:
        held = words[-1]
        if form.rsplit(" ", 1)[-1].islower() and (held in KIN or held in HOLDINGS):
            return PERSON if held in KIN else GEO
    if _is_event(words):
        return EVENT
    first, last = words[0], words[-1].replace(".", "")  # "S.A" is SA
    if (last in POSTNOMINALS and len(words) > 2) or (first in _HEADS_OF and len(words) > 2 and words[1] == "OF"):
        return PERSON  # "Alun Harker MP", "Director of Finance"
    if len(words) == 2 and last in JUDGES and not is_also_a_word(first.capitalize()):
        return PERSON  # "Mensah J"
    if first in _UNDERTAKINGS and len(words) == 2 and form.split()[-1].istitle():  # "Operation Thistle"
        return CONCEPT
    if first in SHIPS and len(words) > 1 and form.split()[0].isupper():  # "MV Santa Rosalia"
        return CONCEPT
    if first in _LETTERED and len(words) == 2 and len(last) == 1:  # "Building C"
        return GEO
    if first in _SCOPES and len(words) > 2 and last in _SCOPED_TAILS and "OF" not in words:
        return ORGANIZATION  # "International Lymphoma Network"
    if last in _WEAK_TAILS and (
        "OF" in words
        or all(is_common_word(word) for word in words[:-1])
        or (last == "LIBRARY" and all(map(is_also_a_word, words[:-1])))
    ):  # "Covered Software"
        return None
    head = next((words[n - 1] for n in range(1, len(words)) if words[n] in ("OF", "FOR")), "")
    head = head or next(
        (words[n - 1] for n in range(1, len(words)) if words[n] == "ON" and words[n - 1] in _HEADS_ON), ""
    )
    is_office = (head in _OFFICES and "FOR" in words) or (
        first == "ASSEMBLY" and head == first
    )  # "Office for National Statistics", "Centre for Policy Studies"
    is_office = is_office or (head in _HEADS_ON and not {"ON", "FOR"}.isdisjoint(words))  # "Commission on Human Rights"
    if len(words) == 2 and first in _DESCRIBED.get(last, ()):  # "Coast Guard"
        return ORGANIZATION
    if first in _STATES and len(words) > 2 and last not in PLACE_TAILS | HONORIFICS:  # "U.S. Geological Survey"
        return ORGANIZATION
    is_group = head == "GROUP" and "WORKING" in words
    is_institution = (
        is_group or first in ORGANIZATION_HEADS or head in _INSTITUTIONS
    )  # "National Institute of Standards"
    if head and (is_institution or is_office):
        return ORGANIZATION
    if (first in _ESTATES and words[1:2] == ["OF"]) or words[:2] == ["CLUB", "FOR"]:  # "Duchy of Cornwall"
        return ORGANIZATION
    if first == "MESSRS" or (first in _CAMPAIGNS and words[1:2] and words[1] in _AIMS):  # "Campaign to Protect ..."
        return ORGANIZATION
    if len(words) == 2 and first.replace("’", "'").endswith("'S") and is_trade(last.lower()):  # "Pender's Jewellers"
        return ORGANIZATION
    if first == "HM" or (first == "TEAM" and len(words) == 2):  # "HM Treasury"
        return ORGANIZATION
    if "CORPS" in words[:-2] and "OF" in words:  # "Army Corps of Engineers"
        return ORGANIZATION
    if first == "RIVER" and len(words) > 2 and "OF" not in words:  # "River Watch Wessex"
        return None
    if last == "COURT" and len(words) == 2 and not is_also_a_word(first.capitalize()) and first not in load_places():
        return GEO  # "Garrioch Court", not "Crown Court"
    is_tailed = last in ORGANIZATION_TAILS or last in PLACE_TAILS
    if first == "MEMBER" or (is_tailed and head in _OFFICERS and f"{head} OF THE" in " ".join(words)):
        return PERSON if "OF" in words else None  # "President of the Nordic Council", "Member of Parliament"
    if last in ORGANIZATION_TAILS and " ".join(words) in load_places():  # "West Bank"
        return GEO
    if last in ORGANIZATION_TAILS and _is_about_organization(words):
        return None
    if len(words) > 1 and last in _PLANS and "OF" not in words:  # "Kirkby Neighbourhood Plan"
        return CONCEPT
    if last == "STATES" and _is_kind_of_state(words):
        return None
    if len(words) == 1 and (first in _RELIGIONS or (first.endswith("ISM") and len(first) > _MIN_DOCTRINE)):
        return CONCEPT
    is_people = len(words) < 3 and len(last) > _MIN_PEOPLE and last.endswith("S") and last[:-1] in NATIONALITIES
    if is_people and (len(words) == 1 or first not in load_places()):  # not "Houston Texans"
        return PERSON  # "Israelis", "South Africans"
    if head and _is_ruler(words):
        return PERSON
    if len(words) == 2 and first == "AL" and last.replace("'", "") in ORGANIZATIONS:
        return ORGANIZATION
    if len(words) == 2 and first == "ABU" and " ".join(words) not in load_places():
        return PERSON
    if first in _TITLES and words[1:2] == ["OF"] and words[2] != "THE" and last not in ORGANIZATION_TAILS:
        return PERSON  # "Duke of Madrid"
    if len(words) == 1:
        bare = first.replace("'", "").removeprefix("AL-")
        is_known = bare in ORGANIZATIONS or first in ORGANIZATIONS or first in _PARTIES
        return ORGANIZATION if is_known or _is_german_firm(words) else None
    is_joined = "AND" in words and last in _JOINED_FIRMS
    if last in ORGANIZATION_TAILS or "&" in words or is_joined:
        return ORGANIZATION
    if first in HEADS_ABROAD or first in CLUB_HEADS or _is_german_firm(words):
        return ORGANIZATION
    if _is_office_holder(words):
        return PERSON
    if (first in SAINTS and len(words) > 2 and last in _SANCTUARIES) or words[-2:] == ["MARKET", "PLACE"]:
        return GEO  # "St Wilfrid's Church"
    if last in _PARTIES:  # "Liberal Democrats"
        return ORGANIZATION
    if first in SAINTS and form.endswith("'s"):  # the church, hospital or school of that name
        return GEO
    if words[-2:] == ["STOCK", "EXCHANGE"]:
        return ORGANIZATION
    if words[-2:] == ["OF", "STATE"]:
        return PERSON if head in _OFFICERS else None
    if last in PLACE_TAILS and form.islower():  # "solid-state drive"
        return None
    is_addressed = first in HONORIFICS - REGAL and words[1] in GIVEN_NAMES and len(words) == 3
    if last in _HOLDERS and first not in GIVEN_NAMES:
        return PERSON  # "Anglican Archbishop"
    if (is_addressed or (first in _ADDRESSES and len(words) == 2)) and last in SURNAMES | RARE_SURNAMES:
        return PERSON  # "Justice Elena Park"
    if last in PLACE_TAILS:
        return None if last in _WEAK_PLACES and all(map(is_common_word, words[:-1])) else GEO
    if (first in HONORIFICS or (first in RANKS and words[1] in HONORIFICS)) and "OF" not in words[:2]:
        return (
            None if first in DESCRIBING_HONORIFICS and is_common_word(words[1]) else PERSON
        )  # "General Public License"
    if first in PLACE_HEADS and len(words) > 2 and kind_of(last.lower()) == THING_NOUN:  # "Port Marine Safety Code"
        return CONCEPT
    if first in PLACE_HEADS or (first in _WATERS and words[1] == "OF" and len(words) == 3):
        return GEO
    if _KINDRED & set(words[1:-1]) and not is_common_word(first):  # "Osama bin Laden"
        return PERSON
    is_person = (
        (words[1] == "THE" and last in _BYNAMES) or (form[1] == "." and _INITIALED.fullmatch(form)) or _is_author(form)
    )
    return PERSON if is_person else None


def is_described(text: str, name: Name) -> bool:
    """Whether an honorific only describes a noun after an article: "that Major Component", not "Major Baker"."""
    first, _, rest = title_of(name.form).partition(" ")
    if first not in DESCRIBING_HONORIFICS or not is_also_a_word(rest):
        return False
    return _ONE_OF_SEVERAL.search(text, max(name.start - 8, 0), name.start) is not None


def _is_ruler(words: list[str]) -> bool:
    """Whether a given name or a number stands before "of" and one word: "Adalbert II of Tuscany", "Joan of Arc"."""
    place = words.index("OF") if "OF" in words else 0
    if place != len(words) - 2 or words[-1] in ORGANIZATION_TAILS:
        return False
    is_numbered = place == 2 and _NUMERAL.fullmatch(words[1]) is not None
    return is_numbered or (place == 1 and words[0] in GIVEN_NAMES and words[0] not in load_places())


def cut_legal_form(form: str) -> str:
    """Return the name of a firm without its legal form: "Northgate Marine" of "Northgate Marine Ltd"; else ""."""
    bare, _, last = form.replace(",", "").rpartition(" ")
    return bare if last.upper().rstrip(".") in LEGAL_SUFFIXES else ""


def _is_office_holder(words: list[str]) -> bool:
    """Whether common words name an office: "Deputy Clerk", "Harbour Master"; not "Task Manager"."""
    if words[-1] == "MASTER":
        return len(words) == 2 and words[0] in _MASTERS
    return words[-1] in _OFFICE_HOLDERS and all(map(is_common_word, words[:-1]))


def _is_german_firm(words: list[str]) -> bool:
    """Whether one of the words is a German compound for a firm: "Ostbahn", "Motorenwerke Brandt"."""
    return any(
        len(word) >= _MIN_COMPOUND
        and word.endswith(_GERMAN_FIRMS)
        and token_rank(word.lower()) is None
        and word not in load_places()
        for word in words[:2]
    )


def _is_event(words: list[str]) -> bool:
    if (words[0] in EVENTS and words[-1] not in PLACE_TAILS) or words[:2] == ["NEW", "YEAR"]:
        return True  # not "Christmas Island"
    if len(words) < 2:
        return False
    if words[-1] == "AGREEMENT" and all(map(is_also_a_word, words)):
        return False  # "Master Services Agreement"
    last = words[-2] if len(words) > 2 and _NUMERAL.fullmatch(words[-1]) else words[-1]  # World War II
    if words[0] in _CUPS_ABROAD:
        return True
    is_storm = (
        words[0] in STORMS
        and len(words) == 2
        and words[1] not in PLACE_TAILS
        and not (is_common_word(words[1]) and english_rank(words[1].lower()))
    )
    if len(words) == 2 and words[0] in DAY_NAMES_BEFORE and words[1] in DAYS:  # "Whit Sunday"
        return True
    if last == "OPEN" and not is_common_word(words[0]):  # "Terra Wortmann Open"
        return True
    is_show = last == "SHOW" and len(words) < 4 and (words[-2] in _SHOWS or words[-2] in load_places())
    return is_storm or is_show or last in EVENT_TAILS or (words[0] in EVENT_HEADS and words[1] == "OF")


def _is_about_organization(words: list[str]) -> bool:
    """Whether an organization only ends the name of another thing: "Official Journal of the European Union"."""
    if "OF" not in words[1:-2] or words[words.index("OF") + 1] != "THE":
        return False
    head = words[words.index("OF") - 1]
    is_organization = head in ORGANIZATION_HEADS or head in ORGANIZATION_TAILS or head in ORGANIZATIONS
    is_everyday = token_rank(head.lower()) is not None and not is_proper_word(head)
    return is_everyday and not is_organization and not head.endswith("S")


def _is_kind_of_state(words: list[str]) -> bool:
    """Whether common words describe states: "Member States", not "United States" or "Baltic States"."""
    return " ".join(words) not in load_places() and all(map(is_common_word, words[:-1]))


def _is_author(form: str) -> bool:
    """Whether a name is an initial and a surname, as in a list of references: "L. Abeni"."""
    surname = form[3:].upper()
    return _AUTHOR.fullmatch(form) is not None and not is_common_word(surname) and surname not in load_places()
