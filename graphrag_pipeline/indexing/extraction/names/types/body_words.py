"""Bodies by the words of their names and what they do: "IDA Ireland", "Penrith Private Hire", "the Louvre will lend".

Keep out: endings that name a body by themselves (`word_types.py`), firms (`agent_cues.py`).
"""

from __future__ import annotations

from collections import Counter

from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES, HONORIFICS, LONERS, OFFICES, PLACE_HEADS
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_countries, load_places
from graphrag_pipeline.indexing.extraction.names.kind_nouns import PERSON_NOUN, kind_of
from graphrag_pipeline.indexing.extraction.names.occurrences import title_of
from graphrag_pipeline.indexing.extraction.names.terms.term_signs import is_common_noun
from graphrag_pipeline.indexing.extraction.names.types.agent_cues import AGENT, SIDES
from graphrag_pipeline.indexing.extraction.names.types.word_types import ADJECTIVE_ENDINGS, PERSON


def is_national_body(words: list[str], form: str) -> bool:
    """Whether a name ends with a country or a capital, and begins with no side, person or place: "IDA Ireland"."""
    if len(words) < 2 or words[-1] not in load_places() or " ".join(words) in load_places() or "OF" in words:
        return False
    first, last = form.split()[0], form.split()[-1]
    if last.isupper() and not form.isupper():  # "Cisco ISE"
        return False
    if words[0] in LONERS | PLACE_HEADS | SIDES | HONORIFICS or (words[0] in GIVEN_NAMES and not first.isupper()):
        return False
    return not any(word in load_places() for word in words[:-1])


def is_named_as_body(form: str) -> bool:
    """Whether a rare word or a place begins a name that common words end: two, or one in the plural."""
    first, *others = form.split()
    is_personal = title_of(first) in GIVEN_NAMES or title_of(first) in HONORIFICS or title_of(first) in LONERS
    if is_personal or is_common_noun(first) or not all(map(is_common_noun, others)):
        return False
    return len(others) > 1 or (bool(others) and others[0].endswith("s"))


def is_body_of_country(words: list[str]) -> bool:
    """Whether two words or more without an office stand before "of" and a country."""
    place = words.index("OF") if "OF" in words else 0
    country = " ".join(words[place + 1 :]).removeprefix("THE ")
    return place > 1 and country in load_countries() and not set(words) & (HONORIFICS | OFFICES | GIVEN_NAMES)


def acts_as_thing(form: str, n_names: int, cues: Counter[str]) -> bool:
    """Whether a rare word acts, mostly behind "the", which no person's name has: "the Louvre will lend"."""
    title = title_of(form)
    is_office = kind_of(title.split()[-1].lower()) == PERSON_NOUN or title.split()[-1] in HONORIFICS
    is_people = is_office or title.endswith((*ADJECTIVE_ENDINGS, "S", "MEN"))  # "the Wallenbergs", "the Englishmen"
    is_rare = form.istitle() and form.replace(" ", "").isalpha() and not is_common_noun(form) and not is_people
    is_acting = cues[AGENT] + cues[PERSON] > 0 and not cues["person role"]
    return is_rare and is_acting and 2 * cues["named thing"] > n_names and title not in OFFICES
