"""Sentences that say who a person is: "Nob, the parrot", "her brother, Ivo Lang", "Ivo Lang was a baker".

Forms by strength: an apposition, a role beside the name or a copula with an article (3); "Ivo Lang, who ..." or a verb
such as "owned" (2). A speech may relate the person whom it addresses ("your uncle"), or name one who was just described
("it's old Fezziwig"). English alone.

Keep out: which of them an answer quotes.
"""

from __future__ import annotations

import re

from graphrag_pipeline.query.question import stem
from graphrag_pipeline.query.understanding.roles import find_role

SAYS_WHO, SAYS_SOMETHING = 3.0, 2.0

_ADDRESS = (r"(?:, |[\u2018\u201c'\"]|(?:my )?dear )", r"[,.!?]")
_YOUR_KIN = re.compile(r"\b[Yy]our (?:[a-z]+ )?(?P<noun>[a-z]+)\b")
_IT_IS = (
    r"\b(?:[Ii]t|[Tt]his|[Tt]hat|[Hh]e|[Ss]he)(?:['\u2019]s| is| was) (?:(?:old|young|little|poor|dear|my|our) ){0,2}"
)
_WHO_IS = re.compile(r"\W*who(?:\s+(?:is|was|are|were)|['\u2019]s)\s+(?P<name>\S.*?)\s*[?.!]*\s*\Z", re.IGNORECASE)
_WORDS = r"(?:(?!(?:of|and|or|to|with|in|at|for|that|than|as|by|on|from)\b)[a-z][\w-]* ){0,3}?"
_SOMEONE = re.compile(rf"\b[Aa]n? (?P<words>{_WORDS}[a-z]+)(?= (?:in|of|with|who|at|on|from|behind|by)\b|[,.;:])")
_OWNER = r"(?:[Tt]he|[Aa]n?|[Hh]is|[Hh]er|[Tt]heir|[Ii]ts|[Mm]y|[Yy]our|[Oo]ur|[\w.]+['\u2019]s?)"
_BESIDE = rf"\b{_OWNER} {_WORDS}(?P<noun>[a-z][\w-]*)(?: (?:is|was|were))?,? (?:the )?(?:Dr\.? |Mrs?\.? |Sir )?"
_CALLED = r"\b[Aa]n? (?:[\w-]+ ){1,6}(?:called|named),? "
_TITLE = r"(?:\s*\([^)]*\))?"
_IS_A = (
    rf"{_TITLE},? (?:(?:is|was|became|remains|had been|has been) (?:\w+ly )?"
    r"(?:an?|the|his|her|their|its|my|your|our|one of|[A-Z][\w.]*['\u2019]s?)\b(?! (?:same|first to|last to)\b))"
)
_APPOSED = (
    rf"{_TITLE}, (?:(?:an?|the|his|her|their|its|my|your|our|[A-Z][\w.]*['\u2019]s?) (?!(?:same|other|last of)\b)"
    r"[a-z][\w' \u2019-]{1,80}?(?=[,.;:!?)]| who\b| of\b| in\b| for\b)"
    r"|(?P<office>[a-z-]+) of [\w' \u2019-]{2,60}?(?=[,.;:]))"
)
_WHO_DOES = rf"{_TITLE}, (?:who|whose)\b"
_STATE = (
    r"(?: (?:himself|herself))? (?:(?:has|had) )?(?:owned|owns|kept|keeps|led|leads|headed|heads|founded"
    r"|teaches|taught|works|worked|served|grew up|was born|married|plays|studied|(?:ran|runs) (?:the|an?|his|her))\b"
)
_TRADE = re.compile(r"\w\w(?:er|or|ist|ian|man|woman|ess|eer|smith|wright|ward)\Z")
_OFFICES = frozenset(
    """boy girl child lad lady clerk nurse king queen judge cook mate chief head monk nun spy poet pilot guide duke
    count prince pope priest saint general captain deputy magistrate chair dog cat horse parrot ghost orphan bride
    heir thief groom maid squire knight lord earl baron vicar deacon coach secretary treasurer assistant surgeon
    widow bachelor champion star singer giant dwarf elf witch wizard president accountant lieutenant sergeant
    superintendent merchant student agent attendant consultant servant tenant""".split()  # noqa: SIM905
)
_NOT_ROLES = frozenset(
    """river other over under after never ever whether either neither rather together another however whatever winter
    summer matter letter paper dinner supper corner water weather number former latter later forward toward reward
    door floor order poor for nor colour honour labour hour four power tower counter chapter""".split()  # noqa: SIM905
)


def read_who_is(question: str) -> str:
    """Return the name in "Who is NAME?", "" for another question."""
    found = _WHO_IS.match(question)
    return found["name"] if found else ""


def rate_definition(text: str, name: re.Pattern[str]) -> float:
    """Return how far a sentence says who a person is: `SAYS_WHO`, `SAYS_SOMETHING`, or 0.

    Args:
        name: pattern of the written forms of the person's name.
    """
    return max((_rate_at(text, found) for found in name.finditer(text)), default=0.0)


def _rate_at(text: str, found: re.Match[str]) -> float:
    before, behind = text[: found.start()], text[found.end() :]
    apposed = re.match(_APPOSED, behind)
    if apposed and (apposed["office"] is None or _is_role(apposed["office"])):
        return SAYS_WHO
    if re.match(_IS_A, behind) or re.search(rf"{_CALLED}\Z", before):
        return SAYS_WHO
    beside = re.search(rf"{_BESIDE}\Z", before)
    if beside and _is_role(beside["noun"]) and not behind.startswith(("'s", "\u2019s")):
        return SAYS_WHO
    return SAYS_SOMETHING if re.match(_WHO_DOES, behind) or re.match(_STATE, behind) else 0.0


def is_identified(text: str, name: re.Pattern[str]) -> bool:
    """Return whether a sentence says that a person just described is the named one: "Why, it's old Fezziwig!"."""
    return any(
        re.search(rf"{_IT_IS}\Z", text[: found.start()]) and re.match(r"(?:[!.?,;]|$)", text[found.end() :])
        for found in name.finditer(text)
    )


def describes_someone(text: str) -> bool:
    """Return whether a sentence describes a person without a name: "At sight of an old gentleman in a Welsh wig"."""
    return any(_is_role(noun) for found in _SOMEONE.finditer(text) for noun in found["words"].split())


def is_addressed(text: str, name: re.Pattern[str]) -> bool:
    """Return whether a sentence speaks to a person: "Will you let me in, Fred?"."""
    before, behind = _ADDRESS
    return any(
        re.search(rf"{before}\Z", text[: found.start()]) and re.match(behind, text[found.end() :])
        for found in name.finditer(text)
    )


def relates_addressee(text: str) -> bool:
    """Return whether a speech says whose relative or servant its listener is: "Your uncle Scrooge"."""
    return any(_is_role(found["noun"]) for found in _YOUR_KIN.finditer(text))


def _is_role(noun: str) -> bool:
    """Return whether a noun is a role to a person, or has an ending of trades and offices."""
    if find_role(stem(noun)) or noun in _OFFICES:
        return True
    return noun not in _NOT_ROLES and _TRADE.search(noun) is not None
