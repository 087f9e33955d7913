"""Adjacency arrays of a snapshot, from its contract tables: pure, vectorised, no loop over rows.

The relations (compressed sparse row form, see `storage.snapshots.Adjacency`): `entity_relationships`,
`entity_text_units`, `entity_communities` (all levels), `relationship_text_units`, `text_unit_entities`,
`text_unit_relationships`, `entity_covariates` (claims about the entity). Besides: `relationship_source`,
`relationship_target` (int32 entity rows).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def build_adjacency(tables: Mapping[str, pa.Table]) -> dict[str, np.ndarray]:
    """All arrays by name, for contract tables in file order."""
    entities, relationships = tables["entities"], tables["relationships"]
    text_units, communities, covariates = tables["text_units"], tables["communities"], tables["covariates"]
    source = positions(relationships["source_id"], entities["id"])
    target = positions(relationships["target_id"], entities["id"])
    relationship_rows = np.arange(len(relationships), dtype=np.int64)
    entity_text_units = list_pairs(entities["text_unit_ids"], text_units["id"])
    relationship_text_units = list_pairs(relationships["text_unit_ids"], text_units["id"])
    community_entities = list_pairs(communities["entity_ids"], entities["id"])
    subject = positions(covariates["subject_id"], entities["title"])
    known = np.flatnonzero(subject >= 0)
    n_entities, n_text_units = len(entities), len(text_units)
    arrays = {"relationship_source": source.astype(np.int32), "relationship_target": target.astype(np.int32)}
    for name, (rows, values), n_rows in (
        ("entity_relationships", (np.r_[source, target], np.r_[relationship_rows, relationship_rows]), n_entities),
        ("entity_text_units", entity_text_units, n_entities),
        ("entity_communities", community_entities[::-1], n_entities),
        ("entity_covariates", (subject[known], known), n_entities),
        ("relationship_text_units", relationship_text_units, len(relationships)),
        ("text_unit_entities", entity_text_units[::-1], n_text_units),
        ("text_unit_relationships", relationship_text_units[::-1], n_text_units),
    ):
        arrays[f"{name}_indptr"], arrays[f"{name}_indices"] = compress(rows, values, n_rows)
    return arrays


def positions(values: pa.ChunkedArray | pa.Array, keys: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """Row of each value among `keys`; -1 where there is none. int64."""
    found = pc.fill_null(pc.index_in(values, value_set=one_chunk(keys)), -1)
    return np.asarray(found).astype(np.int64)


def one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column as one array; unlike `combine_chunks` without a copy where it is one already."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def list_pairs(lists: pa.ChunkedArray, keys: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """(row of the list, row of the key) for every list element that is a key. Both int64."""
    column = one_chunk(lists)
    parents = np.asarray(pc.list_parent_indices(column)).astype(np.int64)
    values = positions(pc.list_flatten(column), keys)
    return parents[values >= 0], values[values >= 0]


def compress(rows: np.ndarray, values: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Compressed sparse rows of (row, value) pairs: int64 (n_rows + 1), and int32, distinct, ascending in each row."""
    order = np.lexsort((values, rows))
    rows, values = rows[order], values[order]
    fresh = np.ones(len(rows), dtype=bool)
    fresh[1:] = (rows[1:] != rows[:-1]) | (values[1:] != values[:-1])
    rows, values = rows[fresh], values[fresh]
    indptr = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=n_rows), out=indptr[1:])
    return indptr, values.astype(np.int32)
