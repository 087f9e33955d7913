"""Text units of documents, with content-defined boundaries (Muthitacharoen, Chen and Mazieres 2001, LBFS).

A text unit ends at the sentence end with the lowest content hash between `MIN_FILL` * `size` and `size` tokens, not at
the last sentence end that fits. So two versions of a document have the same boundaries again soon after an edit. With
windows of fixed length, all later boundaries would shift.

One refinement: if the next text unit could end at a still lower hash, only ends that keep that hash within its reach
are considered. After an edit at the top of a document this changes 2.8 text units of 135 on average instead of 3.8,
and 10 instead of 16 in the worst of 100 documents. The next text unit starts with whole sentences of overlap.

All decisions depend only on the text near a boundary.

With `text_units.markdown_blocks`, the blocks of a document's structure (`text/structure.py`) are cut by the rules for
typed chunks instead, and text units carry the headings above them.

Keep out: positions in the document and other documents. With
them, one edit would extract, and pay for, the rest of the document again.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any

import pyarrow as pa

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.chunk_aggregation import TextSpan, aggregate_chunks
from graphrag_pipeline.settings.indexing import MIN_FILL
from graphrag_pipeline.settings.settings import TextUnitsSettings
from graphrag_pipeline.tables import TEXT_UNITS
from graphrag_pipeline.text.sentences import grapheme_start, split_sentences
from graphrag_pipeline.text.structure import Structure, read_structure
from graphrag_pipeline.text.tokens import count_tokens, count_tokens_each, load_encoding


def _blocks_of(structure: Structure) -> list[dict[str, Any]]:
    """Return the blocks of a text with the keys of `tables.CHUNKS`; together they hold all text but white space."""
    return [
        {"start": block.start, "end": block.end, "type": block.kind, "page": None, "id": None}
        for block in structure.blocks
    ]


_SHORT_GAP = 16  # characters; shorter white space is counted with the sentence before it
_MAX_BYTES = 4  # bytes of a character in UTF-8
_WORD = 100  # characters; white space is searched within this distance when a sentence is cut by tokens


@dataclass(frozen=True)
class _TextSegment:
    """A sentence, or a part of a sentence that is too long. Text units consist of whole segments.

    Attributes:
        start, end: offsets of the text without white space at its ends.
    """

    start: int
    end: int
    starts_sentence: bool


def split_documents(documents: pa.Table, settings: TextUnitsSettings) -> pa.Table:
    """Split every document into text units; chunked documents are split at chunk ends (`chunk_aggregation.py`).

    With `markdown_blocks`, the blocks of other documents are their chunks, and text units have headings.

    Args:
        documents: needs `id` and `text`; may have `chunks`.

    Returns:
        `tables.TEXT_UNITS`; no row for a document without text.
    """
    rows = []
    columns = [name for name in ("id", "text", "chunks") if name in documents.schema.names]
    for document in documents.select(columns).to_pylist():
        text, chunks, occurrences = document["text"], document.get("chunks"), Counter[str]()
        structure = read_structure(text) if settings.markdown_blocks else None
        if chunks is not None:
            spans = aggregate_chunks(text, chunks, settings)
        elif structure:
            spans = aggregate_chunks(text, _blocks_of(structure), settings.for_blocks())
        else:
            spans = split_text(text, settings)
        page_ends = [] if chunks is not None else [match.start() for match in re.finditer("\f", text)]
        for position, span in enumerate(spans):
            headings = structure.headings_at(span.start) if structure else None
            unit_text = span.text_of(text)
            header_start, header_end = span.header or (None, None)
            first_page, last_page = span.pages or (_pages_at(page_ends, span) if page_ends else (None, None))
            rows.append(
                {
                    "id": stable_hash("text_unit", document["id"], unit_text, str(occurrences[unit_text])),
                    "document_id": document["id"],
                    "position": position,
                    "start": span.start,
                    "end": span.end,
                    "text": unit_text,
                    "n_tokens": span.n_tokens,
                    "header_start": header_start,
                    "header_end": header_end,
                    "heading_path": headings if headings is None else [title for _, title in headings],
                    "heading_levels": headings if headings is None else [level for level, _ in headings],
                    "first_page": first_page,
                    "last_page": last_page,
                }
            )
            occurrences[unit_text] += 1
    return TEXT_UNITS.from_rows(rows)


def _pages_at(page_ends: list[int], span: TextSpan) -> tuple[int, int]:
    """Return the pages of a span, from 1: a form feed ends a page, as in a converted PDF."""
    return 1 + bisect_right(page_ends, span.start), 1 + bisect_left(page_ends, span.end)


def with_context(text_units: pa.Table, documents: pa.Table) -> pa.Table:
    """Return text units with a column `context`: title and date of their document, and the headings above them.

    Args:
        text_units: needs `document_id`, and `heading_path` to name headings.
        documents: those of the text units; needs `id`, `title` and `creation_date`.
    """
    rows = zip(*(documents[name].to_pylist() for name in ("id", "title", "creation_date")), strict=True)
    said = {document_id: (title, date) for document_id, title, date in rows}
    paths = text_units["heading_path"].to_pylist() if "heading_path" in text_units.schema.names else []
    contexts = []
    for document_id, path in zip_longest(text_units["document_id"].to_pylist(), paths):
        title, date = said.get(document_id, ("", None))
        headings = [heading for heading in path or () if heading != title]
        parts = (("Document", title), ("Date", date), ("Section", " > ".join(headings)))
        contexts.append("\n".join(f"{name}: {' '.join(value.split())}" for name, value in parts if value))
    return text_units.append_column("context", pa.array(contexts, pa.string()))


def split_text(text: str, settings: TextUnitsSettings) -> Iterator[TextSpan]:
    """Yield the spans of a text's units in order.

    Each has at most `size` tokens and no white space at its ends. Together they cover all text but white space.
    """
    splitter = _Splitter(text, settings)
    first = done = 0  # the unit starts at segment `first`; all segments before `done` are in an earlier unit
    while done < len(splitter.segments):
        chosen = splitter.choose_end(first, done)
        if chosen is None:  # the overlap leaves no room for the next segment
            first = splitter.next_sentence(first + 1, done)
            continue
        end, n_tokens = chosen
        yield TextSpan(splitter.segments[first].start, splitter.segments[end].end, n_tokens)
        done = end + 1
        first = splitter.overlap_start(first, done)


class _Splitter:
    """The segments of one text with their token counts.

    Sums of counts are estimates. A chosen text unit is counted exactly.
    """

    def __init__(self, text: str, settings: TextUnitsSettings):
        self.text = text
        self.settings = settings
        self.segments = list(_cut_segments(text, settings.size, settings.encoding))
        n_tokens, self.gaps = self._measure()
        self.totals = [0]  # tokens before segment i
        for tokens, gap in zip(n_tokens, self.gaps, strict=True):
            self.totals.append(self.totals[-1] + tokens + gap)

    def choose_end(self, first: int, done: int) -> tuple[int, int] | None:
        """Return the last segment and the token count of the unit that starts at `first` and must reach `done`."""
        for end in self._ends(first, done):
            n_tokens = self._count(first, end)
            if n_tokens <= self.settings.size:
                return end, n_tokens
        return None

    def overlap_start(self, first: int, done: int) -> int:
        """Return the first segment of the next unit: whole sentences before `done`, at most `overlap` tokens."""
        start = done
        for segment in range(done - 1, first, -1):
            if self._estimate(segment, done - 1) > self.settings.overlap:
                break
            if self.segments[segment].starts_sentence:
                start = segment
        while start < done and self._count(start, done - 1) > self.settings.overlap:
            start = self.next_sentence(start + 1, done)
        return start

    def next_sentence(self, segment: int, done: int) -> int:
        """Return the first segment from `segment` on that starts a sentence; `done` without one before it."""
        while segment < done and not self.segments[segment].starts_sentence:
            segment += 1
        return segment

    def _ends(self, first: int, done: int) -> Iterator[int]:
        """Yield candidates for the last segment of a unit, best first."""
        size, last = self.settings.size, len(self.segments) - 1
        if self._estimate(first, last) <= size + size // 8:  # the estimate can be slightly too high
            yield last
        lowest, highest = self._window(self.totals[first], done)
        near = sorted(range(lowest, highest + 1), key=self._rank)
        # If the next text unit can end at a lower hash than any here, keep that end within its reach. Two versions of
        # a document then share this boundary; choosing one text unit at a time, they could miss it.
        overlap = self.settings.overlap
        shortest, longest = MIN_FILL * size - overlap, size - overlap
        far_lowest = bisect_left(self.totals, self.totals[lowest + 1] + shortest) - 1
        far_highest = min(bisect_right(self.totals, self.totals[highest + 1] + longest) - 2, last)
        target = min(range(max(far_lowest, highest + 1), far_highest + 1), key=self._rank, default=None)
        if target is not None and self._rank(target) < self._rank(near[0]):
            near.sort(key=lambda end: not shortest <= self.totals[target + 1] - self.totals[end + 1] <= longest)
        yield from near
        yield from range(lowest - 1, done - 1, -1)

    def _window(self, tokens_before: int, done: int) -> tuple[int, int]:
        """Return the first and the last segment with `MIN_FILL` * `size` to `size` tokens; `done` without any."""
        size, last = self.settings.size, len(self.segments) - 1

        def filled(end: int) -> int:  # a unit does not contain the gap behind its last segment
            return self.totals[end + 1] - tokens_before - self.gaps[end]

        highest = min(bisect_right(self.totals, tokens_before + size) - 1, last)
        while highest > done and filled(highest) > size:
            highest -= 1
        highest = lowest = max(highest, done)
        while lowest > done and filled(lowest - 1) >= MIN_FILL * size:
            lowest -= 1
        return lowest, highest

    def _measure(self) -> tuple[list[int], list[int]]:
        """Count the tokens of each segment inside a unit, and of long white space behind it."""
        pieces, gaps = [], []
        for index, segment in enumerate(self.segments):
            before = self.segments[index - 1].end if index else segment.start
            after = self.segments[index + 1].start if index + 1 < len(self.segments) else segment.end
            gap = self.text[segment.end : after]
            # A space is part of the next word's token; line breaks are part of the token of the full stop before them.
            start = before if self.text[before : segment.start] == " " else segment.start
            is_behind = 0 < len(gap) <= _SHORT_GAP and gap != " "
            pieces.append(self.text[start : after if is_behind else segment.end])
            gaps.append(gap if len(gap) > _SHORT_GAP else "")
        encoding = self.settings.encoding
        return count_tokens_each(pieces, encoding), count_tokens_each(gaps, encoding)

    def _estimate(self, first: int, last: int) -> int:
        return self.totals[last + 1] - self.totals[first] - self.gaps[last]

    def _count(self, first: int, last: int) -> int:
        return count_tokens(self.text[self.segments[first].start : self.segments[last].end], self.settings.encoding)

    def _rank(self, index: int) -> tuple[bytes, int]:
        """Sort key of ends: the content hash; of equal sentences the last one first."""
        return self._content_hashes[index], -index

    @cached_property
    def _content_hashes(self) -> list[bytes]:
        pieces = (self.text[segment.start : segment.end] for segment in self.segments)
        return [hashlib.blake2b(piece.encode("utf-8", "surrogatepass"), digest_size=8).digest() for piece in pieces]


def _cut_segments(text: str, size: int, encoding: str) -> Iterator[_TextSegment]:
    for start, end in (_trim(text, start, end) for start, end in split_sentences(text)):
        for part_start, part_end in _cut_by_tokens(text, start, end, size, encoding):
            yield _TextSegment(part_start, part_end, starts_sentence=part_start == start)


def _cut_by_tokens(text: str, start: int, end: int, size: int, encoding: str) -> Iterator[tuple[int, int]]:
    """Yield parts of a sentence of at most `size` tokens, cut at white space if there is any near the limit."""
    while start < end:
        cut = _fitting_end(text, start, end, size, encoding)
        if cut < end:
            cut = start + (_last_space(text[start:cut]) or cut - start)
        yield _trim(text, start, cut)
        start = _trim(text, cut, end)[0]


def _fitting_end(text: str, start: int, end: int, size: int, encoding: str) -> int:
    """Return the largest offset up to which the text fits `size` tokens, not inside a grapheme cluster."""
    if (end - start) * _MAX_BYTES <= size:
        return end  # a token has at least one byte
    loaded = load_encoding(encoding)
    window = 2 * size
    tokens = loaded.encode_ordinary(text[start : min(start + window, end)])
    while len(tokens) <= size and start + window < end:
        window *= 4
        tokens = loaded.encode_ordinary(text[start : min(start + window, end)])
    if len(tokens) <= size:
        return end
    for n_kept in range(size, 0, -1):
        n_characters = len(loaded.decode_bytes(tokens[:n_kept]).decode("utf-8", "ignore"))
        whole = grapheme_start(text, start + n_characters)
        cut = whole if whole > start else start + n_characters
        if cut > start and count_tokens(text[start:cut].strip(), encoding) <= size:
            return cut
    return start + 1


def _last_space(text: str) -> int | None:
    """Return the offset behind the last white space near the end of a text; None without one."""
    near = max(len(text) - _WORD, len(text) // 2)
    word = text[near:].split()[-1:]
    if not word or text[-1].isspace():
        return None
    place = len(text) - len(word[0])
    return place if place > near else None


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without white space at its ends."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    return start, max(start, start + len(piece.strip()))
