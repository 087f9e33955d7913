"""Records `("entity"<|>NAME<|>TYPE<|>DESCRIPTION)` in extraction replies, in the many variants that models write.

Each reply is parsed alone. Accepted variants: names with or without quotes, any case, full-width punctuation, other
bars and brackets in delimiters, code fences, prose around records, `##` or new lines or nothing between records, a
missing closing bracket, the end mark at any place, an unknown first word if the number of fields decides the kind, and
JSON instead of records. A record that cannot be used is left out and counted by reason, also a last record that was cut
off. Repeats within a reply are left out.

No string raises an error, and the time is linear: patterns start at delimiters and look at a bounded part of the text.

JSON replies of extraction: objects as fields of records, for many spellings of keys.

Objects are found at every depth: in a list, in lists under "entities" and "relationships", one object per line, or in
lists whose first item names the kind of record.

Keep out: prompts, the meaning of a type or a strength, the conversation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from graphrag_pipeline.engines.model.extraction.reply_fields import (
    QUOTES,
    ExtractedClaim,
    ExtractedEntity,
    ExtractedRelationship,
    read_claim,
    read_entity,
    read_relationship,
)
from graphrag_pipeline.models.reply_json import clean_text, read_json, strip_fences
from graphrag_pipeline.text.late_patterns import late_re

_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "entity": (
        ("name", "entity_name", "entity", "title", "id"),
        ("type", "entity_type", "category", "label"),
        ("description", "entity_description", "summary"),
    ),
    "relationship": (
        ("source", "source_entity", "source_name", "from", "head", "subject"),
        ("target", "target_entity", "target_name", "to", "tail", "object"),
        ("description", "relationship_description", "relationship", "relation", "type"),
        ("strength", "relationship_strength", "weight", "score"),
    ),
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
}
_N_NEEDED = {"entity": 1, "relationship": 2, "claim": 1}


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
    return found, bool(found) or any(_is_empty_graph(value) for value in values)


def _is_empty_graph(value: Any) -> bool:
    """Whether the JSON is [] or an object of empty lists."""
    items = value.values() if isinstance(value, dict) else value
    return all(item == [] for item in items)


def _read_object(value: Mapping[str, Any], kinds: tuple[str, ...]) -> tuple[str, list[str]] | None:
    keys = {str(key).strip().casefold().replace(" ", "_"): item for key, item in value.items()}
    for kind in ("claim", "relationship", "entity"):
        if kind in kinds:
            names = _KEYS[kind]
            fields = [next((_as_text(keys[name]) for name in group if name in keys), "") for group in names]
            if all(fields[: _N_NEEDED[kind]]) and any(fields[_N_NEEDED[kind] :]):
                return kind, fields
    return None


def _read_list(value: list, kinds: tuple[str, ...]) -> tuple[str, list[str]] | None:
    kind = value[0].casefold() if value and isinstance(value[0], str) else ""
    return (kind, [_as_text(item) for item in value[1:]]) if kind in kinds else None


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(item for item in value if isinstance(item, str))
    return str(value) if isinstance(value, int | float) else ""


REPEATED = "repeated"
"""The reason by which records are counted that a reply repeats."""

_N_FIELDS = {"entity": 3, "relationship": 4, "claim": 8}
_LEAST_FIELDS = {"entity": 2, "relationship": 3, "claim": 7}
_KINDS = {
    "entity": "entity", "entities": "entity", "relationship": "relationship", "relationships": "relationship",
    "relation": "relationship", "claim": "claim", "claims": "claim",
}  # fmt: skip

# `re` finds a pattern that starts with a character set several times as fast as one that starts with alternatives.
_LEFT = r"[<\uff1c\u3008&](?:(?<!&)|(?i:lt;))"
_RIGHT, _BAR = "(?:[>\uff1e\u3009]|&gt;)", r"\\?[|\uff5c\u4e28\u00a6]"
_DELIMITER = late_re(rf"{_LEFT} ?{_BAR}{{1,2}} ?{_RIGHT}")
_END_MARK = late_re(rf"{_LEFT} ?/?{_BAR} ?(?i:COMPLETED?)\b ?(?:{_BAR})? ?(?:{_RIGHT})?")
_OTHER_MARK = late_re(rf"{_LEFT} ?{_BAR} ?\w[\w ]{{0,20}}{_BAR} ?{_RIGHT}\s*\Z")  # in another language, at the end
_PLACEHOLDERS = {"{record_delimiter}": "##", "{tuple_delimiter}": "<|>", "{completion_delimiter}": "<|COMPLETE|>"}
_FULL_WIDTH = str.maketrans({"\uff08": "(", "\uff09": ")", "\uff03": "#", "\u3014": "(", "\u3015": ")"})
_QUOTED = f"[{re.escape(QUOTES)}]{{0,4}}"
_LEAD = r"(?:\A|(?<=[\n)\]])|(?<=##)|(?=[(\[]))\s{0,8}(?:(?:[-*\u2022]|\d{1,4}[.)])\s)?\s{0,4}"
_HEAD = late_re(rf"{_LEAD}([(\[]?)\s{{0,4}}{_QUOTED}(\w{{1,24}}){_QUOTED}[:,]?\s{{0,4}}\Z")
_SUBJECT_HEAD = late_re(r"(?:\A|(?<=[\n)])|(?<=##))\s{0,8}\(()\s{0,4}([^\n]{1,200}?)\s{0,4}\Z")
_MAY_START = late_re(r"[\n()\[\]#]")  # precedes or starts every record except the first
_LOOK_BACK = {_HEAD: 60, _SUBJECT_HEAD: 240}  # characters before a delimiter in which a record may start
_CLOSED = rf"[)\]]{_QUOTED}[ \t]*+[,;.\u3002]?"
_CLOSED_BEFORE_MARK = late_re(rf"{_CLOSED}\s*+##")
_CLOSED_LINE = late_re(rf"{_CLOSED}[ \t]*+(?:\n|\Z)")
_BARE = late_re(r"\n|##")
_SEPARATOR = late_re(r"(?<!\w)##")
_EMPTY_JSON = late_re(r'(?=[\[{])(?:[\s\[\]{},]|"[^"\n]{0,60}"\s{0,8}:)++')  # brackets and keys, no value
_STRENGTH = late_re(r"[\s\"']*\d{1,3}(?:[.,]\d{1,4})?(?:\s?/\s?\d{1,3})?[\s\"')\]]*")
_OPENED = late_re(rf"[(\[]\s{{0,4}}{_QUOTED}\w{{0,24}}{_QUOTED}\s{{0,4}}(?:<\|?)?\s*\Z")

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
        record = _read_record(kind, fields, problems)
        if record is not None:
            found[kind].append(record)
    return ExtractionReply(
        _drop_repeats(found["entity"], problems),
        _drop_repeats(found["relationship"], problems),
        _drop_repeats(found["claim"], problems),
        is_complete,
        _is_bare(text.replace("##", "").strip()),
        dict(sorted(problems.items())),
    )


def _is_bare(rest: str) -> bool:
    return not any(map(str.isalnum, rest)) or bool(_EMPTY_JSON.fullmatch(rest))


def _read_record(
    kind: str, fields: list[str], problems: Counter[str]
) -> ExtractedEntity | ExtractedRelationship | ExtractedClaim | None:
    is_ended = len(fields) == _LEAST_FIELDS[kind] and kind == "relationship" and _STRENGTH.fullmatch(fields[-1])
    if len(fields) < _LEAST_FIELDS[kind] or is_ended:  # a strength in the place of the description: an end is missing
        problems["too few fields"] += 1
        return None
    if kind == "entity":
        if len(fields) > _N_FIELDS[kind] and _STRENGTH.fullmatch(fields[-1]):
            problems["strength of an entity"] += 1
            fields = fields[:-1]
        return read_entity(fields[0], fields[1], "<|>".join(fields[2:]), problems)
    if kind == "relationship":
        strength = fields[-1] if len(fields) > 3 else ""
        return read_relationship(
            fields[0], fields[1], "<|>".join(fields[2 : max(3, len(fields) - 1)]), strength, problems
        )
    source_text = fields[-1] if len(fields) > 7 else ""
    return read_claim([*fields[:6], "<|>".join(fields[6 : max(7, len(fields) - 1)]), source_text], problems)


def _drop_repeats(records: list[R], problems: Counter[str]) -> tuple[R, ...]:
    distinct = tuple(dict.fromkeys(records))
    if len(distinct) < len(records):
        problems[REPEATED] += len(records) - len(distinct)
    return distinct


# ------------------------------------------------------------------------------------------ where records start and end


@dataclass(frozen=True)
class _Start:
    """The start of a record and of its fields, its kind ("" if unknown), and whether a bracket opens it."""

    start: int
    fields: int
    kind: str
    is_open: bool


def _split_records(text: str, kinds: tuple[str, ...], problems: Counter[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield (kind, fields) of each record; `text` has plain delimiters, and separators instead of end marks."""
    starts = list(_find_starts(text, kinds))
    for number, start in enumerate(starts):
        is_last = number + 1 == len(starts)
        body = text[start.fields : len(text) if is_last else starts[number + 1].start]
        inside = _cut_at_end(body, start, is_last)
        if inside is None:
            problems["record cut off"] += 1
            continue
        fields = inside.split("<|>")
        kind = start.kind or _guess_kind(fields)
        if kind in kinds:
            yield kind, fields
        else:
            problems["unknown record"] += 1
    if starts and _OPENED.search(text[-80:]):
        problems["record cut off"] += 1


def _find_starts(text: str, kinds: tuple[str, ...]) -> Iterator[_Start]:
    """Yield the starts of records: the delimiters that follow the first field of a record."""
    head = _SUBJECT_HEAD if kinds == ("claim",) else _HEAD
    look_back = _LOOK_BACK[head]
    before, delimiter = 0, text.find("<|>")
    while delimiter >= 0:
        after = delimiter + 3
        place = max(before, delimiter - look_back)
        may_start = not before or _MAY_START.search(text, max(0, place - 2), delimiter)
        match = head.search(text, place, delimiter) if may_start else None
        if match:
            word = match.group(2)
            kind = _KINDS.get(word.strip(QUOTES + " ").casefold(), "")
            if head is _SUBJECT_HEAD:
                yield _Start(match.start(), after if kind else match.start(2), "claim", True)
            elif kind or match.group(1):
                yield _Start(match.start(), after, kind, bool(match.group(1)))
        before, delimiter = after, text.find("<|>", after)


def _cut_at_end(body: str, start: _Start, is_last: bool) -> str | None:
    """Return the fields of a record without the text after it; None if it was cut off.

    A closing bracket ends a record only after the delimiter of its last field, so a description may contain one.
    """
    place = _last_field(body, _N_FIELDS.get(start.kind, 3))
    ends = (_CLOSED_BEFORE_MARK, _CLOSED_LINE, _SEPARATOR) if start.is_open else (_BARE,)
    end = next(filter(None, (pattern.search(body, place) for pattern in ends)), None)
    if end:
        return body[: end.start()]
    return None if start.is_open and is_last else body


def _last_field(body: str, n_fields: int) -> int:
    """Return the offset of the last of `n_fields` fields; 0 if there are fewer."""
    place = 0
    for _ in range(n_fields - 1):
        delimiter = body.find("<|>", place)
        if delimiter < 0:
            return 0
        place = delimiter + 3
    return place


def _guess_kind(fields: list[str]) -> str:
    """Return the kind of a record with an unknown first word: entity for 3 fields, relationship for 4 with a number."""
    if len(fields) == 3:
        return "entity"
    return "relationship" if len(fields) == 4 and re.search(r"\d", fields[3]) else ""
