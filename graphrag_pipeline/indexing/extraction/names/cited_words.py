"""Common words with a capital that are no names: commands, and titles of sections that the text cites.

"Preserve the Title" begins with a verb: a noun is seldom followed by an article or a pronoun. 'the section Entitled
"History"' cites a heading. "Copyright (c) 1998" is a notice.

"SCR" of "[2004] SCR 118" is a series of law reports.

"Ctrl" of "Ctrl+X" is a key. "Valid responses:" at the start of several lines or sentences is the label of a form.

Keep out: capitals that the place in a sentence explains (`finder.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import regex

from graphrag_pipeline.indexing.extraction.names.capitalization import is_common_word
from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.text.late_patterns import late_regex

_OBJECT = late_regex(r"\s+(?:the|an?|all|any|each|every|its|this|that|these|those|their|your|it|them)\b")
_NOTICE = late_regex(r"\s+(?:\([cC]\)|©)")
_DATED = late_regex(r"\s+\d{4}\b")
_CITES = late_regex(
    r"\b(?:section|chapter|heading|part)s?\s+(?:(?:entitled|titled|called|named|marked)\s+)?"
    r"(?:[\"“'‘][^\"”'’]{1,40}[\"”'’],?\s+(?:or|and)\s+)*[\"“'‘]$",
    regex.IGNORECASE,
)
_VOLUME = late_regex(r"(?:[\[(]\d{4}[\])]\s(?:\d{1,4}\s)?|(?<![\p{L}\d.])\d{1,4}\s)$")
_COURT = late_regex(r"\]\s\p{Lu}+\s\d{1,4}\s\($")  # "[2020] EWHC 727 (QB)"
_PAGE = late_regex(r"\.?\s(?:§§?\s)?\d")
_JOINED = late_regex(r"[`*]{0,2}\+(?=\S|$)[`*]{0,2}")
_QUOTES = frozenset("\"“'‘")
_MIN_CITED_SHARE = 0.8
_MIN_LABELS = 3
_LINE_START = late_regex(r"(?:^|\n|[.!?][\"'”’)]?\s)[^\p{L}\n]*$")
_WORD = late_regex(r"[^\s/]+")
_VERB = late_regex(r".{2,}(?:if|[ai]t|[iy][sz])(?:ie|e)s")  # specifies, indicates


def drop_cited(names: Iterable[Name], text: str, headings: list[bool]) -> list[Name]:
    """Return the names without common words that are mostly commands, or nearly always headings and cited headings.

    Args:
        headings: for each sentence, whether it is a heading.
    """
    names = [name for name in names if not (_is_notice(name, text) or _is_reporter(name, text))]
    names = _drop_keys(names, text) if "+" in text else names
    names = _drop_labels(names, text)
    total: Counter[str] = Counter()
    commands: Counter[str] = Counter()
    quoted: Counter[str] = Counter()
    cited: Counter[str] = Counter()
    in_headings: Counter[str] = Counter()
    for name in names:
        if not _is_common(name.form):
            continue
        total[name.form] += 1
        commands[name.form] += _OBJECT.match(text, name.end) is not None
        is_quoted = text[max(name.start - 1, 0) : name.start] in _QUOTES
        quoted[name.form] += is_quoted
        cited[name.form] += is_quoted and _CITES.search(text, max(name.start - 90, 0), name.start) is not None
        in_headings[name.form] += headings[name.sentence]
    dropped = {
        form
        for form, n in total.items()
        if 2 * commands[form] >= n or (cited[form] and quoted[form] + in_headings[form] >= _MIN_CITED_SHARE * n)
    }
    return [name for name in names if name.form not in dropped] if dropped else names


def _drop_keys(names: list[Name], text: str) -> list[Name]:
    """Drop the names of keys, which half of the time are joined to others: "Ctrl+Shift+X", "`Alt`+`F4`"."""
    total = Counter(name.form for name in names)
    joined = Counter(
        name.form
        for name in names
        if _JOINED.match(text, name.end) or _JOINED.fullmatch(text, max(name.start - 3, 0), name.start)
    )
    keys = {form for form, n in joined.items() if 2 * n >= total[form] and " " not in form}
    return [name for name in names if name.form not in keys] if keys else names


def _drop_labels(names: list[Name], text: str) -> list[Name]:
    """Drop common words that nearly always start a line or a sentence and end with a colon: "Problems/Solutions:"."""
    labels = Counter(name.form for name in names if _is_label(name, text))
    if max(labels.values(), default=0) < _MIN_LABELS:
        return names
    total = Counter(name.form for name in names)
    dropped = {form for form, n in labels.items() if n >= _MIN_LABELS and n >= _MIN_CITED_SHARE * total[form]}
    return [name for name in names if name.form not in dropped] if dropped else names


def _is_label(name: Name, text: str) -> bool:
    if not text.startswith(":", name.end) or not _LINE_START.search(text, max(name.start - 40, 0), name.start):
        return False
    return all(is_common_word(word.upper()) for word in _WORD.findall(name.form))


def _is_notice(name: Name, text: str) -> bool:
    """Whether a name is the word of a notice: "Copyright (c)", "Copyright 2001"."""
    pattern = _DATED if name.form.upper() == "COPYRIGHT" else _NOTICE
    return (pattern.match(text, name.end) or _NOTICE.match(text, name.end)) is not None


def _is_reporter(name: Name, text: str) -> bool:
    """Whether capitals are the series of a law report: "[2004] SCR 118", "33 C.F.R. § 117", or its court."""
    if not name.form.replace(".", "").isupper():
        return False
    if text[name.end : name.end + 1] == ")" and _COURT.search(text, max(name.start - 20, 0), name.start):
        return True
    return (
        _PAGE.match(text, name.end) is not None
        and _VOLUME.search(text, max(name.start - 16, 0), name.start) is not None
    )


def _is_common(form: str) -> bool:
    if not (form.istitle() and form.isalpha()) or form.upper() in GIVEN_NAMES:
        return False
    return is_common_word(form.upper()) or (form.endswith("es") and _VERB.fullmatch(form.lower()) is not None)
