"""Cues for the type of a name in the words around it: "said X", "in X", "the company X".

Keep out: the words of the name (`word_types.py`) and the choice of a type (`name_types.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphrag_pipeline.indexing.extraction.names.capitalization import is_common_word
from graphrag_pipeline.indexing.extraction.names.cues import (
    AGENT_VERBS,
    BODY,
    GIVEN_NAMES,
    INDUSTRY,
    KIN,
    MAKING,
    ORGANIZATION_NOUNS,
    ORGANIZATION_ROLES,
    PERSON_ROLES,
    PERSON_VERBS,
    PLACE_PREPOSITIONS,
    PLACE_ROLES,
    STAFF,
    STOCK,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.kind_nouns import PERSON_NOUN, kind_of
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, is_governed, text_before, title_of
from graphrag_pipeline.indexing.extraction.names.terms.term_signs import describes_noun
from graphrag_pipeline.indexing.extraction.names.types.word_types import GEO, ORGANIZATION, PERSON
from graphrag_pipeline.text.late_patterns import late_regex
from graphrag_pipeline.text.twin_patterns import TwinPattern

_BEFORE = TwinPattern(r"(\p{L}+)(,?\s+(?:the\s+|of\s+|by\s+)?)$")
_LIFE = late_regex(
    r"\s*\(\s*(?:born|died|b\.|d\.|(?:c\.\s*)?\d{4}\s*[-–—]\s*\d{4}|"
    r"(?:\d{1,2}\s\p{Lu}\p{Ll}+|\p{Lu}\p{Ll}+\s\d{1,2},)\s\d{3,4}\s*[-–—])"
)
_GIVEN_FORMS = frozenset(name.capitalize() for name in GIVEN_NAMES)
_VESSEL = TwinPattern(
    r"\b(?:ship|liner|steamer|trawler|schooner|brig|barque|frigate|yacht|ferry|tanker|coaster|lugger|drifter|tug|barge|dredger|lifeboat|sloop|cutter|submarine|destroyer|cruiser)(?:,?\s+the)?\s+$"
)
_OF_ITSELF = late_regex(  # "Ostara said it will sell its yard": a person says "he"
    r"\s+(?:(?:also|now|later)\s+)?(?:said|says|announced|reported)\s+(?:(?:today|yesterday|\p{Lu}\p{Ll}+day|also|that)\s+)?(?:its\s|it\s+(?:(?:also|now|still)\s+)?"
    r"(?:will(?!\s+(?:be|take)\b)|plans|expects|agreed|acquired|bought|sold|completed|received|signed|filed|intends|reached|owns|holds"
    r"|raised|cut|earned|posted|lost|recorded|would\s+(?!be\b|take\b|have\b)\p{Ll}+|(?:has|had)\s+(?!been\b)(?:\p{Ll}+ed|made|sold|bought|held|set|begun|cut)\b))"
)
_MEMBER_SPEAKS = late_regex(
    r"\s(?:of|from|at)\s(?:the\s)?(?:\p{Lu}[\p{L}’'-]+\s(?:(?:of|for|and)\s(?:the\s)?)?){1,5}(?:said|says|added|warned|called|wrote|asked|urged)\b"
)
_MAILBOX = late_regex(r"\s*<[^<>@\s]+@[^<>@\s]+>")
_AFTER = TwinPattern(r"(['’]s)?\s+(?:(?:has|had|have|later|also|once|then|ha|a|hat)\s+)?(\p{Ll}+)")
_TAKES_OBJECT = late_regex(r"\s+(?:an?|the|its|their|this)\b")  # "VRRP shares an address"
_SUBJECT = TwinPattern(r"(?:\p{Lu}[\p{L}.’'-]+|\b(?:he|she|they|it|we|I|you|who))\s+$")  # "Ann Hill said Bridge 14"
_SPEAKS = late_regex(r"\*{0,2}:\*{0,2} [\"“]")
_ROAD = late_regex(r"[ABM]\d{1,4}")
_ALONG_THE = TwinPattern(
    r"\b(?:on|along|off|onto|near|from|to|of|between|and|down|up|beside|across|beneath|under|over) the $"
)
_OWN_VERB = late_regex(r"\s(?:could|would|can|might|may|should|will)\s\p{Ll}")  # "says Teska could yield"
_WORKS = words("piece play painting novel book poem opera story photograph ballet sculpture symphony")
_AMONG = words("at for")
_PRONOUNS = words("who whom")
_UNSURE_ROLES = words("landlord employer partner master")  # also of firms: "the landlord, Threlkeld Estates,"
_HELD_IN = words("shares share stock stake holding")  # "shares in X"
MEMBERS = "members"
QUOTED = "quoted"  # the title of a work: 'the film "Les Heures"'
_QUOTED_BEFORE = late_regex(r"[\"“«„]\s?$")
_QUOTED_AFTER = late_regex(r"[,.]?\s?[\"”»“]")
# Behind the name of a party, an army or a firm, which is no person then.
_MEMBERS = words("""
militant militants gunman gunmen fighter fighters guerrilla guerrillas insurgent insurgents rebel rebels member members
official officials leader leaders leadership activist activists supporter supporters movement faction troops soldiers
candidate candidates councillor councillors politician politicians worker workers pilot pilots staff management
""")
_TOWARDS = words("at to into from towards")
_RULES = words("administration presidency premiership")
_SAYS = words("said says announced reported")
# Before "from" and a place, as are plurals ("visitors"); "software from X" says nothing of a place.
_MOTION = words("""
arrived away back came come comes coming drove fled flew flight gone home journey kilometres miles far moved news
passage ran rail returned returning return road rode route sailed set train travelled traveled travelling voyage
walked way went letter letters message messages him her them us me it people men
women
""")


def is_vessel(text: str, name: Name) -> bool:
    """Whether the word before a name says that it is a ship: "the ferry Lady Rosamund"."""
    is_named = _VESSEL.search(text, max(name.start - 24, 0), name.start) is not None
    return is_named and not text.startswith((", who ", ", whose "), name.end)  # "former cutter Adela Prynne, who"


def read_cues(text: str, name: Name) -> Iterator[str]:
    """Yield the types that the words next to a name suggest, and "describes" for an adjective's place."""
    yield from _read_own_form(text, name)
    yield from _read_marks_after(text, name)
    after = _AFTER.match(text, name.end)
    if after:
        yield from _read_word_after(text, name, after)
    if " " in name.form and _MEMBER_SPEAKS.match(text, name.end):  # "Feargal Doyle of River Watch said"
        yield PERSON
    if _follows_the(text, name) and not (after and after.group(1)) and not describes_noun(text, name):
        yield "named thing"
    if is_vessel(text, name):
        yield "vessel"
    if _is_quoted(text, name):
        yield QUOTED
    before = _BEFORE.search(text_before(text, name, 24))
    cue = _read_word_before(text, name, before) if before else None
    if cue:
        yield cue


def _read_own_form(text: str, name: Name) -> Iterator[str]:
    """Yield what the form of a name and its place suggest: an adjective, a team."""
    if (name.form in _GIVEN_FORMS or name.form.isupper()) and describes_noun(text, name):
        yield "describes"
    if _is_team(text, name):
        yield "agency"


def _read_marks_after(text: str, name: Name) -> Iterator[str]:
    """Yield what dates, an address or speech behind a name suggest, and the cue of a numbered road."""
    if text.startswith(("(", " ("), name.end) and _LIFE.match(text, name.end):
        yield "person role"
    if " " in name.form and _MAILBOX.match(text, name.end) and not is_common_word(title_of(name.form).split()[-1]):
        yield "person role"
    if text.startswith((":", "*"), name.end) and _SPEAKS.match(text, name.end):
        yield PERSON
    if name.form[-1].isdecimal() and _is_road(text, name):
        yield "place role"


def _is_road(text: str, name: Name) -> bool:
    """Whether a name is the number of a road, behind a word for a way: "along the A38"."""
    return _ROAD.fullmatch(name.form) is not None and bool(
        _ALONG_THE.search(text[max(name.start - 16, 0) : name.start])
    )


def _read_word_after(text: str, name: Name, after: re.Match[str]) -> Iterator[str]:
    """Yield what the verb or the noun behind a name suggests.

    Args:
        after: the match of `_AFTER`: the possessive or None, and the word.
    """
    is_owner, following = bool(after.group(1)), after.group(2).upper()
    is_subject = is_owner or not is_governed(text, name)
    if is_subject and following in _SAYS and _OF_ITSELF.match(text, name.end):
        yield "organization role"
        yield "agency"
    elif (following in PERSON_VERBS and is_subject) or (is_owner and following in BODY):
        yield PERSON
    elif following in _RULES and not is_owner and title_of(name.form) not in load_places():
        yield "person role"  # "the Clinton administration"
    elif following in _MEMBERS and not is_owner:
        yield MEMBERS
    elif following in ORGANIZATION_NOUNS and not _TAKES_OBJECT.match(text, after.end()):
        yield ORGANIZATION
    if following in AGENT_VERBS and _is_agency(text, name):
        yield "agency"


def _read_word_before(text: str, name: Name, before: re.Match[str]) -> str | None:
    """Return what the verb, the preposition or the noun before a name suggests, or None.

    Args:
        before: the match of `_BEFORE`: the word, and what stands between it and the name.
    """
    word, between = before.group(1), before.group(2)
    key = word.upper()
    if key in PERSON_VERBS and key not in _PRONOUNS:
        return PERSON if _is_speaker(text, name, before) else None
    if key in PLACE_PREPOSITIONS and between.isspace():
        return ORGANIZATION if _last_word(text, before, name) in _HELD_IN else GEO
    if key in _TOWARDS and between.isspace() and (last := _last_word(text, before, name)) not in STAFF:
        if last == "ATTRIBUTED":
            return "person role"
        return "towards" if key != "FROM" or last in _MOTION or last.endswith("S") else None
    if (key in STOCK and "of" in between) or (key in _AMONG and _last_word(text, before, name) in STAFF):
        return ORGANIZATION
    if word.islower():
        return _read_noun_before(text, name, before)
    is_titled = between == " " and word.istitle() and kind_of(word.lower()) == PERSON_NOUN
    return "person role" if is_titled else None  # "Chief Executive Ann Hill"


def _is_speaker(text: str, name: Name, before: re.Match[str]) -> bool:
    """Whether a name is the subject of the verb of speaking before it: not in "Ann Hill said Bridge 14"."""
    if _SUBJECT.search(text, max(0, name.start - 60), name.start - len(before.group())):
        return False
    return before.group(1).upper() not in _SAYS or _OWN_VERB.match(text, name.end) is None


def _read_noun_before(text: str, name: Name, before: re.Match[str]) -> str | None:
    """Return what a word in small letters before a name suggests: a maker, kin or a role."""
    key, between = before.group(1).upper(), before.group(2)
    is_work = key in _WORKS and between.strip() == "by" and " " in name.form
    is_made = is_work or (key in MAKING and "by" in between and _last_word(text, before, name) != "BE")
    if (key in KIN and "of" in between) or is_made or key == "STARRING":
        return "person role"
    if "by" in between:
        return ORGANIZATION if key in INDUSTRY else None
    if key in PLACE_ROLES and "," not in between:
        return "place role"
    if "of" in between:
        return None
    if key in PERSON_ROLES and not ("," in between and key in _UNSURE_ROLES):
        return "person role"
    return "organization role" if key in ORGANIZATION_ROLES else None


def _is_quoted(text: str, name: Name) -> bool:
    """Whether quotation marks enclose a name of several words: 'the film "Les Heures"'."""
    if " " not in name.form or not _QUOTED_AFTER.match(text, name.end):
        return False
    return _QUOTED_BEFORE.search(text, max(name.start - 2, 0), name.start) is not None


def _is_team(text: str, name: Name) -> bool:
    """Whether a name is "the", a place and a plural: "the Kisumu Rovers"."""
    first, _, last = name.form.partition(" ")
    return last.endswith("s") and last.isalpha() and title_of(first) in load_places() and _follows_the(text, name)


def _follows_the(text: str, name: Name) -> bool:
    return text[max(name.start - 4, 0) : name.start].lower() == "the "


def _last_word(text: str, before: re.Match[str], name: Name) -> str:
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
