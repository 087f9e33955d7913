"""Types of acronyms: of those with a long form, by it; of others, by what they do in the text and by lists.

Keep out: which long form an acronym has (`forms/acronyms.py`), and types of other names (`name_types.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from graphrag_pipeline.indexing.extraction.names.brands import load_organizations
from graphrag_pipeline.indexing.extraction.names.cues import ACRONYMS, ORGANIZATIONS_IN_CAPITALS, TERMS_IN_CAPITALS
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import is_also_a_word, title_of
from graphrag_pipeline.indexing.extraction.names.types.agent_cues import AGENT
from graphrag_pipeline.indexing.extraction.names.types.kind_cues import OF_EVENT, OF_THING
from graphrag_pipeline.indexing.extraction.names.types.registers import is_named_as_thing
from graphrag_pipeline.indexing.extraction.names.types.trade_cues import ACTOR, PRODUCT
from graphrag_pipeline.indexing.extraction.names.types.word_types import (
    CONCEPT,
    EVENT,
    GEO,
    ORGANIZATION,
    PERSON,
    UNKNOWN,
    type_by_words,
)

MIN_PERSON_SHARE = 0.04
"""Share of a name's occurrences that a verb of speaking or a role shows to be a person, or an acronym to be a body."""
SEVERAL = "several"
"""The cue of an acronym in the plural: "ECGs"."""
_MAX_ACRONYM = 3  # letters of a place's name that is an acronym, as USA is


def is_acronym(form: str, in_lower: set[str]) -> bool:
    """Whether a form is one short word in capitals that the document never writes in lower case."""
    letters = form.replace(".", "")
    return form.isupper() and letters.isalpha() and 2 <= len(letters) <= 6 and title_of(form) not in in_lower


def type_acronyms(types: dict[str, str], acronyms: Mapping[str, str]) -> dict[str, str]:
    """Give acronyms the types of their long forms; a long form in lower case is a term if its words say nothing else.

    Args:
        types: type of each written form of the document.
        acronyms: short -> long form.
    """
    typed = dict(types)
    for short, long in acronyms.items():
        is_kind = long.islower() and (is_named_as_thing(long) or type_by_words(long) is None)  # not of a body: "PTA"
        kind = CONCEPT if is_kind else types.get(long, UNKNOWN)
        if kind == UNKNOWN:
            is_body = types.get(short) == ORGANIZATION and not _is_of_common_words(long)
            kind = type_by_words(long) or (ORGANIZATION if is_body else CONCEPT)
        typed[long] = kind
        if short in typed:
            typed[short] = typed[long]
    return typed


def type_acronym(form: str, n_names: int, cues: Counter[str], is_news: bool, is_explaining: bool = False) -> str:
    """Return the type of an acronym without a long form.

    Args:
        is_news: whether the document is about persons, organizations and places. Minutes are, but have other acronyms.
        is_explaining: whether it explains how things are, as manuals do, where few acronyms are bodies or places.
    """
    title = title_of(form)
    is_long = len(title) > _MAX_ACRONYM and not is_explaining
    if title in load_places() and (is_long or title in ACRONYMS or "." in form):  # not "ROM"
        return GEO
    n_acts = cues[ORGANIZATION] + cues["organization role"] + cues[PERSON] + cues[AGENT] + cues[ACTOR]
    if (title in TERMS_IN_CAPITALS and (is_explaining or not n_acts)) or cues[OF_THING] > n_acts:
        return CONCEPT
    is_known = title in ORGANIZATIONS_IN_CAPITALS or title in load_organizations()
    is_short = len(title) < _MAX_ACRONYM and title not in ACRONYMS and cues["describes"] == n_names  # "the DC link"
    n_uses = max(cues["describes"], cues[PRODUCT])
    if cues[OF_EVENT] > n_acts:  # "presented at FOSDEM"
        return EVENT
    if 0 < n_names <= 2 * cues[SEVERAL] and not is_known:  # there is one NATO only, but "ECGs have shown"
        return CONCEPT
    if (is_short or title not in ORGANIZATIONS_IN_CAPITALS) and n_uses > n_acts:  # "the KSM daemon", "rated by GRADE"
        return CONCEPT
    if is_known or n_acts >= max(1 + is_explaining, MIN_PERSON_SHARE * n_names):
        return ORGANIZATION
    return ORGANIZATION if is_news and not cues["describes"] else CONCEPT


def is_known_acronym(title: str) -> bool:
    """Whether a list has an acronym as an organization or a place."""
    return title in ORGANIZATIONS_IN_CAPITALS or title in load_places()


def _is_of_common_words(form: str) -> bool:
    return all(is_also_a_word(word) and word.upper() not in load_places() for word in form.replace("-", " ").split())


def begins_with_acronym(form: str) -> bool:
    """Whether words with a capital follow an acronym of three letters or more: "TÜV Süd"."""
    first, *others = form.split()
    return first.isupper() and first.isalpha() and len(first) > 2 and bool(others) and all(map(str.istitle, others))
