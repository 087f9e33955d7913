"""Fields of extraction replies: names, types, strengths and dates as models write them, cleaned for storage.

Each function takes the text between two delimiters, or a JSON value as text, and returns the value of the row. Each
change is counted in `problems`, under a reason for people.

Keep out: the boundaries of fields (`reply_records.py`).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.models.reply_json import clean_text
from graphrag_pipeline.text.late_patterns import late_re

MAX_NAME = 400  # characters
LEAST_SENTENCE = 7  # words
MAX_TEXT = 20_000
MAX_TYPE = 80
MIN_STRENGTH, MAX_STRENGTH, DEFAULT_STRENGTH = 0.1, 10.0, 1.0
UNKNOWN = "UNKNOWN"
STATUSES = ("TRUE", "FALSE", "SUSPECTED")

QUOTES = "\"'\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f\uff02\uff07*_`"
_EDGES = QUOTES + " \t\r\n"
_NUMBER = late_re(r"[-+\u2212]?\d{1,15}(?:[.,]\d{1,6})?(?:[eE][-+]?\d{1,3})?")
_NOTHING = {"", "NONE", "N/A", "NA", "NULL", "UNKNOWN", "NOT SPECIFIED", "-"}


@dataclass(frozen=True)
class ExtractedEntity:
    """An entity in one reply; `type` is upper case, `UNKNOWN` if the reply gives none."""

    name: str
    type: str
    description: str


@dataclass(frozen=True)
class ExtractedRelationship:
    """A relationship in one reply; `strength` is between `MIN_STRENGTH` and `MAX_STRENGTH`."""

    source: str
    target: str
    description: str
    strength: float


@dataclass(frozen=True)
class ExtractedClaim:
    """A claim in one reply; `object` is NONE without a name, `status` one of `STATUSES`, dates as written."""

    subject: str
    object: str
    type: str
    status: str
    start_date: str | None
    end_date: str | None
    description: str
    source_text: str


def read_entity(name: str, kind: str, description: str, problems: Counter[str]) -> ExtractedEntity | None:
    """Return the entity; None, counted in `problems`, if it has no usable name or repeats the format of the prompt."""
    title = read_name(name, problems)
    entity_type = read_type(kind, problems)
    if title is None:
        return None
    if (title.upper(), entity_type) == ("NAME", "TYPE"):
        problems["format repeated"] += 1
        return None
    return ExtractedEntity(title, entity_type, read_text(description, problems))


def read_relationship(
    source: str, target: str, description: str, strength: str, problems: Counter[str]
) -> ExtractedRelationship | None:
    """Return the relationship; None, counted, if an end has no usable name or it repeats the format of the prompt."""
    ends = read_name(source, problems), read_name(target, problems)
    if ends[0] is None or ends[1] is None:
        return None
    if (ends[0].upper(), ends[1].upper()) == ("SOURCE", "TARGET"):
        problems["format repeated"] += 1
        return None
    return ExtractedRelationship(ends[0], ends[1], read_text(description, problems), read_strength(strength, problems))


def read_claim(fields: list[str], problems: Counter[str]) -> ExtractedClaim | None:
    """Return the claim of eight fields in the order of `ExtractedClaim`; None, counted, without a usable subject."""
    subject = read_name(fields[0], problems)
    if subject is None:
        return None
    if subject.upper() == "SUBJECT":
        problems["format repeated"] += 1
        return None
    target = clean_name(fields[1])
    return ExtractedClaim(
        subject,
        target if 0 < len(target) <= MAX_NAME and normalize_title(target) else "NONE",
        read_type(fields[2], problems),
        read_status(fields[3], problems),
        read_date(fields[4]),
        read_date(fields[5]),
        read_text(fields[6], problems),
        read_text(fields[7], problems),
    )


def clean_name(field: str) -> str:
    """Return a name on one line, without quotes, stars, brackets or marks around it."""
    name = " ".join(clean_text(field).split()).strip(_EDGES)
    if name[:1] + name[-1:] in ("<>", "[]", "\uff1c\uff1e"):
        name = name[1:-1].strip(_EDGES)
    return name


def read_name(field: str, problems: Counter[str]) -> str | None:
    """Return a name; None, counted, if it is empty, over `MAX_NAME` characters, or a sentence."""
    name = clean_name(field)
    if len(name) > MAX_NAME:
        problems["name too long"] += 1
        return None
    if not normalize_title(name):
        problems["no name"] += 1
        return None
    if _is_sentence(name):
        problems["sentence instead of a name"] += 1
        return None
    return name


def _is_sentence(name: str) -> bool:
    """Whether a name is a sentence: it ends with a stop, and half of its many words begin with a small letter."""
    words = name.split()
    n_small = sum(word[0].islower() for word in words)
    return name[-1] in ".!?" and len(words) >= LEAST_SENTENCE and 2 * n_small >= len(words)


def read_type(field: str, problems: Counter[str]) -> str:
    """Return a type in upper case; `UNKNOWN` if it is empty or, counted, over `MAX_TYPE` characters."""
    name = unicodedata.normalize("NFKC", clean_name(field)).upper()
    if len(name) > MAX_TYPE:
        problems["type too long"] += 1
        return UNKNOWN
    return name or UNKNOWN


def read_text(field: str, problems: Counter[str]) -> str:
    """Return a description or quotation without outer quotes; cut, counted, at `MAX_TEXT` characters.

    One of the quotes may be missing.
    """
    text = clean_text(clean_text(field).removesuffix("\n##"))
    if len(text) > 1 and text[0] in QUOTES and text[-1] in QUOTES and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    elif text.count('"') == 1:  # the other quotation mark is beyond a delimiter
        text = text.strip('"').strip()
    if len(text) > MAX_TEXT:
        problems["text cut"] += 1
        text = clean_text(text[:MAX_TEXT])
    return text


def read_strength(field: str, problems: Counter[str]) -> float:
    """Return the first number of a field ("9", "9.0", "9/10") within the range; 1 without a number; changes counted."""
    match = _NUMBER.search(field[:80])
    if not match:
        problems["strength not a number" if field.strip() else "strength missing"] += 1
        return DEFAULT_STRENGTH
    strength = float(match.group(0).replace(",", ".").replace("\u2212", "-"))
    if not MIN_STRENGTH <= strength <= MAX_STRENGTH:
        problems["strength out of range"] += 1
        return min(max(strength, MIN_STRENGTH), MAX_STRENGTH)
    return strength


def read_status(field: str, problems: Counter[str]) -> str:
    """Return TRUE, FALSE or SUSPECTED; any other word, counted, becomes SUSPECTED."""
    status = clean_name(field[:MAX_TYPE]).upper()
    if status not in STATUSES:
        problems["status not known"] += 1
        return "SUSPECTED"
    return status


def read_date(field: str) -> str | None:
    """Return a date as written; None if the field holds no date."""
    date = clean_name(field[:MAX_TYPE])
    return date if date.upper() not in _NOTHING and any(c.isdigit() for c in date) else None
