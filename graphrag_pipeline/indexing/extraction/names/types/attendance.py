"""Persons in the attendance lists of minutes: "Present: Ines Carvalho, Wei Zhang (product)", "Apologies: T. Nance".

An attendance list shows who is a person where nothing else does: names of any language, and first names, which minutes
then use alone ("Wei thinks").

Keep out: honorifics (`word_types.py`) and what persons do (`agent_cues.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

import regex

from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES, HONORIFICS, OFFICES
from graphrag_pipeline.indexing.extraction.names.occurrences import is_also_a_word, title_of

_LABEL = regex.compile(
    r"^[\s*_#>|-]*(?:also |those |members )?(?:present|there|not there|attend(?:ing|ees|ance)|in attendance|apologies"
    r"(?: for absence| from)?|absent|participants?|facilitators?|moderators?|note[- ]?takers?|notes|scribes?|minutes by"
    r"|minute[- ]takers?|guests?|invited|chaired by|recorders?)[*_]*\s*:[*_ \t]*",
    regex.IGNORECASE | regex.MULTILINE,
)
_ASIDE = regex.compile(r"\(([^()\n]*)\)")
_ITEM = regex.compile(r"\s*(?:[-*•]\s+)?(?:and\s+\p{Lu}|\d+\s\p{L}|\p{Lu})")
_NAME = regex.compile(r"(?:\p{Lu}[\p{L}'’-]*\.?)(?:\s+\p{Lu}[\p{L}'’-]*\.?)*")
_MAX_WORDS = 8  # of an item, without asides


def find_attendees(text: str) -> frozenset[str]:
    """Return the names in the attendance lists of a text: full names, their first names, and short ones in brackets."""
    found = set[str]()
    for listed in _find_lists(text):
        for aside in _ASIDE.findall(listed):
            found |= {aside} if _NAME.fullmatch(aside) and title_of(aside) not in HONORIFICS | OFFICES else set()
        for item in regex.split(r"[,;\n]", _ASIDE.sub("", listed)):
            found |= _read_item(item)
    return frozenset(found)


def choose_attendees(forms: Iterable[str], attendees: Set[str]) -> set[str]:
    """Return the forms that are names of attendees, also with a form of address: "Cllr R. Ashby" of "R. Ashby"."""
    return {form for form in forms if " ".join(_without_honorifics(form.split())) in attendees}


def _without_honorifics(parts: list[str]) -> list[str]:
    n = next((n for n, part in enumerate(parts) if title_of(part).rstrip(".") not in HONORIFICS), len(parts))
    return parts[n:]


def _read_item(item: str) -> set[str]:
    """Return the name at the start of an item, and its first name."""
    name = _NAME.search(item)
    parts = _without_honorifics(name.group().split() if name else [])
    if all(is_also_a_word(part) and title_of(part) not in GIVEN_NAMES for part in parts):
        return set()
    has_first = len(parts[0].rstrip(".")) > 1 and (len(parts) > 1 or title_of(parts[0]) not in OFFICES)
    return {" ".join(parts), parts[0]} if has_first else {" ".join(parts)}


def _find_lists(text: str) -> Iterator[str]:
    """Yield what stands behind a label, or on the lines below it."""
    for label in _LABEL.finditer(text):
        start = label.end()
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if not text[start:end].strip():  # the list is below
            end = text.find("\n\n", end + 1)
            end = len(text) if end < 0 else end
        if _is_list(text[start:end]):
            yield text[start:end]


def _is_list(text: str) -> bool:
    items = [item for item in regex.split(r"[,;\n]", _ASIDE.sub("", text)) if item.strip()]
    return bool(items) and all(_ITEM.match(item) and len(item.split()) <= _MAX_WORDS for item in items)
