"""Places of text units in their documents, and the parts of a text unit that other texts show as well.

Neighbouring text units may overlap. Then a place of a document is in two text units, and reading both reads it twice.
Keep out: what is done about it (`coverage.py`, `excerpts.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.selection.mentions import Span

_COLUMNS = ("document_id", "start", "end")
_HEADER_COLUMNS = ("header_start", "header_end")
"""Not in a snapshot of release 0.1."""


@dataclass(frozen=True)
class _Place:
    """Character offsets in a document of a text unit and of the table header that it repeats, if any."""

    document_id: str
    start: int
    end: int
    header_start: int = 0
    header_end: int = 0

    def pieces(self) -> Iterator[tuple[int, Span]]:
        """Yield the parts of the text: where each begins in it, and its offsets in the document."""
        n_header = self.header_end - self.header_start
        if n_header:
            yield 0, (self.header_start, self.header_end)
        yield n_header, (self.start, self.end)


class DocumentPlaces:
    """Places of the text units of a pool; those that were read are kept.

    Args:
        rows: of text units; position i of the candidates is `rows[i]`.
    """

    def __init__(self, index: IndexReader, rows: np.ndarray) -> None:
        self._snapshot = index.snapshot
        self._rows = rows
        self._places: dict[int, _Place | None] = {}

    def read(self, units: Iterable[int]) -> None:
        """Read the places of some positions of the candidates, at once."""
        wanted = sorted({unit for unit in units if unit not in self._places})
        if wanted:
            known = self._snapshot.table("text_units").schema.names
            columns = [*_COLUMNS, *(name for name in _HEADER_COLUMNS if name in known)]
            found = zip(*self._snapshot.take_columns("text_units", self._rows[wanted], columns), strict=True)
            self._places.update(zip(wanted, (_place_of(*values) for values in found), strict=True))

    def shown_in(self, unit: int, shown: Sequence[tuple[int, Span | None]]) -> list[Span]:
        """Return the parts of the text of one text unit that others show, ascending and apart.

        A text unit whose place in its document is not known shows nothing and is shown by nothing.

        Args:
            shown: other text units, with the span of their text that is shown, None for the whole.
        """
        others = [(other, span) for other, span in shown if other != unit]
        if not others:
            return []
        self.read([unit, *(other for other, _ in others)])
        place = self._places[unit]
        if place is None:
            return []
        near = [
            (of, span) for other, span in others if (of := self._places[other]) and of.document_id == place.document_id
        ]
        spans = [part for of, span in near for part in _parts_of(of, span)]
        if not spans:
            return []
        found: list[Span] = []
        for first, (start, end) in place.pieces():
            found += [
                (first + max(a, start) - start, first + min(b, end) - start) for a, b in spans if a < end and b > start
            ]
        return _merge(found)


def _place_of(
    document_id: str, start: int | None, end: int | None, header_start: int | None = None, header_end: int | None = None
) -> _Place | None:
    return None if start is None or end is None else _Place(document_id, start, end, header_start or 0, header_end or 0)


def _parts_of(place: _Place, span: Span | None) -> Iterator[Span]:
    """Yield the offsets in the document of a span of a text unit's text; of all of it if that is None."""
    for first, (start, end) in place.pieces():
        if span is None:
            yield start, end
        elif span[0] < first + end - start and span[1] > first:
            yield max(start, start + span[0] - first), min(end, start + span[1] - first)


def _merge(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, those that touch or overlap as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged
