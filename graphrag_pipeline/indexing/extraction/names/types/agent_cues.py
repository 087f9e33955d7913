"""Cues that a name acts, as persons and organizations do: "done by X", "X has offered", "X, the engineers".

The words of an actor decide whether it is an organization: "Coastline Buses" and "Natural England", not "Wen Li".

Keep out: verbs of speaking and other cues of one type (`type_cues.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import regex

from graphrag_pipeline.indexing.extraction.names.cues import (
    GIVEN_NAMES,
    HONORIFICS,
    LONERS,
    ORGANIZATION_ROLES,
    PERSON_ROLES,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import (
    Name,
    is_also_a_word,
    is_governed,
    text_before,
    title_of,
)
from graphrag_pipeline.text.late_patterns import late_regex

AGENT = "agent"
FIRM = "organization role"
HOLDER = "person role"
PLACED = "placed"

_ACTS = r"""accepted|acquired|agreed|answered|apologi[sz]ed|applied|appointed|asked|blamed|bought|built|carried|charged
charges|claimed|complained|completed|confirmed|contributed|declined|decided|delivered|denied|designed|donated|employed
employs|estimated|expects|found|funded|given|hired|inspected|installed|intends|invited|lent|noted|objected|offered
opposed|operates|owns|paid|planned|plans|presented|promised|proposed|provided|provides|published|questioned|recommended
refused|rejected|repaired|replaced|replied|reported|requested|responded|runs|sells|sent|shown|signed|sold|sponsors|submitted|suggested
supplied|supplies|supported|traced|wants|warned|withdrew|wrote"""
_AFTER = late_regex(
    rf"(?:\s+(?:in|of|at)\s+\p{{Lu}}\p{{L}}+)?\s+(?:(?:has|had|have|will|would|may|must|shall|did|also|not|already|now)\s+){{0,3}}(?:{'|'.join(_ACTS.split())}"
    r"|(?<=\b(?:will|would)\s)(?!(?:be|begin|close|end|fall|have|happen|open|remain|rise|start|stay|take)\b)\p{Ll}{3,})\b"
)
_OFFICES = (
    r"(?:chair(?:man|woman|person)?|vice-chair|director|secretary|treasurer|clerk|manager|officer|head|president|trustee"
    r"|master|executive|captain|editor|engineer|professor|lawyer|minister|agent|taker|deputy|founder|chief)"
)
_OFFICE_AFTER = late_regex(
    rf"\s*(?:\((?:the\s+)?(?:[\p{{L}}-]+\s+){{0,2}}{_OFFICES}\b[^()\d]{{0,40}}\)"
    rf"|,\s+(?:the\s+)?(?:[\p{{L}}-]+\s+){{0,2}}{_OFFICES}\s*(?:of\s[^.,\n]{{1,40}})?(?=[.,;\n]|$))",
    regex.IGNORECASE,
)
_TRADES = r"\p{Ll}{3,}(?:eers|ders|ners|tors|yors|tects|tants|rers|kers|iers|ters|llers)"
_TRADE_AFTER = late_regex(
    rf",\s+(?:the\s+|our\s+|its\s+)?(?:\p{{Ll}}+(?:['’]s)?\s+){{0,2}}?{_TRADES}\b(?:\s+(?:of|in|from)\b[^,.]*)?[,.]"
)
_ROLE_AFTER = late_regex(r",\s+(?:an?|the|its|our|[\p{L}]+['’]s)\s+(?:[\p{Ll}-]+\s+){0,3}?(\p{Ll}+)\b")
_TRADE_BEFORE = late_regex(rf"\b[Tt]he\s+(?:\p{{Ll}}+\s+)?{_TRADES},\s+$")
_NOUN_BEFORE = late_regex(
    r"\b(?:[Tt]he|[Aa]n?|[Oo]ur|[Ii]ts|[Tt]wo|[Tt]hree|[Ss]everal)\s+(?:\p{Ll}+\s+){0,2}(\p{Ll}+),\s+$"
)
_PERSON_ENDINGS = ("OR", "ER", "IST", "IAN")
_APPOSED = late_regex(rf"\b[Tt]he\s+(?:\p{{Ll}}+\s+)?(?:owner|operator|landlord|tenant|agents?|{_TRADES}),\s+$")
_PRICE = late_regex(r"\s+(?:at\s+a\s+(?:cost|price)|for\s+[£$€])")
_BY = late_regex(
    r"(?:\p{Ll}+ed|built|made|held|run|led|sent|given|written|owned|lent|sold|paid|won)\s+by\s+(?:the\s+)?$"
)
_FOR = late_regex(
    r"\b(?:work(?:s|ed|ing)?\s+for|writes\s+for|(?:contract|agreement|insurance|account|partnership)\s+(?:for|with))\s+(?:the\s+)?$"
)
_OF = late_regex(
    r"(?:(?!(?:Sons?|Daughters?|Brothers|Ltd|Company)\b)\p{Lu}\p{Ll}+|opinion|advice|consent|approval|views?|permission|behalf|offer|request|centre|office|site|factory"
    r"|warehouse|branch|employees?|staff)\s+of\s+(?:the\s+)?$"
)
_FROM = late_regex(
    r"\b(?:letter|offer|advice|consent|permission|grant|loan|invoice|quotation|email)\s+from\s+(?:the\s+)?$"
)
_MET = late_regex(r"\b(?:thanked|welcomed|congratulated)\s+$")
_FOR_ITS = late_regex(r"\sfor\sits\s\p{Ll}")
_IN_THE = late_regex(r"\b(?:in|at|outside|inside)\s+the\s+$", regex.IGNORECASE)
_BEFORE = {
    "by": (_BY, AGENT),
    "for": (_FOR, FIRM),
    "with": (_FOR, FIRM),
    "of": (_OF, AGENT),
    "from": (_FROM, AGENT),
    **dict.fromkeys(("thanked", "welcomed", "congratulated"), (_MET, HOLDER)),
    **dict.fromkeys(("in", "at", "outside", "inside"), (_IN_THE, PLACED)),
}
"""Word before a name and its article -> pattern of the words before it, and the cue."""
_TRADE_ROLES = ORGANIZATION_ROLES | words("""
authority body department agency museum hospital institute association society cooperative consultancy practice
partnership studio gallery foundation
""")
BUSINESS = words("""
bakers bakery bank books brewing broadcasting builders building buses cabs cafe capital care carriers cellular catering
clinic cloud club co-operative coaches collective communications computing construction consultancy consultants
consulting contractors cooperative creamery dairy data design designs developments distillery dredging education energy
engineering engineers estate estates express farm farms ferries finance fisheries fishing foods freight furniture
gallery games garage gas grocers haulage health heritage homes hosting hotel hotels housing instruments interiors
kitchen kitchens land legal leisure lines link logistics machinery marine media mills mining nurseries oil packaging
partnership pharmacy plumbing power practice press printers printing productions properties property publications
publishing radio rail railway railways renewables repairs research retail robotics salvage scaffolding security
shipbuilders solicitors solutions steel storage stores studio studios supplies surgery surveyors surveys tailors
telecoms television textiles theatre timber tours toys trading training transport travel tv utilities vehicles vets
water wines works workshop workshops
""")
"""Last words of the names of firms and charities; the words around must show that the name acts."""
_ROOMS = words("chamber room hall theatre auditorium gallery library ballroom lounge")
_SURNAMES = words("mills land link power farm care books bakers builders estate estates")
_TRADES_ONLY = BUSINESS - _SURNAMES
SIDES = words(
    "new great greater upper lower central inner outer old north south east west northern southern eastern western"
)


def read_agent_cues(text: str, name: Name) -> Iterator[str]:
    """Yield the roles of a name that the words beside it show: `AGENT`, `FIRM`, `HOLDER` or `PLACED`."""
    following = text[name.end : name.end + 2]
    if following[:1] == "," or following == " (":
        if _OFFICE_AFTER.match(text, name.end):
            yield HOLDER
        elif following[0] == "," and " " in name.form and _is_apposed(text, name):
            yield FIRM
    elif (
        following[:1].isspace()
        and following[1:].islower()
        and _AFTER.match(text, name.end)
        and not is_governed(text, name)
    ):
        yield AGENT
    is_its = _FOR_ITS.match(text, name.end) is not None  # "thanked Healthwatch Marlshire for its survey"
    if is_its:
        yield FIRM
    before = text_before(text, name, 48)
    last = before.removesuffix("the ").rsplit(None, 1)[-1:] if before[-1:].isspace() else []
    pattern = _BEFORE.get(last[0].lower() if last else "")
    if before.endswith(", "):
        yield from _read_apposition(before, name)
    elif pattern and pattern[0].search(before) and not (pattern[1] == HOLDER and (is_its or _may_be_body(name.form))):
        yield pattern[1]
    elif before.endswith("from ") and _PRICE.match(text, name.end):
        yield FIRM


def _read_apposition(before: str, name: Name) -> Iterator[str]:
    """Yield the roles that the words before a comma and a name show: "two firms,", "the owner,", "the conservator,"."""
    noun = _NOUN_BEFORE.search(before)
    word = noun.group(1).upper() if noun else ""
    if _TRADE_BEFORE.search(before) or word.removesuffix("S") in ORGANIZATION_ROLES:
        yield FIRM
    elif _APPOSED.search(before):
        yield AGENT
    elif (
        word.endswith(_PERSON_ENDINGS) and name.form.count(" ") == 1 and not any(map(is_also_a_word, name.form.split()))
    ):
        yield HOLDER


def _is_apposed(text: str, name: Name) -> bool:
    """Whether a trade or a kind of organization follows a name: ", the consulting engineers,"."""
    if _TRADE_AFTER.match(text, name.end):
        return True
    role = _ROLE_AFTER.match(text, name.end)
    return role is not None and role.group(1).upper() in _TRADE_ROLES - PERSON_ROLES


def is_room(form: str, cues: Counter[str]) -> bool:
    """Whether a name is a room where something takes place: "in the Council Chamber"."""
    return cues[PLACED] > 0 and title_of(form).split()[-1] in _ROOMS


def is_given_firm(parts: Sequence[str]) -> bool:
    """Whether a given name and a trade name a firm that acts: "Tamar Gallery", not "Hayley Mills"."""
    return len(parts) == 2 and parts[0] in GIVEN_NAMES and parts[1] in _TRADES_ONLY


def _may_be_body(form: str) -> bool:
    """Whether "thanked" may precede a name that is none of a person: "thanked Bramble Kitchen", "thanked Vantix"."""
    return " " not in form or may_be_firm(form) or any(map(is_also_a_word, form.split()))


def may_be_firm(form: str) -> bool:
    """Whether a name that acts is an organization by its words: "Coastline Buses", "Natural England", not "Wen Li"."""
    parts = title_of(form).split()
    if len(parts) < 2 or parts[0] in GIVEN_NAMES or parts[0] in HONORIFICS or "OF" in parts:
        return False
    is_trade = parts[-1].endswith("ING") and is_also_a_word(parts[-1]) and parts[0] not in LONERS  # "Elmet Learning"
    return parts[-1] in BUSINESS or is_trade or _is_region_body(parts)


def _is_region_body(parts: Sequence[str]) -> bool:
    """Whether a common word describes a place, which bodies of that place are named by: "Natural England"."""
    first = parts[0]
    is_side = first in SIDES or first in LONERS
    return (
        len(parts) == 2
        and parts[1] in load_places()
        and not is_side
        and first not in load_places()
        and is_also_a_word(first)
    )
