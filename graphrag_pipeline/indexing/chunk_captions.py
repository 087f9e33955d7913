"""Captions with the figure, table or code that they belong to, before or behind it.

A *float* is a figure, a table or code. Floats and captions that follow one another are a row. In a row a caption
belongs to a float of the kind that it names ("Table 3: ..."), else to one beside it. So no caption stays alone beside a
float, and a float can have several. If the captions of two floats overlap, as in a figure's caption, a table, the
table's caption, the figure, all of them stay together.

Add here: words by which captions begin, and what belongs to what. Keep out: cutting (`chunk_parts.py`), and which
chunks make one text unit (`chunk_aggregation.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from graphrag_pipeline.indexing.chunk_parts import Span, count_pages, span_pages
from graphrag_pipeline.settings.settings import TextUnitsSettings
from graphrag_pipeline.tables import CAPTION_CHUNK, CHUNK_KINDS
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.tokens import count_tokens_each

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
