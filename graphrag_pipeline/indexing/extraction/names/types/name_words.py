"""The words of one name, and what they say it is, as yes or no: an event, a body, a person.

Keep out: types and the order of the rules (`word_types.py`), the words around a name (`type_cues.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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
    EVENT_HEADS,
    EVENT_TAILS,
    EVENTS,
    GIVEN_NAMES,
    HEADS_ABROAD,
    HONORIFICS,
    JOINED_TAILS,
    JUDGES,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    ORGANIZATIONS,
    PLACE_TAILS,
    POSTNOMINALS,
    STORMS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.kind_nouns import is_trade
from graphrag_pipeline.indexing.extraction.names.occurrences import is_also_a_word, title_of
from graphrag_pipeline.indexing.extraction.names.terms.background import english_rank
from graphrag_pipeline.text.late_patterns import late_regex

_SHOWS = words("harvest flower air motor boat horse dog county agricultural trade fashion produce summer spring autumn")
_CUPS_ABROAD = words("copa coppa coupe trofeo")
_INSTITUTIONS = (ORGANIZATION_HEADS & ORGANIZATION_TAILS) | words(
    "hospital infirmary museum observatory hospice diocese archdiocese nation party club friends"
)
_HEADS_ON = words(
    "court council committee commission board panel network institute group"
)  # "Council on Foreign Relations"
_DESCRIBED = {
    "ASSEMBLY": words("national general legislative state provincial regional constituent federal people's"),
    "GUARD": words("coast national home revolutionary presidential republican civil"),
}
_STATES = words("u.s u.s. u.n u.n.")
_ESTATES = words("duchy archduchy")
_OFFICES = words("office assembly centre center commission foundation alliance movement")
_CAMPAIGNS = words("campaign committee coalition")
_AIMS = words("to for against")
_JOINED_FIRMS = JOINED_TAILS | words("son nephew nephews daughter daughters associates")
_GERMAN_FIRMS = (
    *("WERKE", "BAHN", "BANK", "BETRIEBE", "VERBAND", "VEREIN", "GESELLSCHAFT", "GENOSSENSCHAFT", "VERSICHERUNG"),
    *("SPARKASSE", "VERLAG", "KLINIKUM", "MUSEUM", "UNIVERSITEIT", "UNIVERSITÄT", "HOCHSCHULE", "STIFTUNG"),
)
_MIN_COMPOUND = 7  # letters
_HEADS_OF = words("director head chair dean manager registrar commissioner comptroller treasurer controller warden")
_OFFICE_HOLDERS = words("""
commissioner inspector officer clerk surveyor warden keeper treasurer librarian sheriff constable secretary trustee
""")
_MASTERS = words("harbour harbor station head house choir grand post")  # before "Master"
_KINDRED = words("bin ibn bint binti ibnu")  # "son of" between names
_NUMERAL = late_regex(r"[IVX]+")
_BYNAMES = frozenset(BYNAMES.upper().split("|"))
_INITIALED = late_regex(r"(?!U\. ?[SKN]\b)(?:\p{Lu}\. ){2,}\p{Lu}[\p{L}'-]*\p{Ll}")  # J. R. R. Tolkien
_AUTHOR = late_regex(r"(?![NS]\.)\p{Lu}\. \p{Lu}[\p{L}'-]*\p{Ll}")  # L. Abeni


@dataclass(frozen=True, slots=True)
class NameWords:
    """The words of one name.

    Attributes:
        form: the name as written.
        words: its words in upper case, without the dots and commas at their ends.
        first, last: the first and the last of them; `last` has no dots, so that "S.A" is SA.
        head: the word before "of" or "for", or that of a body before "on"; "" without one.
    """

    form: str
    words: list[str]
    first: str
    last: str
    head: str


def split_words(form: str) -> NameWords:
    """Return the words of a name."""
    parts = [word.rstrip(".,") for word in title_of(form).split()]
    return NameWords(form, parts, parts[0], parts[-1].replace(".", ""), _find_head(parts))


def _find_head(parts: Sequence[str]) -> str:
    head = next((word for word, following in pairwise(parts) if following in ("OF", "FOR")), "")
    return head or next((word for word, following in pairwise(parts) if following == "ON" and word in _HEADS_ON), "")


def is_event(name: NameWords) -> bool:
    """Whether words name a feast, a contest, a storm or another event: "Whit Sunday", "World War II"."""
    parts, first = name.words, name.first
    if (first in EVENTS and parts[-1] not in PLACE_TAILS) or parts[:2] == ["NEW", "YEAR"]:
        return True  # not "Christmas Island"
    if len(parts) < 2:
        return False
    if parts[-1] == "AGREEMENT" and all(map(is_also_a_word, parts)):
        return False  # "Master Services Agreement"
    last = parts[-2] if len(parts) > 2 and _NUMERAL.fullmatch(parts[-1]) else parts[-1]  # World War II
    return (
        first in _CUPS_ABROAD
        or last in EVENT_TAILS
        or (first in EVENT_HEADS and parts[1] == "OF")
        or (len(parts) == 2 and first in DAY_NAMES_BEFORE and parts[1] in DAYS)  # "Whit Sunday"
        or (last == "OPEN" and not is_common_word(first))  # "Terra Wortmann Open"
        or (last == "SHOW" and len(parts) < 4 and (parts[-2] in _SHOWS or parts[-2] in load_places()))
        or _is_storm(parts)
    )


def _is_storm(parts: Sequence[str]) -> bool:
    if len(parts) != 2 or parts[0] not in STORMS or parts[1] in PLACE_TAILS:
        return False
    return not (is_common_word(parts[1]) and english_rank(parts[1].lower()))


def is_body_with_field(name: NameWords) -> bool:
    """Whether a body stands before its field, its place or its aim: "National Institute of Standards"."""
    parts, first, head = name.words, name.first, name.head
    is_group = head == "GROUP" and "WORKING" in parts
    is_institution = is_group or first in ORGANIZATION_HEADS or head in _INSTITUTIONS
    if head and (is_institution or _is_office(name)):
        return True
    return (
        (first in _ESTATES and parts[1:2] == ["OF"])  # "Duchy of Cornwall"
        or parts[:2] == ["CLUB", "FOR"]
        or (first in _CAMPAIGNS and parts[1:2] != [] and parts[1] in _AIMS)  # "Campaign to Protect ..."
        or ("CORPS" in parts[:-2] and "OF" in parts)  # "Army Corps of Engineers"
    )


def _is_office(name: NameWords) -> bool:
    """Whether the head is an office with a purpose: "Centre for Policy Studies", "Commission on Human Rights"."""
    parts, head = name.words, name.head
    if head in _OFFICES and "FOR" in parts:  # "Office for National Statistics"
        return True
    return (name.first == "ASSEMBLY" and head == name.first) or (
        head in _HEADS_ON and ("ON" in parts or "FOR" in parts)
    )


def is_body_by_first_word(name: NameWords) -> bool:
    """Whether the first word says whose body it is, or that it is one: "Coast Guard", "HM Treasury"."""
    first, last, n_words = name.first, name.last, len(name.words)
    if first in ("MESSRS", "HM"):
        return True
    if first in _STATES and n_words > 2 and last not in PLACE_TAILS | HONORIFICS:  # "U.S. Geological Survey"
        return True
    if n_words != 2:
        return False
    is_shop = first.replace("’", "'").endswith("'S") and is_trade(last.lower())  # "Pender's Jewellers"
    return first == "TEAM" or first in _DESCRIBED.get(last, ()) or is_shop  # "Coast Guard"


def is_body_by_ending(name: NameWords) -> bool:
    """Whether several words end or begin as bodies do, or join partners: "Jukes and Son", "Banco de Vizcaya"."""
    is_joined = "AND" in name.words and name.last in _JOINED_FIRMS
    if name.last in ORGANIZATION_TAILS or "&" in name.words or is_joined:
        return True
    return name.first in HEADS_ABROAD or name.first in CLUB_HEADS or is_german_firm(name.words)


def is_german_firm(parts: Sequence[str]) -> bool:
    """Whether one of the words is a German compound for a firm: "Ostbahn", "Motorenwerke Brandt"."""
    return any(
        len(word) >= _MIN_COMPOUND
        and word.endswith(_GERMAN_FIRMS)
        and token_rank(word.lower()) is None
        and word not in load_places()
        for word in parts[:2]
    )


def is_about_organization(parts: Sequence[str]) -> bool:
    """Whether an organization only ends the name of another thing: "Official Journal of the European Union"."""
    if "OF" not in parts[1:-2] or parts[parts.index("OF") + 1] != "THE":
        return False
    head = parts[parts.index("OF") - 1]
    is_organization = head in ORGANIZATION_HEADS or head in ORGANIZATION_TAILS or head in ORGANIZATIONS
    is_everyday = token_rank(head.lower()) is not None and not is_proper_word(head)
    return is_everyday and not is_organization and not head.endswith("S")


def is_kind_of_state(parts: Sequence[str]) -> bool:
    """Whether common words describe states: "Member States", not "United States" or "Baltic States"."""
    return " ".join(parts) not in load_places() and all(map(is_common_word, parts[:-1]))


def is_post(name: NameWords) -> bool:
    """Whether a person's name has the mark of a post, or a post stands for it."""
    parts, first, last = name.words, name.first, name.last
    if len(parts) == 2:
        return last in JUDGES and not is_also_a_word(first.capitalize())  # "Mensah J"
    if len(parts) < 2:
        return False
    return last in POSTNOMINALS or (first in _HEADS_OF and parts[1] == "OF")  # "Alun Harker MP", "Director of Finance"


def is_office_holder(parts: Sequence[str]) -> bool:
    """Whether common words name an office: "Deputy Clerk", "Harbour Master"; not "Task Manager"."""
    if parts[-1] == "MASTER":
        return len(parts) == 2 and parts[0] in _MASTERS
    return parts[-1] in _OFFICE_HOLDERS and all(map(is_common_word, parts[:-1]))


def is_ruler(parts: Sequence[str]) -> bool:
    """Whether a given name or a number stands before "of" and one word: "Adalbert II of Tuscany", "Joan of Arc"."""
    place = parts.index("OF") if "OF" in parts else 0
    if place != len(parts) - 2 or parts[-1] in ORGANIZATION_TAILS:
        return False
    is_numbered = place == 2 and _NUMERAL.fullmatch(parts[1]) is not None
    return is_numbered or (place == 1 and parts[0] in GIVEN_NAMES and parts[0] not in load_places())


def is_written_as_person(name: NameWords) -> bool:
    """Whether several words have a form that only persons' names have: "Osama bin Laden", "J. R. R. Tolkien"."""
    parts, form = name.words, name.form
    if _KINDRED & set(parts[1:-1]) and not is_common_word(name.first):  # "Osama bin Laden"
        return True
    if parts[1] == "THE" and name.last in _BYNAMES:
        return True
    return (form[1] == "." and _INITIALED.fullmatch(form) is not None) or _is_author(form)


def _is_author(form: str) -> bool:
    """Whether a name is an initial and a surname, as in a list of references: "L. Abeni"."""
    surname = form[3:].upper()
    return _AUTHOR.fullmatch(form) is not None and not is_common_word(surname) and surname not in load_places()
