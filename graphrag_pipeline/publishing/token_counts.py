"""Token counts of records in contract tables; those of an earlier snapshot are kept where the texts are equal.

Keep out: the counting of a text (`text/tokens.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import one_chunk, positions
from graphrag_pipeline.text.tokens import TokenCounter

COUNTED_TEXTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "entities": {"n_tokens": ("title", "description")},
    "relationships": {"n_tokens": ("source", "target", "description")},
    "covariates": {"n_tokens": ("subject_id", "object_id", "description")},
    "community_reports": {"n_tokens": ("full_content",), "n_summary_tokens": ("summary",)},
}
"""Contract table -> column of counts -> columns whose texts, joined by a space, are counted."""
_SLICE_ROWS = 65_536


class TokenCounts:
    """Adds the columns of token counts to contract tables.

    Args:
        count_tokens_each: function that counts the tokens of each text.
        counted: contract tables of an earlier snapshot, whose tokens the same function counted.
    """

    def __init__(self, count_tokens_each: TokenCounter, counted: Mapping[str, pa.Table]) -> None:
        self._count = count_tokens_each
        self._counted = counted

    def add(self, table: str, rows: pa.Table) -> pa.Table:
        """Return the rows of a contract table with its columns of token counts."""
        for column, texts in COUNTED_TEXTS[table].items():
            counts = self._count_rows(rows.select(["id", *texts]), texts, column, self._counted.get(table))
            at = rows.schema.get_field_index(column)
            rows = rows.append_column(column, counts) if at < 0 else rows.set_column(at, column, counts)
        return rows

    def _count_rows(self, rows: pa.Table, texts: tuple[str, ...], column: str, known: pa.Table | None) -> pa.Array:
        counts = np.full(len(rows), -1, dtype=np.int64)
        if known is not None and len(known):
            found = positions(rows["id"], known["id"])
            for start in range(0, len(rows), _SLICE_ROWS):
                kept = _keep_equal(rows, known, found, np.arange(start, min(start + _SLICE_ROWS, len(rows))), texts)
                counts[kept] = one_chunk(known[column]).take(pa.array(found[kept])).to_numpy(zero_copy_only=False)
        missing = np.flatnonzero(counts < 0)
        for start in range(0, len(missing), _SLICE_ROWS):
            here = missing[start : start + _SLICE_ROWS]
            values = (one_chunk(rows[name]).take(pa.array(here)).to_pylist() for name in texts)
            counts[here] = self._count([" ".join(parts) for parts in zip(*values, strict=True)])
        return pa.array(counts, pa.int64())


def _keep_equal(
    rows: pa.Table, known: pa.Table, found: np.ndarray, chosen: np.ndarray, texts: tuple[str, ...]
) -> np.ndarray:
    """Return those of the chosen rows whose texts are those of the known row `found` for them."""
    kept = chosen[found[chosen] >= 0]
    for name in texts:
        now, before = (one_chunk(table[name]) for table in (rows, known))
        is_equal = pc.equal(now.take(pa.array(kept)), before.take(pa.array(found[kept])))
        kept = kept[is_equal.to_numpy(zero_copy_only=False)]
    return kept
