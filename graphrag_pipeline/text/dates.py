"""Full dates as names: "December 25, 1843" and "25th of December 1843" are the event "25 December 1843".

German, French and Spanish dates keep their form: "3. März 2023", "14 juillet 2022", "5 de mayo de 2021".

Keep out: days without a year, single months and weekdays, which do not identify one date across documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import regex

from graphrag_pipeline.text.late_patterns import late_regex

_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_FOREIGN = (
    r"(?:\d{1,2}\.\s(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)"
    r"|(?:1er|\d{1,2})\s(?:janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre)"
    r"|\d{1,2}\sde\s(?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|sep?tiembre|octubre|noviembre|diciembre)\sdel?)"
    r"\s\d{4}"
)
_DATE = late_regex(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?(?P<month>{_MONTH}),?\s(?P<year>\d{{4}})"
    rf"|(?P<month>{_MONTH})\s(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,\s(?P<year>\d{{4}})|(?P<foreign>{_FOREIGN}))\b"
)
_OF_PAGE = late_regex(
    r"\b(?:updated|modified|generated|retrieved|accessed|printed|archived)(?:\s+on|\s+at)?:?\s+$", regex.I
)
_FORM = late_regex(rf"\d{{1,2}} {_MONTH} \d{{4}}|{_FOREIGN}")


def find_dates(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, form) of dates with day, month and year, in order; English ones have one form."""
    for match in _DATE.finditer(text):
        if not _OF_PAGE.search(text, max(match.start() - 30, 0), match.start()):
            yield match.start(), match.end(), _form_of(match)


def _form_of(match: regex.Match[str]) -> str:
    if match["foreign"]:
        return " ".join(match["foreign"].split())
    return f"{int(match['day'])} {match['month']} {match['year']}"


_NUMERIC = late_regex(
    r"(?<!\d)(?:(?P<year>(?:19|20)\d\d)(?:(?P<sign>[-_/.]?)(?P<month>0[1-9]|1[0-2])(?P=sign)(?P<day>0[1-9]|[12]\d|3[01])"
    r"|-?W(?P<week>\d\d))|(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>(?:19|20)\d\d))(?!\d)"
)
_MONTHS = {
    name: number
    for names in (
        "january february march april may june july august september october november december",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    )
    for number, name in enumerate(names.split(), start=1)
} | {"jänner": 1, "setiembre": 9}
_NUMBER = late_regex(r"\d+")
_LETTERS = late_regex(r"\p{L}+")


def find_day(text: str) -> date | None:
    """Return the first day that a text writes in full: ISO 8601, 20250304, 4.3.2025, a week (its Monday), in words."""
    found = [(match.start(), _day_of(match)) for match in _NUMERIC.finditer(text)]
    for start, _, form in find_dates(text):
        first, *_, last = (int(number) for number in _NUMBER.findall(form))
        month = next((_MONTHS[word] for word in _LETTERS.findall(form.casefold()) if word in _MONTHS), 0)
        found.append((start, _valid_day(last, month, first)))
    return min(((start, day) for start, day in found if day), default=(0, None))[1]


def _day_of(match: regex.Match[str]) -> date | None:
    if match["week"]:
        try:
            return date.fromisocalendar(int(match["year"]), int(match["week"]), 1)
        except ValueError:
            return None
    return _valid_day(int(match["year"]), int(match["month"]), int(match["day"]))


def _valid_day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def is_date(form: str) -> bool:
    return _FORM.fullmatch(form) is not None
