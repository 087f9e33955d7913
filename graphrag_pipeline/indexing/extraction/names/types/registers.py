"""The register of a document: whether it explains how things are, as manuals do, or tells what happened.

News, minutes and stories are in the past tense, explanations in the present and with "must" and "can". Programs and
protocols of an explanation act, and things are in them, as persons act and things are in places: "Slurm supports",
"in Slurm". So there a few cues among many uses say nothing about the type of a name.

Keep out: what the cues are (`type_cues.py`), stories by their pronouns (`terms/ordinary_words.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from graphrag_pipeline.indexing.extraction.names.brands import is_well_known
from graphrag_pipeline.indexing.extraction.names.cues import words
from graphrag_pipeline.indexing.extraction.names.occurrences import is_also_a_word
from graphrag_pipeline.indexing.extraction.names.terms.term_signs import is_common_noun
from graphrag_pipeline.indexing.extraction.names.types.agent_cues import AGENT, FIRM, HOLDER
from graphrag_pipeline.indexing.extraction.names.types.club_cues import CLUB, RIVAL
from graphrag_pipeline.indexing.extraction.names.types.trade_cues import ACTOR
from graphrag_pipeline.indexing.extraction.names.types.word_types import (
    CONCEPT,
    GEO,
    ORGANIZATION,
    PERSON,
    UNKNOWN,
    type_by_words,
)

_PRESENT = (" is ", " are ", " be ", " can ", " may ", " must ", " will ", " should ", " shall ")
_PAST = (" was ", " were ", " had ", " said ", " did ")
_MIN_PRESENT = 20  # such words of a document that is long enough to judge
_MAX_PAST = 0.2  # words of the past for one of the present; news have 0.5 and more, manuals 0.1 and less
_MIN_CUE_SHARE = 0.25  # of the uses of a name in an explanation
_SERVICES = words("service services authority authorities")
_OF_CLUBS = (CLUB, RIVAL, GEO)
_OF_ACTORS = (PERSON, HOLDER, ORGANIZATION, FIRM, AGENT, ACTOR, "agency", "place role", "event")


@lru_cache(maxsize=4)  # several rules ask about one document
def explains(text: str) -> bool:
    """Whether a document in English is mostly in the present tense."""
    n_present = sum(map(text.count, _PRESENT))
    return n_present >= _MIN_PRESENT and sum(map(text.count, _PAST)) <= _MAX_PAST * n_present


def keep_strong_cues(n_names: int, cues: Counter[str]) -> Counter[str]:
    """Return the cues of a name of an explanation that are a good share of its uses, without those of clubs and "in".

    A given name that is mostly written with an article or before a noun ("the Ada compiler") is written as a thing
    always.
    """
    kept = Counter({cue: n for cue, n in cues.items() if cue not in _OF_CLUBS})
    for cue in _OF_ACTORS:
        if 0 < kept[cue] < _MIN_CUE_SHARE * n_names:
            del kept[cue]
    if kept["describes"] + kept["named thing"] >= _MIN_CUE_SHARE * n_names and not kept[HOLDER]:
        kept["describes"] = n_names
    return kept


def is_named_as_thing(form: str) -> bool:
    """Whether common words name a service or an authority, which may be a program: "Ticket-Granting Service"."""
    *others, last = form.replace("-", " ").split()
    return bool(others) and last.upper() in _SERVICES and all(map(is_common_noun, others))


def drop_persons_of_things(types: Mapping[str, str]) -> dict[str, str]:
    """Return UNKNOWN for persons whose first word is a term of the document: "Ada Standard" beside "the Ada type"."""
    return {
        form: UNKNOWN
        for form, kind in types.items()
        if kind == PERSON and " " in form and types.get(form.split()[0]) == CONCEPT
    }


def type_things(types: Mapping[str, str]) -> dict[str, str]:
    """Return CONCEPT for services, and for bodies of an explanation without a word for a body: "Integer Overflow".

    All words of such a body are also written in small letters, and it is not well known.
    """
    bodies = {form for form, kind in types.items() if kind == ORGANIZATION and " " in form and not type_by_words(form)}
    found = {form for form in bodies if all(map(is_also_a_word, form.split())) and not is_well_known(form.upper())}
    services = {form for form, kind in types.items() if kind == UNKNOWN and is_named_as_thing(form)}
    return dict.fromkeys(found | services, CONCEPT)
