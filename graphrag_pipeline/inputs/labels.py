"""Labels of a document: its front matter, lines such as "Owner: Ana", and tables of two columns at its top.

Labels become metadata of the document, so that it can be filtered by them, and its date. Keep out: entities
(`indexing/document_entities.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import yaml

from graphrag_pipeline.filters import DATED
from graphrag_pipeline.text.dates import find_day
from graphrag_pipeline.text.structure import FRONT_MATTER, HIDDEN, TABLE, Block, Structure

MAX_DATE = 40
"""Characters of a date."""
N_BLOCKS = 6
"""Blocks at the top of a document among which its labels begin; they end at the first block without one."""
MAX_WORDS, MAX_VALUE = 4, 120
"""Words of a label and characters of a value; more are a sentence with a colon."""

_FENCE = re.compile(r"\A---.*|^(?:---|\.\.\.)[ \t]*\Z", re.MULTILINE)
_SENTENCES = re.compile(r"[^\W\d]{2}[.!?]\s")
_NOT_NAME = re.compile(r"[^\w]+")


def read_front_matter(text: str, structure: Structure) -> dict[str, Any]:
    """Return the values of a document's front matter; {} without one, or if it is no mapping of YAML."""
    first = next(iter(structure.blocks), None)
    if first is None or first.kind != FRONT_MATTER:
        return {}
    try:
        values = yaml.safe_load(_FENCE.sub("", text[first.start : first.end]))
    except yaml.YAMLError:
        return {}
    return {str(key): value for key, value in values.items()} if isinstance(values, dict) else {}


def read_labels(structure: Structure) -> dict[str, str]:
    """Return label -> value of the lines and tables at the top of a document, as they are written."""
    labels: dict[str, str] = {}
    for number, block in enumerate(block for block in structure.blocks if block.kind not in (HIDDEN, FRONT_MATTER)):
        found = {label: value for label, value in _pairs_of(block) if _is_label(label, value)}
        if (number >= N_BLOCKS and not labels) or (labels and not found):
            break
        labels = found | labels
    return labels


def _is_label(label: str, value: str) -> bool:
    is_name = label[:1].isalpha() and len(label.split()) <= MAX_WORDS  # 09:02 is a time in a table of events
    return is_name and 0 < len(value) <= MAX_VALUE and not _SENTENCES.search(value)


def _pairs_of(block: Block) -> Iterator[tuple[str, str]]:
    if block.kind == TABLE and all(len(row) == 2 for row in block.rows):
        yield from ((label.strip().rstrip(":"), value.strip()) for label, value in block.rows)
    else:
        yield from ((label.strip(), value.strip()) for label, value in block.labels)


def key_of(label: str) -> str:
    """Return a label as a key of metadata: "Incident commander" is `incident_commander`."""
    return _NOT_NAME.sub("_", label.casefold()).strip("_")


def find_date(
    front_matter: dict[str, Any], labels: dict[str, str], title: str, stem: str, order: tuple[str, ...]
) -> date | None:
    """Return the date of a document from the first source that has one.

    Args:
        order: of `front_matter`, `labels`, `title` and `file_name`.
    """
    texts = {
        "front_matter": _dated(front_matter),
        "labels": _dated(labels),
        "title": [title],
        "file_name": [stem.replace("_", " ")],
    }
    read = {"front_matter": _read_day, "labels": _read_day, "title": find_day, "file_name": find_day}
    days = (read[source](text) for source in order for text in texts[source])
    return next((day for day in days if day), None)


def find_unread_date(values: dict[str, Any]) -> str:
    """Return the first label of a date, with its value, that names no day; "" without one."""
    by_key = _by_key(values)
    unread = (key for key in DATED if by_key.get(key) and not _read_day(by_key[key]))
    return next((f"{key}: {by_key[key]}" for key in unread), "")


def _read_day(text: str) -> date | None:
    """Return the day in the value of a label: the first that it writes in full, else the one that it is."""
    return find_day(text) or _parse_day(text)


def _parse_day(text: str) -> date | None:
    """Return the day that a whole value is, such as "3 Feb 2026"; None if a part is missing, or which is the month."""
    from dateutil.parser import parse

    found = set()
    for default in (datetime(1904, 1, 1), datetime(2028, 12, 28)):
        for is_day_first in (True, False):
            try:
                found.add(parse(text[:MAX_DATE], default=default, dayfirst=is_day_first).date())
            except (ValueError, OverflowError):
                return None
    return found.pop() if len(found) == 1 else None


def _dated(values: dict[str, Any]) -> list[str]:
    """Return the values as text, those of fields with a date first."""
    by_key = _by_key(values)
    return [by_key[key] for key in DATED if key in by_key] + [text for key, text in by_key.items() if key not in DATED]


def _by_key(values: dict[str, Any]) -> dict[str, str]:
    return {key_of(key): str(value) for key, value in values.items() if not isinstance(value, dict | list)}
