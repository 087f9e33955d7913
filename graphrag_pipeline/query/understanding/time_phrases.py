"""Time phrases of questions, such as "the last two weeks", "since March" or "in 2024", and the days that they mean.

    the last two weeks, the past month    that many days, months or years up to now
    last week, last month, last year      the calendar week (from Monday), month or year before that of now
    this week, yesterday, two days ago    literally
    in March, since March 2024            the latest March that has begun; since: up to now
    latest news, recently                 `RECENT_DAYS`; more if these have nothing (`is_soft`)

The written forms of phrases are in `time_forms.py`. Keep out: documents (`time_scope.py`), the clock.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from graphrag_pipeline.query.question import content_words
from graphrag_pipeline.query.understanding.time_forms import (
    ABOUT_TIME,
    MONTH_OF,
    NUMBER_OF,
    OVERVIEWS,
    UNIT_OF,
    match_forms,
)
from graphrag_pipeline.text.late_patterns import late_re

RECENT_DAYS = 30
_NAMING = ("between", "since", "after", "before", "until", "during")
_PREPOSITION = late_re(r"^(?:in|on|of|over|during|for|within|so far|from(?=.* (?:last|past)))\s+", re.IGNORECASE)


@dataclass(frozen=True)
class TimePhrase:
    """A time phrase of a question and the days that it means.

    Attributes:
        text: the phrase in the question's words, without its preposition.
        start, end: first and last day; None means open.
        rest: the question without the phrase; an overview question if nothing else is left.
        is_all: the question asks about the time only.
        is_soft: the phrase means no certain days ("latest news").
        is_relative: the phrase counts from now, so texts do not contain its words.
    """

    text: str
    start: date | None
    end: date | None
    rest: str
    is_all: bool
    is_soft: bool
    is_relative: bool


def has_time_phrase(question: str) -> bool:
    """Return whether a question contains a time phrase."""
    return _find(question) is not None


def read_time_phrase(question: str, now: date) -> TimePhrase | None:
    """Return the first time phrase of a question; None without a phrase, or if its day does not exist."""
    found = _find(question)
    if found is None:
        return None
    language, kind, match = found
    try:
        start, end = _SPANS[kind](match.groupdict(), now)
    except (ValueError, OverflowError):
        return None
    if start and end and end < start:
        return None
    rest = _without(question, match)
    is_all = not content_words(rest) - ABOUT_TIME
    text = _PREPOSITION.sub("", " ".join(match.group().split()))
    remaining = OVERVIEWS[language] if is_all else rest
    return TimePhrase(text, start, end, remaining, is_all, kind == "soft", kind not in _NAMING)


def _find(question: str) -> tuple[str, str, re.Match[str]] | None:
    """Return (language, kind, match) of the longest phrase among those that start first."""
    found = [one for one in match_forms(question) if not _is_name(question, *one[1:])]
    return min(found, key=lambda item: (item[2].start(), -item[2].end()), default=None)


def _is_name(question: str, kind: str, match: re.Match[str]) -> bool:
    """Return whether a match may be a title, such as the film Yesterday: one word with a capital inside a question."""
    return kind in ("yesterday", "today") and match.group()[0].isupper() and bool(question[: match.start()].strip())


def _without(question: str, match: re.Match[str]) -> str:
    text = f"{question[: match.start()]} {question[match.end() :]}"
    text = re.sub(r"\s+([?!.,;:])", r"\1", " ".join(text.split()))
    return re.sub(r"^[\s,;:.]+|[\s,;:]+(?=[?!.]*$)", "", text)


# ---------------------------------------------------------------------------------------------------------------- spans

Groups = Mapping[str, str | None]
Days = tuple[date | None, date | None]


def _rolling(groups: Groups, now: date) -> Days:
    """Return a number of units up to now, which is the last day."""
    unit = _unit_of(groups)
    return _back(now, _number_of(groups), unit) + timedelta(days=1), now


def _last(groups: Groups, now: date) -> Days:
    """Return the calendar unit before the present one; with a number or another unit, the days up to now."""
    unit = _unit_of(groups)
    if groups.get("n") or unit not in ("week", "month", "quarter", "year"):
        return _rolling(groups, now)
    end = _first_day(now, unit) - timedelta(days=1)
    return _first_day(end, unit), end


def _this(groups: Groups, now: date) -> Days:
    return _first_day(now, _unit_of(groups)), now


def _ago(groups: Groups, now: date) -> Days:
    """Return the day, calendar week, month or year a number of units back; with "since", the days from then to now."""
    unit = _unit_of(groups)
    then = _back(now, _number_of(groups), unit)
    if groups.get("since"):
        return then, now
    kind = "week" if unit == "fortnight" else unit
    start = _first_day(then, kind)
    return start, then if kind == "day" else _back(start, -1, kind) - timedelta(days=1)


def _named(groups: Groups, now: date, name: str = "first") -> tuple[date, date]:
    """Return the first and last day of a written date; without a year, of the latest such date that has begun."""
    if groups.get("y"):
        return _days_of(int(groups["y"] or 0), int(groups["month"] or 0) or None, None)
    text = str(groups[name]).casefold()
    if re.fullmatch(r"\d{4}-\d\d(-\d\d)?", text):
        year, month, *day = map(int, text.split("-"))
        return _days_of(year, month, day[0] if day else None)
    years, days = re.findall(r"\d{4}", text), re.findall(r"\b\d{1,2}(?!\d)", text)
    words = [word for word in re.findall(r"[^\W\d]+", text) if word in MONTH_OF]
    month_number, day_number = int(MONTH_OF[words[0]]) if words else None, int(days[0]) if days else None
    if years:
        return _days_of(int(years[0]), month_number, day_number)
    span = _days_of(now.year, month_number, day_number)
    return span if span[0] <= now else _days_of(now.year - 1, month_number, day_number)


def _days_of(year: int, month: int | None, day: int | None) -> tuple[date, date]:
    if month is None:
        return date(year, 1, 1), date(year, 12, 31)
    if day is None:
        return date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])
    return date(year, month, day), date(year, month, day)


_SPANS: dict[str, Callable[[Groups, date], Days]] = {
    "rolling": _rolling,
    "last": _last,
    "this": _this,
    "ago": _ago,
    "yesterday": lambda groups, now: (now - timedelta(days=1),) * 2,
    "today": lambda groups, now: (now, now),
    "soft": lambda groups, now: (now - timedelta(days=RECENT_DAYS - 1), now),
    "between": lambda groups, now: (_named(groups, now)[0], _named(groups, now, "second")[1]),
    "since": lambda groups, now: (_named(groups, now)[0], now),
    "after": lambda groups, now: (_named(groups, now)[1] + timedelta(days=1), now),
    "before": lambda groups, now: (None, _named(groups, now)[0] - timedelta(days=1)),
    "until": lambda groups, now: (None, _named(groups, now)[1]),
    "during": lambda groups, now: _named(groups, now),
}


def _unit_of(groups: Groups) -> str:
    return str(UNIT_OF[str(groups.get("unit") or groups.get("year")).casefold()])


def _number_of(groups: Groups) -> int:
    written = (groups.get("n") or groups.get("m") or "1").casefold()
    return int(written) if written.isdigit() else int(NUMBER_OF[written])


def _back(day: date, n: int, unit: str) -> date:
    """Return the day n units before another, or the last day of that month if the month is too short."""
    if unit in ("day", "week", "fortnight"):
        return day - timedelta(days=n * {"day": 1, "week": 7, "fortnight": 14}[unit])
    months = day.year * 12 + day.month - 1 - n * {"month": 1, "quarter": 3, "year": 12, "decade": 120}[unit]
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _first_day(day: date, unit: str) -> date:
    """Return the first day of the calendar unit that contains a day; weeks start on Monday."""
    if unit == "week":
        return day - timedelta(days=day.weekday())
    month = {"month": day.month, "quarter": (day.month - 1) // 3 * 3 + 1, "year": 1, "decade": 1}.get(unit)
    year = day.year // 10 * 10 if unit == "decade" else day.year
    return date(year, month, 1) if month else day
