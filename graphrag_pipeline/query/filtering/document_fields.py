"""Fields of the documents of an index, and the documents that pass a filter (`filters.py` has the syntax).

A missing value passes `!=` only. Keep out: records made from documents (`document_mask.py`).
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filters import (
    COLUMNS,
    DATED,
    DERIVED,
    Filter,
    Value,
    comparison_of,
    each_value,
    flatten_metadata,
    matcher_of,
    read_metadata,
    read_value,
    year_of,
)

_MAX_LISTED = 30
_MAX_EXAMPLES = 3


@dataclass(frozen=True)
class StoredField:
    """The values of a field: document i has `values[codes[i]]`, None for a missing value."""

    codes: np.ndarray
    values: Sequence[Any]


class DocumentFields:
    """Fields of the documents, for filters.

    Args:
        documents: the contract table.
    """

    def __init__(self, documents: pa.Table) -> None:
        self._documents = documents
        metadata = self._column("metadata")
        self._codes = metadata.codes
        self._records = [dict(flatten_metadata(read_metadata(text))) for text in metadata.values]
        self._keys = sorted({key for record in self._records for key in record})

    @property
    def names(self) -> list[str]:
        """Names of all fields, those of metadata last."""
        derived = [name for name in DERIVED if name not in self._keys and self._dated]
        return [*COLUMNS, *derived, *(key for key in self._keys if key not in COLUMNS)]

    def mask_of(self, condition: Filter) -> np.ndarray:
        """Return which documents pass, bool (n documents,).

        Raises:
            PipelineError: the field is unknown, or the filter's value cannot be compared with any of its values.
        """
        if not len(self._codes):
            return np.zeros(0, dtype=bool)
        field = self.find(condition)
        wanted = [read_value(value) for value in condition.values]
        held = [[read_value(value) for value in each_value(stored)] for stored in field.values]
        if condition.operator != "~":
            _check_comparable(condition, wanted, held)
        matches = matcher_of(condition.operator, wanted)
        is_found = np.array([any(map(matches, of)) for of in held], dtype=bool)[field.codes]
        return ~is_found if condition.operator == "!=" else is_found

    def stored(self, name: str) -> StoredField:
        """Return the values of a column or metadata key; all are missing if the name is unknown."""
        return self._column(name) if name in COLUMNS else self._of_metadata(name)

    def stored_or_derived(self, name: str) -> StoredField:
        """Return the values of one of `names`; those of `date` and `year` come from the documents' dates."""
        dated = self._dated
        if name in COLUMNS or name in self._keys or dated is None:
            return self.stored(name)
        is_year = name == "year"
        return StoredField(dated.codes, [year_of(value) for value in dated.values]) if is_year else dated

    def find(self, condition: Filter) -> StoredField:
        """Return the values of the field that a filter names.

        Raises:
            PipelineError: the field is unknown.
        """
        name = self._named(condition.field)
        if name in self.names:
            return self.stored_or_derived(name)
        key = name.removeprefix("metadata.")
        if key in self._keys:
            return self._of_metadata(key)
        if name.casefold() in DERIVED:
            raise PipelineError(
                f"filter {condition.text!r}: no document has a date: neither a creation date nor, in its metadata, "
                f"{', '.join(DATED)} or {name.casefold()}{self._near(name)}"
            )
        raise PipelineError(f"filter {condition.text!r}: documents have no field {condition.field!r}{self._near(name)}")

    def _named(self, name: str) -> str:
        """Return the spelling of a field that differs in case only, else the name."""
        folded = [known for known in self.names if known.casefold() == name.casefold()]
        return name if name in self.names or len(folded) != 1 else folded[0]

    def _near(self, name: str) -> str:
        names = self.names
        close = difflib.get_close_matches(name.casefold(), [known.casefold() for known in names], n=1, cutoff=0.6)
        guess = "".join(f"; did you mean {known!r}? There" for known in names if known.casefold() in close)
        more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
        return f"{guess or '; there'} are {', '.join(names[:_MAX_LISTED])}{more}"

    def _of_metadata(self, key: str) -> StoredField:
        return StoredField(self._codes, [record.get(key) for record in self._records])

    def _column(self, name: str) -> StoredField:
        encoded = self._documents[name].combine_chunks().dictionary_encode()
        codes = np.asarray(encoded.indices.fill_null(len(encoded.dictionary)))
        return StoredField(codes, [*encoded.dictionary.to_pylist(), None])

    @property
    def _dated(self) -> StoredField | None:
        """Dates of the documents: the creation date, else the first of `DATED` in the metadata; None without either."""
        if self._documents["creation_date"].null_count < len(self._documents):
            return self._column("creation_date")
        return next((self._of_metadata(key) for key in DATED if key in self._keys), None)


def _check_comparable(condition: Filter, wanted: Sequence[Value], held: Sequence[Sequence[Value]]) -> None:
    test = comparison_of(condition.operator)
    values = list(dict.fromkeys(value for of in held for value in of))
    for other, written in zip(wanted, condition.values, strict=True):
        is_whole = len(wanted) > 1 and written == condition.values[-1]  # "a, b" as a whole may not compare
        if values and not is_whole and all(test(value, other) is None for value in values):
            examples = ", ".join(repr(value.text) for value in values[:_MAX_EXAMPLES])
            raise PipelineError(
                f"filter {condition.text!r}: {written!r} cannot be compared with the values of {condition.field!r}, "
                f"such as {examples}; numbers compare with numbers, dates (2024, 2024-05, 2024-05-31) with dates"
            )
