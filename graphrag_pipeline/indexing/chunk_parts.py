"""Parts of chunks that are too long for one text unit, by their type.

A table is cut between rows, a list between items, code between blocks or lines, and other text at sentence ends. A row
or item that is still too long is cut between the rows or items within it, level by level, then by the next finer rule,
at last between tokens, at white space if the parts still fit. Parts are near-equal. The header of a cut
table is a span of the document, so that text units can repeat it and keep exact offsets.

Add here: how a type of chunk is cut. Keep out: captions (`chunk_aggregation.py`), and which chunks make one
text unit (`chunk_aggregation.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from graphrag_pipeline.models.pieces import split_to_pieces
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.tokens import count_tokens, count_tokens_each

SLACK = 8  # tokens that joining two texts can add

_RULE = late_re(r"(?=.*(?:--|==|-\|))[\s|:+=-]+")  # of a Markdown or grid table, below the header
_CELLS = late_re(r"[|\t;,]")
_NUMBER = late_re(r"[\s$\u20ac\u00a3%+().,-]*\d[\s\d$\u20ac\u00a3%().,-]*")
_YEAR = late_re(r"\s*(?:1[5-9]|20)\d\d\s*")
_HTML_TABLE = late_re(r"^\s*<(?:table|thead|tbody|tr)(?=[\s>])|<table(?:\s[^>]*)?>\s*<", re.I | re.M)
_HTML_LIST = late_re(
    r"^\s*<(?:ul|ol|menu|li|dl|dt|dd)(?=[\s>])|<(?:ul|ol|menu|dl)(?:\s[^>]*)?>\s*(?:<div(?:\s[^>]*)?>\s*)?"
    r"<(?:li|dt|dd)(?=[\s>])",
    re.I | re.M,
)
_HTML_ROW = late_re(r"</tr\s*>\s*", re.I)
_HTML_TABLE_TAG = late_re(r"<(/?)(table(?=[\s>])|tr(?=[\s>]))(?:(?<=/tr)\s*>\s*)?", re.I)
_HTML_LIST_TAG = late_re(r"(?:<div(?:\s[^>]*)?>\s*(?=<dt))?<(/?)(ul|ol|menu|dl|li|dt|dd)(?=[\s>/])", re.I)
_WITHIN = 0.5  # of a list's depth: a description, and a second term, belong to the term before them
_HTML_HEAD = late_re(r"</thead\s*>\s*", re.I)
_ITEM = late_re(
    r"^([ \t]*)(?:[-*+\u2022\u2023\u25e6\u2013\u2014]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])[ \t]+(?=\S)", re.MULTILINE
)
_LINE = late_re(r"\n\s*?(?=[^\S\n]*\S)")
_WORD = late_re(r"\S+")
_BLANK_LINE = late_re(r"\n[ \t]*\n\s*?(?=[^\S\n]*\S)")

Span = tuple[int, int]


def span_pages(left: Span | None, right: Span | None) -> Span | None:
    """Return the first and the last page of both; None if neither is known."""
    if left is None or right is None:
        return left or right
    return min(left[0], right[0]), max(left[1], right[1])


def count_pages(pages: Span | None) -> int:
    """Return the number of pages from the first to the last; 0 if unknown."""
    return pages[1] - pages[0] + 1 if pages else 0


@dataclass(frozen=True)
class ChunkParts:
    """The parts of a chunk that is too long: offsets into the document's text, without white space at their ends.

    Attributes:
        header: of a table, to be repeated before each part but the first; None without one.
    """

    spans: list[Span]
    header: Span | None = None


def cut_chunk(text: str, body: Span, kind: str, size: int, encoding: str) -> ChunkParts:
    """Cut a chunk into near-equal parts of at most `size` tokens, a repeated header included."""
    header = (body[0], body[0] + _header_end(text[slice(*body)])) if kind == "table" else (body[0], body[0])
    n_header = count_tokens(text[slice(*header)], encoding)
    is_repeated = 0 < n_header <= size // 2
    room = max(1, size - n_header - SLACK) if is_repeated else size
    start = header[1] if is_repeated else body[0]
    atoms = list(_cut_finer(text, (start, body[1]), _RULES.get(kind, ()), room, encoding))
    spans = list(_pack(text, atoms, room, encoding))
    if is_repeated and spans:
        spans[0] = (body[0], spans[0][1])
    return ChunkParts(spans, header if is_repeated else None)


def _cut_finer(
    text: str, span: Span, rules: Sequence[Callable[[str], list[int]]], size: int, encoding: str
) -> Iterator[Span]:
    """Yield parts by the first rule; a part of more than `size` tokens is cut by the same rule as long as that cuts it.

    Then it is cut by the next rule, at last by tokens.
    """
    part = text[slice(*span)]
    if count_tokens(part, encoding) <= size and not rules:
        yield from _trim(text, span)
    elif not rules:
        for start, end in pairwise(_cut_at_spaces(part, size, encoding)):
            yield from _trim(text, (span[0] + start, span[0] + end))
    else:
        places = rules[0](part)
        for start, end in pairwise([0, *places, len(part)]):
            one = (span[0] + start, span[0] + end)
            is_small = count_tokens(text[slice(*one)], encoding) <= size
            finer = rules if places else rules[1:]
            yield from _trim(text, one) if is_small else _cut_finer(text, one, finer, size, encoding)


def _cut_at_spaces(part: str, size: int, encoding: str) -> list[int]:
    """Return 0 and the ends of near-equal pieces; where one would be inside a word, white space beside it is taken."""
    ends = list(accumulate(len(piece.text) for piece in split_to_pieces(part, size, encoding)))
    kept = [0]
    for end, behind in pairwise(ends):
        is_inside = not part[end - 1].isspace() and not part[end].isspace()
        kept += _leave_word(part, (kept[-1], behind), end, size, encoding) if is_inside else [end]
    return [*kept, len(part)]


def _leave_word(part: str, span: Span, end: int, size: int, encoding: str) -> list[int]:
    """Return the cuts of a span instead of one inside a word: beside the word if both sides fit, else between words.

    Returns the cut inside the word if the word alone is too long.
    """
    start, behind = span
    words = [found.span() for found in _WORD.finditer(part, start, behind)]
    cut_word = next(word for word in words if word[0] < end < word[1])
    for place in sorted(cut_word, key=lambda place: abs(place - end)):
        sides = count_tokens_each([part[start:place], part[place:behind]], encoding)
        if start < place < behind and max(sides) <= size:
            return [place]
    fits = max(count_tokens_each([part[s:e] for s, e in words], encoding)) <= size
    runs = list(_pack(part, words, size, encoding)) if len(words) > 1 and fits else []
    return [start for start, _ in runs[1:]] or [end]


def _pack(text: str, atoms: Sequence[Span], size: int, encoding: str) -> Iterator[Span]:
    """Yield near-equal runs of atoms of at most `size` tokens."""
    starts = [start for start, _ in atoms[1:]] + [atoms[-1][1]] if atoms else []
    counts = count_tokens_each([text[s:e] for (s, _), e in zip(atoms, starts, strict=True)], encoding)
    left, n_left, first, total = sum(counts), math.ceil(sum(counts) / size), 0, 0
    for place, count in enumerate(counts):
        ideal = left / max(n_left, 1)
        if place > first and (total + count > size or total + count / 2 > ideal):
            yield atoms[first][0], atoms[place - 1][1]
            left, n_left, first, total = left - total, n_left - 1, place, 0
        total += count
    if atoms:
        yield atoms[first][0], atoms[-1][1]


def _trim(text: str, span: Span) -> Iterator[Span]:
    """Yield the span without white space at its ends, if anything is left."""
    part = text[slice(*span)]
    bare = part.strip()
    if bare:
        start = span[0] + len(part) - len(part.lstrip())
        yield start, start + len(bare)


def _rows(table: str) -> list[int]:
    ends = _html_row_ends(table) or [match.end() for match in _LINE.finditer(table)]
    return [end for end in ends if end < len(table)]


def _inner_rows(row: str) -> list[int]:
    """Return the ends of the rows of tables within a row of an HTML table."""
    return [found.end() for found in _HTML_ROW.finditer(row) if found.end() < len(row)]


def _html_row_ends(table: str) -> list[int]:
    """Return the ends of the rows of an HTML table, without those of tables in its cells; end tags may be left out.

    A table in other markup may write of tags in its cells: it has no rows of HTML.
    """
    if not _HTML_TABLE.search(table):
        return []
    starts: list[tuple[int, int]] = []
    ends: list[tuple[int, int]] = []
    depth = 0
    for tag in _HTML_TABLE_TAG.finditer(table):
        if tag[2].lower() == "table":
            depth += -1 if tag[1] else 1
        else:
            (ends if tag[1] else starts).append((depth, tag.end() if tag[1] else tag.start()))
    least = min((depth for depth, _ in (*starts, *ends)), default=0)
    outer_starts, outer_ends = ([place for depth, place in rows if depth == least] for rows in (starts, ends))
    return outer_ends if len(outer_ends) >= len(outer_starts) else [*outer_starts[1:], len(table)]


def _html_items(items: str) -> list[tuple[int, float]]:
    """Return the start of each item of an HTML list, and the number of lists that it is in; of other lists, nothing.

    In a list of terms an item is a group of terms with their descriptions; these are half a list deeper.
    """
    found: list[tuple[int, float]] = []
    before = [""]  # tag of the item before, for each list that is open
    for tag in _HTML_LIST_TAG.finditer(items) if _HTML_LIST.search(items) else ():
        is_end, name = bool(tag[1]), tag[2].lower()
        if name not in ("li", "dt", "dd"):
            before = (before[:-1] or [""]) if is_end else [*before, ""]
        elif not is_end:
            is_within = name == "dd" or (name == "dt" and before[-1] == "dt")
            found.append((tag.start(), len(before) + _WITHIN * is_within))
            before[-1] = name
    return found


def _next_items(items: str) -> list[int]:
    """Return the starts of the items that are indented least, without the first; for one item, of those within it."""
    in_html = _html_items(items)
    found = in_html or [(match.start(), float(len(match[1]))) for match in _ITEM.finditer(items)]
    further = found[1:] if in_html else [(start, depth) for start, depth in found if start]
    least = min((depth for _, depth in found), default=0.0)
    if all(depth > least for _, depth in further):
        least = min((depth for _, depth in further), default=0.0)
    return [start for start, depth in further if depth == least]


def _blocks(code: str) -> list[int]:
    return [match.end() for match in _BLANK_LINE.finditer(code)]


def _lines(part: str) -> list[int]:
    return [match.end() for match in _LINE.finditer(part)]


_RULES: dict[str, tuple[Callable[[str], list[int]], ...]] = {
    "table": (_rows, _inner_rows),
    "list": (_next_items, _lines),
    "code": (_blocks, _lines),
}


def _header_end(table: str) -> int:
    """Return the length of a table's header with the line break behind it; 0 without one.

    The header reaches to the rule below it. A table without a rule has a header if no cell of its first row is a number
    other than a year.
    """
    if row_ends := _html_row_ends(table):
        return _html_header_end(table, row_ends)
    lines = table.splitlines(keepends=True)[:4]
    for place in (2, 1):
        if len(lines) > place + 1 and _RULE.fullmatch(lines[place]):
            return sum(map(len, lines[: place + 1]))
    cells = [cell for cell in _CELLS.split(lines[0].strip(" |\n")) if cell.strip()]
    is_data = any(_NUMBER.fullmatch(cell) and not _YEAR.fullmatch(cell) for cell in cells)
    return len(lines[0]) if len(lines) > 2 and len(cells) > 1 and not is_data else 0


def _html_header_end(table: str, row_ends: Sequence[int]) -> int:
    """Return the end of `thead`, else of the first rows whose cells are all `th`; 0 without either."""
    head = _HTML_HEAD.search(table)
    end = head.end() if head else 0
    for row_end in () if head else row_ends:
        cells = table[end:row_end]
        if not re.search(r"<th[\s>]", cells, re.I) or re.search(r"<td[\s>]", cells, re.I):
            break
        end = row_end
    return end if end < len(table) else 0
