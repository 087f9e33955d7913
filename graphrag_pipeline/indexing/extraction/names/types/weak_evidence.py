"""Types of names from several weak signs together: prepositions, verbs, neighbours and the shape of the name.

"Audit by Dekra in Eschborn" has no word for what Dekra is. Yet what stands after "by" is a person or a body, what
stands after "in" a place or a program, and a document that is full of firms makes a firm likelier. Each sign adds a
weight to the types that it speaks for. The best type is taken if its sum is large enough and well ahead of the next
one; else the name stays without a type.

Only names that no other rule could type come here. The
weights are set by hand, in steps of 0.1, on texts that are not among those of the bench.

Keep out: signs that decide alone (`type_cues.py`, `kind_cues.py`, `trade_cues.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set

from graphrag_pipeline.indexing.extraction.names.capitalization import token_rank
from graphrag_pipeline.indexing.extraction.names.cues import BODIES, GIVEN_NAMES, LONERS, OFFICES, STOPWORDS, words
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_countries, load_places, load_towns
from graphrag_pipeline.indexing.extraction.names.kind_nouns import (
    BODY_NOUN,
    PERSON_NOUN,
    PLACE_NOUN,
    THING_NOUN,
    kind_of,
    kind_of_plural,
)
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.predicates import VERBS
from graphrag_pipeline.indexing.extraction.names.terms.term_signs import find_lower_words, is_code, is_common_noun
from graphrag_pipeline.indexing.extraction.names.types.agent_cues import BUSINESS, SIDES
from graphrag_pipeline.indexing.extraction.names.types.word_types import (
    CONCEPT,
    GEO,
    ORGANIZATION,
    PERSON,
    UNKNOWN,
)
from graphrag_pipeline.text.late_patterns import late_regex

_MIN_SUM, _MIN_LEAD = 1.0, 0.1
_MIN_LEAD_OF_PERSON = 0.6
_MIN_OWN = 0.7  # of the sum, from the name and the words around it
_OF_DOCUMENT = frozenset({"many bodies", "many persons", "many programs", "technical", "story"})
_OF_THINGS = frozenset({"many bodies", "many programs", "technical"})
_MIN_TYPED = 3  # names with a type, which say what a document is about
_MIN_BODIES = 3  # organizations of a document that makes another one likelier
_MAX_STORY_BODIES = 0.1  # of the typed names of a story
_MIN_STORY_PERSONS = 0.4
_MIN_LAST = 2  # letters of the last word: not "Exhibit B"
_MIN_LETTERS = 6  # of a word whose ending may be that of a place

_WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "of country": {ORGANIZATION: 1.2, PERSON: 0.3},
    "person of country": {PERSON: 1.6, ORGANIZATION: 0.6},
    "by": {ORGANIZATION: 1.7, PERSON: 1.1},
    "done by": {ORGANIZATION: 1.2, PERSON: 0.6},
    "acts": {ORGANIZATION: 1.1, PERSON: 0.7, CONCEPT: 0.7},
    "works": {ORGANIZATION: 1.0, CONCEPT: 0.8},
    "from": {ORGANIZATION: 1.2, GEO: 0.9},
    "at": {GEO: 2.0, ORGANIZATION: 0.5},
    "people from": {GEO: 1.5},
    "staff at": {ORGANIZATION: 2.0, GEO: -1.0},
    "firm of person": {ORGANIZATION: 1.5},
    "place of name": {GEO: 1.8},
    "given to": {ORGANIZATION: 1.0},
    "asked for": {ORGANIZATION: 1.0, PERSON: 1.0},
    "in": {GEO: 1.8, CONCEPT: 0.7},
    "near": {GEO: 2.3},
    "to": {ORGANIZATION: 1.0, GEO: 0.7},
    "with": {ORGANIZATION: 1.3, CONCEPT: 1.0, PERSON: 0.3},
    "on": {GEO: 1.4, CONCEPT: 0.8},
    "the": {CONCEPT: 0.5, GEO: 0.4, PERSON: -2.0},
    "led": {ORGANIZATION: 2.0},
    "used": {CONCEPT: 2.0},
    "describes": {CONCEPT: 0.6, GEO: 0.6, ORGANIZATION: 0.1, PERSON: -0.5},
    "is placed": {ORGANIZATION: 1.3, GEO: 1.1},
    "has parts": {ORGANIZATION: 0.5, GEO: 0.3, PERSON: 0.5, CONCEPT: 0.3},
    "goods": {ORGANIZATION: 1.5},
    "goods of": {ORGANIZATION: 2.0},
    "firm parts": {ORGANIZATION: 2.0},
    "headed": {ORGANIZATION: 0.9, CONCEPT: 0.5},
    "common": {CONCEPT: 2.0},
    "place noun": {GEO: 2.0},
    "body noun": {ORGANIZATION: 1.8},
    "two names": {ORGANIZATION: 0.6, CONCEPT: 0.3, PERSON: 0.9},
    "code": {CONCEPT: 1.3, ORGANIZATION: 0.6},
    "where": {GEO: 1.2},
    "town": {GEO: 0.6},
    "place ending": {GEO: 1.7},
    "firm ending": {ORGANIZATION: 1.0},
    "capitals": {CONCEPT: 0.5, ORGANIZATION: -0.5, GEO: -1.0, PERSON: -1.0},
    "many bodies": {ORGANIZATION: 0.9, GEO: 0.2},
    "many programs": {CONCEPT: 1.0, ORGANIZATION: 0.5},
    "technical": {CONCEPT: 1.2, ORGANIZATION: 0.4},
    "story": {CONCEPT: -1.0, ORGANIZATION: -1.2},
    "many persons": {PERSON: 0.5, GEO: 0.7},
}
_BEFORE = late_regex(r"(?P<verb>\p{L}+)?(?:^|[\s(\n])+(?P<word>\p{L}\p{Ll}+)\s+(?P<the>the\s+)?$")
_OF_COUNTRY = late_regex(r"(?P<place>\p{Lu}\p{L}+(?: \p{Lu}\p{L}+)?)['’]s $")
_PEOPLE = frozenset({"old", "family", "families", "couple", "couples", "refugees"})
_CARS = words("bus boat van lorry tram train machine camera pump ferry")  # with the name of a firm behind "of"
_ASKED = late_regex(r"\b(?:ask|asks|asked|asking)\s+(?:the\s+)?$")
_FOR = late_regex(r"\s+(?:for|to)\s+\p{Ll}")
_STAFF = frozenset(
    """
    administrators accountants lawyers analysts auditors consultants engineers advisers brokers economists researchers
    representatives executives managers surveyors architects solicitors barristers liquidators
    """.split()  # noqa: SIM905
)
_GIVEN_TO = words("""
letter report complaint reply application donation grant note sold passed turned handed given awarded owed lost went
paid lent returned switched fell
""")
_NEAR = words("off beside opposite near outside between towards toward across around above below")
_LED = words("""
runs ran owns owned founded co-founded leads led manages managed joined chairs bought acquired sold advises advised
hired appointed sued
""")
_USED = words("""
uses use used using adopts adopted adopt installs installed drop dropped replaces replace replaced replacing switch
deployed tried test tested configure configured applied
""")
_PREPOSITIONS = {
    **{word.upper(): word for word in ("by", "from", "at", "in", "to", "with", "on")},
    **{"INTO": "in", "THROUGH": "with", "VIA": "with", "ONTO": "on"},
    **dict.fromkeys(_NEAR, "near"),
    **dict.fromkeys(_LED, "led"),
    **dict.fromkeys(_USED, "used"),
}
_ACTS = late_regex(
    r"\s+(?:(?:has|had|have|would|will|could|can|may|must|did)\s+(?:not\s+|also\s+)?)?\p{Ll}{2,}(?:ed|d)\b"
    r"|\s+(?:has|had|have|would|will|could|can|cannot|might|are\s\p{Ll}+ing|is\s\p{Ll}+ing)\s"
    r"|\s+(?:sent|took|won|lost|gave|left|wrote|held|kept|let|sold|built|paid|drew|ran|came|went|cut|put|made|met|bought"
    r"|lent|read|ate|fell|rose|shut)\b"
    r"|\s+(?:also\s+|still\s+|now\s+)?(?:sell|make|build|own|offer|supply|run|provide|operate|buy|want|compete|produce"
    r"|host|employ|plan|expect|take|lend)\b"
)
_WORKS = late_regex(r"\s+(?:also\s+|now\s+|still\s+)?(?!is\b|was\b|has\b|does\b)\p{Ll}{2,}(?<!s)s\b")
_PLACED = late_regex(r",?\s+(?:in|of|at|near)\s+(?P<place>\p{Lu}[\p{L}'’-]+(?:\s+\p{Lu}[\p{L}'’-]+)?)")
_DESCRIBES = late_regex(r"\s+(?P<noun>\p{Ll}{3,})(?<!ed|s|ing|ly)\b(?!['’])")
_FIRM_PARTS = late_regex(
    r"['’]s?\s+(?:purchase|acquisition|bid|offer|takeover|plants?|factory|factories|(?:\p{Ll}+\s)?(?:director|chairman|chairwoman)|chief|boss|founders?|board|customers"
    r"|products?|engineers|lawyers|spokes\p{Ll}+|shares?|profits?|debts?|workers|staff|offices?|shareholders|managers)\b"
)
_SPEAKS = late_regex(r",?\s(?:said|says|estimates|expects)\b")
_HAS = late_regex(r"['’]s?\s+\p{Ll}")
_PLACE_ENDINGS = tuple(
    words("""
    brough burgh bury ville stadt stad heim hausen dorf burg furt fjord fjörður vik grad pur abad mouth minster chester
    caster combe shire wick thorpe born brück bach kirchen polis borg holm sund järvi ampton ingham bourne dağ shima
    """)
)
_FAMILY_NAMES = words(
    "ford glen dale brook lane marsh wood forest moor fell shore lake creek park road hill bay garden banks"
)
_NOUN_SHAPES = {PLACE_NOUN: "place noun", BODY_NOUN: "body noun"}
_FIRM_ENDINGS = tuple(words("soft tech corp bank works ware med pharma telecom net grid power oil chem sys"))


def type_by_signs(
    names: Iterable[Name],
    types: Mapping[str, str],
    terms: Set[str],
    text: str,
    attendees: Set[str] | None,
) -> dict[str, str]:
    """Return types of the names of type UNKNOWN whose weak signs agree.

    Args:
        names: every occurrence of a name in the document.
        types: type by written form.
        terms: forms that are terms, which need no other type.
        attendees: forms of the persons in attendance lists, who do not make a document a story; None for a technical
            document, where a name without evidence is a term.
    """
    lower = find_lower_words(text)
    names = list(names)
    context = {"technical"} if attendees is None else _read_document(names, types, terms, attendees)
    if sum(kind != UNKNOWN for kind in types.values()) < _MIN_TYPED:
        return {}
    able = {form for form, kind in types.items() if kind == UNKNOWN and _may_be_typed(form, form in terms, lower)}
    able -= {form for form in able if " of " in form} if "story" in context else set()  # "Hugh of Brienne"
    if not context & _OF_THINGS:  # "the Ghost" of a story
        able = {form for form in able if " " in form or not is_common_noun(form)}
    able -= set() if "many bodies" in context else {form for form in able if is_code(form)}
    places = {form for form, kind in types.items() if kind == GEO}
    signs: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name in names:
        if name.form in able:
            signs[name.form].update(set(_read_signs(text, name, places)))
    found = {}
    for form, seen in signs.items():
        kind = _choose({**dict.fromkeys(context, 1), **dict.fromkeys(_read_shape(form), 1), **_cap(seen)})
        if kind and not (kind == PERSON and " " not in form):
            found[form] = kind
    return found


def _may_be_typed(form: str, is_term: bool, lower: Set[str]) -> bool:
    """Whether a form is no office, no body of the reader's own, no label, and no term of common words."""
    if title_of(form) in OFFICES | BODIES or any(letter.isdecimal() for letter in form):
        return False
    if form.lower() in lower or len(form.split()[-1]) < _MIN_LAST:
        return False
    return not is_term or is_code(form) or not any(is_common_noun(part) for part in form.split())


def _cap(seen: Counter[str]) -> dict[str, float]:
    """Return the weight factors of signs: one that is seen twice or more counts twice."""
    return {sign: min(n, 2) for sign, n in seen.items()}


def _choose(signs: Mapping[str, float]) -> str | None:
    sums: defaultdict[str, float] = defaultdict(float)
    for sign, n in signs.items():
        for kind, weight in _WEIGHTS[sign].items():
            sums[kind] += weight * n
    sums = defaultdict(float, {kind: round(total, 6) for kind, total in sums.items()})  # in any order of the signs
    ranked = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    (best, most), (_, second), *_ = [*ranked, ("", 0.0), ("", 0.0)]
    own = sum(_WEIGHTS[sign].get(best, 0.0) * n for sign, n in signs.items() if sign not in _OF_DOCUMENT)
    is_person = best != PERSON and 0 < round(most - _MIN_LEAD_OF_PERSON, 6) < sums[PERSON]  # "Ona Hunebelle planned it"
    is_clear = most >= _MIN_SUM and round(most - second, 6) > _MIN_LEAD and not is_person
    return best if round(own, 6) >= _MIN_OWN and is_clear else None


def _read_document(names: Iterable[Name], types: Mapping[str, str], terms: Set[str], attendees: Set[str]) -> set[str]:
    """Return the signs that a whole document gives; a story about persons gives no others."""
    typed = Counter(
        CONCEPT if form in terms else kind
        for form, kind in types.items()
        if form in terms or (kind != UNKNOWN and form not in attendees)
    )
    total = typed.total() or 1
    told = Counter(types[name.form] for name in names if types[name.form] != UNKNOWN)
    is_about_persons = told[PERSON] >= _MIN_STORY_PERSONS * told.total()
    if is_about_persons and told[ORGANIZATION] <= _MAX_STORY_BODIES * told.total() and not attendees:
        return {"story"}
    signs = set()
    if typed[CONCEPT] >= max(typed[ORGANIZATION], _MIN_BODIES):
        signs.add("many programs")
    elif typed[ORGANIZATION] >= _MIN_BODIES:
        signs.add("many bodies")
    if typed[PERSON] >= _MIN_STORY_PERSONS * total:
        signs.add("many persons")
    return signs


def _read_shape(form: str) -> Iterator[str]:
    parts = title_of(form).split()
    written = form.split()
    if is_code(form):
        yield "code"
    if form.isupper() and " " not in form:
        yield "capitals"
    if len(parts) == 1:
        if len(parts[0]) >= _MIN_LETTERS and parts[0].endswith(_PLACE_ENDINGS):
            yield "place ending"
        elif parts[0] in load_towns() and parts[0] not in GIVEN_NAMES and not is_common_noun(form):
            yield "town"
        elif (
            len(parts[0]) >= _MIN_LETTERS and parts[0].endswith(_FIRM_ENDINGS) and token_rank(parts[0].lower()) is None
        ):
            yield "firm ending"
        return
    are_common = [is_common_noun(part) for part in written if not part.islower()]
    kind = None if all(are_common) else kind_of(parts[-1].lower())
    if kind in _NOUN_SHAPES and parts[-1] not in _FAMILY_NAMES:
        yield _NOUN_SHAPES[kind]  # "Horton Quarry", "Fell Brewery"
    elif parts[-1] in BUSINESS and parts[0] not in GIVEN_NAMES:
        yield "goods"  # "Tokai Trading"
    elif not are_common or all(are_common) or (are_common[-1] and parts[0] in LONERS) or len(parts[0]) < 2:
        yield "common"
    elif are_common[-1] and parts[-1].endswith("S") and parts[0] not in GIVEN_NAMES:
        yield "goods"
    elif are_common[-1]:
        yield "headed"
    elif parts[-1] in load_places() and parts[0] not in LONERS | SIDES and not written[-1].isupper():
        yield "goods"
    elif not any(are_common) and len(parts) == 2:
        yield "two names"


def _is_goods(noun: str, preposition: str) -> bool:
    """Whether a noun before "of" or "from" names what a firm makes: "modules of", "a screen from", not "a map of"."""
    is_one = kind_of(noun) == THING_NOUN if preposition == "from" else noun.upper() in _CARS
    return is_one or kind_of_plural(noun) == THING_NOUN


def _read_signs(text: str, name: Name, places: Set[str]) -> Iterator[str]:
    before = text[max(name.start - 40, 0) : name.start]
    following = _DESCRIBES.match(text, name.end)
    is_describing = following is not None and following["noun"].upper() not in STOPWORDS | VERBS
    is_describing = is_describing and _ACTS.match(text, name.end) is None
    match = None if is_describing else _BEFORE.search(before)  # "governed by Scots law" says nothing of Scots
    if match:
        sign = _PREPOSITIONS.get(match["word"].upper())
        verb = match["verb"] or ""
        if sign:
            yield sign
        if sign == "from" and verb.lower() in _STAFF:
            yield "staff at"  # "Administrators from Begbies Traynor"
        elif sign == "from" and kind_of(verb) == BODY_NOUN:
            yield "people from"  # "a firm from Caerphilly"
        elif sign == "from" and verb in _PEOPLE:
            yield "people from"  # "the 17-year-old from Wanaka"
        elif sign == "from" and PERSON_NOUN in (kind_of_plural(verb.lower()), kind_of(verb.lower())):
            yield "people from"  # "Rescuers from Trebova"
        if sign == "at" and kind_of(verb) == PERSON_NOUN:
            yield "staff at"
        elif sign == "to" and verb.upper() in _GIVEN_TO:
            yield "given to"
        elif match["word"] in ("of", "from") and _is_goods(verb, match["word"]):
            yield "goods of"
        elif match["word"] == "of" and verb.istitle() and title_of(verb) not in GIVEN_NAMES:
            is_speaking = _SPEAKS.match(text, name.end) is not None and title_of(name.form) not in load_towns()
            is_party = match["the"] and name.form.endswith("s")  # "Ebbe Lund of the Greens", "Al Roe of Benson said"
            is_body = " " in name.form or is_speaking or is_party
            yield "firm of person" if is_body else "place of name"
        if sign == "by" and verb.endswith(("ed", "en", "t")):
            yield "done by"
        if match["the"]:
            yield "the"
    elif before.lower().endswith("the "):
        yield "the"
    country = _OF_COUNTRY.search(before)
    if country and not is_describing and title_of(country["place"]) in load_countries():
        yield "person of country" if " " in name.form else "of country"
    is_object = match is not None and (match["word"] == "of" or match["word"].upper() in _PREPOSITIONS)
    after = text[name.end : name.end + 2]
    if after[:1].isspace() and after[1:].islower():
        if not is_object and _ACTS.match(text, name.end):
            yield "acts"
        elif not is_object and _WORKS.match(text, name.end):
            yield "works"
        elif is_describing:
            yield "describes"
    elif after[:1] in ("'", "’") and _FIRM_PARTS.match(text, name.end):
        yield "firm parts"
    elif after[:1] in ("'", "’") and _HAS.match(text, name.end):
        yield "has parts"
    if before.endswith(" ") and _ASKED.search(before) and _FOR.match(text, name.end):
        yield "asked for"
    if " " not in name.form and text.startswith(", where ", name.end):
        yield "where"
    placed = _PLACED.match(text, name.end)
    if placed and (placed["place"] in places or placed["place"].split()[0] in places):
        yield "is placed"
