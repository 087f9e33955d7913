"""Types of names that a document mentions in passing: by dealings, by its other names, and last by well-known names.

Minutes introduce persons by a list or a full name, and firms and programs not at all. So a single word that acts in
minutes, and is in no attendance list, is an organization. Well-known names (`brands.py`) decide only where the text
says nothing else.

Keep out: the cues (`agent_cues.py`, `trade_cues.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set

from graphrag_pipeline.indexing.extraction.names.brands import is_well_known, load_organizations, load_programs
from graphrag_pipeline.indexing.extraction.names.cues import (
    GIVEN_NAMES,
    HONORIFICS,
    LONERS,
    OFFICES,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places, load_towns
from graphrag_pipeline.indexing.extraction.names.occurrences import title_of
from graphrag_pipeline.indexing.extraction.names.terms.term_signs import is_common_noun
from graphrag_pipeline.indexing.extraction.names.types.agent_cues import AGENT
from graphrag_pipeline.indexing.extraction.names.types.place_cues import JOURNEY
from graphrag_pipeline.indexing.extraction.names.types.trade_cues import (
    ACTOR,
    FIRM,
    MEMBERSHIP,
    PRODUCT,
    TRADER,
)
from graphrag_pipeline.indexing.extraction.names.types.word_types import CONCEPT, GEO, ORGANIZATION, PERSON, UNKNOWN

_OF_PERSONS = GIVEN_NAMES | HONORIFICS
_WEAK_PLACE_TAILS = words("""
mill ward loop close green barn marsh wood woods common field fields crescent row way mews grove rise orchard moor
hollow bottom end head top foot nook fell gill ghyll beck garth meadow meadows copse coppice spinney down downs dale fen
heath cross steps stairs yard wharf gate estate court square ropewalk recreation ground
""")
_BODY_ACRONYMS = words("nhs bbc itv bt ibm hsbc rspb rspca tuc ucl lse edf kpmg nasa who nato hmrc raf")
_SIDES = words("low high upper lower nether great little long old east west north south")
_NOT_PLACES = words("red blue green white black half")
_MIN_WELL_KNOWN = 2  # other well-known names in a document where one that is also a word counts
_MIN_PROGRAMS = 3  # in a document where "in X" shows no place, and what acts may be a program
_MIN_PROGRAM_SHARE = 0.12  # of the forms of names in such a document


def type_in_passing(types: Mapping[str, str], cues: Mapping[str, Counter[str]], attendees: Set[str]) -> dict[str, str]:
    """Return types of names whose type is unknown, or rests on "in X" or on one verb of speaking alone.

    Args:
        types: type by written form.
        cues: what the words around each form show.
        attendees: forms of the persons in attendance lists. A document that has them names its persons there.
    """
    is_meeting = bool(attendees)
    found = {form: _type_by_dealings(form, cues[form], is_meeting) for form, kind in types.items() if kind == UNKNOWN}
    traders = {form for form, kind in types.items() if kind == GEO and cues[form][TRADER] > cues[form][GEO]}
    if is_meeting:
        traders |= {
            form
            for form, kind in types.items()
            if kind == PERSON and form not in attendees and _is_caller(form, cues[form])
        }
    found |= dict.fromkeys(traders, ORGANIZATION)
    well_known = _find_well_known(types, cues)
    if is_meeting:  # "asked Vaillant" says as much of a firm as of a person
        found |= {
            f: UNKNOWN
            for f in well_known - found.keys() - attendees
            if types[f] == PERSON and is_well_known(title_of(f))
        }
    else:  # "Tata said"
        said = {form for form in well_known if types[form] == PERSON and is_well_known(title_of(form))}
        found |= dict.fromkeys(said, ORGANIZATION)
    programs = {form for form, kind in found.items() if kind == CONCEPT}
    programs |= {form for form in well_known if title_of(form) in load_programs()}
    placed = {form for form, kind in types.items() if kind == GEO and _is_only_in(form, cues[form])}
    found |= {form: CONCEPT for form in placed if form in programs or cues[form][PRODUCT] >= max(cues[form][GEO], 1)}
    if len(programs) >= max(_MIN_PROGRAMS, _MIN_PROGRAM_SHARE * len(types)):
        found |= {form: CONCEPT if cues[form][PRODUCT] else UNKNOWN for form in placed}
    elif is_meeting:
        found |= {form: ORGANIZATION for form, kind in found.items() if kind == UNKNOWN and _is_actor(form, cues[form])}
    return found | {
        form: CONCEPT if title_of(form) in load_programs() else ORGANIZATION
        for form in well_known
        if found.get(form, types[form]) == UNKNOWN
        or (types[form] == UNKNOWN and title_of(form) in load_organizations())
    }


def _type_by_dealings(form: str, cues: Counter[str], is_meeting: bool) -> str:
    if cues[FIRM] + cues[TRADER] > cues[PRODUCT]:
        return ORGANIZATION
    if cues[PRODUCT]:
        return CONCEPT
    if cues[JOURNEY] and not is_common_noun(form.split()[-1]):
        return GEO
    if form.split()[0] in _BODY_ACRONYMS and " " in form:  # "NHS Digital"
        return ORGANIZATION
    if _is_named_as_place(form, cues):
        return GEO
    is_agent = is_meeting and cues[AGENT] > cues[MEMBERSHIP] and not cues["person role"] and not cues[PERSON]
    return ORGANIZATION if is_agent and _may_be_body(form) else UNKNOWN


def _is_actor(form: str, cues: Counter[str]) -> bool:
    return cues[ACTOR] > 0 and not cues["person role"] and not cues[PERSON] and _may_be_body(form)


def _is_caller(form: str, cues: Counter[str]) -> bool:
    """Whether a name is a person only because it answered or was asked, as firms do in minutes: "asked Daikin"."""
    n_deeds = cues[FIRM] + cues[TRADER] + cues[AGENT] + cues[ACTOR]
    if " " in form:  # "painted by Community Payback"
        return n_deeds > 0 and title_of(form).split()[0] not in _OF_PERSONS and is_common_noun(form.split()[0])
    return not cues["person role"] and n_deeds > 0 and _may_be_body(form)


def _may_be_body(form: str) -> bool:
    """Whether a name that acts in minutes is no person: a rare word, or several that begin with a common one."""
    title = title_of(form)
    first, *others = title.split()
    if first in _OF_PERSONS or title in OFFICES:
        return False
    if not others:
        return first not in load_towns() and not is_common_noun(form) and first not in LONERS
    is_common = is_common_noun(first) or first in LONERS or first in load_places()
    return is_common or (form.split()[0].isupper() and len(first) > 1) or "OF" in others


def _is_named_as_place(form: str, cues: Counter[str]) -> bool:
    """Whether the last word of a name is one of places, and no person bears it here: "Wenlow Green"."""
    first, *others = title_of(form).split()
    is_side = first in _SIDES and cues[GEO] + cues["towards"] > 0  # "at Low Mardale"
    if not others or first in _OF_PERSONS or not (is_side or others[-1] in _WEAK_PLACE_TAILS):
        return False
    return not (cues[PERSON] + cues["person role"] + cues[AGENT] + cues[ACTOR]) and first not in _NOT_PLACES


def _is_only_in(form: str, cues: Counter[str]) -> bool:
    title = title_of(form)
    is_known = title in load_places() or (title in load_towns() and not is_common_noun(form))
    return not is_known and not cues["place role"] and not cues[JOURNEY] and " " not in form


def _find_well_known(types: Mapping[str, str], cues: Mapping[str, Counter[str]]) -> set[str]:
    """Return the well-known names among those of a document; words of every day count beside two that are not."""
    titles = load_programs() | load_organizations()
    found = {form for form in types if title_of(form) in titles and not cues[form]["person role"]}
    clear = {form for form in found if is_well_known(title_of(form))}
    return found if len(clear) >= _MIN_WELL_KNOWN else clear
