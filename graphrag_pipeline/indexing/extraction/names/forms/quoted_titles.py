"""Titles of works in quotation marks: "One Flew Over the Cuckoo's Nest" is one name, not two.

Capitals alone cut such a title at its small words. Keep out: titles without quotation marks, and those that the rules
for phrases find whole (`phrases.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.text.late_patterns import late_regex

_SMALL = (
    r"of|the|an?|and|or|but|in|on|at|to|for|from|with|by|as|into|over|upon|my|your|de|la|le|les|du|des|der|die|das|und"
    r"|el|y"
)
_CAPITAL = r"\p{Lu}[\p{L}\p{M}’'-]*+"
_TITLE = late_regex(
    rf"(?<![\p{{L}}\d][\"“])(?<=[\"“]|[\"“]\s)"
    rf"(?P<title>{_CAPITAL}(?:[ ](?:(?:{_SMALL})(?![\p{{L}}'’-])|{_CAPITAL})){{2,8}})"
    r"(?<![ ](?:of|the|an?|and|or|to|in|on))(?=[,.]?\s?[\"”])"
)
_ARTICLES = ("The ", "A ", "An ")


def join_quoted_titles(names: Iterable[Name], text: str, starts: Sequence[int]) -> tuple[list[Name], set[str]]:
    """Return the names in reading order, with each quoted title in the place of its parts, and the forms of the titles.

    A title of one or two words, or one that is a name as it is, but for an article, stays so.

    Args:
        starts: start offset of each sentence, in order.
    """
    names = list(names)
    if '"' not in text and "“" not in text:
        return names, set()
    begins = [name.start for name in names]
    found: list[Name] = []
    for match in _TITLE.finditer(text):
        start, end = match.span("title")
        parts = names[max(bisect_right(begins, start) - 1, 0) : bisect_right(begins, end)]
        if any(a.end == end and text[start : a.start] in ("", *_ARTICLES) for a in parts):
            continue
        if not any(start <= a.start and a.end <= end for a in parts):
            continue
        found.append(Name(match["title"].replace("’", "'"), start, end, bisect_right(starts, start) - 1))
    spans = [(name.start, name.end) for name in found]
    firsts = [start for start, _ in spans]
    kept = [name for name in names if not _is_inside(name, spans, firsts)]
    return sorted(kept + found, key=lambda name: (name.start, name.end)), {name.form for name in found}


def _is_inside(name: Name, spans: list[tuple[int, int]], firsts: list[int]) -> bool:
    place = bisect_right(firsts, name.end - 1) - 1
    return place >= 0 and spans[place][1] > name.start
