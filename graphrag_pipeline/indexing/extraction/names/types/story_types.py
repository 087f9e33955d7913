"""Types of names in a story, where who acts, owns and is spoken to is a person: "Alvarez waited", "That's fine, Tim."

A story calls its persons by one name, often without a title, a given name or a role beside it. In news and manuals the
same signs would show bodies and programs.

Keep out: whether a text is a story (`registers.py`), other types of its names (`name_types.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import regex

from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.terms.term_signs import is_code, is_common_noun
from graphrag_pipeline.indexing.extraction.names.types.word_types import CONCEPT, GEO, ORGANIZATION, PERSON, UNKNOWN
from graphrag_pipeline.text.late_patterns import late_regex

_PERSONAL, _ADDRESSED, _OTHER = "personal", "addressed", "other"
_ACTS = late_regex(
    r"\s+(?:(?:had|would|could|did|has|will|ca|can|must|was|wo)(?:n['’]t)?\b|(?:\p{Ll}+ly\s+)?(?:\p{Ll}{2,}ed|said|says|went|came|took"
    r"|saw|got|gave|thought|knew|felt|stood|sat|ran|left|made|put|held|heard|began|kept|let|met|spoke|rose|shook"
    r"|threw|drew|lay|led|fell|found|brought|caught|wrote|read|drove|rode|swung|flung|sprang|bent|grew|sang|drank|ate"
    r"|slept|wore|woke|understood|sighed)\b)"
)
_OWNS = late_regex(r"['’]s?\s+\p{Ll}")
_CALLED_BEFORE = late_regex(r"(?:[\p{Ll}!?],|[“\"‘]|\b(?:Oh|oh|O|dear|Dear|old|poor|Poor|my|My),?)\s*$")
_CALLED_AFTER = late_regex(r"[,.!?;]?[”\"’]|[,!]\s|\s?--?\s?|[.?]\s")
_ARTICLE_BEFORE = late_regex(r"\b(?:the|an?|this|that)\s+$", regex.IGNORECASE)
_NAME_OF = late_regex(r"\p{Lu}\p{Ll}+ of $")
_PLACE_BEFORE = late_regex(r"\b(?:in|at|into|near|through|around|across|outside|inside|beyond)\s+$", regex.IGNORECASE)
_SPOKE_BEFORE = late_regex(r"\b(?:said|asked|cried|answered|replied|called|whispered|shouted|named)\s+$")
_LOOK_BACK = 16
_ABLE = frozenset({UNKNOWN, CONCEPT, GEO, ORGANIZATION})


def type_in_story(
    names: Iterable[Name], types: Mapping[str, str], cues: Mapping[str, Counter[str]], text: str
) -> dict[str, str]:
    """Return PERSON for the names of a story that act, own, or are addressed more often than they are places or things.

    A name of type UNKNOWN needs one such use. A given name that has another type must be addressed ("That's fine,
    Tim"). Names of places of the gazetteer keep their type, as do common words and code.

    Args:
        names: every occurrence of a name in the document.
        types: type by written form.
        cues: cues by written form, of which "towards" and GEO show a place ("drove to Jarrodsville").
    """
    able = {form for form, kind in types.items() if kind in _ABLE and _may_be_person(form, kind)}
    signs: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name in names:
        if name.form in able:
            signs[name.form][_read_sign(text, name)] += 1
    for form, seen in signs.items():
        seen[_OTHER] += max(cues[form]["towards"], cues[form][GEO])
    return {form: PERSON for form, seen in signs.items() if _is_person(types[form], seen)}


def _may_be_person(form: str, kind: str) -> bool:
    title = title_of(form)
    if kind != UNKNOWN:
        return title in GIVEN_NAMES and title not in load_places()
    parts = form.split()
    is_plain = form.replace(" ", "").isalpha() and all(part.istitle() for part in parts)
    return is_plain and len(parts) < 3 and not is_code(form) and not any(map(is_common_noun, parts))


def _is_person(kind: str, seen: Counter[str]) -> bool:
    if kind != UNKNOWN:
        return seen[_ADDRESSED] > seen[_OTHER]
    return seen[_PERSONAL] + seen[_ADDRESSED] > seen[_OTHER]


def _read_sign(text: str, name: Name) -> str:
    """Return what the words beside a name make it: a place or thing, one who acts or owns, one who is spoken to."""
    before = text[max(name.start - _LOOK_BACK, 0) : name.start]
    if _ARTICLE_BEFORE.search(before):
        return _OTHER
    if _NAME_OF.search(before):  # "Emile Surette of Lunenburg will do it"
        return ""
    if _ACTS.match(text, name.end) or _OWNS.match(text, name.end) or _SPOKE_BEFORE.search(before):
        return _PERSONAL
    if _PLACE_BEFORE.search(before):
        return _OTHER
    is_addressed = _CALLED_BEFORE.search(before) and _CALLED_AFTER.match(text, name.end)
    return _ADDRESSED if is_addressed else ""
