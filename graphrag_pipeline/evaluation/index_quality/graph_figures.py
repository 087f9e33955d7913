"""Quality figures of the graph: coverage, descriptions, singletons, types, components, claims.

They count rows of contract tables. Keep out: duplicates (`duplicates.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.evaluation.index_quality.figures import MAX_EXAMPLES, QualityFigure, not_measured, share_of
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.text.counted import counted


def measure_graph(snapshot: Snapshot, has_claims: bool) -> Iterator[QualityFigure]:
    """Yield the figures of the graph.

    Args:
        has_claims: whether claims were extracted.
    """
    entities, text_units = snapshot.table("entities"), snapshot.table("text_units")
    yield _measure_coverage(text_units)
    is_blank = pc.equal(pc.utf8_trim_whitespace(entities["description"]), "")
    yield _share_of_entities("undescribed_entities", entities, is_blank)
    yield _share_of_entities("singletons", entities, pc.equal(entities["degree"], 0))
    yield _measure_types(entities)
    yield _measure_component(snapshot)
    yield _measure_claims(snapshot.n_rows("covariates"), text_units.num_rows, has_claims)


def _measure_coverage(text_units: pa.Table) -> QualityFigure:
    is_covered = pc.greater(pc.list_value_length(text_units["entity_ids"]), 0)
    bare = text_units["text"].filter(pc.invert(is_covered)).slice(0, MAX_EXAMPLES).to_pylist()
    shown = [" ".join(text[:200].split())[:80] for text in bare]
    return share_of("text_unit_coverage", pc.sum(is_covered).as_py() or 0, text_units.num_rows, "text units", shown)


def _share_of_entities(name: str, entities: pa.Table, is_found: pa.ChunkedArray) -> QualityFigure:
    examples = entities["title"].filter(is_found).slice(0, MAX_EXAMPLES).to_pylist()
    return share_of(name, pc.sum(is_found).as_py() or 0, entities.num_rows, "entities", examples)


def _measure_types(entities: pa.Table) -> QualityFigure:
    """Return H = -sum(p log2 p) over the shares p of the entity types."""
    if not entities.num_rows:
        return not_measured("type_entropy", "the index has no entities")
    counts = (
        entities.group_by("type")
        .aggregate([([], "count_all")])
        .sort_by([("count_all", "descending"), ("type", "ascending")])
    )
    shares = counts["count_all"].to_numpy() / entities.num_rows
    bits = max(0.0, -float((shares * np.log2(shares)).sum()))
    first = [f"{name} {share:.0%}" for name, share in zip(counts["type"].to_pylist()[:3], shares[:3], strict=False)]
    note = f"{counts.num_rows:,} types; {', '.join(first)}"
    return QualityFigure("type_entropy", bits, entities.num_rows, "entities", note)


def _measure_component(snapshot: Snapshot) -> QualityFigure:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = snapshot.n_rows("entities")
    ends = [np.asarray(snapshot.adjacency.array(f"relationship_{end}")) for end in ("source", "target")]
    edges = coo_array((np.ones(len(ends[0]), dtype=np.int8), (ends[0], ends[1])), shape=(n, n))
    n_components, labels = connected_components(edges, directed=False) if n else (0, np.zeros(0, dtype=np.int32))
    largest = int(np.bincount(labels).max()) if n else 0
    figure = share_of("largest_component", largest, n, "entities")
    return replace(figure, note=f"{figure.note}; components: {n_components:,}")


def _measure_claims(n_claims: int, n_text_units: int, has_claims: bool) -> QualityFigure:
    if not n_claims and not has_claims:
        return not_measured("claims_per_text_unit", "claims are not extracted (`extraction.has_claims`)")
    value = n_claims / n_text_units if n_text_units else None
    note = f"{n_claims:,} claims in {counted(n_text_units, 'text units')}"
    return QualityFigure("claims_per_text_unit", value, n_text_units, "text units", note)
