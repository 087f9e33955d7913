"""Names that commas and "and" hold together: departments, joint councils, and cases at law.

"Department for Environment, Food and Rural Affairs" is one body, "Harkness v Wyre Fishing Company" one case, and
"Westmorland and Furness Council agrees" names one council.

Keep out: firms of two names (`firm_pairs.py`), connectors inside a phrase (`phrases.py`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import regex

from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.types.word_types import CONCEPT, ORGANIZATION

_NAME = r"\p{Lu}[\p{L}’'-]++(?:[ ](?:of[ ](?:the[ ])?)?\p{Lu}[\p{L}’'-]++)*+"
_FIELD = r"\p{Lu}\p{Ll}++(?:[ ]\p{Lu}\p{Ll}++)?+"
_KINDS = (
    (
        "Department of|Department for|Ministry of|Ministry for",
        regex.compile(
            rf"\b(?:Department|Ministry)[ ](?:of|for)[ ](?:the[ ])?{_FIELD}(?:,[ ]{_FIELD})+,?[ ]and[ ]{_FIELD}"
        ),
        ORGANIZATION,
    ),
    (
        " Council ",
        regex.compile(r"\b\p{Lu}\p{Ll}++[ ]and[ ]\p{Lu}\p{Ll}++[ ]Council(?=[ ](?:has|is|was|\p{Ll}{3,}s)\b)"),
        ORGANIZATION,
    ),
    ("HM ", regex.compile(r"\bHM[ ]\p{Lu}\p{Ll}++[ ]and[ ]\p{Lu}\p{Ll}++(?:[ ]\p{Lu}\p{Ll}++)*+"), ORGANIZATION),
    (" v | v. ", regex.compile(rf"(?:R|{_NAME})[ ]v\.?[ ]{_NAME}"), CONCEPT),
)
"""A part of every such name, the pattern, and the type."""


def join_composites(names: Iterable[Name], text: str, starts: Sequence[int]) -> tuple[list[Name], dict[str, str]]:
    """Return the names in reading order, with each composite in the place of its parts, and the type of its form.

    Args:
        starts: start offset of each sentence, in order.
    """
    names = list(names)
    found: list[Name] = []
    types: dict[str, str] = {}
    for part, pattern, kind in _KINDS:
        if any(word in text for word in part.split("|")):
            for match in pattern.finditer(text):
                form = match.group().replace("’", "'")
                start, end = match.span()
                found.append(Name(form, start, end, bisect_right(starts, start) - 1))
                types[form] = kind
    if not found:
        return names, {}
    found.sort(key=lambda name: name.start)
    begins = [name.start for name in found]
    kept = [name for name in names if not _is_inside(name, found, begins)]
    return sorted(kept + found, key=lambda name: (name.start, name.end)), types


def _is_inside(name: Name, found: Sequence[Name], begins: Sequence[int]) -> bool:
    before = bisect_left(begins, name.end)
    return before > 0 and found[before - 1].end > name.start
