"""One snapshot as its readers see it, without a model: number columns, names, documents and what a filter hides.

Pages of records (`reading/`) need no more than this. Keep out: models, and the making of filters (`index_reader.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from graphrag_pipeline.publishing.arrays import LAYOUT_ARRAYS
from graphrag_pipeline.query.names import NameIndex

if TYPE_CHECKING:
    from graphrag_pipeline.query.filtering.document_mask import DocumentMask
    from graphrag_pipeline.storage.snapshots import Snapshot


def _sort_rows(values: pa.ChunkedArray, is_descending: bool) -> np.ndarray:
    import pyarrow.compute as pc

    folded = pc.utf8_lower(values) if pa.types.is_string(values.type) else values
    order = pc.sort_indices(folded, [("", "descending" if is_descending else "ascending")])
    rows: np.ndarray = order.to_numpy()
    return rows.astype(np.int32)


class SnapshotReader:
    """One immutable snapshot; safe to use from several threads.

    Args:
        snapshot: an opened snapshot.

    Attributes:
        document_mask: the records that may be read; None: all.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.document_mask: DocumentMask | None = None
        self._columns: dict[tuple[str, str], np.ndarray] = {}
        self._shared: Self | None = None

    def column(self, table: str, column: str) -> np.ndarray:
        """Return a number column of a contract table; it is kept as an array."""
        key = (table, column)
        if key not in self._columns:
            self._columns[key] = self.snapshot.table(table)[column].to_numpy()
        return self._columns[key]

    def order(self, table: str, column: str, is_descending: bool = False) -> np.ndarray:
        """Return all rows of a contract table by the values of a column, ties in file order; it is kept as an array.

        Text counts without regard to case, and records without a value come last.
        """
        key = (f"order of {table}", f"{column}{' down' * is_descending}")
        if key not in self._columns:
            self._columns[key] = _sort_rows(self.snapshot.table(table)[column], is_descending)
        return self._columns[key]

    def rows_of_numbers(self, table: str, column: str, numbers: Iterable[int]) -> np.ndarray:
        """Return the rows of numbers in an ascending column (`human_readable_id`, `community`).

        The row is -1 where the number is unknown or its record may not be read.
        """
        values = self.column(table, column)
        wanted = np.fromiter(numbers, dtype=np.int64)
        if not len(values):
            return np.full(len(wanted), -1, dtype=np.int64)
        found = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
        return np.where((values[found] == wanted) & self.row_mask(table)[found], found, -1)

    def row_mask(self, table: str) -> np.ndarray:
        """Return which rows of a contract table may be read, bool (n rows,)."""
        if self.document_mask is None:
            return np.broadcast_to(True, self.snapshot.n_rows(table))
        return self.document_mask.masks[table]

    def documents(self, ids: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Return the title and path of documents by id."""
        rows = self.snapshot.rows_of("documents", sorted(set(ids)))
        known = self.snapshot.take("documents", rows[rows >= 0], ["id", "title", "path"])
        return {record["id"]: (record["title"], record["path"]) for record in known}

    @functools.cached_property
    def names(self) -> NameIndex:
        """The entities by their names."""
        if self._shared:
            return self._shared.names  # loaded once, for all questions
        hashes, rows = (self.snapshot.lookups.array(name) for name in ("name_hashes", "name_rows"))
        if self.document_mask is not None:
            is_kept = self.document_mask.masks["entities"][rows]
            hashes, rows = hashes[is_kept], rows[is_kept]
        return NameIndex.stored(hashes, rows)

    @functools.cached_property
    def layout(self) -> Mapping[str, np.ndarray]:
        """The arrays of the layout (`publishing/arrays.py`)."""
        if self._shared:
            return self._shared.layout
        return {name: self.snapshot.adjacency.array(name) for name in LAYOUT_ARRAYS}
