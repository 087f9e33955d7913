"""JSON in model replies: found in prose and code fences, repaired if broken, cleaned for storage.

All JSON that a model wrote is read here. The standard library reads strict JSON in linear time. The package json-repair
repairs the rest. It is about 100 times slower, and quadratic or worse on some texts, so it gets at most `MAX_REPAIRED`
characters and may read at most `MAX_READ`, about one second. No string raises an error. Values are clean: no
characters that cannot be stored or seen, keys in small letters, finite numbers, at most `MAX_DEPTH` levels.

Structured replies: JSON schemas for requests, and validation of replies by pydantic models.

An endpoint with `response_format` gets a strict schema. Another endpoint gets the schema as text in the prompt (see
`endpoints/openai_client.py`). In both cases the reader accepts code fences, prose around the
object, trailing commas and a missing end. An object that does not fit the pydantic model is an error.

Keep out: the meaning of a field.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, SupportsIndex, TypeVar

from pydantic import BaseModel, ValidationError

from graphrag_pipeline.models.ports import ReplyFormatError

M = TypeVar("M", bound=BaseModel)

MAX_TRIED = 20  # objects of a reply; real replies hold one, or a draft before it

CHARACTERS_PER_TOKEN = 4
MOST_CHARACTERS = 1900
"""Largest `maxLength` that is sent: llama.cpp refuses a grammar with 2,000 repetitions."""

_LEFT_OUT = frozenset({"default", "title"})


def json_schema_format(model: type[BaseModel], name: str | None = None) -> dict[str, Any]:
    """Return OpenAI's strict `response_format` for a pydantic model: all keys required, no other keys."""
    schema = _make_strict(model.model_json_schema())
    return {"type": "json_schema", "json_schema": {"name": name or model.__name__, "schema": schema, "strict": True}}


def bound_schema(response_format: Mapping[str, Any], limits: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a `response_format` whose schema has more keywords.

    Args:
        limits: keywords such as `maxItems`, `maxLength` or `enum`, by the name of the property that they limit.
    """
    bounded = _bound(response_format, limits) if limits else dict(response_format)
    return bounded if isinstance(bounded, dict) else {}


def text_limit(n_tokens: int) -> dict[str, int]:
    """Return the limit of a text that takes at most so many tokens of a reply."""
    return {"maxLength": min(MOST_CHARACTERS, CHARACTERS_PER_TOKEN * n_tokens)}


def list_limit(n_items: int, n_characters: int) -> dict[str, Any]:
    """Return the limit of a list of texts that may have so many characters.

    The schema allows twice as many, so that a text which is too long is seen to be so, and is not cut to a part.
    """
    return {"maxItems": n_items, "items": {"type": "string", "maxLength": min(MOST_CHARACTERS, 2 * n_characters)}}


def _bound(value: Any, limits: Mapping[str, Mapping[str, Any]]) -> Any:
    if isinstance(value, list):
        return [_bound(item, limits) for item in value]
    if not isinstance(value, dict):
        return value
    bounded = {key: _bound(item, limits) for key, item in value.items()}
    properties = value.get("properties")
    if isinstance(properties, dict):
        bounded["properties"] = {name: {**bounded["properties"][name], **limits.get(name, {})} for name in properties}
    return bounded


def describe_schema(response_format: Mapping[str, Any]) -> str:
    """Return the schema as an instruction, for an endpoint without `response_format`."""
    schema = response_format.get("json_schema", {}).get("schema")
    if schema is None:
        return "Answer with one JSON object and nothing else."
    text = json.dumps(schema, ensure_ascii=False, sort_keys=True)
    return f"Answer with one JSON object that fits this JSON schema, and nothing else:\n{text}"


def parse_reply(text: str, model: type[M]) -> M:
    """Return the first JSON object of a reply that fits a pydantic model.

    Raises:
        ReplyFormatError: no JSON object is found, or none fits; the message is also sent to the model.
    """
    problems = f"no JSON object found; the reply starts {text[:80]!r}"
    for number, candidate in enumerate(_objects(text)):
        try:
            return model.model_validate(candidate)
        except ValidationError as error:
            problems = problems if number else _describe(error)
    raise ReplyFormatError(problems)


def _objects(text: str) -> list[dict[str, Any]]:
    return [value for value in read_json(text) if isinstance(value, dict)][:MAX_TRIED]


def _describe(error: ValidationError) -> str:
    problems = (f"{'.'.join(map(str, one['loc'])) or 'reply'}: {one['msg']}" for one in error.errors()[:5])
    return "the JSON does not fit the schema: " + "; ".join(problems)


def _make_strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_make_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    is_object = schema.get("type") == "object" and "properties" in schema
    strict: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            strict[key] = {name: _make_strict(part) for name, part in value.items()}
        elif key not in _LEFT_OUT:
            strict[key] = _make_strict(value)
    if is_object:
        strict |= {"additionalProperties": False, "required": list(schema["properties"])}
    return strict


MAX_REPAIRED = 60_000  # characters
MAX_READ = (
    2_000_000  # characters read during a repair: 1 to 30 per character of a broken reply, thousands for hostile text
)
MAX_DEPTH = 50
LARGEST = 10**30
"""Larger numbers and infinities are replaced by this one: a rating of 1e999 is out of range, not absent."""

_WRITTEN_NUMBER = re.compile(
    r"\s*+([-+]?\d{1,9}(?:[.,]\d{1,6})?)\s*+(?:%|(?:/|out of|of)\s*+([1-9]\d{0,2}))?\s*+", re.IGNORECASE
)
_FENCE = re.compile(r"```[\w-]{0,20}[ \t]*+\n?")
# The start of JSON, not of prose in brackets such as "[Data: Entities (1)]", "[2, +more]" or "{see above}".
_VALUE = re.compile(r"""\{\s*+(?:["'}\u201c]|\w{1,60}+\s*+:)|\[\s*+["'{\[\]\u201c]""")
_START = re.compile(r"[{\[]")
_BRACKET = re.compile(r"[{}\[\]]")
_STRING_OR_MARK = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\],]', re.DOTALL)
# Control characters except tab and newline, halves of surrogate pairs, and invisible characters: zero-width space, word
# joiner, byte order mark, marks and overrides of writing direction. Joiners are kept: scripts and emoji need them.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def clean_text(text: str) -> str:
    """Return `text` without characters that cannot be stored or seen, and without outer white space."""
    return _UNSEEN.sub("", text).strip()


def strip_fences(reply: str) -> str:
    """Return `reply` without code fence marks; keep their content."""
    return _FENCE.sub("", reply) if "```" in reply else reply


def read_json(reply: str) -> list[Any]:
    """Return the objects and arrays in a reply, in order, without the prose between them; [] if none can be read.

    NaN becomes None. Values deeper than `MAX_DEPTH` are left out.
    """
    text = _UNSEEN.sub("", reply)
    start = _VALUE.search(text) or _START.search(text)
    values: list[Any] = []
    while start:
        try:
            value, end = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            values += _repair(text[start.start() : start.start() + MAX_REPAIRED])
            break
        values.append(value)
        start = _VALUE.search(text, end)
    return [_clean(value) for value in values if not _is_deep(value)]


def keep_whole_values(reply: str) -> str:
    """Return a reply that was cut off without its last value, which may be a part, and close its brackets.

    Of an open array its whole elements stay, of an open object its whole members. If arrays are open, the outermost
    counts: a report whose fifth finding was cut off keeps four.
    """
    start = _VALUE.search(reply) or _START.search(reply)
    opened: list[tuple[str, int]] = []  # bracket, end of its last whole part
    place = start.start() if start else len(reply)
    while match := _STRING_OR_MARK.search(reply, place):
        place, mark = match.end(), match.group(0)
        if mark[0] in "{[":
            opened.append((mark, place))
        elif opened and mark[0] == ",":
            opened[-1] = (opened[-1][0], match.start())
        elif opened and mark[0] in "}]":
            opened.pop()
            if opened:
                opened[-1] = (opened[-1][0], place)
    if not opened:
        return reply
    last = next((place for place, (bracket, _) in enumerate(opened) if bracket == "["), 0)
    closing = ("}" if bracket == "{" else "]" for bracket, _ in reversed(opened[: last + 1]))
    return reply[: opened[last][1]] + "".join(closing)


def read_number(value: Any, most: int) -> float | None:
    """Return a score or rating as models write it, not yet checked against its range; None if it is no number.

    Args:
        most: of the scale. With it at 100, 85, "85", "85 %" and "8.5 out of 10" are all 85.
    """
    match = _WRITTEN_NUMBER.fullmatch(value) if isinstance(value, str) else None
    number = float(match[1].replace(",", ".")) * most / int(match[2] or most) if match else value
    return float(number) if isinstance(number, int | float) and not isinstance(number, bool) else None


def _read_integer(digits: str) -> int:
    """Return an integer; numbers over 32 digits become `LARGEST`, because their conversion takes quadratic time."""
    if len(digits) > 32:
        return -LARGEST if digits.startswith("-") else LARGEST
    return int(digits)


_DECODER = json.JSONDecoder(strict=False, parse_int=_read_integer)


def _repair(body: str) -> list[Any]:
    """Return the objects and arrays of broken JSON that starts with a bracket."""
    import json_repair

    if _may_be_deep(body):
        return []
    try:
        repaired = json_repair.repair_json(_MeteredText(strip_fences(body)), skip_json_loads=True)
        value, _ = _DECODER.raw_decode(repaired)
    except (ValueError, RecursionError):  # too much work, numbers of thousands of digits, or nothing repaired
        return []
    if isinstance(value, list) and body.startswith("{") and all(isinstance(item, dict | list) for item in value):
        return value
    return [value] if isinstance(value, dict | list) else []


class _MeteredText(str):
    """Text that raises ValueError after `MAX_READ` characters were read, repeated reads included."""

    n_read = 0

    def __getitem__(self, place: SupportsIndex | slice) -> str:
        found = super().__getitem__(place)
        self.n_read += 1 + len(found)
        if self.n_read > MAX_READ:
            raise ValueError("the repair takes too much work")
        return found


def _may_be_deep(body: str) -> bool:
    """Whether brackets, also quoted ones, nest deeper than `MAX_DEPTH`: a repair takes the square of their number."""
    depth = 0
    for match in _BRACKET.finditer(body):
        depth += 1 if match.group(0) in "{[" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def _is_deep(value: Any) -> bool:
    level, depth = [value], 0
    while level and depth < MAX_DEPTH:
        inner = [part.values() if isinstance(part, dict) else part for part in level]
        level, depth = [item for items in inner for item in items if isinstance(item, dict | list)], depth + 1
    return bool(level)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _UNSEEN.sub("", value)
    if isinstance(value, dict):
        return {_UNSEEN.sub("", key).strip().casefold(): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, bool | None) or -LARGEST <= value <= LARGEST:
        return value
    return None if math.isnan(value) else LARGEST if value > 0 else -LARGEST
