"""Cues of places in the words around a name: "north of X", "the bridge over the X", "walked from X", "the mayor of X".

A cue is `PLACE` (the words fit nothing else), `GEO` (they mostly show a place) or `JOURNEY` ("a trip to X").

Keep out: single prepositions (`type_cues.py`), nouns beside a name (`kind_cues.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES, PLACE_TAILS
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, text_before, title_of
from graphrag_pipeline.indexing.extraction.names.types.word_types import GEO, PERSON, RARE_SURNAMES, SURNAMES
from graphrag_pipeline.text.late_patterns import late_regex

PLACE = "place role"
JOURNEY = "journey"

_JOURNEY = late_regex(
    r"\b(?:travel(?:s|led)?|drove|went|flew|flown|airlifted|evacuated|towed|sailed|emigrated|moved?(?:\saway)?|moves|relocate[sd]?|sails?|home|way|trip|outing|bus|buses|train|trains)\s+to\s+$"
)
_SITE = late_regex(
    r"\b(?:sites?|block|ground|buildings?|station|land|fields?|corner|depot|junction|roundabout|stop|weir|quarry|plant"
    r"|warehouse|cottages?|farm|roadworks|floods?|flooding|allotments?|clinic|surgery)\s+(?:at|in|near|outside)\s+$|\b(?:walk(?:s|ed)?|climb(?:ed)?|hike|path|ride)\s+(?:up|down|round|along)\s+$"
)
_WATER = late_regex(
    r"\b(?:(?:bridges?|ford|ferry|banks?|mouth|footbridge|source|tributary)\s+(?:over|across|of)|cross(?:es|ed|ing)?|along|spans?|spanned"
    r"|upstream\son|downstream\son|fish(?:ed|ing)?\sin)\s+the\s+$"
)
_FLOWS = late_regex(
    r"\s+(?:(?:has|had|have)\s+)?(?:burst\s+its\s+banks|overflow(?:s|ed)|flow(?:s|ed)|silted|meanders|froze\s+over"
    r"|(?:rose|fell)\s+(?:by\s+)?[\p{L}\d.]+\s+(?:metres?|meters?|feet|inches|centimetres))\b"
)
_SEAT_AFTER = late_regex(
    r"\s+(?:(?:city|town|county|borough|parish|district|village)\s+(?:council|hall|centre)|airport|(?:railway\s+|primary\s+)?(?:station|school)"
    r"|neighbou?rhood|suburb|township|refugee\s+camp|ravine"
    r"|harbour|city|residents|villagers|Mayor(?=\s\p{Lu}))\b"
)
_MILES_AFTER = late_regex(
    r",\s(?:about\s|some\s)?(?:\d[\d.,]*|\p{L}+)\s(?:miles?|kilometres?|km)\s(?:to\sthe\s)?(?:north|south|east|west|from|away|up|down|inland)"
)
_SIDE_OF = late_regex(
    r"\b(?:north|south|east|west|(?:north|south)(?:east|west)|upstream|downstream|inland|ashore|offshore|off\sthe\scoast)\s+(?:of|from)\s+(?:the\s+)?$"
)
_PART_OF = late_regex(
    r"\b(?:mayor|capital|residents|inhabitants|bishop|archbishop|outskirts|centre|suburbs?|streets|coast|shores?|banks|mouth|valley"
    r"|governor|slopes|foot|ruins|hills|parish|bay|harbour|villages?|towns?|cit(?:y|ies)|islands?|estuary|parts)\s+of\s+(?:\p{Ll}{5,}\s)?$"
)
_WATER_OF = late_regex(r"\b(?:valley|banks?|mouth|source|shores?|slopes|estuary|headwaters|basin)\s+of\s+the\s+$")
_ROUTE = late_regex(
    r"\b(?:flown|driven|ferried|transferred|airlifted|walk|walks|walked|road|path|line|bus|route|ride|cycled|rode|drove|ran|way|miles|track)\b[^.;:\n]{0,24}\sfrom\s+(?:\p{Lu}\p{L}+\s+(?:\p{Lu}\p{L}+\s+)?to\s+)?$"
)
_SEAT_IN = late_regex(r"\b(?:based|headquartered|born|raised)\s+in\s+$")
_PLURAL_OF = late_regex(  # "the rivers Stour and X", "the villages of X"
    r"\b(?:rivers|villages|towns|hamlets|provinces|districts|islands|suburbs|counties|lakes)\s(?:of\s)?"
    r"(?:\p{Lu}[\p{L}’'-]+(?:,|\sand)\s){0,2}(?:and\s)?$"
)
_LIVES_OF = late_regex(r",\s(?:aged\s)?\d{1,3},\s(?:both\s|all\s|formerly\s)?(?:of|from)\s+$")  # "Jo Hill, 34, of X"
_SHOP_OF = late_regex(r"\p{Lu}\p{Ll}+['’]s\s+of\s+$")
_LOOK_BACK = 72
_PLURAL_ENDS = frozenset(
    {"of", "and", "rivers", "villages", "towns", "hamlets", "provinces", "districts", "islands", "suburbs", "lakes"}
)
_SITE_ENDS = frozenset({"at", "in", "near", "outside", "up", "down", "round", "along"})


def read_place_cues(text: str, name: Name) -> Iterator[str]:
    """Yield `PLACE`, `GEO` and `JOURNEY` for what the words beside a name show."""
    before = text_before(text, name, _LOOK_BACK)
    last = _last_word(before)
    is_side = last in ("of", "from") and _SIDE_OF.search(before)
    is_flowing = before.endswith(("the ", "The ")) and _FLOWS.match(text, name.end)
    is_water = is_flowing or (before.endswith("the ") and _WATER.search(before))
    is_distant = text.startswith(", ", name.end) and _MILES_AFTER.match(text, name.end)
    is_seat = (last == "in" and _SEAT_IN.search(before)) or (last in ("of", "from") and _LIVES_OF.search(before))
    is_listed = (last in _PLURAL_ENDS or before.endswith(", ")) and _PLURAL_OF.search(before)
    if (
        is_side
        or is_seat
        or is_listed
        or is_water
        or is_distant
        or _SEAT_AFTER.match(text, name.end)
        or (last == "of" and (_PART_OF.search(before) or _WATER_OF.search(before)))
    ):
        yield PLACE
    elif _is_place(before, last):
        yield GEO
    if (last == "to" and _JOURNEY.search(before)) or before.endswith((" fled ", " reached ")):
        yield JOURNEY


def may_be_surname(form: str) -> bool:
    """Whether a name ends as a place and begins as a person: "Ann Hill", "Joseph Banks"."""
    first, *others = title_of(form).split()
    is_surname = len(others) == 1 and others[0] in PLACE_TAILS and others[0] in SURNAMES | RARE_SURNAMES
    return is_surname and first in GIVEN_NAMES and first not in load_places()


def type_as_surname(last: str, cues: Counter[str]) -> str:
    """Return PERSON or GEO for a given name before a word such as "Hill" or "Park"."""
    n_places = cues[GEO] + cues["towards"] + cues[PLACE]
    n_persons = cues[PERSON] + cues["person role"]
    return PERSON if n_persons > n_places or (last in SURNAMES and n_persons == n_places) else GEO


def _is_place(before: str, last: str) -> bool:
    """Whether the words before a name show a place: "the bridge over the Lugg", "walked from Wenlow to"."""
    if last in ("from", "to"):
        return _ROUTE.search(before) is not None
    return (last == "of" and _SHOP_OF.search(before) is not None) or (
        last in _SITE_ENDS and _SITE.search(before) is not None
    )


def _last_word(before: str) -> str:
    """Return the word before a name and its article, in lower case."""
    return (before.removesuffix("the ").rsplit(None, 1)[-1:] or [""])[0].lower()
