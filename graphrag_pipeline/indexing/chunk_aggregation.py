"""Aggregation of a document's small typed chunks into text units.

Consecutive whole chunks are combined to about `aggregation_target` tokens, at most `aggregation_max` tokens and
`aggregation_max_pages` pages (last page - first page + 1). A title stays with the chunk behind it, and a caption with
its figure, table or code (`chunk_captions.py`). A chunk that does not fit alone is cut by its type (`chunk_parts.py`).
Text units do not overlap; but each part of a cut table repeats the table's header.

A text unit may end between 2 * target - max and max tokens, so its mean length is the target. It ends before a title if
possible, else behind the chunk with the lowest content hash. So an edit moves only the ends near it.

If rules conflict, the limits of tokens and pages win. A text unit then ends with a title only if no chunk follows, or
if the next chunk is too many pages or titles away. Keep out: reading chunks (`inputs/rows.py`), ids and tables
(`text_units.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

from graphrag_pipeline.indexing.chunk_captions import CaptionedChunk, join_captions
from graphrag_pipeline.indexing.chunk_parts import SLACK, Span, count_pages, cut_chunk, span_pages
from graphrag_pipeline.settings.settings import TextUnitsSettings
from graphrag_pipeline.tables import TITLE_CHUNK
from graphrag_pipeline.text.tokens import count_tokens, count_tokens_each


@dataclass(frozen=True)
class TextSpan:
    """The place of a text unit in its document: character offsets, and the token count of exactly its text.

    Attributes:
        header: place of the table header that the text unit repeats before this span; None if it repeats none.
    """

    start: int
    end: int
    n_tokens: int
    header: Span | None = None

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
        for last in _order_ends(text, blocks, totals, first, settings):
            span = TextSpan(blocks[first].start, blocks[last].end, 0, blocks[first].header)
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
