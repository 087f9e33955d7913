"""Which days the documents of an index are of: from what their creation dates, else their metadata, say.

Keep out: what a question says of time (`time_scope.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np

from graphrag_pipeline.query.filtering.document_mask import document_rows
from graphrag_pipeline.query.filtering.filters import DATED, DocumentFields, Span, read_span
from graphrag_pipeline.query.index_reader import IndexReader


@dataclass(frozen=True)
class DocumentDates:
    """Which days documents are of.

    Attributes:
        field: the field that tells.
        oldest, newest: the first day of one document, and the last of one.
    """

    field: str
    oldest: date
    newest: date

    def overlap(self, start: date | None, end: date | None) -> bool:
        """Whether days, None open, are among them or between."""
        return (end is None or end >= self.oldest) and (start is None or start <= self.newest)


def read_dates(fields: DocumentFields) -> DocumentDates | None:
    """By the creation dates, else by the first field of metadata that holds a date; None if none does."""
    for name in ("creation_date", *DATED):
        spans = [_span_of(value) for value in fields.stored(name).values]
        if known := [span for span in spans if span]:
            last = max(end for _, end in known) - timedelta(microseconds=1)
            return DocumentDates(name, min(known)[0].date(), last.date())
    return None


def newest_days(index: IndexReader, communities: np.ndarray) -> list[int]:
    """The newest day of the documents behind communities, as `date.toordinal` tells; 0 where none has a date."""
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
