"""The test whether a view holds a document that the published root does not permit any more.

Documents with an id of their own are compared by it. A row without an id has another number in a view than in its root,
so it is compared by its text. Where that does not decide, the view counts as one that holds such a document. A deleted
document is no such document: the view has it until it is brought up to date. Keep out: removing a view (`views.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.filters import COLUMNS, Filter, flatten_metadata, passes, read_metadata
from graphrag_pipeline.inputs.record_filters import is_row_number, parse_filters


def has_withdrawn(published: pa.Table, view: pa.Table, filters: Sequence[str]) -> bool:
    """Return whether a view holds a document which its root has published, and which does not pass.

    Args:
        published: contract table `documents` of the root.
        view: that of the view.
    """
    held = view.select(["id", "path", "record"]).to_pylist()
    conditions = parse_filters(filters)
    rows = published.select([*COLUMNS, "metadata"]).to_pylist()
    passing = [_passes(row, conditions) for row in rows]
    if all(passing):
        return False
    refused = [row for row, is_passing in zip(rows, passing, strict=True) if not is_passing]
    allowed = {row["id"] for row, is_passing in zip(rows, passing, strict=True) if is_passing}
    named = [row for row in held if not is_row_number(row["record"] or "")]
    if not {row["id"] for row in named}.isdisjoint(row["id"] for row in refused):
        return True
    unknown = {row["id"] for row in held} - {row["id"] for row in named if row["id"] in allowed}
    texts = _texts_of(view, unknown)
    if not texts:
        return False
    hidden = _texts_of(published, {row["id"] for row in refused}) - _texts_of(published, allowed)
    paths = {row["path"] for row in refused if is_row_number(row["record"] or "")}
    numbered = {row["id"] for row in held if row["path"] in paths and is_row_number(row["record"] or "")}
    return not texts.isdisjoint(hidden) or not _texts_of(view, numbered) <= _texts_of(published, allowed)


def _passes(row: dict[str, Any], conditions: Sequence[Filter]) -> bool:
    columns = {name: row[name] for name in COLUMNS}
    metadata = dict(flatten_metadata(read_metadata(row["metadata"])))
    return all(passes(condition, columns, metadata) for condition in conditions)


def _texts_of(documents: pa.Table, ids: Iterable[str]) -> set[str]:
    wanted = pa.array(sorted(ids), pa.string())
    return set(documents["text"].filter(pc.is_in(documents["id"], value_set=wanted)).to_pylist())
