"""Full dates as names: "December 25, 1843" and "25th of December 1843" are the event "25 December 1843".

A day without its year, a month or a weekday alone name nothing that two documents could share.
"""

from __future__ import annotations

from bisect import bisect_right

import regex

from graphrag_pipeline.indexing.names import Name

_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = regex.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?(?P<month>{_MONTH}),?\s(?P<year>\d{{4}})"
    rf"|(?P<month>{_MONTH})\s(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,\s(?P<year>\d{{4}}))\b"
)
_FORM = regex.compile(rf"\d{{1,2}} {_MONTH} \d{{4}}")


def find_dates(text: str, sentences: list[tuple[int, int]]) -> list[Name]:
    """Dates with day, month and year, in reading order, written as day, month, year."""
    starts = [start for start, _ in sentences]
    return [
        Name(
            f"{int(match['day'])} {match['month']} {match['year']}",
            match.start(),
            match.end(),
            bisect_right(starts, match.start()) - 1,
        )
        for match in _DATE.finditer(text)
    ]


def is_date(form: str) -> bool:
    return _FORM.fullmatch(form) is not None
