"""The structure of a text in Markdown: its blocks, the headings above them, and what a reader sees of them.

markdown-it-py parses the text (CommonMark, with tables, front matter and lists of terms as in Pandoc). Documents of
other formats are Markdown once they are converted, and a plain text is Markdown without marks. This module adds the
places: every block and every readable character keeps its offset in the text.

A *piece* is what is read as a whole: a paragraph, an item of a list, a row of a table with the names of its columns, a
line of code. Its readable text has no marks, targets of links, pictures, tags or comments.

Keep out: sentences (`sentences.py`), text units (`indexing/text_units.py`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from html import unescape
from itertools import accumulate, islice, pairwise
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.name_words import words

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

TITLE, PARAGRAPH, LIST, TABLE, CODE, QUOTE, FRONT_MATTER, HIDDEN = (
    "title", "paragraph", "list", "table", "code", "quote", "front_matter", "hidden"
)  # fmt: skip
"""Kinds of blocks. A hidden one has nothing to read: a comment, a rule, targets of links."""
PROMPT = ">>> "
"""Of a Python session; Markdown would read three quotes in one another."""
MAX_TITLE = 500
"""Characters of a heading; what is longer is a paragraph."""

Span = tuple[int, int]
Rows = tuple[tuple[str, ...], ...]
"""Readable cells of a table."""
Headings = tuple[tuple[int, str], ...]
"""Level and readable text of headings, the outermost first."""

_KINDS = {
    "heading_open": TITLE, "paragraph_open": PARAGRAPH, "bullet_list_open": LIST, "ordered_list_open": LIST,
    "dl_open": LIST, "table_open": TABLE, "fence": CODE, "blockquote_open": QUOTE, "front_matter": FRONT_MATTER,
    "html_block": PARAGRAPH, "hr": HIDDEN,
}  # fmt: skip
_ABOVE_TEXT = (TITLE, HIDDEN, FRONT_MATTER)
_HTML_KINDS = {"table": TABLE, "ul": LIST, "ol": LIST, "dl": LIST, "pre": CODE}
_HTML = late_re(r"\s*<([a-z][a-z0-9]*)(?=[\s>/])", re.I)
_ELEMENT = late_re(rf"<(/?)({'|'.join(_HTML_KINDS)})(?=[\s>])[^>]*>", re.I)
_TAG = late_re(r"<!--.*?(?:-->|\Z)|<(/?)([a-zA-Z][\w:-]*)(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>|<[!?][^>]*>", re.S)
_BREAKING = words("""
address article aside blockquote body br caption dd details div dl dt figure footer form h1 h2 h3 h4 h5 h6 head header
hr html li main nav ol p pre section summary table tbody td tfoot th thead title tr ul
""")
"""Elements of HTML that begin and end a line or a cell."""
_UNDERLINED = late_re(r"^([^\s>|#*+~^\"'-].*)\n([~^\"'*+#])\2{2,}[ \t]*$", re.M)
"""A heading of reStructuredText; "=" and "-" below it are Markdown."""
_OVERLINE = late_re(r"^([=~^\"'*+#])\1{2,}[ \t]*$(?=\n[^\s>|#*+~^\"'-][^\n]*\n\1{3,}[ \t]*$)", re.M)
_HTML_TITLE = late_re(r"<h([1-6])[\s>]", re.I)
_INVISIBLE = late_re(
    "[\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\ufeff]+|(?<=[a-z])[\u200c\u200d]+(?=[a-z])", re.I
)
"""Soft hyphens and characters of no width; the joiners mean something in other scripts than Latin."""
_HYPHENS = "-\u2010\u00ad"
_LAST_LETTERS = late_re(r"[^\W\d_]+(?=.\Z)", re.S)
_FIRST_LETTERS = late_re(r"[^\W\d_]+")
_COMPOUND = late_re(r"(?<![^\W\d_])[^\W\d_]++(?:-[^\W\d_]++)+")
_LONGEST_PART = 60  # letters of a word before or behind a hyphen
_MARKER = late_re(r"[ \t>]*((?:[-*+]|\d{1,9}[.)])[ \t]+)")
LABEL = late_re(r"(?P<label>[^\W\d_][^:\n.!?]{0,39}?)[ \u00a0]?:\s+(?P<value>\S.{0,199})")
"""A line that labels a value, such as "Owner: Ana"."""
_GAP = late_re(r"\n|(?<![,; \t])[ \t]{2,}")
_SPACE = late_re(r"\s*")
_BEFORE_BAR = late_re(r"(?=\|)")
_ENTITY = late_re(r"&(?:#\w{1,8}|\w{1,31});")


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of readable text that came from a stretch of the source; of the same length but for an entity."""

    at: int
    start: int
    end: int
    n: int


@dataclass(frozen=True)
class Piece:
    """A part of a block that is read as a whole.

    Attributes:
        start, end: offsets in the source, without white space at its ends.
        text: as a reader sees it; line breaks of a paragraph are kept.
        runs: where each stretch of `text` came from, in order; the names of columns come from nowhere.
    """

    start: int
    end: int
    text: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Block:
    """A block of a text.

    Attributes:
        start, end: offsets in the source, without white space at its ends.
        kind: one of the kinds above.
        level: of a title, 1 to 6; else 0.
        headings: the titles above it.
        header: offsets of a table's header in the source, with the rule below it; None without one.
        rows: readable cells of a table, its header first.
    """

    start: int
    end: int
    kind: str
    pieces: tuple[Piece, ...]
    level: int = 0
    headings: Headings = ()
    header: Span | None = None
    rows: Rows = ()

    @cached_property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """Label and value of each line of a paragraph or list; () unless all its lines say "Label: value"."""
        if self.kind not in (PARAGRAPH, LIST):
            return ()
        found = [LABEL.fullmatch(piece.text.lstrip("-*+ ")) for piece in self.pieces]
        return tuple((match["label"], match["value"]) for match in found if match) if all(found) else ()

    @property
    def text(self) -> str:
        """The readable text on one line."""
        return " ".join(" ".join(piece.text.split()) for piece in self.pieces)


@dataclass(frozen=True)
class Structure:
    """The blocks of a text in order; together they hold all of it but white space.

    Attributes:
        codes: texts between backticks, in order.
    """

    blocks: tuple[Block, ...]
    codes: tuple[str, ...] = ()

    @cached_property
    def readable(self) -> ReadableText:
        """What a reader sees; pieces are divided by blank lines."""
        return ReadableText.join(piece for block in self.blocks for piece in block.pieces)

    def headings_at(self, place: int) -> Headings:
        """Return the headings above the first block that ends behind a place and says something."""
        first = bisect_right(self._ends, place)
        skipped = (TITLE, FRONT_MATTER, HIDDEN)
        block = next((block for block in islice(self.blocks, first, None) if block.kind not in skipped), None)
        return block.headings if block else ()

    @cached_property
    def _ends(self) -> list[int]:
        return [block.end for block in self.blocks]


@dataclass(frozen=True)
class ReadableText:
    """A text without marks, whose places are known in the source."""

    text: str
    runs: tuple[Run, ...] = field(repr=False)

    @classmethod
    def join(cls, pieces: Iterable[Piece]) -> ReadableText:
        """Return the text of pieces, divided by blank lines."""
        texts: list[str] = []
        runs: list[Run] = []
        place = 0
        for piece in pieces:
            texts.append(piece.text)
            runs += [Run(run.at + place, run.start, run.end, run.n) for run in piece.runs]
            place += len(piece.text) + 2
        return cls("\n\n".join(texts), tuple(runs))

    @cached_property
    def _starts(self) -> list[int]:
        return [run.at for run in self.runs]

    def source_of(self, start: int, end: int) -> Span | None:
        """Return the offsets in the source of a part of the text; None if the source has nothing of it."""
        first = bisect_right(self._starts, start) - 1
        if first < 0 or self.runs[first].at + self.runs[first].n <= start:
            first += 1
        last = bisect_left(self._starts, end) - 1
        if first > last:
            return None
        one, other = self.runs[first], self.runs[last]
        begin = one.start + max(start - one.at, 0) if one.n == one.end - one.start else one.start
        behind = other.start + min(end - other.at, other.n) if other.n == other.end - other.start else other.end
        return begin, behind

    def between(self, start: int, end: int) -> str:
        """Return what a reader sees of a span of the source."""
        first = bisect_right(self.runs, start, key=lambda run: run.end)
        last = bisect_left(self.runs, end, key=lambda run: run.start) - 1
        if first > last:
            return ""
        one, other = self.runs[first], self.runs[last]
        begin = one.at + min(max(start - one.start, 0), one.n)
        return self.text[begin : other.at + min(max(end - other.start, 0), other.n)]


MAX_KEPT = 8_000_000
"""Characters of the texts whose structures stay in memory: each stage of an index run reads the same texts."""


class _Kept:
    """The structures of the texts read last; for all threads."""

    def __init__(self) -> None:
        self._structures: OrderedDict[str, Structure] = OrderedDict()
        self._n_characters = 0
        self._lock = Lock()

    def find(self, text: str) -> Structure | None:
        with self._lock:
            if text in self._structures:
                self._structures.move_to_end(text)
            return self._structures.get(text)

    def add(self, text: str, structure: Structure) -> None:
        with self._lock:
            if text not in self._structures:
                self._structures[text] = structure
                self._n_characters += len(text)
            while self._n_characters > MAX_KEPT:
                self._n_characters -= len(self._structures.popitem(last=False)[0])


_KEPT = _Kept()


def read_structure(text: str) -> Structure:
    """Return the structure of a text in Markdown; those read last are kept."""
    known = _KEPT.find(text)
    if known is None:
        reader = _Reader(text)
        blocks = tuple(reader.read())
        known = Structure(blocks, tuple(reader.codes))
        _KEPT.add(text, known)
    return known


def remove_invisible(text: str) -> str:
    """Return a text without soft hyphens and characters of no width."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.deflist import deflist_plugin
    from mdit_py_plugins.front_matter import front_matter_plugin

    parser = MarkdownIt("commonmark").enable("table").use(front_matter_plugin).use(deflist_plugin)
    # Indented text is code in Markdown only; texts and mails indent at will. `text_join` would lose where an escaped
    # character was.
    return parser.disable(["code", "text_join"])


class _Part(NamedTuple):
    """A stretch of readable text and its place in the source; -1 for text that is not in it."""

    text: str
    start: int = -1
    end: int = -1


class _Reader:
    """The blocks of a text, made from the parser's tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.codes: list[str] = []
        self.places = [0, *accumulate(len(line) + 1 for line in self.lines)]

    def read(self) -> Iterator[Block]:
        """Yield the blocks in order; what the parser passes over, such as targets of links, is a hidden block."""
        headings: Headings = ()
        has_title = has_text = False
        done = 0
        markdown = _UNDERLINED.sub(_as_markdown, _OVERLINE.sub(lambda found: " " * len(found[0]), self.text))
        # A carriage return would be one more line end for the parser.
        groups = list(_top_level(_parser().parse(markdown.replace("\r", " "))))
        for number, tokens in enumerate(groups):
            first = tokens[0]
            start, end = self._place_of(first)
            if start < done:
                continue  # the rest of an HTML element with a blank line in it
            yield from self._hidden(done, start)
            kind, level, header = _KINDS[first.type], 0, None
            rows: Rows = ()
            if kind == TITLE:
                kind, level = (TITLE, int(first.tag[1])) if self._is_title(first) else (PARAGRAPH, 0)
            if kind == QUOTE and self.text.startswith(PROMPT, start):
                kind, pieces = CODE, list(self._read_lines(first, 0))
            elif first.type == "html_block":
                kind, end = self._kind_of_html(start, end)
                for later in islice(groups, number + 1, None):  # blocks that a blank line separates from its end tag
                    if self._place_of(later[0])[0] >= end:
                        break
                    end = max(end, self._place_of(later[0])[1])
                pieces = list(self._read_html(start, end))
                if len(pieces) == 1 and (title := _HTML_TITLE.search(self.text, start, end)):
                    kind, level = TITLE, int(title[1])
            elif kind == TABLE:
                header, rows, pieces = self._read_table(tokens, has_title and not has_text)
            else:
                pieces = list(self._read_pieces(tokens))
            done = end
            span = self._trim(start, end)
            if not span:
                continue
            if level:
                headings = tuple(above for above in headings if above[0] < level)
            block = Block(*span, kind if pieces else HIDDEN, tuple(pieces), level, headings, header, rows)
            has_title, has_text = has_title or kind == TITLE, has_text or (kind not in _ABOVE_TEXT and bool(pieces))
            if level and pieces:
                headings = (*headings, (level, block.text))
            yield block
        yield from self._hidden(done, len(self.text))

    def _is_title(self, token: Token) -> bool:
        """Whether a heading is one for a reader: short, and not several lines or a line above a mail's signature."""
        first, end = token.map or (0, 0)
        if token.markup.startswith("#"):
            return len(self.lines[first]) <= MAX_TITLE
        return end - first == 2 and len(self.lines[first]) <= MAX_TITLE and len(self.lines[end - 1].strip()) > 2

    def _hidden(self, start: int, end: int) -> Iterator[Block]:
        if span := self._trim(start, end):
            yield Block(*span, HIDDEN, ())

    def _trim(self, start: int, end: int) -> Span | None:
        bare = self.text[start:end].strip()
        first = self.text.find(bare, start)
        return (first, first + len(bare)) if bare else None

    def _place_of(self, token: Token) -> Span:
        first, end = token.map or (0, 0)
        return self.places[first], min(self.places[end], len(self.text))

    # ------------------------------------------------------------------------------------------------------- pieces

    def _read_pieces(self, tokens: Sequence[Token]) -> Iterator[Piece]:
        """Yield paragraphs, items with their sign or number, descriptions behind their term, and lines of code."""
        term: list[_Part] = []
        opened = ""
        for token in tokens:
            if token.type in ("list_item_open", "dt_open", "dd_open"):
                opened = token.type
            elif token.type == "inline":
                parts = self._inline(token)
                if opened == "dt_open":
                    yield from _make_piece(term)
                    term = parts
                else:
                    before = self._marker(token) if opened == "list_item_open" else []
                    for one in _split_labels(parts):
                        yield from _make_piece([*term, *([_Part(": ")] if term else before), *one])
                        term, before = [], []
                    term = []
                opened = ""
            elif token.type in ("fence", "front_matter"):
                yield from self._read_lines(token, 1)
        yield from _make_piece(term)

    def _read_lines(self, token: Token, n_before: int) -> Iterator[Piece]:
        """Yield the lines of a block, without `n_before` lines that open it and one that closes it."""
        first, end = token.map or (0, 0)
        is_closed = n_before and end > first + 1 and self.lines[end - 1].strip(" >\t")[:3] in (token.markup[:3], "...")
        for number in range(first + n_before, min(end - bool(is_closed), len(self.lines))):
            yield from _make_piece([self._part(self.places[number], self.places[number + 1] - 1)])

    def _marker(self, token: Token) -> list[_Part]:
        """Return the sign or number of an item of a list."""
        line = token.map[0] if token.map else 0
        found = _MARKER.match(self.lines[line])
        return [self._part(self.places[line] + found.start(1), self.places[line] + found.end(1))] if found else []

    def _read_table(
        self, tokens: Sequence[Token], is_of_labels: bool
    ) -> tuple[Span | None, tuple[tuple[str, ...], ...], list[Piece]]:
        """Return the place of the header, all cells, and the rows with the names of the columns.

        A table that is a header alone has it as its row.

        Args:
            is_of_labels: whether a table of two columns names values, since it comes before all text of a document.
        """
        rows: list[list[list[_Part]]] = []
        place = 0
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
                place = self._place_of(token)[0]
            elif token.type == "inline":
                rows[-1].append(self._inline(token, place))
                place = max((part.end for part in rows[-1][-1]), default=place)
        cells = tuple(tuple("".join(part.text for part in cell).strip() for cell in row) for row in rows)
        if len(rows) == 1:
            return None, cells, list(_make_piece(_join_cells([""] * len(cells[0]), rows[0])))
        start = self._place_of(tokens[0])[0]
        head = next(token for token in tokens if token.type == "thead_open").map or (0, 0)
        has_names = any(cells[0]) and not (is_of_labels and len(cells[0]) == 2)
        names = cells[0] if has_names else [""] * len(cells[0])
        pieces = [piece for row in rows[has_names:] for piece in _make_piece(_join_cells(names, row))]
        return self._trim(start, self.places[head[1] + 1]), cells, pieces

    def _kind_of_html(self, start: int, end: int) -> tuple[str, int]:
        """Return kind and end of an element; a table or list goes on behind blank lines to its end tag."""
        opened = _HTML.match(self.text, start)
        kind = _HTML_KINDS.get(opened[1].lower(), PARAGRAPH) if opened else PARAGRAPH
        if not opened or kind == PARAGRAPH:
            return kind, end
        return kind, max(end, self._ends_of_elements.get(opened.start(1) - 1, end))

    @cached_property
    def _ends_of_elements(self) -> dict[int, int]:
        """Start and end of each element whose kind is a block of its own and that has an end tag."""
        ends: dict[int, int] = {}
        opened: dict[str, list[int]] = {name: [] for name in _HTML_KINDS}
        for tag in _ELEMENT.finditer(self.text):
            stack = opened[tag[2].lower()]
            if not tag[1]:
                stack.append(tag.start())
            elif stack:
                ends[stack.pop()] = tag.end()
        return ends

    def _read_html(self, start: int, end: int) -> Iterator[Piece]:
        """Yield the texts between the tags that begin or end a line or a cell."""
        parts: list[_Part] = []
        for tag in _TAG.finditer(self.text, start, end):
            parts += self._decode(start, tag.start())
            if (tag[2] or "").upper() in _BREAKING:
                yield from _make_piece(parts)
                parts = []
            start = tag.end()
        yield from _make_piece([*parts, *self._decode(start, end)])

    def _part(self, start: int, end: int) -> _Part:
        return _Part(self.text[start:end], start, end)

    def _decode(self, start: int, end: int) -> Iterator[_Part]:
        """Yield a part of the source with its entities of HTML decoded."""
        for found in _ENTITY.finditer(self.text, start, end):
            yield self._part(start, found.start())
            yield _Part(unescape(found[0]), *found.span())
            start = found.end()
        yield self._part(start, end)

    # ------------------------------------------------------------------------------------------------------- inline

    def _inline(self, token: Token, place: int = 0) -> list[_Part]:
        """Return the readable parts of a token's content, which begins at or behind a place in the source."""
        content, children = token.content, token.children or []
        on_one_line = content.replace("\n", " ")
        starts = self._line_starts(token, place)
        at, shown = 0, []  # place in the content, and what of it is read: (start, end, text)
        targets: list[bool] = []
        for child in children:
            kind = child.type
            if kind in ("text", "html_inline"):
                begin = content.find(child.content, at)
                at = max(begin, at) + len(child.content)
                if kind == "text":
                    shown.append((at - len(child.content), at, child.content))
                elif child.content.lower().startswith("<br"):
                    shown.append((at, at, " "))
            elif kind == "text_special":
                at = max(content.find(child.markup, at), at) + len(child.markup)
                shown.append((at - len(child.markup), at, child.content))
            elif kind == "code_inline":
                begin = content.find(child.markup, at) + len(child.markup)
                begin = on_one_line.find(child.content, begin)
                shown.append((begin, begin + len(child.content), child.content))
                self.codes.append(child.content)
                at = content.find(child.markup, begin + len(child.content)) + len(child.markup)
            elif kind in ("softbreak", "hardbreak"):
                at = content.find("\n", at) + 1
                shown.append((at - 1, at, "\n"))
            elif kind == "link_open":
                is_auto = child.markup == "autolink"
                targets.append(is_auto)
                at = content.find("<" if is_auto else "[", at) + 1
            elif kind == "link_close":
                at = content.find(">", at) + 1 if targets.pop() else _behind_target(content, content.find("]", at) + 1)
            elif kind == "image":
                label = content.find(child.content, content.find("![", at) + 2)
                at = _behind_target(content, content.find("]", label + len(child.content)) + 1)
            elif child.markup:
                at = content.find(child.markup, at) + len(child.markup)
        parts = [part for start, end, text in shown for part in _place(starts, start, end, text)]
        self._join_divided(parts)
        return parts

    def _join_divided(self, parts: list[_Part]) -> None:
        """Make one word of the two parts of a word that a hyphen divides at the end of a line.

        The hyphen stays if the word has it anyway: before a capital, or where the text writes it within a line.
        """
        for place in range(1, len(parts) - 1):
            before, gap, after = parts[place - 1 : place + 2]
            if gap.text != "\n" or before.text[-1:] not in _HYPHENS or not before.text:
                continue
            first = _LAST_LETTERS.search(before.text, max(0, len(before.text) - _LONGEST_PART))
            second = _FIRST_LETTERS.match(after.text)
            if first and second:
                parts[place] = _cut(gap, 0, 0)
                if second[0][0].islower() and (first[0], second[0]) not in self._compounds:
                    parts[place - 1] = _cut(before, 0, len(before.text) - 1)

    @cached_property
    def _compounds(self) -> set[tuple[str, str]]:
        """The neighbouring parts of the words with hyphens."""
        found = (match[0].split("-") for match in _COMPOUND.finditer(self.text))
        return {pair for parts in found for pair in pairwise(parts)}

    def _line_starts(self, token: Token, place: int) -> list[tuple[int, int]]:
        """Return where each line of a token's content begins, in the content and in the source."""
        starts, at = [], 0
        for number, line in enumerate(token.content.split("\n"), start=token.map[0] if token.map else 0):
            begin = max(self.places[min(number, len(self.lines) - 1)], place)
            found = self.text.find(line, begin)
            if 0 <= found < self.places[min(number + 1, len(self.lines))]:
                starts.append((at, found))
            else:  # a cell whose escaped bars the parser has unescaped
                for part in _BEFORE_BAR.split(line):
                    begin = max(self.text.find(part, begin), begin)
                    starts.append((at, begin))
                    at += len(part)
                at -= len(line)
            at += len(line) + 1
        return starts


def _top_level(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each block that is in no other."""
    group: list[Token] = []
    for token in tokens:
        if token.level == 0 and token.nesting >= 0:
            if group:
                yield group
            group = []
        group.append(token)
    if group:
        yield group


def _as_markdown(found: re.Match[str]) -> str:
    """Return a heading of reStructuredText with a rule of the same length that Markdown knows."""
    title, _ = found[1], found[2]
    rule = found[0][len(title) + 1 :]
    is_heading = len(title) <= MAX_TITLE and len(title) <= 2 * len(rule.strip())
    return f"{title}\n{'-' * len(rule)}" if is_heading else found[0]


def _behind_target(content: str, at: int) -> int:
    """Return the place behind the target of a link whose label ends at `at`."""
    helpers = _parser().helpers
    if content[at : at + 1] == "[":
        return content.find("]", at) + 1
    if content[at : at + 1] != "(":
        return at
    place = _behind_space(content, at + 1)
    target = helpers.parseLinkDestination(content, place, len(content))
    place = _behind_space(content, target.pos if target.ok else place)
    title = helpers.parseLinkTitle(content, place, len(content))
    return content.find(")", title.pos if title.ok else place) + 1


def _behind_space(content: str, at: int) -> int:
    found = _SPACE.match(content, at)
    return found.end() if found else at


def _place(starts: Sequence[tuple[int, int]], start: int, end: int, text: str) -> Iterator[_Part]:
    """Yield a stretch of a token's content with its place in the source, cut where the source goes on elsewhere."""
    line, done = bisect_right(starts, (start, 1 << 62)) - 1, start
    while True:
        offset = starts[line][1] - starts[line][0]
        behind = starts[line + 1][0] if line + 1 < len(starts) else end
        if not len(text) == end - start > behind - start > 0:
            break
        yield _Part(text[done - start : behind - start], done + offset, behind + offset)
        line, done = line + 1, behind
    yield _Part(text[done - start :], done + offset, end + offset)


def _join_cells(names: Sequence[str], cells: Sequence[list[_Part]]) -> list[_Part]:
    """Return the cells of a row that are not empty, each behind the name of its column if it has one."""
    parts: list[_Part] = []
    for name, cell in zip(names, cells, strict=False):
        if any(part.text.strip() for part in cell):
            between = "; " if name or len(cells) != 2 else ": "
            parts += [_Part(between if parts else ""), _Part(f"{name}: " if name else ""), *cell]
    return [*parts, _Part(".")] if parts else []


def _split_labels(parts: list[_Part]) -> Iterator[list[_Part]]:
    """Yield the lines of a paragraph that says "Label: value" in each, else the whole paragraph."""
    segments: list[list[_Part]] = [[]]
    for part in parts:
        place = 0
        for gap in _GAP.finditer(part.text):
            segments[-1].append(_cut(part, place, gap.start()))
            segments.append([])
            place = gap.end()
        segments[-1].append(_cut(part, place, len(part.text)))
    texts = ["".join(part.text for part in segment).strip() for segment in segments]
    if all(LABEL.fullmatch(text) for text in texts if text):
        yield from segments
    else:
        yield parts


def _cut(part: _Part, first: int, last: int) -> _Part:
    if part.start < 0 or len(part.text) != part.end - part.start:
        return part if first < last else _Part("", part.start, part.start)
    return _Part(part.text[first:last], part.start + first, part.start + last)


def _make_piece(parts: Iterable[_Part]) -> Iterator[Piece]:
    """Yield the piece that parts make, without white space at its ends and invisible characters; none without words."""
    visible = [part for one in parts for part in _without_invisible(one)]
    text = "".join(part.text for part in visible)
    n_before, length = len(text) - len(text.lstrip()), len(text.strip())
    if not length or all(part.start < 0 or not part.text.strip() for part in visible):
        return
    runs, at = [], -n_before
    for part in visible:
        first, last = max(-at, 0), min(length - at, len(part.text))
        if part.start >= 0 and first < last:
            is_even = len(part.text) == part.end - part.start
            start, end = (part.start + first, part.start + last) if is_even else (part.start, part.end)
            runs.append(Run(at + first, start, end, last - first))
        at += len(part.text)
    yield Piece(runs[0].start, runs[-1].end, text.strip(), tuple(runs))


def _without_invisible(part: _Part) -> Iterator[_Part]:
    """Yield the parts of a part between soft hyphens and characters of no width."""
    if part.start < 0 or len(part.text) != part.end - part.start:
        yield part
        return
    place = 0
    for found in _INVISIBLE.finditer(part.text):
        yield _Part(part.text[place : found.start()], part.start + place, part.start + found.start())
        place = found.end()
    yield _Part(part.text[place:], part.start + place, part.end)
