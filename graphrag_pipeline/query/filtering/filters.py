"""Metadata filters on documents, such as "year>=2024" and "source=reuters,bbc".

A filter is FIELD OPERATOR VALUE. Fields are the documents' columns and the keys of their metadata, nested ones by
dotted path. `metadata.KEY` is a key that has the name of a column. If the metadata has no `year` or `date`, they come
from the creation date, or from the first field of `DATED` in the metadata.

Values are compared by type: numbers as numbers, ISO dates as spans of time, and everything else as text without regard
to case. So "date<=2024" includes all of 2024. `=` and `!=` take several values, separated by commas; "in" is the same
as "=". `~` means contains. A list matches if one of its elements does. A missing value passes `!=` only. A document
must pass all filters. Keep out: records made from documents (`document_mask.py`).
"""

from __future__ import annotations

import csv
import difflib
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from graphrag_pipeline.errors import PipelineError

COLUMNS = ("id", "title", "path", "record", "creation_date")
DATED = ("date", "published", "published_at", "publication_date", "created", "created_at", "timestamp")
"""Metadata fields with a document's date, in order of precedence, if no document has a creation date."""
_DERIVED = ("date", "year")
_MAX_LISTED = 30
_MAX_EXAMPLES = 3

_FILTER = re.compile(r"\s*([^=!<>~]*?)\s*(!=|<=|>=|==|=|<|>|~)(.*)", re.DOTALL)
_IN = re.compile(r"\s*(\S.*?)\s+in\s+(.*)", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
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
    match = _FILTER.fullmatch(text)
    field, operator, written = match.groups() if match else ("", "", "")
    if match is None and (listed := _IN.fullmatch(text)):
        field, operator, written = listed.group(1), "=", listed.group(2)
    values = _read_values(written) if operator in ("=", "==", "!=") else (_unquote(written.strip()),)
    if not field or not written.strip():
        raise PipelineError(
            f"filter {text!r}: write FIELD OPERATOR VALUE, such as year>=2024 or source=reuters,bbc; operators: "
            "= != < <= > >= ~ (contains)"
        )
    return Filter(text.strip(), field, operator.replace("==", "="), values)


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


# ------------------------------------------------------------------------------------------------------------ documents


@dataclass(frozen=True)
class StoredField:
    """The values of a field: document i has `values[codes[i]]`, None for a missing value."""

    codes: np.ndarray
    values: Sequence[Any]


class DocumentFields:
    """Fields of the documents, for filters.

    Args:
        documents: the contract table.
    """

    def __init__(self, documents: pa.Table) -> None:
        self._documents = documents
        metadata = self._column("metadata")
        self._codes = metadata.codes
        self._records = [dict(_flatten(_read_json(text))) for text in metadata.values]
        self._keys = sorted({key for record in self._records for key in record})

    @property
    def names(self) -> list[str]:
        """Names of all fields, those of metadata last."""
        derived = [name for name in _DERIVED if name not in self._keys and self._dated]
        return [*COLUMNS, *derived, *(key for key in self._keys if key not in COLUMNS)]

    def mask_of(self, condition: Filter) -> np.ndarray:
        """Return which documents pass, bool (n documents,).

        Raises:
            PipelineError: the field is unknown, or the filter's value cannot be compared with any of its values.
        """
        if not len(self._codes):
            return np.zeros(0, dtype=bool)
        field = self._find(condition)
        wanted = [_read(value) for value in condition.values]
        held = [[_read(value) for value in _each(stored)] for stored in field.values]
        if condition.operator != "~":
            _check_comparable(condition, wanted, held)
        test = _TESTS.get(condition.operator, _is_equal)
        found = [any(test(value, other) is True for value in of for other in wanted) for of in held]
        is_found = np.array(found, dtype=bool)[field.codes]
        return ~is_found if condition.operator == "!=" else is_found

    def stored(self, name: str) -> StoredField:
        """Return the values of a column or metadata key; all are missing if the name is unknown."""
        return self._column(name) if name in COLUMNS else self._of_metadata(name)

    def stored_or_derived(self, name: str) -> StoredField:
        """Return the values of one of `names`; those of `date` and `year` come from the documents' dates."""
        if name in COLUMNS or name in self._keys or not self._dated:
            return self.stored(name)
        return self._derive(name, self._dated)

    def _derive(self, name: str, dated: StoredField) -> StoredField:
        if name == "year":
            return StoredField(dated.codes, [_year_of(value) for value in dated.values])
        return dated

    def _find(self, condition: Filter) -> StoredField:
        name = self._named(condition.field)
        if name in self.names:
            return self.stored_or_derived(name)
        key = name.removeprefix("metadata.")
        if key in self._keys:
            return self._of_metadata(key)
        if name.casefold() in _DERIVED:
            raise PipelineError(
                f"filter {condition.text!r}: no document has a date: neither a creation date nor, in its metadata, "
                f"{', '.join(DATED)} or {name.casefold()}{self._near(name)}"
            )
        raise PipelineError(f"filter {condition.text!r}: documents have no field {condition.field!r}{self._near(name)}")

    def _named(self, name: str) -> str:
        """Return the spelling of a field that differs in case only, else the name."""
        folded = [known for known in self.names if known.casefold() == name.casefold()]
        return name if name in self.names or len(folded) != 1 else folded[0]

    def _near(self, name: str) -> str:
        names = self.names
        close = difflib.get_close_matches(name.casefold(), [known.casefold() for known in names], n=1, cutoff=0.6)
        guess = "".join(f"; did you mean {known!r}? There" for known in names if known.casefold() in close)
        more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
        return f"{guess or '; there'} are {', '.join(names[:_MAX_LISTED])}{more}"

    def _of_metadata(self, key: str) -> StoredField:
        return StoredField(self._codes, [record.get(key) for record in self._records])

    def _column(self, name: str) -> StoredField:
        encoded = self._documents[name].combine_chunks().dictionary_encode()
        codes = np.asarray(encoded.indices.fill_null(len(encoded.dictionary)))
        return StoredField(codes, [*encoded.dictionary.to_pylist(), None])

    @property
    def _dated(self) -> StoredField | None:
        """Dates of the documents: the creation date, else the first of `DATED` in the metadata; None without either."""
        if self._documents["creation_date"].null_count < len(self._documents):
            return self._column("creation_date")
        return next((self._of_metadata(key) for key in DATED if key in self._keys), None)


def _read_json(text: str | None) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return {}  # the metadata of an import may be any text


def _flatten(values: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items() if isinstance(values, dict) else ():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", value


def _each(value: Any) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    return [element for element in values if element is not None]


# --------------------------------------------------------------------------------------------------------------- values

Span = tuple[datetime, datetime]


@dataclass(frozen=True)
class _Value:
    """A value to compare: as a number, as a span of time (start, end exclusive), and as folded text."""

    text: str
    number: float | None = None
    span: Span | None = None

    @property
    def is_text(self) -> bool:
        return self.number is None and self.span is None


def _read(value: Any) -> _Value:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _Value(str(value), number=float(value))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    stripped = text.strip()
    number = float(stripped) if _NUMBER.fullmatch(stripped) else None
    return _Value(unicodedata.normalize("NFKC", stripped).casefold(), number, read_span(stripped))


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


def _year_of(value: Any) -> int | None:
    span = read_span(value.strip()) if isinstance(value, str) else None
    return span[0].year if span else value if isinstance(value, int) else None


Comparison = Callable[[_Value, _Value], "bool | None"]
"""Comparison of a stored value with a wanted one; None if their types cannot be compared."""


def _compare(
    numbers: Callable[[float, float], bool], spans: Callable[[Span, Span], bool], texts: Callable[[str, str], bool]
) -> Comparison:
    def test(value: _Value, wanted: _Value) -> bool | None:
        if value.number is not None and wanted.number is not None:
            return numbers(value.number, wanted.number)
        if value.span and wanted.span:
            return spans(value.span, wanted.span)
        return texts(value.text, wanted.text) if value.is_text and wanted.is_text else None

    return test


def _is_equal(value: _Value, wanted: _Value) -> bool | None:
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


def _check_comparable(condition: Filter, wanted: Sequence[_Value], held: Sequence[Sequence[_Value]]) -> None:
    test = _TESTS.get(condition.operator, _is_equal)
    values = list(dict.fromkeys(value for of in held for value in of))
    for other, written in zip(wanted, condition.values, strict=True):
        is_whole = len(wanted) > 1 and written == condition.values[-1]  # "a, b" as a whole may not compare
        if values and not is_whole and all(test(value, other) is None for value in values):
            examples = ", ".join(repr(value.text) for value in values[:_MAX_EXAMPLES])
            raise PipelineError(
                f"filter {condition.text!r}: {written!r} cannot be compared with the values of {condition.field!r}, "
                f"such as {examples}; numbers compare with numbers, dates (2024, 2024-05, 2024-05-31) with dates"
            )
