"""JSON in model replies: found among prose and code fences, mended where it is broken, made safe to keep.

The one reader of JSON that a model wrote. Strict JSON is read by the standard library in linear time; what that refuses
is mended by json-repair, which is some hundred times slower and takes the square or worse of some texts, so that it
gets `MAX_REPAIRED` characters and `MAX_READ` looks at them, about a second. Nothing here raises on any string. Values
come out clean: text without characters that cannot be stored or seen, finite numbers, at most `MAX_DEPTH` deep. Keep
out what a field means.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, SupportsIndex

MAX_REPAIRED = 60_000  # characters
MAX_READ = (
    2_000_000  # characters read while mending: what a model breaks takes 1 to 30 for each, hostile text thousands
)
MAX_DEPTH = 50
LARGEST = 10**30
"""Numbers beyond it, and infinities, come out as it: a rating of 1e999 is out of range, not absent."""

_FENCE = re.compile(r"```[\w-]{0,20}[ \t]*+\n?")
# Where JSON starts rather than prose in brackets, such as "[Data: Entities (1)]", "[2, +more]" or "{see above}".
_VALUE = re.compile(r"""\{\s*+(?:["'}\u201c]|\w{1,60}+\s*+:)|\[\s*+["'{\[\]\u201c]""")
_START = re.compile(r"[{\[]")
_BRACKET = re.compile(r"[{}\[\]]")
# Control characters but tab and newline, halves of surrogate pairs, and signs that are not seen: zero-width space, word
# joiner, byte order mark, marks and overrides of writing direction. Joiners stay: scripts and emoji need them.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def clean_text(text: str) -> str:
    """`text` without characters that cannot be stored or seen, outer white space dropped."""
    return _UNSEEN.sub("", text).strip()


def strip_fences(reply: str) -> str:
    """`reply` without the marks of code fences; what they hold stays."""
    return _FENCE.sub("", reply) if "```" in reply else reply


def read_json(reply: str) -> list[Any]:
    """The objects and arrays in a reply, in order, prose between them left out; [] if none can be read.

    NaN comes out as None. Values deeper than `MAX_DEPTH` are left out.
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


def _read_integer(digits: str) -> int:
    """Longer ones are not converted: that takes the square of their length, and Python refuses 4,300 digits."""
    if len(digits) > 32:
        return -LARGEST if digits.startswith("-") else LARGEST
    return int(digits)


_DECODER = json.JSONDecoder(strict=False, parse_int=_read_integer)


def _repair(body: str) -> list[Any]:
    """The objects and arrays that broken JSON stands for; it starts with a bracket."""
    import json_repair

    if _may_be_deep(body):
        return []
    try:
        mended = json_repair.repair_json(_MeteredText(strip_fences(body)), skip_json_loads=True)
        value, _ = _DECODER.raw_decode(mended)
    except (ValueError, RecursionError):  # too much work, numbers of thousands of digits, nothing mended
        return []
    if isinstance(value, list) and body.startswith("{") and all(isinstance(item, dict | list) for item in value):
        return value
    return [value] if isinstance(value, dict | list) else []


class _MeteredText(str):
    """Text that raises ValueError once `MAX_READ` characters of it were read, the same ones counted again."""

    n_read = 0

    def __getitem__(self, place: SupportsIndex | slice) -> str:
        found = super().__getitem__(place)
        self.n_read += 1 + len(found)
        if self.n_read > MAX_READ:
            raise ValueError("mending takes too much work")
        return found


def _may_be_deep(body: str) -> bool:
    """Whether brackets, quoted ones too, are open deeper than `MAX_DEPTH`: mending takes the square of their number."""
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
        return {_UNSEEN.sub("", key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, bool | None) or -LARGEST <= value <= LARGEST:
        return value
    return None if math.isnan(value) else LARGEST if value > 0 else -LARGEST
