"""Stage tables of vectors: one per kind of text that is embedded.

Keep out: the vector tables of a snapshot, which are joined from them (`contract.py`).
"""

from __future__ import annotations

import pyarrow as pa

from graphrag_pipeline.tables.schema import Column, Table

INT8_VECTOR = pa.binary(256)
"""One int8 per dimension of the bundled static embeddings; only its direction has a meaning, not its length."""


def _embedding_table(name: str, embedded: str) -> Table:
    return Table(
        name,
        (
            Column("text_hash", pa.string(), "Hash of the embedded text."),
            Column("vector", pa.list_(pa.float32()), "Embedding of the text."),
        ),
        key=("text_hash",),
        owner=name,
        description=f"One row per distinct text embedded for {embedded}.",
    )


SENTENCE_EMBEDDINGS = Table(
    "sentence_embeddings",
    (
        Column("text_unit_id", pa.string(), "Id of the text unit that the sentence is in."),
        Column("position", pa.int32(), "Position within the text unit, from 0."),
        Column(
            "start",
            pa.int64(),
            "First character in the document's text, from 0; a repeated header counts as if it stood before the text "
            "unit's `start`.",
        ),
        Column("end", pa.int64(), "Character after the last in the document's text."),
        Column("vector", INT8_VECTOR, "Static embedding: 256 int8 values; zeros if no word of it is known."),
    ),
    key=("text_unit_id", "position"),
    owner="sentence_embeddings",
    references={"text_unit_id": ("text_units", "id")},
    description="One row per sentence of a text unit, with its static embedding.",
)
TEXT_UNIT_EMBEDDINGS = _embedding_table("text_unit_embeddings", "a text unit")
ENTITY_EMBEDDINGS = _embedding_table("entity_embeddings", "an entity: its title and description")
RELATIONSHIP_EMBEDDINGS = _embedding_table("relationship_embeddings", "a relationship: its ends and description")
REPORT_EMBEDDINGS = _embedding_table("report_embeddings", "a community report")
