"""Time phrases of questions, such as "the last two weeks", "since March" or "in 2024", and the days that they mean.

    the last two weeks, the past month    that many days, months or years up to now
    last week, last month, last year      the calendar week (from Monday), month or year before that of now
    this week, yesterday, two days ago    literally
    in March, since March 2024            the latest March that has begun; since: up to now
    latest news, recently                 `RECENT_DAYS`; more if these have nothing (`is_soft`)


Words of time units, numbers and months, and the written forms of time phrases, by language.

The language is English, with the basic forms of German, French, Spanish and Chinese. Months, days and years need a
preposition ("in May"), so that names and numbers are not taken for dates. Add a form or a language here.

Time scope of a question: filters that select the documents of the time that the question names.

"The last two weeks" reads only the documents of these weeks. Now is the date of the newest document, or `now` of the
settings, so an answer does not depend on the day of the search. All documents are read, and a note in the answer says
so, if no document has a date, if no document is of that time, or if no document of that time contains the entity that
the question names.

Keep out: documents, the clock.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, TypeVar

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, is_overview
from graphrag_pipeline.query.results import Answer
from graphrag_pipeline.query.understanding.document_dates import DocumentDates, read_dates
from graphrag_pipeline.text.counted import counted
from graphrag_pipeline.text.late_patterns import late_re

ANY_DAY = date(2000, 1, 1)
"""Now, if no document has a date; then only the words of the phrase matter."""
TimeAccount = dict[str, str | int | None]
WIDER_DAYS = 365
"""Days that "latest news" about a name reads if the first `RECENT_DAYS` do not contain the name."""


@dataclass(frozen=True)
class TimeScope:
    """A question without its time phrase, and the filters for that time.

    Attributes:
        question: without the time phrase, if the filters select documents by it.
        filters: those that select the documents.
        account: {"time": {"phrase", "from", "to", "now", "documents"}}, with "dropped" if all documents are
            read; empty without a phrase.
        note: sentence about the time for the answer; "" for none.
        lead: what stands before the answer; "" for nothing.
    """

    question: str
    filters: tuple[str, ...] = ()
    account: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    lead: str = ""

    def add_note(self, answer: Answer) -> Answer:
        """Return an answer with the note below its text, and the lead above it."""
        whole = "\n\n".join(filter(None, (self.lead, answer.text, self.note)))
        return replace(answer, text=whole) if answer.text else answer


def read_time_scope(index: IndexReader, question: str, now: date | None = None) -> TimeScope:
    """Return the time scope of a question.

    Args:
        index: with the user's filters applied.
        now: None: the date of the newest document.
    """
    if not has_time_phrase(question):
        return TimeScope(question)
    dates = read_dates(index.document_fields)
    today = now or (dates.newest if dates else None)
    phrase = read_time_phrase(question, today or ANY_DAY)
    if phrase is None:
        return TimeScope(question)
    if dates is None or today is None:
        question_read = phrase.rest if phrase.is_all and not is_overview(question) else question
        return _drop(question_read, {"phrase": phrase.text}, "no document has a date", needs_note=phrase.is_all)
    dropped = ""
    for span in _spans(phrase):
        filters = _filters_of(dates.field, span)
        account = _phrase_account(span, today)
        view = index.where(filters)
        n_documents = view.document_mask.n_documents if view.document_mask else 0
        dropped = _why_not(index, view, span, n_documents)
        if not dropped:
            read = counted(n_documents, "documents")
            note = f"Time: “{span.text}” is {_written(span)}{_since(dates, today)}; read: {read}."
            return TimeScope(span.rest, filters, {"time": {**account, "documents": n_documents}}, note)
    needs_note = phrase.is_all or dates.overlap(phrase.start, phrase.end)  # else the date is the question's topic
    question_read = phrase.rest if phrase.is_all or phrase.is_relative else question
    return _drop(question_read, account, f"{dropped}{_since(dates, today)}", needs_note)


def _drop(question: str, account: TimeAccount, why: str, needs_note: bool) -> TimeScope:
    """Return the scope of all documents, with the reason."""
    note = f"Time: {why}; all documents were read." if needs_note else ""
    return TimeScope(question, account={"time": {**account, "dropped": why}}, note=note)


def _spans(phrase: TimePhrase) -> Iterator[TimePhrase]:
    """Yield the phrase, and after it a wider one if it is not about certain days."""
    yield phrase
    if phrase.is_soft and phrase.end:
        yield replace(phrase, start=phrase.end - timedelta(days=WIDER_DAYS - 1))


def _filters_of(name: str, phrase: TimePhrase) -> tuple[str, ...]:
    first = (f"{name}>={phrase.start.isoformat()}",) if phrase.start else ()
    last = (f"{name}<={phrase.end.isoformat()}",) if phrase.end else ()
    return first + last


def _phrase_account(phrase: TimePhrase, now: date) -> TimeAccount:
    ends = {"from": phrase.start, "to": phrase.end, "now": now}
    return {"phrase": phrase.text, **{name: day.isoformat() if day else None for name, day in ends.items()}}


def _why_not(index: IndexReader, view: IndexReader, phrase: TimePhrase, n_documents: int) -> str:
    """Return why the documents of a time are not read alone; "" if they are."""
    if not n_documents:
        return f"no document has a date of {_written(phrase)} (“{phrase.text}”)"
    if index.names.find(phrase.rest) and not view.names.find(phrase.rest):
        return f"no document of {_written(phrase)} (“{phrase.text}”) contains the name"
    return ""


def _written(phrase: TimePhrase) -> str:
    """Return the days of a phrase, such as "2026-05-18 to 2026-05-31"."""
    if phrase.start and phrase.end:
        return f"{phrase.start} to {phrase.end}" if phrase.start != phrase.end else str(phrase.start)
    return f"from {phrase.start} on" if phrase.start else f"up to {phrase.end}"


def _since(dates: DocumentDates, now: date) -> str:
    return f" (now: {now}, the newest document)" if now == dates.newest else f" (now: {now})"


T = TypeVar("T", int, str)

_UNITS = {
    "day": "day days tag tagen tage jour jours día días dia dias 天 日",
    "week": "week weeks woche wochen semaine semaines semana semanas 周 週 星期 个星期 個星期 礼拜 禮拜",
    "fortnight": "fortnight fortnights quinzaine quincena",
    "month": "month months monat monaten monate monats mois mes meses 个月 個月 月",
    "quarter": "quarter quarters quartal quartale quartalen trimestre trimestres 季度 个季度 個季度",
    "year": "year years jahr jahren jahre jahres an ans année années año años 年",
    "decade": "decade decades jahrzehnt jahrzehnten jahrzehnte décennie décennies década décadas",
}
_NUMBERS = {
    1: "one a an ein einen einem einer une un una 一",
    2: "two couple zwei deux dos 两 兩 二",
    3: "three few drei trois tres 三",
    4: "four several vier quatre cuatro 四",
    5: "five fünf cinq cinco 五",
    6: "six sechs seis 六",
    7: "seven sieben sept siete 七",
    8: "eight acht huit ocho 八",
    9: "nine neun neuf nueve 九",
    10: "ten zehn dix diez 十",
    11: "eleven elf onze once",
    12: "twelve zwölf douze doce",
}
_MONTHS = {
    1: "january jan januar janvier enero",
    2: "february feb februar février febrero",
    3: "march mar märz mars marzo",
    4: "april apr avril abril",
    5: "may mai mayo",
    6: "june jun juni juin junio",
    7: "july jul juli juillet julio",
    8: "august aug août agosto",
    9: "september sept sep septembre septiembre",
    10: "october oct oktober octobre octubre",
    11: "november nov novembre noviembre",
    12: "december dec dezember décembre diciembre",
}


def _words_to(table: Mapping[T, str]) -> dict[str, T]:
    return {word: value for value, words in table.items() for word in words.split()}


UNIT_OF, NUMBER_OF, MONTH_OF = _words_to(_UNITS), _words_to(_NUMBERS), _words_to(_MONTHS)


def _any_of(words: Mapping[str, object]) -> str:
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


_MONTH = rf"(?:{_any_of(MONTH_OF)})\b\.?"
_YEAR = r"(?:1[5-9]|20|21)\d\d"
_DAY = r"\d{1,2}(?:st|nd|rd|th|\.)?"
_DATE = (
    rf"(?:{_YEAR}-\d\d(?:-\d\d)?|{_DAY}\s+(?:of\s+|de\s+)?{_MONTH}(?:,?\s+(?:de\s+|of\s+)?{_YEAR})?"
    rf"|{_MONTH}\s+{_DAY}(?![\d])(?:,?\s+{_YEAR})?|{_MONTH}(?:,?\s+(?:de\s+|of\s+)?{_YEAR})?|{_YEAR})(?![\w-])"
)
_N = rf"(?:(?P<n>\d{{1,3}}|{_any_of(NUMBER_OF)})\s*(?:of\s+)?)?"
_UNIT = rf"(?P<unit>{_any_of(UNIT_OF)})"
_COMES_IN = (
    r"(?:(?:all|new|our|the|your|its|their)\s+)?(?:[a-z]+\s+)?(?:updates?|news|events|changes|developments?|activity"
    r"|activities|reports?|reporting|progress|work|discussions?|meetings?|minutes|posts|releases|incidents|notes"
    r"|messages|e?-?mails|entries|issues|tickets|articles|coverage|decisions|documents|records|logs|sales|orders|data)\b"
)
_END = rf"\b(?:['’]s\b)?(?!\s+of\b(?!\s+{_COMES_IN}))"
"""After an English phrase: "last month's", "the last two weeks of updates", but not "the last year of his life"."""
_IN = r"(?:(?:in|over|during|for|from|within|on|of|so far)\s+)?"
_M = _N.replace("<n>", "<m>")
_DURING = r"(?:\b(?:au\s+cours|pendant|durant|dans|en|durante|de)\s+)?"
_BEFORE_YEAR = r"(?:the\s+year\s+|the\s+)?"

_FORMS: tuple[tuple[str, str, str], ...] = (
    ("en", "rolling", rf"{_IN}\b(?:the|these)\s+(?:last|past|previous)\s+{_N}{_UNIT}{_END}"),
    ("en", "rolling", rf"{_IN}\bpast\s+{_N}{_UNIT}{_END}"),
    ("en", "last", rf"{_IN}\b(?:last|previous)\s+{_N}{_UNIT}{_END}"),
    ("en", "this", rf"{_IN}\b(?:this|the\s+current)\s+{_UNIT}{_END}"),
    ("en", "ago", rf"\b(?P<since>since\s+)?{_N}{_UNIT}\s+ago\b"),
    ("en", "yesterday", rf"\b(?:since\s+)?yesterday{_END}"),
    ("en", "today", rf"\btoday{_END}"),
    ("en", "soft", r"(?:\bthe\s+)?\b(?:latest|newest|(?:most\s+)?recent)\s+(?:news|developments?|updates?)\b"),
    ("en", "soft", r"\b(?:recently|lately)\b"),
    ("en", "between", rf"\bbetween\s+(?P<first>{_DATE})\s+and\s+(?P<second>{_DATE})"),
    ("en", "between", rf"\bfrom\s+(?P<first>{_DATE})\s+(?:to|until|till|through)\s+(?P<second>{_DATE})"),
    ("en", "since", rf"\b(?:ever\s+)?since\s+{_BEFORE_YEAR}(?P<first>{_DATE})"),
    ("en", "after", rf"\bafter\s+{_BEFORE_YEAR}(?P<first>{_DATE})"),
    ("en", "before", rf"\bbefore\s+{_BEFORE_YEAR}(?P<first>{_DATE})"),
    ("en", "until", rf"\b(?:until|till|up\s+to)\s+{_BEFORE_YEAR}(?P<first>{_DATE})"),
    ("en", "during", rf"\b(?:in|during|on)\s+{_BEFORE_YEAR}(?P<first>{_DATE})"),
    ("de", "rolling", rf"(?:\b(?:in|während)\s+)?\b(?:de[nrm]|die|das)\s+(?:letzten?|vergangenen?)\s+{_N}{_UNIT}\b"),
    ("de", "last", rf"(?:\bim\s+)?\b(?:letzte[nrs]?|vergangene[nrs]?)\s+{_N}{_UNIT}\b"),
    ("de", "this", rf"\b(?:in\s+)?diese[rnms]?\s+{_UNIT}\b"),
    ("de", "ago", rf"\bvor\s+{_N}{_UNIT}\b"),
    ("de", "yesterday", r"\b(?:seit\s+)?gestern\b"),
    ("de", "today", r"\bheute\b"),
    ("de", "since", rf"\bseit\s+(?:dem\s+)?(?P<first>{_DATE})"),
    ("de", "during", rf"\b(?:im\s+jahre?|im|am)\s+(?P<first>{_DATE})"),
    ("fr", "rolling", rf"{_DURING}\b(?:des|ces|les)\s+{_N}derni[eè]re?s\s+{_UNIT}\b"),
    ("fr", "last", rf"\b(?:l[ae]\s+|l['’])?{_UNIT}\s+derni(?:er|ère)\b"),
    ("fr", "this", rf"\b(?:cette|cet|ce)\s+{_UNIT}\b"),
    ("fr", "yesterday", r"\b(?:depuis\s+)?hier\b"),
    ("fr", "today", r"\baujourd['’]hui\b"),
    ("fr", "since", rf"\bdepuis\s+(?:le\s+)?(?P<first>{_DATE})"),
    ("fr", "during", rf"\ben\s+(?P<first>{_DATE})"),
    ("es", "rolling", rf"{_DURING}\bl[oa]s\s+{_N}últim[oa]s\s+{_M}{_UNIT}\b"),
    ("es", "last", rf"\b(?:el|la)\s+{_UNIT}\s+pasad[oa]\b"),
    ("es", "this", rf"\best[ea]\s+{_UNIT}\b"),
    ("es", "yesterday", r"\b(?:desde\s+)?ayer\b"),
    ("es", "today", r"\bhoy\b"),
    ("es", "since", rf"\bdesde\s+(?:el\s+)?(?P<first>{_DATE})"),
    ("zh", "rolling", rf"(?:在)?(?:最近|过去|過去|近)的?{_N}{_UNIT}(?:里|裡|裏|内|內|以来|以來|中)?"),
    ("zh", "last", r"上[个個]?(?P<unit>周|週|星期|月|季度)|去(?P<year>年)"),
    ("zh", "this", r"[本这這][个個]?(?P<unit>周|週|星期|月|季度|年)|今(?P<year>年)"),
    ("zh", "yesterday", r"昨[天日]"),
    ("zh", "today", r"今[天日]"),
    ("zh", "since", rf"自?[从從]?(?P<y>{_YEAR})年(?:(?P<month>\d{{1,2}})月)?以[来來]"),
    ("zh", "during", rf"在?(?P<y>{_YEAR})年(?:(?P<month>\d{{1,2}})月)?"),
)  # fmt: skip
_SIGNS = {
    _UNIT: late_re(rf"[^\W\x00-\u024f]|(?:\b|\d|{_any_of(NUMBER_OF)})(?:{_any_of(UNIT_OF)})\b", re.IGNORECASE),
    _DATE: late_re(rf"\d|\b{_MONTH}", re.IGNORECASE),
}
"""Part of a form -> what every phrase of the form has: a question without it needs no long pattern."""
_PATTERNS = [
    (language, kind, late_re(written, re.IGNORECASE), frozenset(part for part in _SIGNS if part in written))
    for language, kind, written in _FORMS
]


def match_forms(question: str) -> Iterator[tuple[str, str, re.Match[str]]]:
    """Yield (language, kind, match) of each phrase with one of the forms."""
    absent = frozenset(part for part, sign in _SIGNS.items() if not sign.search(question))
    for language, kind, pattern, parts in _PATTERNS:
        if parts.isdisjoint(absent):
            yield from ((language, kind, match) for match in pattern.finditer(question))


_HAPPENED = """
tell show give know say happen happened happening happens occurred occur going took take taken place new news change
changed changes catch update updates events anything something everything
work progress activity activities developments coverage summarize summarise summary
was ist sind gibt es passiert geschehen geschah neues neu los erzähl mir hat sich getan
que quoi qu'est s'est est s'est-il est-il il passé a eu lieu arrivé nouveau neuf nouvelles de
qué pasó pasado ha ocurrió ocurrido nuevo novedades hay se
发生了什么事情有新闻些哪發麼聞
"""
ABOUT_TIME = content_words(_HAPPENED)
OVERVIEWS = {
    "en": "What are the main events?",
    "de": "Wichtige Ereignisse?",
    "fr": "Événements importants ?",
    "es": "¿Acontecimientos importantes?",
    "zh": "主要事件？",
}
"""Question to search for, by language, if a question names only a time."""


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
