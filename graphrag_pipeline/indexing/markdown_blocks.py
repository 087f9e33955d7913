"""Blocks of a document in Markdown: titles, paragraphs, tables, lists and code, as chunks of the document's text.

With `text_units.markdown_blocks`, a document without typed chunks is cut by the rules for chunks. Documents of other
formats are Markdown, too, once they are converted. Blocks are found line by line, as in CommonMark with the tables of
GitHub, but without nesting: a list holds all that is indented below its items.

Keep out: how a block is cut (`chunk_parts.py`), and which blocks make one text unit (`chunk_aggregation.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from graphrag_pipeline.text.late_patterns import late_re

_FENCE = late_re(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = late_re(r" {0,3}#{1,6}(?:\s|$)")
_UNDERLINE = late_re(r" {0,3}(?:=+|-+)\s*")
_BREAK = late_re(r" {0,3}([-*_])(?:[ \t]*\1){2,}\s*")
_ITEM = late_re(r" {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
_LATER_NUMBER = late_re(r" {0,3}(?!1[.)])\d")
_DELIMITERS = late_re(r"(?=.*\|)(?=.*-)[\s|:-]+")
_INDENTED = late_re(r"(?: {2,}|\t)\S")
_HTML = late_re(r" {0,3}<(table|ul|ol|dl|pre)(?=[\s>])", re.I)
_HTML_KINDS = {"table": "table", "ul": "list", "ol": "list", "dl": "list", "pre": "code"}


def find_blocks(text: str) -> list[dict[str, Any]]:
    """Return the blocks of a text, with the keys of `tables.CHUNKS`.

    Together they hold all text but white space, in order and without overlap. A block has no white space at its ends.
    """
    lines, places = text.splitlines(keepends=True), [0]
    for line in lines:
        places.append(places[-1] + len(line))
    blocks = []
    for first, end, kind in _read_blocks(lines):
        whole = text[places[first] : places[end]]
        start = places[first] + len(whole) - len(whole.lstrip())
        blocks.append({"start": start, "end": start + len(whole.strip()), "type": kind, "page": None, "id": None})
    return blocks


def _read_blocks(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the first line of each block, the line behind its last, and its type."""
    place = 0
    while place < len(lines):
        if not lines[place].strip():
            place += 1
            continue
        kind = _kind_at(lines, place)
        end = _ENDS[kind](lines, place)
        if kind == "paragraph" and end == place + 1 and end < len(lines) and _UNDERLINE.fullmatch(lines[end]):
            kind, end = "title", end + 1
        yield place, end, kind if kind != "html" else _HTML_KINDS[_html_tag(lines[place])]
        place = end


def _kind_at(lines: list[str], place: int) -> str:
    line = lines[place]
    if _FENCE.match(line):
        return "code"
    if _HEADING.match(line):
        return "title"
    if _HTML.match(line):
        return "html"
    if "|" in line and place + 1 < len(lines) and _DELIMITERS.fullmatch(lines[place + 1]):
        return "table"
    return "list" if _ITEM.match(line) and not _BREAK.fullmatch(line) else "paragraph"


def _html_tag(line: str) -> str:
    match = _HTML.match(line)
    return match[1].lower() if match else ""


def _end_of_code(lines: list[str], place: int) -> int:
    """Return the line behind the closing fence; without one, the code reaches to the end."""
    opened = _FENCE.match(lines[place])
    fence = opened[1] if opened else ""
    closing = re.compile(rf" {{0,3}}{re.escape(fence[:1])}{{{len(fence)},}}\s*")
    return next((end + 1 for end in range(place + 1, len(lines)) if closing.fullmatch(lines[end])), len(lines))


def _end_of_html(lines: list[str], place: int) -> int:
    """Return the line behind the end tag of an element, elements of its kind inside it included."""
    tag, depth = _html_tag(lines[place]), 0
    for end in range(place, len(lines)):
        depth += len(re.findall(rf"<{tag}(?=[\s>])", lines[end], re.I))
        depth -= len(re.findall(rf"</{tag}\s*>", lines[end], re.I))
        if depth <= 0:
            return end + 1
    return len(lines)


def _end_of_table(lines: list[str], place: int) -> int:
    return next((end for end in range(place + 2, len(lines)) if "|" not in lines[end]), len(lines))


def _end_of_list(lines: list[str], place: int) -> int:
    """Return the line behind a list: it goes on behind empty lines with an item or with what is indented."""
    end, is_after_empty = place + 1, False
    for number in range(place + 1, len(lines)):
        line = lines[number]
        if not line.strip():
            is_after_empty = True
            continue
        goes_on = _INDENTED.match(line) or _kind_at(lines, number) == "list"
        if not goes_on and (is_after_empty or _kind_at(lines, number) != "paragraph" or _BREAK.fullmatch(line)):
            break
        end, is_after_empty = number + 1, False
    return end


def _end_of_paragraph(lines: list[str], place: int) -> int:
    """Return the line behind a paragraph, which ends before any other block; "1843. That" in it begins no list."""
    for end in range(place + 1, len(lines)):
        is_title = end == place + 1 and _UNDERLINE.fullmatch(lines[end])
        is_other = _kind_at(lines, end) != "paragraph" and not _LATER_NUMBER.match(lines[end])
        if not lines[end].strip() or is_title or is_other:
            return end
    return len(lines)


_ENDS = {
    "code": _end_of_code,
    "title": lambda _, place: place + 1,
    "html": _end_of_html,
    "table": _end_of_table,
    "list": _end_of_list,
    "paragraph": _end_of_paragraph,
}
