"""Words of time units, numbers and months, and the written forms of time phrases, by language.

The language is English, with the basic forms of German, French, Spanish and Chinese. Months, days and years need a
preposition ("in May"), so that names and numbers are not taken for dates. Add a form or a language here. Keep out: the
days that a phrase means (`time_phrases.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeVar

from graphrag_pipeline.query.question import content_words
from graphrag_pipeline.text.late_patterns import late_re

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
