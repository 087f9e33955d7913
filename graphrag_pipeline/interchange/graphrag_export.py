"""Export in the layout of Microsoft GraphRAG 3.x: an `output/` folder that its own `query` command reads.

The folder has Parquet tables with exactly its columns (3.3, `graphrag/data_model/schemas.py`), and `lancedb/` with one
table per vector field: `id`, and `vector` as a fixed-size list of float32. GraphRAG compares by Euclidean distance,
which for our vectors of length 1 gives the order of the cosine. A record without a vector (zeros here) is left out,
because a zero vector would be nearer to most questions than an unrelated record. Reports are in its order, finest level
first, because its global search shuffles them from there. `graphrag_files.py` and
`graphrag_vectors.py` read the layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.storage.vectors.folders import connect
from graphrag_pipeline.tables import VECTOR_TABLES

_COMMUNITY = ("id", "human_readable_id", "community", "level", "parent", "children", "title")
_COLUMNS = {
    "documents": ("id", "human_readable_id", "title", "text", "text_unit_ids", "creation_date", "raw_data"),
    "text_units": (
        "id", "human_readable_id", "text", "n_tokens", "document_id", "entity_ids", "relationship_ids",
        "covariate_ids",
    ),
    "entities": (
        "id", "human_readable_id", "title", "type", "description", "text_unit_ids", "frequency", "degree",
    ),
    "relationships": (
        "id", "human_readable_id", "source", "target", "description", "weight", "combined_degree", "text_unit_ids",
    ),
    "covariates": (
        "id", "human_readable_id", "covariate_type", "type", "description", "subject_id", "object_id", "status",
        "start_date", "end_date", "source_text", "text_unit_id",
    ),
    "communities": (*_COMMUNITY, "entity_ids", "relationship_ids", "text_unit_ids", "period", "size"),
    "community_reports": (
        *_COMMUNITY, "summary", "full_content", "rank", "rating_explanation", "findings", "full_content_json",
        "period", "size",
    ),
}  # fmt: skip
_VECTOR_NAMES = {
    "default-text_unit-text": "text_unit_text",
    "default-entity-description": "entity_description",
    "default-relationship-description": "relationship_description",
    "default-community-full_content": "community_full_content",
}
"""Our vector table -> GraphRAG's. GraphRAG does not read that of relationships; it saves our import the embedding."""
_BATCH_ROWS = 4_096


def write_graphrag(snapshot: Snapshot, folder: Path) -> dict[str, int]:
    """Write all tables and vectors; returns rows by path."""
    written = {}
    for name, columns in _COLUMNS.items():
        rows = snapshot.table(name)
        if name == "documents":
            rows = _with_raw_data(rows)
        if name == "community_reports":
            rows = rows.sort_by([("level", "descending"), ("community", "ascending")])
        pq.write_table(rows.select(columns).replace_schema_metadata(None), folder / f"{name}.parquet")
        written[f"{name}.parquet"] = rows.num_rows
    connection = connect(folder / "lancedb")
    for name, its_name in _VECTOR_NAMES.items():
        schema = _vector_schema(snapshot, name)
        reader = pa.RecordBatchReader.from_batches(schema, _vector_batches(snapshot, name, schema))
        written[f"lancedb/{its_name}"] = connection.create_table(its_name, data=reader).count_rows()
    return written


def _with_raw_data(documents: pa.Table) -> pa.Table:
    """Return `documents` with `raw_data`, GraphRAG's name for metadata: JSON, null if empty."""
    metadata = documents["metadata"]
    return documents.append_column("raw_data", pc.if_else(pc.equal(metadata, "{}"), None, metadata))


def _vector_schema(snapshot: Snapshot, name: str) -> pa.Schema:
    dimensions = snapshot.manifest.vectors[name].dimensions
    return pa.schema([("id", pa.string()), ("vector", pa.list_(pa.float32(), dimensions))])


def _vector_batches(snapshot: Snapshot, name: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield rows of a vector table in the order of its contract table, without zero vectors."""
    ids = snapshot.table(VECTOR_TABLES[name][0])["id"]
    for start in range(0, len(ids), _BATCH_ROWS):
        part = ids.slice(start, _BATCH_ROWS).combine_chunks()
        matrix = snapshot.vectors(name).vectors(part.to_pylist())
        has_vector = matrix.any(axis=1)
        flat = pa.array(np.ascontiguousarray(matrix[has_vector], dtype=np.float32).ravel())
        vectors = pa.FixedSizeListArray.from_arrays(flat, type=schema.field("vector").type)
        yield pa.record_batch([part.filter(pa.array(has_vector)), vectors], schema=schema)
