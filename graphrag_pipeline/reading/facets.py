"""Counts of an index by type, level and field of documents, for choosing filters. Keep out: applying filters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.filters import COLUMNS
from graphrag_pipeline.query.filtering.document_mask import DocumentFields
from graphrag_pipeline.query.index_reader import SnapshotReader
from graphrag_pipeline.reading.rows import FieldFacet, IndexFacets, ValueCount

TABLES = ("documents", "text_units", "entities", "relationships", "covariates", "communities", "community_reports")
_MAX_SHOWN = 200
"""Characters of a value; a longer one is left out, since no filter names it."""


def count_facets(reader: SnapshotReader, fields: DocumentFields, n_most: int = 50) -> IndexFacets:
    """Return the counts of the records that may be read.

    Args:
        fields: of the snapshot's documents.
        n_most: maximum of values of each field.
    """
    named = (name for name in fields.names if name not in COLUMNS)
    levels = reader.column("communities", "level")[reader.row_mask("communities")]
    return IndexFacets(
        {table: int(reader.row_mask(table).sum()) for table in TABLES},
        tuple(_count_types(reader)),
        tuple(ValueCount(str(level), int(n)) for level, n in zip(*np.unique(levels, return_counts=True), strict=True)),
        tuple(count_field(reader, fields, name, n_most) for name in named),
    )


def _count_types(reader: SnapshotReader) -> Iterator[ValueCount]:
    types = reader.snapshot.table("entities")["type"].filter(pa.array(reader.row_mask("entities")))
    counted = pc.value_counts(types.combine_chunks()).to_pylist()
    for one in sorted(counted, key=lambda one: (-one["counts"], one["values"] or "")):
        yield ValueCount(one["values"] or "", one["counts"])


def count_field(reader: SnapshotReader, fields: DocumentFields, name: str, n_most: int) -> FieldFacet:
    """Return the most frequent values of one of `fields.names` among the documents that may be read."""
    is_read = reader.row_mask("documents")
    field = fields.stored_or_derived(name)
    by_code = np.bincount(field.codes[is_read], minlength=len(field.values))
    counts: dict[str, int] = {}
    for value, n in zip(field.values, by_code.tolist(), strict=True):
        for one in value if isinstance(value, list) else [value]:
            if n and one is not None and len(str(one)) <= _MAX_SHOWN:
                counts[str(one)] = counts.get(str(one), 0) + n
    leading = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n_most]
    return FieldFacet(name, tuple(ValueCount(value, n) for value, n in leading), len(counts))
