"""Adjacency arrays of a snapshot, built from its contract tables: pure, vectorized, no loop over rows.

The relations (compressed sparse row form, see `storage.arrays.Adjacency`): `entity_relationships`,
`entity_text_units`, `entity_communities` (all levels), `relationship_text_units`, `text_unit_entities`,
`text_unit_relationships`, `entity_covariates` (claims about the entity). Two more arrays hold the ends of
relationships: `relationship_source`, `relationship_target` (int32 entity rows).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from graphrag_pipeline.arrow_columns import compress, list_pairs, positions


def build_adjacency(tables: Mapping[str, pa.Table]) -> dict[str, np.ndarray]:
    """Return all arrays by name, for contract tables in file order."""
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
