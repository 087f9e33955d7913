"""Aggregation of a document's small typed chunks into text units.

Consecutive whole chunks are combined to about `aggregation_target` tokens, at most `aggregation_max` tokens and
`aggregation_max_pages` pages (last page - first page + 1). A title stays with the chunk behind it, and a caption with
its figure, table or code. A chunk that does not fit alone is cut by its type (`chunk_parts.py`).
Text units do not overlap; but each part of a cut table repeats the table's header.

A text unit may end between 2 * target - max and max tokens, so its mean length is the target. It ends before a title if
possible, else behind the chunk with the lowest content hash. So an edit moves only the ends near it.

If rules conflict, the limits of tokens and pages win. A text unit then ends with a title only if no chunk follows, or
if the next chunk is too many pages or titles away. Without `aggregation`, each chunk is one text unit, or its parts
if it is longer than `aggregation_max`.

Captions with the figure, table or code that they belong to, before or behind it.

A *float* is a figure, a table or code. Floats and captions that follow one another are a row. In a row a caption
belongs to a float of the kind that it names ("Table 3: ..."), else to one beside it. So no caption stays alone beside a
float, and a float can have several. If the captions of two floats overlap, as in a figure's caption, a table, the
table's caption, the figure, all of them stay together.

Add here: words by which captions begin, and what belongs to what.

Keep out: reading chunks (`inputs/rows.py`), ids and tables
(`text_units.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from typing import Any

from graphrag_pipeline.indexing.chunk_parts import SLACK, Span, count_pages, cut_chunk, span_pages
from graphrag_pipeline.settings.settings import TextUnitsSettings
from graphrag_pipeline.tables import CAPTION_CHUNK, CHUNK_KINDS, TITLE_CHUNK
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.tokens import count_tokens, count_tokens_each

_FLOATS = ("figure", "table", "code")
_WORDS = {
    "figure": r"fig(?:ur\w*)?|imagen?|photo\w*|plate|chart|diagram|map|abb(?:ildung)?|bild|рис(?:унок)?|[图圖図]表?",
    "table": r"tab(?:l\w*|ell\w*|ela|la)?|табл(?:ица)?|表",
    "code": r"listing|algorithm|code",
}
_LABELS = {kind: late_re(rf"\W*(?:{words})(?![^\W\d_])", re.I) for kind, words in _WORDS.items()}
_NUMBERED = late_re(
    rf"\W*(?:{'|'.join(_WORDS.values())})\.?\s*[A-Z]?\d+(?:[.-]\d+)*[a-z]?\s*(?:[:.|\u2013\u2014](?=\s|$)|\uff1a|$)",
    re.I | re.M,
)
_PICTURES = late_re(r"(?:\s*(?:!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>|<!--\s*image\s*-->))+\s*", re.I)


@dataclass(frozen=True)
class CaptionedChunk:
    """A chunk with the captions beside it, as offsets into the document's text.

    Attributes:
        span: from the first caption or the chunk to the last.
        body: of the chunk alone; the longest float if several stay together.
        kind: value of `tables.CHUNK_KINDS`.
        pages: first and last page; None if unknown.
    """

    span: Span
    body: Span
    kind: str
    pages: Span | None

    @property
    def has_captions(self) -> bool:
        return self.span != self.body


def join_captions(text: str, chunks: Sequence[Mapping[str, Any]], settings: TextUnitsSettings) -> list[CaptionedChunk]:
    """Return the chunks in order, each float with its captions.

    A caption stays alone if it is too many pages away, or too long to be one text unit with a part of its float.
    """
    document = _Document(text, chunks)
    joined: list[CaptionedChunk] = []
    for row in document.rows():
        for group in _merge_overlapping(row, document.find_owners(row)):
            joined += _join_group(document, group, settings)
    return sorted(joined, key=lambda chunk: chunk.span)


class _Document:
    """The chunks of a document by place: what each is, and what it names.

    Attributes:
        kinds: values of `tables.CHUNK_KINDS`. A text that is only a picture is a figure; one that begins like
            "Figure 3:" is a caption.
        labels: kind of float that a caption names; "" for other chunks.
    """

    def __init__(self, text: str, chunks: Sequence[Mapping[str, Any]]) -> None:
        self.text = text
        self.chunks = chunks
        self.kinds = [self._kind(chunk) for chunk in chunks]
        self.labels = [
            self._label(chunk) if kind == CAPTION_CHUNK else "" for chunk, kind in zip(chunks, self.kinds, strict=True)
        ]

    def _kind(self, chunk: Mapping[str, Any]) -> str:
        kind = CHUNK_KINDS.get(chunk["type"], "paragraph")
        if kind != "paragraph":
            return kind
        if _PICTURES.fullmatch(self.text, chunk["start"], chunk["end"]):
            return "figure"
        return CAPTION_CHUNK if _NUMBERED.match(self.text, chunk["start"], chunk["end"]) else kind

    def _label(self, chunk: Mapping[str, Any]) -> str:
        named = (kind for kind in _FLOATS if _LABELS[kind].match(self.text, chunk["start"], chunk["end"]))
        typed = (kind for kind in _FLOATS if chunk["type"].startswith(kind))
        return next(named, "") or next(typed, "")

    def rows(self) -> Iterator[range]:
        """Yield the places of each row of floats and captions, and of each other chunk, in order."""
        start = 0
        for place, kind in enumerate([*self.kinds, ""]):
            if kind in (*_FLOATS, CAPTION_CHUNK):
                continue
            if start < place:
                yield range(start, place)
            if place < len(self.kinds):
                yield range(place, place + 1)
            start = place + 1

    @cached_property
    def _is_above(self) -> dict[str, bool]:
        """For each kind of float: whether captions with one such float beside them mostly stand before it."""
        votes: Counter[tuple[str, bool]] = Counter()
        for place, kind in enumerate(self.kinds):
            beside = self._beside(place) if kind == CAPTION_CHUNK else []
            if len(beside) == 1:
                votes[self.kinds[beside[0]], beside[0] > place] += 1
        return {kind: votes[kind, True] > votes[kind, False] for kind in _FLOATS}

    def _beside(self, place: int) -> list[int]:
        """Return the floats before and behind a caption, of the kind that it names."""
        kinds = (self.labels[place],) if self.labels[place] else _FLOATS
        places = (other for other in (place - 1, place + 1) if 0 <= other < len(self.kinds))
        return [other for other in places if self.kinds[other] in kinds]

    # ------------------------------------------------------------------------------------------------------- owners

    def find_owners(self, row: range) -> dict[int, int]:
        """Return the float of each caption of a row by place; {} for a row without floats."""
        owners: dict[int, int] = {}
        for kind in _FLOATS:
            floats = [place for place in row if self.kinds[place] == kind]
            captions = [place for place in row if self.labels[place] == kind]
            if len(captions) == len(floats):
                owners |= dict(zip(captions, floats, strict=True))
            elif floats:
                self._own_beside(captions, owners)
                for caption in captions:
                    owners.setdefault(caption, self._nearest(caption, floats, owners))
        floats = [place for place in row if self.kinds[place] in _FLOATS]
        for caption in (place for place in row if self.kinds[place] == CAPTION_CHUNK and place not in owners):
            if floats:
                owners[caption] = self._owner_beside(caption, floats, owners)
        return owners

    def _own_beside(self, captions: Sequence[int], owners: dict[int, int]) -> None:
        for caption in captions:
            free = [place for place in self._beside(caption) if place not in owners.values()]
            if free:
                owners[caption] = free[-1] if self._is_above[self.labels[caption]] else free[0]

    def _nearest(self, caption: int, floats: Sequence[int], owners: Mapping[int, int]) -> int:
        free = [place for place in floats if place not in owners.values()]
        return min(free or floats, key=lambda place: (abs(place - caption), place))

    def _owner_beside(self, caption: int, floats: Sequence[int], owners: Mapping[int, int]) -> int:
        """Return the float of a caption that names none of the row: a free one, else that of the caption before it."""
        before, behind = caption - 1, caption + 1
        earlier = [before] if before in floats and before not in owners.values() else []
        earlier += [owners[before]] if before in owners else []
        later = [behind] if behind in floats and behind not in owners.values() else []
        is_before = bool(later) and self._is_above[self.kinds[behind]]
        return next(iter([*later, *earlier] if is_before else [*earlier, *later]), self._nearest(caption, floats, {}))


def _merge_overlapping(row: range, owners: Mapping[int, int]) -> Iterator[dict[int, list[int]]]:
    """Yield float -> its captions, of the floats that stay together; a caption without a float is a key."""
    group: dict[int, list[int]] = {}
    end = row.start
    spans = {place: [place] for place in row if place not in owners}
    for caption, other in owners.items():
        spans[other].append(caption)
    for place in sorted(spans, key=lambda place: min(spans[place])):
        if group and min(spans[place]) > end:
            yield group
            group = {}
        group[place] = spans[place][1:]
        end = max(end, *spans[place])
    yield group


def _join_group(
    document: _Document, group: Mapping[int, Sequence[int]], settings: TextUnitsSettings
) -> Iterator[CaptionedChunk]:
    """Yield the chunks of a group as one, or each float with the captions next to it, or each chunk alone."""
    together = _join(document, group, [place for other in group for place in (other, *group[other])])
    if _may_join(document.text, together, settings, is_cut=len(group) == 1):
        yield together
        return
    for other, captions in group.items():
        near = _neighbours(other, captions) if len(group) > 1 else [other]
        alone = [place for place in captions if place not in near]
        one = _join(document, {other: captions}, near)
        if not _may_join(document.text, one, settings):
            one, alone = _join(document, {other: []}, [other]), list(captions)
        yield one
        yield from (_join(document, {place: []}, [place]) for place in alone)


def _neighbours(place: int, captions: Sequence[int]) -> list[int]:
    """Return the place of a float and those of its captions that no other chunk separates from it."""
    first = last = place
    while first - 1 in captions:
        first -= 1
    while last + 1 in captions:
        last += 1
    return list(range(first, last + 1))


def _join(document: _Document, floats: Mapping[int, Sequence[int]], places: Sequence[int]) -> CaptionedChunk:
    chunks, pages = document.chunks, None
    for place in places:
        page = chunks[place]["page"]
        pages = span_pages(pages, None if page is None else (page, page))
    body = max(floats, key=lambda place: (chunks[place]["end"] - chunks[place]["start"], -place))
    span = (chunks[min(places)]["start"], chunks[max(places)]["end"])
    return CaptionedChunk(span, (chunks[body]["start"], chunks[body]["end"]), document.kinds[body], pages)


def _may_join(text: str, chunk: CaptionedChunk, settings: TextUnitsSettings, is_cut: bool = True) -> bool:
    """Return whether a chunk with captions is one text unit, or one with the captions and a part, if it can be cut."""
    if not chunk.has_captions:
        return True
    beside = (text[chunk.span[0] : chunk.body[0]], text[chunk.body[1] : chunk.span[1]])
    n_whole, *n_beside = count_tokens_each([text[slice(*chunk.span)], *beside], settings.encoding)
    fits = n_whole <= settings.aggregation_max or (is_cut and 2 * sum(n_beside) <= settings.aggregation_target)
    return fits and count_pages(chunk.pages) <= settings.aggregation_max_pages


@dataclass(frozen=True)
class TextSpan:
    """The place of a text unit in its document: character offsets, and the token count of exactly its text.

    Attributes:
        header: place of the table header that the text unit repeats before this span; None if it repeats none.
        pages: first and last page of its chunks; None if unknown.
    """

    start: int
    end: int
    n_tokens: int
    header: Span | None = None
    pages: Span | None = None

    def text_of(self, text: str) -> str:
        """Return the text of the text unit in a document's text."""
        return join_header(text, self.header) + text[self.start : self.end]


def join_header(text: str, header: Span | None) -> str:
    """Return the repeated header in a document's text; "" without one."""
    return text[slice(*header)] if header else ""


@dataclass(frozen=True)
class _Block:
    """A unit that is not divided: a chunk with the titles before it, or a part of a chunk that is too long.

    Attributes:
        start, end: offsets into the document's text.
        pages: first and last page; None if unknown.
        is_title: whether it begins with a title.
        is_open: whether it ends with a title; a text unit should not end with it.
        header: what a text unit that starts with it repeats.
    """

    start: int
    end: int
    pages: Span | None
    is_title: bool = False
    is_open: bool = False
    header: Span | None = None


def aggregate_chunks(text: str, chunks: Sequence[Mapping[str, Any]], settings: TextUnitsSettings) -> Iterator[TextSpan]:
    """Yield the spans of a document's text units in order.

    Args:
        text: text of the document.
        chunks: `tables.CHUNKS`, in order, not overlapping.

    Returns:
        Spans that cover all text but white space, without overlap.
    """
    blocks = list(_group_chunks(text, chunks, settings))
    texts = [text[block.start : after] for block, after in zip(blocks, _starts_after(blocks), strict=True)]
    totals = [0, *accumulate(count_tokens_each(texts, settings.encoding))]  # estimated number of tokens before block i
    first = 0
    while first < len(blocks):
        ends = _order_ends(text, blocks, totals, first, settings) if settings.aggregation else [first]
        for last in ends:
            pages = reduce(span_pages, (block.pages for block in blocks[first : last + 1]))
            span = TextSpan(blocks[first].start, blocks[last].end, 0, blocks[first].header, pages)
            n_tokens = count_tokens(span.text_of(text), settings.encoding)
            if n_tokens <= settings.aggregation_max or last == first:
                yield replace(span, n_tokens=n_tokens)
                first = last + 1
                break


def _starts_after(blocks: Sequence[_Block]) -> list[int]:
    """Return for each block the start of the next one; for the last block its end."""
    return [right.start for _, right in pairwise(blocks)] + [block.end for block in blocks[-1:]]


def _order_ends(
    text: str, blocks: Sequence[_Block], totals: Sequence[int], first: int, settings: TextUnitsSettings
) -> Iterator[int]:
    """Yield the possible last blocks of the text unit that starts at block `first`, best first, `first` included."""
    highest = _reach(blocks, totals, first, settings)
    if highest == len(blocks) - 1:
        yield highest
    least = 2 * settings.aggregation_target - settings.aggregation_max
    closed = [end for end in range(first, highest + 1) if not blocks[end].is_open]
    near = [end for end in closed if totals[end + 1] - totals[first] >= least]

    def rank(end: int) -> tuple[bool, bytes, int]:
        is_before_title = end + 1 < len(blocks) and blocks[end + 1].is_title
        piece = text[blocks[end].start : blocks[end].end]
        return not is_before_title, hashlib.blake2b(piece.encode(), digest_size=8).digest(), -end

    yield from sorted(near, key=rank)
    yield from reversed(closed[: len(closed) - len(near)])
    yield from range(highest, first - 1, -1)


def _reach(blocks: Sequence[_Block], totals: Sequence[int], first: int, settings: TextUnitsSettings) -> int:
    """Return the last block within the page limit and the estimated token limit of a unit that starts at `first`."""
    last, pages = first, blocks[first].pages
    for block in range(first + 1, len(blocks)):
        pages = span_pages(pages, blocks[block].pages)
        if totals[block + 1] - totals[first] > settings.aggregation_max + SLACK:
            break
        if count_pages(pages) > settings.aggregation_max_pages:
            break
        last = block
    return last


# --------------------------------------------------------------------------------------------------------------- blocks


def _group_chunks(text: str, chunks: Sequence[Mapping[str, Any]], settings: TextUnitsSettings) -> Iterator[_Block]:
    most_titles = settings.aggregation_target // 2  # tokens; a longer title counts as ordinary text
    titles: list[tuple[_Block, int]] = []
    if not settings.aggregation:
        document = _Document(text, chunks)
        for place in range(len(chunks)):
            yield from _close(text, [], _join(document, {place: []}, [place]), settings)
        return
    for chunk in join_captions(text, chunks, settings):
        n_tokens = count_tokens(text[slice(*chunk.span)], settings.encoding) if chunk.kind == TITLE_CHUNK else 0
        if chunk.kind == TITLE_CHUNK and n_tokens <= most_titles:
            titles.append((_Block(*chunk.span, chunk.pages, is_title=True, is_open=True), n_tokens))
            continue
        n_kept = _count_kept(titles, chunk.pages, most_titles, settings.aggregation_max_pages)
        yield from (title for title, _ in titles[: len(titles) - n_kept])
        yield from _close(text, [title for title, _ in titles[len(titles) - n_kept :]], chunk, settings)
        titles = []
    yield from (title for title, _ in titles)


def _count_kept(titles: Sequence[tuple[_Block, int]], pages: Span | None, most_tokens: int, max_pages: int) -> int:
    """Count the titles, nearest first, that stay with the chunk behind them within the limits of tokens and pages."""
    total = n_kept = 0
    for title, n_tokens in reversed(titles):
        total += n_tokens + SLACK
        pages = span_pages(pages, title.pages)
        if total > most_tokens or count_pages(pages) > max_pages:
            break
        n_kept += 1
    return n_kept


def _close(text: str, titles: Sequence[_Block], chunk: CaptionedChunk, settings: TextUnitsSettings) -> Iterator[_Block]:
    """Yield a chunk with its titles and captions as one block, or its parts if that is too long.

    The first part has the titles and the captions before the chunk, the last part the captions behind it. A chunk that
    fits with its captions is not cut to make room for titles: the farthest titles are left alone.
    """

    def count(start: int, end: int) -> int:
        return count_tokens(text[start:end], settings.encoding)

    start, most = titles[0].start if titles else chunk.span[0], settings.aggregation_max
    if count(start, chunk.span[1]) > most and chunk.has_captions and titles and count(*chunk.span) <= most:
        yield titles[0]
        yield from _close(text, titles[1:], chunk, settings)
        return
    pages = chunk.pages
    for title in titles:
        pages = span_pages(pages, title.pages)
    if count(start, chunk.span[1]) <= most:
        yield _Block(start, chunk.span[1], pages, is_title=bool(titles))
        return
    room = most - count(start, chunk.body[0]) - count(chunk.body[1], chunk.span[1]) - SLACK
    size = max(1, min(settings.aggregation_target, room))
    parts = cut_chunk(text, chunk.body, chunk.kind, size, settings.encoding)
    last = len(parts.spans) - 1
    for number, (part_start, part_end) in enumerate(parts.spans):
        end = chunk.span[1] if number == last else part_end
        if number:
            yield _Block(part_start, end, chunk.pages, header=parts.header)
        else:
            yield _Block(start, end, pages, is_title=bool(titles))
