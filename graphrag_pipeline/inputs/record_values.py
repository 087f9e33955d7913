"""Values of a structured record: nested objects by dotted path, and any value as text, number, date or canonical JSON.

Records come from csv (text only), JSON and Parquet (numbers, times, bytes, nested). Keep out: the meaning of columns
(`documents.py`), parsing files (`formats.py`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

_YEAR_OR_MONTH = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2]))?")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}(?:\.0+)?")

KeyPath = tuple[str, ...]


def exceeds_depth(value: Any, max_depth: int) -> bool:
    """Whether objects and lists are nested in each other more than `max_depth` deep; the value itself counts as one."""
    level = [value]
    for _ in range(max_depth):
        nested = (inner.values() if isinstance(inner, dict) else inner for inner in level)
        level = [child for inner in nested for child in inner if isinstance(child, dict | list | tuple)]
        if not level:
            return False
    return True


def find_column(values: dict[str, Any], column: str) -> KeyPath | None:
    """Return the keys that lead to a column: its literal name, else its dotted path into nested objects."""
    if column in values:
        return (column,)
    keys = tuple(column.split("."))
    inner: Any = values
    for key in keys:
        if not isinstance(inner, dict) or key not in inner:
            return None
        inner = inner[key]
    return keys


def value_of(values: dict[str, Any], column: str) -> Any:
    """Return the value of a column; None without it."""
    inner: Any = values
    for key in find_column(values, column) or ():
        inner = inner[key]
    return None if inner is values else inner


def without_columns(values: dict[str, Any], key_paths: set[KeyPath]) -> dict[str, Any]:
    """Return a copy without the values at these paths and without objects that become empty."""
    rest: dict[str, Any] = {}
    for key, value in values.items():
        if (key,) in key_paths:
            continue
        inner = {key_path[1:] for key_path in key_paths if key_path[0] == key}
        if inner:
            value = without_columns(value, inner)
            if not value:
                continue
        rest[key] = value
    return rest


def column_names(values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the dotted paths of all values."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from column_names(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def as_text(value: Any) -> str:
    """Return a value as text: text unchanged, "" for null, JSON for nested values."""
    if isinstance(value, str):
        return value
    plain = _plain(value)
    return "" if plain is None else plain if isinstance(plain, str) else canonical_json(plain)


def as_integer(value: Any) -> int | None:
    """Return a value as a whole number (7, 7.0, "7", " -7 "); None for other values."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    text = as_text(value).strip()
    return int(text.partition(".")[0]) if _INTEGER.fullmatch(text) else None


def as_iso_date(value: Any) -> str | None:
    """Return a value that is an ISO 8601 date or time, or a year or month; None for others, which stay metadata."""
    text = as_text(value).strip()
    if _YEAR_OR_MONTH.fullmatch(text):
        return text
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return None
    return text


def canonical_json(value: Any) -> str:
    """Return JSON that is equal for equal values: keys sorted, without spaces."""
    return json.dumps(_plain(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: other types as text, NaN and infinities as null."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)
