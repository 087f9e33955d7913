"""JSON in model replies: found among prose and code fences, mended where it is broken; text cleaned for storing.

Strict JSON is read by the standard library; what that refuses is mended by json-repair, which is some hundred times
slower, and quadratic on some texts, so that only `MAX_REPAIRED` characters of it are looked at. Nothing here raises on
any string. Add here what makes a value of a reply safe to keep; keep out what a field means.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_REPAIRED = 16_000  # characters; json-repair can take the square of them
MAX_DEPTH = 50

_FENCE = re.compile(r"```[\w-]{0,20}[ \t]*+\n?")
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

    Numbers may come out as NaN, infinite or huge.
    """
    bare = strip_fences(reply)
    start = _START.search(bare)
    if not start:
        return []
    body = bare[start.start() :]
    values = _read_strict(body)
    return values if values is not None else _repair(body[:MAX_REPAIRED])


def _read_strict(body: str) -> list[Any] | None:
    """One value after the other; None where one is broken."""
    decoder = json.JSONDecoder(strict=False)
    values = []
    start = _START.search(body)
    try:
        while start:
            value, end = decoder.raw_decode(body, start.start())
            values.append(value)
            start = _START.search(body, end)
    except (ValueError, RecursionError):
        return None
    return values


def _repair(body: str) -> list[Any]:
    import json_repair

    if _is_deep(body):
        return []
    try:
        value = json_repair.loads(body)
    except (ValueError, RecursionError):  # numbers of thousands of digits
        return []
    if not isinstance(value, dict | list):
        return []
    return value if isinstance(value, list) and all(isinstance(item, dict | list) for item in value) else [value]


def _is_deep(body: str) -> bool:
    """Whether brackets are open more than `MAX_DEPTH` deep; mending them would take the square of their number."""
    depth = 0
    for match in _BRACKET.finditer(body):
        depth += 1 if match.group(0) in "{[" else -1
        if depth > MAX_DEPTH:
            return True
    return False
