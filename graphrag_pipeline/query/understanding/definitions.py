"""Sentences that say who a person is: "Nob, the parrot", "her brother, Ivo Lang", "Ivo Lang was a baker".

Forms by strength: an apposition, a role beside the name or a copula with an article (3); "Ivo Lang, who ..." or a verb
such as "owned" (2). A speech may relate the person whom it addresses ("your uncle"), or name one who was just described
("it's old Fezziwig"). English alone.

A narrated sentence that names a relative also relates the person ("In came Ivo, the father, and Tim upon his
shoulder"). A speech that asks for the person ("And your brother, Tim?") says less than a statement.

A thing is defined by a copula with an article, an apposition, or an example: "Peat is a ...", "peat, a ...", "a fuel
such as peat". An entry of a list says what its first word means: "E12 Ignition failed". Keep out: which of them an
answer quotes.
"""

from __future__ import annotations

import re

from graphrag_pipeline.query.question import stem
from graphrag_pipeline.query.understanding.roles import find_role
from graphrag_pipeline.text.late_patterns import late_re

SAYS_WHO, RELATES, SAYS_SOMETHING, ASKS = 3.0, 2.5, 2.0, 1.5

_ADDRESS = (r"(?:, |[\u2018\u201c'\"]|(?:my )?dear )(?:(?:little|young|old|good|poor) )?", r"[,.!?]")
_YOUR_KIN = late_re(r"\b[Yy]our (?:[a-z]+ )?(?P<noun>[a-z]+)\b")
_CALLS_KIN = late_re(r"\b(?:[Dd]ear|[Mm]y) (?P<noun>[a-z]+)(?=[,.!?])")
_SMALL_WORD = late_re(r"\b[a-z]+\b")
_IT_IS = (
    r"\b(?:[Ii]t|[Tt]his|[Tt]hat|[Hh]e|[Ss]he)(?:['\u2019]s| is| was) (?:(?:old|young|little|poor|dear|my|our) ){0,2}"
)
_WHO_IS = late_re(r"\W*who(?:\s+(?:is|was|are|were)|['\u2019]s)\s+(?P<name>\S.*?)\s*[?.!]*\s*\Z", re.IGNORECASE)
_WHAT_IS = late_re(
    r"\W*what(?:\s+(?:is|was|are|were)|['\u2019]s)\s+(?:the\s+|an?\s+)?(?P<name>[\w-]+(?:\s+[\w-]+){0,3})\s*[?.!]*\s*\Z",
    re.IGNORECASE,
)
_SHORT_FORM = late_re(
    r"\W*(?:(?i:what)\s+(?:(?i:does|do|did)\s+(?:the\s+)?(?:abbreviation\s+|acronym\s+|letters\s+|initials\s+)?"
    r"(?P<stands>[\w/-]+)\s+(?:stand\s+for|mean)"
    r"|is\s+(?:the\s+)?(?P<is>[\w/-]+)\s+(?:short|an?\s+abbreviation|an?\s+acronym)\s+(?:for|of)"
    r"|is\s+the\s+(?:full|long)\s+(?:name|form)\s+of\s+(?:the\s+)?(?P<of>[\w/-]+)))\s*[?.!]*\s*\Z"
)
_MEANS = late_re(
    r"\W*what\s+(?:does|do|did)\s+(?:the\s+)?(?:(?:error|fault|warning|alarm|message|code|number|display|symbol|entry)"
    r"\s+)*(?P<entry>[\w./-]+)\s+mean\s*[?.!]*\s*\Z",
    re.IGNORECASE,
)
_ENTRY_ENDS = late_re(r"\s*(?:[:=\u2013\u2014-]\s*\w|\s[A-Z])")
_OPENS = late_re(r"(?:\A|[,;:.\u2014]\s)\W*(?:(?:the|an?)\s+)?\Z", re.IGNORECASE)
_IS_THING = late_re(
    r"(?:\s*\([^)]*\))?(?:\s+(?:is|are|was|were)\s+(?:\w+ly\s+)?(?:an?|the|one of)\s|,\s+an?\s[^,;:]+[,;:]"
    r"|\s+(?:means|refers to)\s)"
)
_EXAMPLE = late_re(
    r"\b(?:an?|the|one)\s(?:[\w-]+\s){1,5}(?:such as|called|named|known as)\s(?:the\s)?\Z", re.IGNORECASE
)
_OPENING = late_re(r"(?:\A|\s)['\"\u2018\u201c](?=\w)")
_CLOSING = late_re(r"[,.!?]['\"\u2019\u201d](?=\s|\Z)")
_TITLED = late_re(r"\b(?:Mrs?|Miss(?:es)?|Lady|Sir)\.?\s\Z")
_KIN_APPOSED = late_re(r"\b[A-Z][a-z]+, (?:the|his|her|their) (?:[a-z]+ )?(?P<noun>[a-z]+)\b")
_PRONOUN_DOES = r",? (?:he|she) (?:bore|had|was|wore|carried|lived|walked)\b"
_WORDS = r"(?:(?!(?:of|and|or|to|with|in|at|for|that|than|as|by|on|from)\b)[a-z][\w-]* ){0,3}?"
_SOMEONE = late_re(rf"\b[Aa]n? (?P<words>{_WORDS}[a-z]+)(?= (?:in|of|with|who|at|on|from|behind|by)\b|[,.;:])")
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
_TRADE = late_re(r"\w\w(?:er|or|ist|ian|man|woman|ess|eer|smith|wright|ward)\Z")
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


def read_what_is(question: str) -> str:
    """Return the thing in "What is THING?", at most four words, "" for another question."""
    found = _WHAT_IS.match(question)
    return found["name"] if found else ""


def read_short_form(question: str) -> str:
    """Return the abbreviation in "What does MART stand for?", "" for another question."""
    found = _SHORT_FORM.match(question)
    short = next(filter(None, found.groups())) if found else ""
    return short if sum(letter.isupper() for letter in short) >= 2 else ""


def read_meant(question: str) -> str:
    """Return the entry of a list in "What does error E12 mean?", "" for another question."""
    found = _MEANS.match(question)
    return found["entry"] if found else ""


def rate_entry(text: str, entry: re.Pattern[str]) -> float:
    """Return `SAYS_WHO` if a sentence is the entry of a list, "E12 Ignition failed", else `rate_thing`."""
    opening = entry.match(text)
    return SAYS_WHO if opening and _ENTRY_ENDS.match(text, opening.end()) else rate_thing(text, entry)


def rate_thing(text: str, name: re.Pattern[str]) -> float:
    """Return how far a sentence says what a thing is: `SAYS_WHO`, `RELATES` for an example, or 0."""
    best = 0.0
    for found in name.finditer(text):
        before = text[: found.start()]
        if _OPENS.search(before) and _IS_THING.match(text, found.end()):
            return SAYS_WHO
        best = RELATES if _EXAMPLE.search(before) else best
    return best


def rate_definition(text: str, name: re.Pattern[str]) -> float:
    """Return how far a sentence says who a person is: `SAYS_WHO`, `SAYS_SOMETHING`, or 0.

    Args:
        name: pattern of the written forms of the person's name.
    """
    return max((_rate_at(text, found) for found in name.finditer(text)), default=0.0)


def _rate_at(text: str, found: re.Match[str]) -> float:
    strength = _rate_form(text, found)
    is_spoken = _is_spoken(text[: found.start()])
    if not is_spoken:
        return max(strength, _rate_relation(text, found))
    return min(strength, ASKS) if re.match(r"[^.!]*\?", text[found.end() :]) else strength


def _is_spoken(before: str) -> bool:
    """Return whether direct speech that opens in a sentence still goes on behind this part of it."""
    opened = max((found.start() for found in _OPENING.finditer(before)), default=-1)
    return opened > max((found.start() for found in _CLOSING.finditer(before)), default=-1)


def _rate_relation(text: str, found: re.Match[str]) -> float:
    """Return `RELATES` if the sentence names a relative in another place, less if it describes the person by "he"."""
    if _TITLED.search(text[: found.start()]):
        return 0.0
    kin = _KIN_APPOSED.search(text)
    if (
        kin
        and (role := find_role(stem(kin["noun"])))
        and role.inverses
        and not kin.start() <= found.start() < kin.end()
    ):
        return RELATES
    return SAYS_SOMETHING if re.match(_PRONOUN_DOES, text[found.end() :]) else 0.0


def _rate_form(text: str, found: re.Match[str]) -> float:
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
    """Return whether a speech says whose relative or servant one of its persons is: "Your uncle Scrooge"."""
    return any(_is_role(found["noun"]) for found in _YOUR_KIN.finditer(text)) or any(
        names_relation(found["noun"]) for found in _CALLS_KIN.finditer(text)
    )


def names_relation(text: str) -> bool:
    """Return whether a text has a role that one person has to another, or its verb: "nephew", "apprenticed"."""
    roles = (find_role(word) for word in map(stem, _SMALL_WORD.findall(text)))
    return any(role and role.inverses for role in roles)


def _is_role(noun: str) -> bool:
    """Return whether a noun is a role to a person, or has an ending of trades and offices."""
    if find_role(stem(noun)) or noun in _OFFICES:
        return True
    return noun not in _NOT_ROLES and _TRADE.search(noun) is not None
