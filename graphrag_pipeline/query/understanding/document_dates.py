"""Dates of the documents of an index, from their creation dates or else their metadata.

Keep out: time phrases of questions (`time_phrases.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np

from graphrag_pipeline.filters import DATED, Span, read_span
from graphrag_pipeline.query.filtering.document_mask import DocumentFields, document_rows
from graphrag_pipeline.query.index_reader import IndexReader


@dataclass(frozen=True)
class DocumentDates:
    """Range of the documents' dates.

    Attributes:
        field: the field that holds the dates.
        oldest, newest: the first and the last day of all documents.
    """

    field: str
    oldest: date
    newest: date

    def overlap(self, start: date | None, end: date | None) -> bool:
        """Return whether the days from `start` to `end` overlap the range; None is open."""
        return (end is None or end >= self.oldest) and (start is None or start <= self.newest)


def read_dates(fields: DocumentFields) -> DocumentDates | None:
    """Return the range of the creation dates, else of the first metadata field with a date; None without any date."""
    for name in ("creation_date", *DATED):
        spans = [_span_of(value) for value in fields.stored(name).values]
        if known := [span for span in spans if span]:
            last = max(end for _, end in known) - timedelta(microseconds=1)
            return DocumentDates(name, min(known)[0].date(), last.date())
    return None


def newest_days(index: IndexReader, communities: np.ndarray) -> list[int]:
    """Return the newest day of the documents behind each community, as `date.toordinal`; 0 if none has a date."""
    dates = read_dates(index.document_fields)
    if dates is None or not len(communities):
        return [0] * len(communities)
    stored = index.document_fields.stored(dates.field)
    spans = [_span_of(value) for value in stored.values]
    days = np.array([span[0].toordinal() if span else 0 for span in spans])[stored.codes]
    of_text_unit = np.r_[days, 0][document_rows(index.snapshot)]
    found = index.snapshot.take("communities", communities, ["text_unit_ids"])
    rows = [index.snapshot.rows_of("text_units", list(community["text_unit_ids"] or ())) for community in found]
    return [int(of_text_unit[of[of >= 0]].max(initial=0)) for of in rows]


def _span_of(value: Any) -> Span | None:
    return read_span(value.strip()) if isinstance(value, str) else None
