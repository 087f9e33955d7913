"""Records `("entity"<|>NAME<|>TYPE<|>DESCRIPTION)` in extraction replies, in the many variants that models write.

Each reply is parsed alone. Accepted variants: names with or without quotes, any case, full-width punctuation, other
bars and brackets in delimiters, code fences, prose around records, `##` or new lines or nothing between records, a
missing closing bracket, the end mark at any place, an unknown first word if the number of fields decides the kind, and
JSON instead of records, with objects at every depth and many spellings of keys. A record that cannot be used is left
out and counted by reason, also a last record that was cut off. Repeats within a reply are left out.

The reply is split at its delimiters. A part between two delimiters is a field. The head of the next record, if there is
one, is at the end of the part. No string raises an error, and the time is linear, because a head is looked for in a
bounded number of characters.

Keep out: prompts, the conversation, and which records are about the passage (`kept_records.py`).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.models.reply_json import clean_text, read_json, strip_fences
from graphrag_pipeline.text.late_patterns import late_re

MAX_NAME, MAX_TYPE, MAX_TEXT = 400, 80, 20_000  # characters
LEAST_SENTENCE = 7  # words
MIN_STRENGTH, MAX_STRENGTH, DEFAULT_STRENGTH = 0.1, 10.0, 1.0
UNKNOWN = "UNKNOWN"
STATUSES = ("TRUE", "FALSE", "SUSPECTED")
REPEATED = "repeated"
"""The reason by which records are counted that a reply repeats."""

_QUOTES = "\"'\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f\uff02\uff07*_`"
_NOTHING = {"", "NONE", "N/A", "NA", "NULL", "UNKNOWN", "NOT SPECIFIED", "-"}
_NUMBER = late_re(r"[-+\u2212]?\d{1,15}(?:[.,]\d{1,6})?(?:[eE][-+]?\d{1,3})?")
_STRENGTH = late_re(r"[\s\"']*\d{1,3}(?:[.,]\d{1,4})?(?:\s?/\s?\d{1,3})?[\s\"')\]]*")

_N_FIELDS = {"entity": 3, "relationship": 4, "claim": 8}
"""Fields of a record; the last one may be missing."""
_FORMAT = {("NAME", "TYPE"), ("SOURCE", "TARGET"), ("SUBJECT", "OBJECT")}
"""First fields of records that repeat the format of a prompt."""
_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "claim": (
        ("subject", "subject_entity", "entity"),
        ("object", "object_entity"),
        ("type", "claim_type", "category"),
        ("status", "claim_status"),
        ("start", "start_date", "claim_start_date"),
        ("end", "end_date", "claim_end_date"),
        ("description", "claim_description", "claim"),
        ("source", "source_text", "claim_source", "quote"),
    ),
    "relationship": (
        ("source", "source_entity", "source_name", "from", "head", "subject"),
        ("target", "target_entity", "target_name", "to", "tail", "object"),
        ("description", "relationship_description", "relationship", "relation", "type"),
        ("strength", "relationship_strength", "weight", "score"),
    ),
    "entity": (
        ("name", "entity_name", "entity", "title", "id"),
        ("type", "entity_type", "category", "label"),
        ("description", "entity_description", "summary"),
    ),
}
"""Kind -> for each field, the keys of JSON objects that may hold it."""

# `re` finds a pattern that starts with a character set several times as fast as one that starts with alternatives.
_LEFT = r"[<\uff1c\u3008&](?:(?<!&)|(?i:lt;))"
_RIGHT, _BAR = "(?:[>\uff1e\u3009]|&gt;)", r"\\?[|\uff5c\u4e28\u00a6]"
_DELIMITER = late_re(rf"{_LEFT} ?{_BAR}{{1,2}} ?{_RIGHT}")
_END_MARK = late_re(rf"{_LEFT} ?/?{_BAR} ?(?i:COMPLETED?)\b ?(?:{_BAR})? ?(?:{_RIGHT})?")
_OTHER_MARK = late_re(rf"{_LEFT} ?{_BAR} ?\w[\w ]{{0,20}}{_BAR} ?{_RIGHT}\s*\Z")  # in another language, at the end
_PLACEHOLDERS = {"{record_delimiter}": "##", "{tuple_delimiter}": "<|>", "{completion_delimiter}": "<|COMPLETE|>"}
_FULL_WIDTH = str.maketrans({"\uff08": "(", "\uff09": ")", "\uff03": "#", "\u3014": "(", "\u3015": ")"})
_QUOTED = f"[{re.escape(_QUOTES)}]{{0,4}}"
_LEAD = r"(?:(?<=[\n)\]])|(?<=##)|(?=[(\[]))\s{0,8}(?:(?:[-*\u2022]|\d{1,4}[.)])\s)?\s{0,4}"
_HEAD = late_re(rf"{_LEAD}([(\[]?)\s{{0,4}}{_QUOTED}(\w{{1,24}}){_QUOTED}[:,]?\s{{0,4}}\Z")
_SUBJECT_HEAD = late_re(r"(?:(?<=[\n)])|(?<=##))\s{0,8}(\()\s{0,4}([^\n]{1,200}?)\s{0,4}\Z")
_LOOK_BACK = {_HEAD: 60, _SUBJECT_HEAD: 240}  # characters before a delimiter in which a record may start
_MAY_START = frozenset("\n()[]#")  # precede or start a record
_CLOSED = rf"[)\]]{_QUOTED}[ \t]*+[,;.\u3002]?"
_ENDS = (late_re(rf"{_CLOSED}\s*+##"), late_re(rf"{_CLOSED}[ \t]*+(?:\n|\Z)"), late_re(r"(?<!\w)##"))
_BARE_END = late_re(r"\n|##")
_OPENED = late_re(rf"[(\[]\s{{0,4}}{_QUOTED}\w{{0,24}}{_QUOTED}\s{{0,4}}(?:<\|?)?\s*\Z")
_EMPTY_JSON = late_re(r'(?=[\[{])(?:[\s\[\]{},]|"[^"\n]{0,60}"\s{0,8}:)++')  # brackets and keys, no value


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


R = TypeVar("R", ExtractedEntity, ExtractedRelationship, ExtractedClaim)


@dataclass(frozen=True)
class ExtractionReply:
    """The records of one reply.

    Attributes:
        entities, relationships, claims: records in the order of the reply.
        is_complete: whether the reply marks its end: by an end mark, or as complete JSON.
        is_bare: whether it holds only end marks, or only empty JSON.
        problems: reason -> number of records that were left out or changed.
    """

    entities: tuple[ExtractedEntity, ...]
    relationships: tuple[ExtractedRelationship, ...]
    claims: tuple[ExtractedClaim, ...]
    is_complete: bool
    is_bare: bool
    problems: Mapping[str, int]

    @property
    def n_records(self) -> int:
        return len(self.entities) + len(self.relationships) + len(self.claims)


def parse_graph_reply(reply: str) -> ExtractionReply:
    """Read entities and relationships from one reply."""
    return _parse(reply, ("entity", "relationship"))


def parse_claims_reply(reply: str) -> ExtractionReply:
    """Read claims from one reply; the first word "claim" may be missing, as in Microsoft GraphRAG's format."""
    return _parse(reply, ("claim",))


def _parse(reply: str, kinds: tuple[str, ...]) -> ExtractionReply:
    problems: Counter[str] = Counter()
    text = strip_fences(clean_text(reply)).translate(_FULL_WIDTH)
    for name, mark in _PLACEHOLDERS.items():
        text = text.replace(name, mark)
    text, n_end_marks = _END_MARK.subn("\n##\n", text)
    text, n_other_marks = _OTHER_MARK.subn("\n##\n", text)
    is_complete = bool(n_end_marks or n_other_marks)
    text = _DELIMITER.sub("<|>", text)
    rows = list(_split_records(text, kinds, problems))
    if not rows and "<|>" not in text:
        rows, is_json = iterate_objects(reply, kinds)
        is_complete = is_complete or is_json
    found: dict[str, list] = {"entity": [], "relationship": [], "claim": []}
    for kind, fields in rows:
        record = read_record(kind, fields, problems)
        if record is not None:
            found[kind].append(record)
    rest = text.replace("##", "").strip()
    is_bare = not any(map(str.isalnum, rest)) or bool(_EMPTY_JSON.fullmatch(rest))
    entities, relationships, claims = (_drop_repeats(found[kind], problems) for kind in found)
    return ExtractionReply(entities, relationships, claims, is_complete, is_bare, dict(sorted((+problems).items())))


def _drop_repeats(records: list[R], problems: Counter[str]) -> tuple[R, ...]:
    distinct = tuple(dict.fromkeys(records))
    if len(distinct) < len(records):
        problems[REPEATED] += len(records) - len(distinct)
    return distinct


# ------------------------------------------------------------------------------------------ where records start and end


def _split_records(text: str, kinds: tuple[str, ...], problems: Counter[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield (kind, fields) of each record; `text` has plain delimiters, and separators instead of end marks."""
    head = _SUBJECT_HEAD if kinds == ("claim",) else _HEAD
    found: list[tuple[str, bool, list[str]]] = []  # kind ("" if unknown), whether a bracket opens it, fields
    *parts, last = f"\n{text}".split("<|>")
    for part in parts:
        start = max(0, len(part) - _LOOK_BACK[head])
        match = head.search(part, start) if not _MAY_START.isdisjoint(part[max(0, start - 2) :]) else None
        kind = _kind_of(match.group(2)) if match else ""
        if match and head is _HEAD and not (kind or match.group(1)):
            match = None
        if found:
            found[-1][2].append(part[: match.start()] if match else part)
        if match and head is _SUBJECT_HEAD:
            found.append(("claim", True, [] if kind else [match.group(2)]))
        elif match:
            found.append((kind, bool(match.group(1)), []))
    if found:
        found[-1][2].append(last)
    for number, (kind, is_open, fields) in enumerate(found, 1):
        if not _cut_at_end(fields, kind, is_open) and is_open and number == len(found):
            problems["record cut off"] += 1
            continue
        kind = kind or _guess_kind(fields)
        if kind in kinds:
            yield kind, fields
        else:
            problems["unknown record"] += 1
    if found and _OPENED.search(text[-80:]):
        problems["record cut off"] += 1


def _kind_of(word: str) -> str:
    """Return the kind that the first word of a record names; "" for another word."""
    name = word.strip(_QUOTES + " ").casefold()
    singular = {"entities": "entity", "relation": "relationship"}.get(name, name.removesuffix("s"))
    return singular if singular in _N_FIELDS else ""


def _cut_at_end(fields: list[str], kind: str, is_open: bool) -> bool:
    """Cut the text after a record from its fields, in place; return whether an end was found.

    A closing bracket ends a record only in its last field, so a description may contain one.
    """
    n = min(len(fields), _N_FIELDS.get(kind, 3)) - 1
    tail = "<|>".join(fields[n:])
    end = next(filter(None, (pattern.search(tail) for pattern in (_ENDS if is_open else (_BARE_END,)))), None)
    if end:
        fields[n:] = tail[: end.start()].split("<|>")
    return end is not None


def _guess_kind(fields: Sequence[str]) -> str:
    """Return the kind of a record with an unknown first word: entity for 3 fields, relationship for 4 with a number."""
    if len(fields) == 3:
        return "entity"
    return "relationship" if len(fields) == 4 and re.search(r"\d", fields[3]) else ""


def iterate_objects(reply: str, kinds: tuple[str, ...]) -> tuple[list[tuple[str, list[str]]], bool]:
    """Find records in the JSON of a reply.

    Returns:
        (kind, fields) in the order of the reply, and whether the reply holds records or empty JSON.
    """
    values = read_json(reply)
    found: list[tuple[str, list[str]]] = []
    stack = list(reversed(values))
    while stack:
        value = stack.pop()
        row = _read_object(value, kinds) if isinstance(value, dict) else _read_list(value, kinds)
        if row is not None:
            found.append(row)
        else:
            inner = list(value.values()) if isinstance(value, dict) else value
            stack += [item for item in reversed(inner) if isinstance(item, dict | list)]
    empty = (value.values() if isinstance(value, dict) else value for value in values)
    return found, bool(found) or any(all(item == [] for item in items) for items in empty)


def _read_object(value: Mapping[str, Any], kinds: tuple[str, ...]) -> tuple[str, list[str]] | None:
    keys = {str(key).strip().casefold().replace(" ", "_"): item for key, item in value.items()}
    for kind, names in _KEYS.items():
        fields = [next((_as_text(keys[name]) for name in group if name in keys), "") for group in names]
        n_needed = 2 if kind == "relationship" else 1
        if kind in kinds and all(fields[:n_needed]) and any(fields[n_needed:]):
            return kind, fields
    return None


def _read_list(value: list, kinds: tuple[str, ...]) -> tuple[str, list[str]] | None:
    kind = value[0].casefold() if value and isinstance(value[0], str) else ""
    return (kind, [_as_text(item) for item in value[1:]]) if kind in kinds else None


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(item for item in value if isinstance(item, str))
    return str(value) if isinstance(value, str | int | float) else ""


# --------------------------------------------------------------------------------------------------------------- fields


def read_record(
    kind: str, fields: Sequence[str], problems: Counter[str]
) -> ExtractedEntity | ExtractedRelationship | ExtractedClaim | None:
    """Return the record of some fields as models write them, cleaned for storage; None if it cannot be used.

    Args:
        problems: counts what was left out or changed, by a reason for people.
    """
    n = _N_FIELDS[kind]
    if len(fields) < n - 1 or (kind == "relationship" and len(fields) == 3 and _STRENGTH.fullmatch(fields[2])):
        problems["too few fields"] += 1  # a strength in the place of the description: an end is missing
        return None
    if kind == "entity" and len(fields) > n and _STRENGTH.fullmatch(fields[-1]):
        problems["strength of an entity"] += 1
        fields = fields[:-1]
    n_names = 2 if kind == "relationship" else 1
    names = [read_name(field, problems) for field in fields[:n_names]]
    if tuple(clean_name(field).upper() for field in fields[:2]) in _FORMAT:
        problems["format repeated"] += 1
        return None
    if not all(names):
        return None
    first, second = str(names[0]), str(names[-1])
    # A delimiter too many is part of the description.
    if kind == "entity":
        return ExtractedEntity(first, read_type(fields[1], problems), read_text("<|>".join(fields[2:]), problems))
    before, text, last = fields[: n - 2], "<|>".join(fields[n - 2 : max(n - 1, len(fields) - 1)]), fields[-1]
    last = last if len(fields) >= n else ""
    if kind == "relationship":
        return ExtractedRelationship(first, second, read_text(text, problems), read_strength(last, problems))
    target, status = clean_name(before[1]), clean_name(before[3][:MAX_TYPE]).upper()
    problems["status not known"] += status not in STATUSES
    return ExtractedClaim(
        first,
        target if 0 < len(target) <= MAX_NAME and normalize_title(target) else "NONE",
        read_type(before[2], problems),
        status if status in STATUSES else "SUSPECTED",
        _read_date(before[4]),
        _read_date(before[5]),
        read_text(text, problems),
        read_text(last, problems),
    )


def clean_name(field: str) -> str:
    """Return a name on one line, without quotes, stars, brackets or marks around it."""
    edges = _QUOTES + " \t\r\n"
    name = " ".join(clean_text(field).split()).strip(edges)
    if name[:1] + name[-1:] in ("<>", "[]", "\uff1c\uff1e"):
        name = name[1:-1].strip(edges)
    return name


def read_name(field: str, problems: Counter[str]) -> str | None:
    """Return a name; None, counted, if it is empty, over `MAX_NAME` characters, or a sentence.

    A sentence ends with a stop, and half of its many words begin with a small letter.
    """
    name = clean_name(field)
    words = name.split()
    is_long = len(words) >= LEAST_SENTENCE and 2 * sum(word[0].islower() for word in words) >= len(words)
    if len(name) > MAX_NAME:
        problems["name too long"] += 1
    elif not normalize_title(name):
        problems["no name"] += 1
    elif is_long and name[-1] in ".!?":
        problems["sentence instead of a name"] += 1
    else:
        return name
    return None


def read_type(field: str, problems: Counter[str]) -> str:
    """Return a type in upper case; `UNKNOWN` if it is empty or, counted, over `MAX_TYPE` characters."""
    name = unicodedata.normalize("NFKC", clean_name(field)).upper()
    problems["type too long"] += len(name) > MAX_TYPE
    return name if 0 < len(name) <= MAX_TYPE else UNKNOWN


def read_text(field: str, problems: Counter[str]) -> str:
    """Return a description or quotation without outer quotes; cut, counted, at `MAX_TEXT` characters.

    One of the quotes may be missing.
    """
    text = clean_text(clean_text(field).removesuffix("\n##"))
    if len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    elif text.count('"') == 1:  # the other quotation mark is beyond a delimiter
        text = text.strip('"').strip()
    problems["text cut"] += len(text) > MAX_TEXT
    return clean_text(text[:MAX_TEXT]) if len(text) > MAX_TEXT else text


def read_strength(field: str, problems: Counter[str]) -> float:
    """Return the first number of a field ("9", "9.0", "9/10") within the range; 1 without a number; changes counted."""
    match = _NUMBER.search(field[:80])
    if not match:
        problems["strength not a number" if field.strip() else "strength missing"] += 1
        return DEFAULT_STRENGTH
    strength = float(match.group(0).replace(",", ".").replace("\u2212", "-"))
    problems["strength out of range"] += not MIN_STRENGTH <= strength <= MAX_STRENGTH
    return min(max(strength, MIN_STRENGTH), MAX_STRENGTH)


def _read_date(field: str) -> str | None:
    """Return a date as written; None if the field holds no date."""
    date = clean_name(field[:MAX_TYPE])
    return date if date.upper() not in _NOTHING and any(c.isdigit() for c in date) else None
