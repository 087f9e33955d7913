"""Aggregation of a document's small typed chunks into text units.

Consecutive whole chunks are combined to about `aggregation_target` tokens, at most `aggregation_max` tokens and
`aggregation_max_pages` pages (last page - first page + 1). A title stays with the chunk behind it. A chunk that does
not fit alone is cut into near-equal pieces at sentence ends. Text units do not overlap.

A text unit may end between 2 * target - max and max tokens, so its mean length is the target. It ends before a title if
possible, else behind the chunk with the lowest content hash. So an edit moves only the ends near it.

If rules conflict, the limits of tokens and pages win. A text unit then ends with a title only if no chunk follows, or
if the next chunk is too many pages or titles away. Keep out: reading chunks (`inputs/chunks.py`), ids and tables
(`text_units.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from graphrag_pipeline.models.pieces import split_to_pieces
from graphrag_pipeline.settings.settings import TextUnitsSettings
from graphrag_pipeline.tables import TITLE_CHUNK
from graphrag_pipeline.text.tokens import count_tokens, count_tokens_each

_SLACK = 8  # tokens that joining two texts can add


@dataclass(frozen=True)
class _Block:
    """A unit that is not divided: a chunk with the titles before it, or a piece of a chunk that is too long.

    Attributes:
        start, end: offsets into the document's text.
        pages: first and last page; None if unknown.
        is_title: whether it begins with a title.
        is_open: whether it ends with a title; a text unit should not end with it.
    """

    start: int
    end: int
    pages: tuple[int, int] | None
    is_title: bool = False
    is_open: bool = False


def aggregate_chunks(
    text: str, chunks: Sequence[Mapping[str, Any]], settings: TextUnitsSettings
) -> Iterator[tuple[int, int, int]]:
    """Yield the spans of a document's text units in order.

    Args:
        text: text of the document.
        chunks: `tables.CHUNKS`, in order, not overlapping.

    Returns:
        (start, end, number of tokens) of each text unit. They cover all text but white space, without overlap.
    """
    blocks = list(_group_chunks(text, chunks, settings))
    texts = [text[block.start : after] for block, after in zip(blocks, _starts_after(blocks), strict=True)]
    totals = [0, *accumulate(count_tokens_each(texts, settings.encoding))]  # estimated number of tokens before block i
    first = 0
    while first < len(blocks):
        for last in _order_ends(text, blocks, totals, first, settings):
            start, end = blocks[first].start, blocks[last].end
            n_tokens = count_tokens(text[start:end], settings.encoding)
            if n_tokens <= settings.aggregation_max or last == first:
                yield start, end, n_tokens
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
        pages = _span(pages, blocks[block].pages)
        if totals[block + 1] - totals[first] > settings.aggregation_max + _SLACK:
            break
        if _n_pages(pages) > settings.aggregation_max_pages:
            break
        last = block
    return last


def _span(left: tuple[int, int] | None, right: tuple[int, int] | None) -> tuple[int, int] | None:
    if left is None or right is None:
        return left or right
    return min(left[0], right[0]), max(left[1], right[1])


def _n_pages(pages: tuple[int, int] | None) -> int:
    return pages[1] - pages[0] + 1 if pages else 0


# --------------------------------------------------------------------------------------------------------------- blocks


def _group_chunks(text: str, chunks: Sequence[Mapping[str, Any]], settings: TextUnitsSettings) -> Iterator[_Block]:
    most_titles = settings.aggregation_target // 2  # tokens; a longer title counts as ordinary text
    counts = count_tokens_each([text[chunk["start"] : chunk["end"]] for chunk in chunks], settings.encoding)
    titles: list[tuple[_Block, int]] = []
    for chunk, n_tokens in zip(chunks, counts, strict=True):
        pages = None if chunk["page"] is None else (chunk["page"], chunk["page"])
        is_title = chunk["type"] == TITLE_CHUNK and n_tokens <= most_titles
        block = _Block(chunk["start"], chunk["end"], pages, is_title=is_title, is_open=is_title)
        if is_title:
            titles.append((block, n_tokens))
            continue
        n_kept = _count_kept(titles, pages, most_titles, settings.aggregation_max_pages)
        yield from (title for title, _ in titles[: len(titles) - n_kept])
        yield from _close(text, [title for title, _ in titles[len(titles) - n_kept :]], block, settings)
        titles = []
    yield from (title for title, _ in titles)


def _count_kept(
    titles: Sequence[tuple[_Block, int]], pages: tuple[int, int] | None, most_tokens: int, max_pages: int
) -> int:
    """Count the titles, nearest first, that stay with the chunk behind them within the limits of tokens and pages."""
    total = n_kept = 0
    for title, n_tokens in reversed(titles):
        total += n_tokens + _SLACK
        pages = _span(pages, title.pages)
        if total > most_tokens or _n_pages(pages) > max_pages:
            break
        n_kept += 1
    return n_kept


def _close(text: str, titles: Sequence[_Block], block: _Block, settings: TextUnitsSettings) -> Iterator[_Block]:
    """Yield a chunk with its titles as one block, or its pieces if that is too long; the first piece has the titles."""
    start, pages = block.start, block.pages
    for title in reversed(titles):
        start, pages = title.start, _span(pages, title.pages)
    whole = _Block(start, block.end, pages, is_title=bool(titles))
    if count_tokens(text[whole.start : whole.end], settings.encoding) <= settings.aggregation_max:
        yield whole
        return
    room = settings.aggregation_max - count_tokens(text[start : block.start], settings.encoding) - _SLACK
    pieces = _cut(text, block, max(1, min(settings.aggregation_target, room)), settings.encoding)
    for number, (piece_start, piece_end) in enumerate(pieces):
        if number:
            yield _Block(piece_start, piece_end, block.pages)
        else:
            yield _Block(start, piece_end, pages, is_title=bool(titles))


def _cut(text: str, block: _Block, size: int, encoding: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of near-equal pieces of a chunk, without white space at their ends."""
    end = block.start
    for piece in split_to_pieces(text[block.start : block.end], size, encoding):
        start, end = end, end + len(piece.text)
        bare = piece.text.strip()
        if bare:
            start += len(piece.text) - len(piece.text.lstrip())
            yield start, start + len(bare)
