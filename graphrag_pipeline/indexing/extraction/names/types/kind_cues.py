"""Cues of a name's type from the common noun beside it: "the opposition party X", "X, the utility,", "X is a grease".

The noun is the head of an apposition, of a predicate, or of a group that the name describes. `kind_nouns.py` says what
it names, so that one rule serves every noun of a kind.

Keep out: lists of names after a noun (`kind_lists.py`), verbs (`agent_cues.py`, `trade_cues.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES
from graphrag_pipeline.indexing.extraction.names.kind_nouns import (
    BODY_NOUN,
    EVENT_NOUN,
    PERSON_NOUN,
    PLACE_NOUN,
    THING_NOUN,
    kind_of,
    kind_of_plural,
)
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, is_also_a_word, text_before
from graphrag_pipeline.indexing.extraction.names.types.word_types import CONCEPT, EVENT, GEO, ORGANIZATION, PERSON
from graphrag_pipeline.text.twin_patterns import TwinPattern

OF_PERSON, OF_BODY, OF_PLACE, OF_THING, OF_EVENT = "person role", "organization role", "place role", "thing", "event"
_CUES = {
    PERSON_NOUN: OF_PERSON,
    BODY_NOUN: OF_BODY,
    PLACE_NOUN: OF_PLACE,
    THING_NOUN: OF_THING,
    EVENT_NOUN: OF_EVENT,
}
_TYPES = {
    PERSON_NOUN: PERSON,
    BODY_NOUN: ORGANIZATION,
    PLACE_NOUN: GEO,
    THING_NOUN: CONCEPT,
    EVENT_NOUN: EVENT,
}
WORK = "work"  # beside OF_THING: a title, which may have the words of a place
_WORKS = frozenset(
    """
    film movie novel novella play song album single ballad poem painting sculpture book memoir opera musical series
    sitcom soundtrack sequel prequel comedy thriller drama documentary
    """.split()  # noqa: SIM905
)
_ARTICLE = r"(?:an?|the|both|all|its|our|their|his|her|my|one\sof\sthe|\p{Lu}[\p{L}]+(?:['’]s|s['’]))"
_MODIFIERS = (
    r"(?:(?!(?:where|which|who|whose|when|while|and|but|or|as|if|is|was|her|his|their)\s)"
    r"(?:\p{Lu}\p{L}+|[\p{Ll}\d][\p{L}\d]*(?:-\p{L}+)*|\d+)(?:['’]s)?\s+){0,4}?"
)
_NOUN = r"(?P<noun>\p{Ll}{3,}(?:-\p{Ll}+)*)"
_ENDS = (
    r"(?=\s*[,.;:)]|\s+(?:of|in|at|for|from|to|with|near|on|behind|since|who|that|which|whose|where|based|made|founded|run"
    r"|called|built|owned|known|caused|used|named|by|led)\b|\s*$|\s*\n)"
)
_APPOSED_AFTER = TwinPattern(rf"(?:,\s+|\s+\((?=[^()\n]{{3,60}}\)))(?:{_ARTICLE}\s+)?{_MODIFIERS}{_NOUN}{_ENDS}")
_APPOSED_WITH_ARTICLE = TwinPattern(rf"(?:,\s+|\s+\(){_ARTICLE}\s+")
_IS_A = TwinPattern(
    rf"(?:\s?\([^()\n]{{0,100}}\))?,?\s+(?:is|was|are|were|became|remains)\s+(?:{_ARTICLE})\s+{_MODIFIERS}{_NOUN}"
    rf"(?:{_ENDS}|(?=\s+(?:and|formed|written|directed|released|produced|starring|located|situated|born|published"
    r"|composed|recorded|held)\b))"
)
_BEFORE = TwinPattern(r"(?<![\p{L}-])(?P<noun>\p{L}\p{Ll}{2,}(?:-\p{Ll}+)*)(?P<comma>,?)\s+(?P<the>the\s+)?$")
_TITLED = TwinPattern(
    rf"\b(?:{_ARTICLE}|[Tt]he|[Aa]n?|[Hh]er|[Hh]is)\s+(?:[\p{{L}}-]+\s+){{0,2}}(?P<noun>\p{{Ll}}{{4,}})\s+[\"“'‘]?(?:The\s+)?$"
)
_CALLED = TwinPattern(
    r"(?<![\p{L}-])(?P<noun>\p{Ll}{3,})(?:,|\s+(?:of\s+\p{L}+\s+)?(?:which|that|who)\s+(?:is|was|are|were))?"
    r"\s+(?:called|named|known\sas|styled|christened|codenamed)\s+(?:the\s+)?[\"“'‘]?$"
)
_QUOTES = "\"“'‘"
_NAMED = ("called", "named", "as", "styled", "christened", "the")
"""The word before a name, or before its quotation mark, if `_CALLED` matches."""
_DETERMINER = TwinPattern(
    rf"\b(?:{_ARTICLE}|[Tt]he|[Aa]n?|[Oo]ur|[Ii]ts|[Tt]heir|former|new)\s+(?:[\p{{L}}-]+['’]?\s+){{0,3}}$"
)
_DESCRIBED = TwinPattern(r"\s+(?P<noun>\p{Ll}{3,})\b(?![\p{L}'’-])(?!\s+(?:of|in)\s+\p{Ll})")
_THE = TwinPattern(r"\b(?:[Tt]he|[Aa]|[Aa]n|[Tt]his|[Ii]ts|[Oo]ur|[Tt]heir)\s+(?:\p{Ll}+\s+)?$")
_WHO = TwinPattern(
    r",\s+(?:who|whom)\s+"
    r"(?!(?:now\s+)?(?:have|are|were|supply|make|run|own|sell|provide|host|clean|maintain)\b)"
)
_LOOK_BACK = 60
_HOUSES = frozenset({"hospital", "university", "college", "clinic"})
_OF_NAMED = frozenset({BODY_NOUN, EVENT_NOUN})
_MODIFIED_PLACES = frozenset(
    """
    campus area region district valley estuary peninsula coast plain plateau shore reservoir quarry archipelago ridge
    glacier river island islands lake lagoon gorge creek canal hills mountains moor marshes wetland headland harbour
    port tunnel dam
    """.split()  # noqa: SIM905
)
_NOT_BEFORE = frozenset(
    {"state", "head", "general", "fellow", "square", "structure", "measure", "index", "order", "plane"}
)
_MAY_BE_FIRMS = frozenset({"owner", "co-owner", "landlord", "partner", "developer", "producer", "grower", "organiser"})
_SIBLINGS = frozenset({"sisters", "brothers", "twins", "sons", "daughters", "children", "parents", "cousins"})
_TRADES = frozenset({"miner", "trader", "grower"})  # of persons and of firms
_NOT_TITLES = _MAY_BE_FIRMS | frozenset(
    {"court", "school", "church", "council", "parliament", "senate", "board", "team", "party", "order"}
)
_MODIFIER = TwinPattern(
    r"(?<![\p{L}'’-])(?!(?:at|in|on|of|to|for|from|by|with|as|and|or|but|that|this|than|into|over|near|outside|inside|before"
    r"|after|against|between|via|per|said|left)\s)\p{Ll}{3,}\s+$"
)
_FOUNDED = TwinPattern(r"\b(?:founded|co-founded|headed|chaired)\s+(?:in\s+\d{4}\s+)?by\s+$")
_SHOWN_AT = TwinPattern(
    r"\b(?:presented|demonstrated|demonstration|shown|showed|unveiled|exhibited|exhibits|spoke|speak|keynote|talk|stand|booth)"
    r"\s+(?:[\p{Ll}\s]{0,24}\s)?at\s+(?:the\s+)?$"
)
_SMALL = frozenset({"who", "which", "that", "whose", "where"})


def read_kind_cues(text: str, name: Name) -> Iterator[str]:
    """Yield the cues of the nouns beside a name: a role of a person, body or place, `OF_THING` or `OF_EVENT`."""
    following = text[name.end : name.end + 3]
    if "(" in following[:2]:  # "Alberta (Canada's fourth) is a province"
        kind = _read_noun(_IS_A.match(text, name.end))
        if kind:
            yield _CUES[kind]
    if following[:1] == "," or following[:2] == " (":
        kind = _read_apposition(text, name)
        if kind:
            yield _CUES[kind]
        if following[:1] == "," and _WHO.match(text, name.end):
            yield OF_PERSON
    elif following[:1].isspace() and following[1:2].islower():
        kind = _read_noun(_IS_A.match(text, name.end))
        if kind:
            yield _CUES[kind]
        kind = _read_described(text, name)
        if kind:
            yield _CUES[kind]
    before = text_before(text, name, _LOOK_BACK)
    if _is_work(before, text, name):
        yield WORK
    if (
        before.endswith("by ")
        and " " in name.form
        and _FOUNDED.search(before)
        and not is_also_a_word(name.form.split()[-1])
    ):
        yield OF_PERSON
    if before.endswith(("at ", "at the ")) and _SHOWN_AT.search(before):
        yield OF_EVENT
    kind = _read_before(before, text, name)
    if kind:
        yield _CUES[kind]


def find_defined_type(form: str, names: Iterable[Name], text: str) -> str | None:
    """Return the type of the noun that defines a name at its first place: "X (1850-1900) was a French painter"."""
    first = min((name for name in names if name.form == form), key=lambda name: name.start, default=None)
    kind = _read_noun(_IS_A.match(text, first.end)) if first else None
    return _TYPES[kind] if kind else None


def _read_noun(match: re.Match[str] | None) -> str | None:
    return kind_of(match["noun"]) if match else None


def _is_work(before: str, text: str, name: Name) -> bool:
    """Whether a name is the title of a work: "her novel The Salt Road", "Hill Street is a film"."""
    title = _TITLED.search(before)
    defined = _IS_A.match(text, name.end)
    return (title is not None and title["noun"] in _WORKS) or (defined is not None and defined["noun"] in _WORKS)


def _read_apposition(text: str, name: Name) -> str | None:
    """Return the kind of the noun of an apposition: ", the activist fund that", ", head of engineering,"."""
    match = _APPOSED_AFTER.match(text, name.end)
    if match is None or match["noun"] in _SMALL:
        return None
    kind = kind_of(match["noun"]) or kind_of_plural(match["noun"])
    is_placed = text.endswith((" at ", " in ", " near "), 0, name.start)
    if is_placed and kind == PERSON_NOUN and kind_of(match["noun"]) is None:  # "at Boca, doctors of the university"
        return None
    has_article = _APPOSED_WITH_ARTICLE.match(text, name.end) is not None
    if not has_article and kind != PERSON_NOUN and not (kind == BODY_NOUN and match["noun"].endswith("s")):
        return None  # ", steel and timber": the next item of a list
    return kind


def _read_described(text: str, name: Name) -> str | None:
    """Return the kind of a body, place or event that a name describes: "the Siptu union", "the Kellbeck campus"."""
    match = _DESCRIBED.match(text, name.end)
    kind = _read_noun(match)
    if match and kind == PLACE_NOUN:
        return kind if match["noun"] in _MODIFIED_PLACES else None
    if match and match["noun"] in _HOUSES:  # "at Al Nao hospital"
        return BODY_NOUN
    if kind == THING_NOUN and name.form.isupper():
        return kind  # "the APEC trial"
    return kind if kind in _OF_NAMED and _THE.search(text, max(name.start - 24, 0), name.start) else None


def _read_before(before: str, text: str, name: Name) -> str | None:
    """Return the kind of the noun before a name: "the notary Marino Bon", "a tug called Titan", "our host, Hexa,"."""
    if not before or not (before[-1].isspace() or before[-1] in _QUOTES):
        return None
    named = before.rstrip().rstrip(_QUOTES).rstrip()
    called = _CALLED.search(before) if named.endswith(_NAMED) else None
    if called:
        return kind_of(called["noun"])
    match = _BEFORE.search(before)
    if match is None or (match["noun"] in _NOT_BEFORE and not (match["noun"] == "head" and match["comma"])):
        return None
    kind = kind_of(match["noun"].lower())
    if match["noun"][0].isupper():  # "Striker Isak Fonn", where a sentence begins
        is_role = kind in (PERSON_NOUN, BODY_NOUN) and not match["comma"] and not match["the"]
        return kind if is_role else None
    is_determined = _DETERMINER.search(before[: match.start()]) is not None
    if (
        match["comma"] and match["noun"] in _SIBLINGS and text.startswith(" and ", name.end)
    ):  # "were sisters, Ann and Itzel Hill"
        return PERSON_NOUN
    if match["comma"]:
        is_closed = text[name.end : name.end + 1] in (",", ".", ";", ")")
        is_holder = kind == PLACE_NOUN and name.form.partition(" ")[0].upper() in GIVEN_NAMES
        return kind if is_determined and is_closed and not match["the"] and not is_holder else None
    if match["the"]:
        return None
    if match["noun"] in _TRADES and " " not in name.form and kind == PERSON_NOUN:  # "copper miner Codelco"
        return BODY_NOUN if before[: match.start()].rstrip()[-1:].isalpha() else None
    if kind == BODY_NOUN and match["noun"] not in _NOT_TITLES and _MODIFIER.search(before[: match.start()]):
        return kind  # "drug distributor Kessler Mattingly"
    if match["noun"] in _MAY_BE_FIRMS and name.form.count(" ") == 1 and not any(map(is_also_a_word, name.form.split())):
        return PERSON_NOUN  # "hotel owner Celeste Barroso"
    return kind if is_determined or kind == PERSON_NOUN else None
