"""Filters on documents, such as "year>=2024" and "source=reuters,bbc": their syntax, and which values pass.

A filter is FIELD OPERATOR VALUE. Fields are the documents' columns and the keys of their metadata, nested ones by
dotted path. `metadata.KEY` is a key that has the name of a column. If the metadata has no `year` or `date`, they come
from the creation date, or from the first field of `DATED` in the metadata.

Values are compared by type: numbers as numbers, ISO dates as spans of time, and everything else as text without regard
to case. So "date<=2024" includes all of 2024. `=` and `!=` take several values, separated by commas; "in" is the same
as "=". `~` means contains. A list matches if one of its elements does. A document must pass all filters.

A search asks about all documents of an index at once (`query/filtering/document_mask.py`), and a missing value passes
`!=` there. The input asks about one record alone (`passes`), and a missing value passes nothing, since such filters
keep documents out.
"""

from __future__ import annotations

import csv
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from graphrag_pipeline.errors import PipelineError

COLUMNS = ("id", "title", "path", "record", "creation_date")
DATED = ("date", "published", "published_at", "publication_date", "created", "created_at", "timestamp")
"""Metadata fields with a document's date, in order of precedence, if no document has a creation date."""
DERIVED = ("date", "year")

# No part of these patterns gives characters back to another, so their time grows with the length of the text alone.
_OPERATOR = re.compile(r"!=|<=|>=|==|[=<>~]")
_IN = re.compile(r"\sin\s", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d{1,3})?")
_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:[T ].+)?)?)?")


@dataclass(frozen=True)
class Filter:
    """One condition on documents.

    Attributes:
        text: the filter in the words of the user.
        values: one, or several for `=` and `!=`.
    """

    text: str
    field: str
    operator: str
    values: tuple[str, ...]


def parse_filter(text: str) -> Filter:
    """Parse "FIELD OPERATOR VALUE".

    Raises:
        PipelineError: the text has another form, or no value.
    """
    stripped = text.strip()
    found = _OPERATOR.search(stripped)
    if found and "!" in stripped[: found.start()]:
        found = None
    listed = None if found else _IN.search(stripped)
    place = found or listed
    field, written = (stripped[: place.start()].strip(), stripped[place.end() :]) if place else ("", "")
    operator = found.group() if found else "="
    values = _read_values(written) if operator in ("=", "==", "!=") else (_unquote(written.strip()),)
    if not field or not written.strip() or written.lstrip().startswith("="):
        raise PipelineError(
            f"filter {text!r}: write FIELD OPERATOR VALUE, such as year>=2024 or source=reuters,bbc; operators: "
            "= != < <= > >= ~ (contains); a value that begins with = stands in quotes"
        )
    return Filter(stripped, field, operator.replace("==", "="), values)


def _read_values(written: str) -> tuple[str, ...]:
    """Return the values between commas, and the whole text too, for a name such as "Dickens, Charles"."""
    whole = written.strip()
    if _unquote(whole) != whole:
        return (_unquote(whole),)
    parts = [part.strip() for part in next(csv.reader([whole], skipinitialspace=True), [])]
    return (whole,) if len(parts) < 2 else (*parts, whole)


def _unquote(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] in "\"'" and text.find(text[0], 1) == len(text) - 1
    return text[1:-1] if is_quoted else text


def read_metadata(text: str | None) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return {}  # the metadata of an import may be any text


def flatten_metadata(values: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items() if isinstance(values, dict) else ():
        if isinstance(value, dict):
            yield from flatten_metadata(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", value


def each_value(value: Any) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    return [element for element in values if element is not None]


Span = tuple[datetime, datetime]


@dataclass(frozen=True)
class Value:
    """A value to compare: as a number, as a span of time (start, end exclusive), and as folded text.

    The number is exact: as floats, ids of 17 or more digits would equal their neighbours.
    """

    text: str
    number: Decimal | None = None
    span: Span | None = None

    @property
    def is_text(self) -> bool:
        return self.number is None and self.span is None


def read_value(value: Any) -> Value:
    if isinstance(value, int | float) and not isinstance(value, bool):
        is_finite = isinstance(value, int) or math.isfinite(value)
        return Value(str(value), number=Decimal(str(value)) if is_finite else None)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    stripped = text.strip()
    number = Decimal(stripped) if _NUMBER.fullmatch(stripped) else None
    return Value(unicodedata.normalize("NFKC", stripped).casefold(), number, read_span(stripped))


def read_span(text: str) -> Span | None:
    """Return the span of an ISO 8601 year, month, day or time, UTC if it has no zone; None for other text."""
    if not _DATE.fullmatch(text):
        return None
    try:
        start = datetime.fromisoformat({4: f"{text}-01-01", 7: f"{text}-01"}.get(len(text), text))
        start = start.astimezone(UTC).replace(tzinfo=None) if start.tzinfo else start
        if len(text) > 7:
            return start, start + (timedelta(days=1) if len(text) == 10 else timedelta(microseconds=1))
        is_last = len(text) == 4 or start.month == 12
        return start, start.replace(year=start.year + is_last, month=1 if is_last else start.month + 1)
    except (ValueError, OverflowError):
        return None


Comparison = Callable[[Value, Value], "bool | None"]
"""Comparison of a stored value with a wanted one; None if their types cannot be compared."""


def _compare(
    numbers: Callable[[Decimal, Decimal], bool], spans: Callable[[Span, Span], bool], texts: Callable[[str, str], bool]
) -> Comparison:
    def test(value: Value, wanted: Value) -> bool | None:
        if value.number is not None and wanted.number is not None:
            return numbers(value.number, wanted.number)
        if value.span and wanted.span:
            return spans(value.span, wanted.span)
        return texts(value.text, wanted.text) if value.is_text and wanted.is_text else None

    return test


def _is_equal(value: Value, wanted: Value) -> bool | None:
    """Compare for equality; a stored text, such as a title, may equal a wanted number or date by its text."""
    if value.is_text:
        return value.text == wanted.text
    return _IS_SAME(value, wanted)


_IS_SAME = _compare(lambda a, b: a == b, lambda a, b: b[0] <= a[0] and a[1] <= b[1], lambda a, b: a == b)
_TESTS: dict[str, Comparison] = {
    "<": _compare(lambda a, b: a < b, lambda a, b: a[1] <= b[0], lambda a, b: a < b),
    "<=": _compare(lambda a, b: a <= b, lambda a, b: a[1] <= b[1], lambda a, b: a <= b),
    ">": _compare(lambda a, b: a > b, lambda a, b: a[0] >= b[1], lambda a, b: a > b),
    ">=": _compare(lambda a, b: a >= b, lambda a, b: a[0] >= b[0], lambda a, b: a >= b),
    "~": lambda value, wanted: wanted.text in value.text,
}


def year_of(value: Any) -> int | None:
    span = read_span(value.strip()) if isinstance(value, str) else None
    return span[0].year if span else value if isinstance(value, int) else None


def comparison_of(operator: str) -> Comparison:
    """Return the comparison of an operator; `!=` is the opposite of that of `=`."""
    return _TESTS.get(operator, _is_equal)


def matcher_of(operator: str, wanted: Iterable[Value]) -> Callable[[Value], bool]:
    """Return the test whether a stored value matches one of the wanted values; see `comparison_of` for `!=`."""
    test, others = comparison_of(operator), list(dict.fromkeys(wanted))
    texts = {other.text for other in others}

    def is_match(value: Value) -> bool:
        if test is _is_equal and value.is_text:  # one look-up, since a filter may list hundreds of values
            return value.text in texts
        return any(test(value, other) is True for other in others)

    return is_match


def passes(condition: Filter, columns: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Return whether one document passes a filter; a document without a value in its field does not.

    Blank text, such as an empty cell of a table, is not a value.

    Args:
        columns: values of `COLUMNS`; None or "" is missing.
        metadata: from `flatten_metadata`.
    """
    matches = matcher_of(condition.operator, map(read_value, condition.values))
    read = map(read_value, each_value(_find_value(condition.field, columns, metadata)))
    held = [value for value in read if value.text]
    is_found = any(map(matches, held))
    return bool(held) and is_found != (condition.operator == "!=")


def _find_value(field: str, columns: Mapping[str, Any], metadata: Mapping[str, Any]) -> Any:
    """Return the value of a field of one document; None if it has none, or several differ in the case of letters."""
    if (name := _spelled(field, (*columns, *metadata))) is None:
        derived = _spelled(field, DERIVED)
        if derived is None:
            return metadata.get(field.removeprefix("metadata."))
        dated = columns["creation_date"] or next((metadata[key] for key in DATED if key in metadata), None)
        return dated if derived == "date" else year_of(dated)
    return columns[name] or None if name in columns else metadata[name]


def _spelled(name: str, known: Iterable[str]) -> str | None:
    """Return the spelling of a name among those known, exact or but for case; None without exactly one."""
    names = [*known]
    folded = [other for other in names if other.casefold() == name.casefold()]
    return name if name in names else folded[0] if len(folded) == 1 else None
