"""The data contract: one pyarrow schema per table, its key, its references and the stage that owns it.

Two layers. *Stage tables* are written by the index stages and carry no column computed downstream of them. *Contract
tables* are joined from them in `index_candidate`, in Microsoft GraphRAG's layout (same names and columns, ours added),
and are what queries read. Add a column here, once, with the unit in its name; keep out anything that depends on the
clock, on the order of arrival or on another run. A changed schema changes the code version of the stage that owns it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.identity import stable_hash

STRINGS = pa.list_(pa.string())
INT8_VECTOR = pa.binary(256)
"""One int8 per dimension of the bundled static embeddings; a direction, its length says nothing."""
CHUNKS = pa.list_(
    pa.struct(
        [
            ("start", pa.int64()),  # character offsets into the document's text
            ("end", pa.int64()),
            ("type", pa.string()),  # title, paragraph, table, list, or as the input has it
            ("page", pa.int32()),  # null if not known
            ("id", pa.string()),  # of the chunk in the input; null if it has none
        ]
    )
)
"""The chunks that a document came in, in order."""
TITLE_CHUNK = "title"
CHUNK_TYPES = frozenset({TITLE_CHUNK, "paragraph", "table", "list"})
"""The types of chunks that have a meaning."""
FINDINGS = pa.list_(pa.struct([("summary", pa.string()), ("explanation", pa.string())]))


@dataclass(frozen=True)
class Table:
    """One table of the contract.

    Attributes:
        name: the table's name in folders, views and assets.
        schema: columns in file order; `nullable=False` where null is an error.
        key: columns that identify a row; rows are saved in this order unless `order` says otherwise.
        owner: the stage that writes it.
        references: column -> (table, column) of the same layer that must hold each of its values (lists element-wise).
        order: columns that rows are sorted by; the key if empty.
    """

    name: str
    schema: pa.Schema
    key: tuple[str, ...]
    owner: str
    references: dict[str, tuple[str, str]] = field(default_factory=dict)
    order: tuple[str, ...] = ()

    @property
    def sort_columns(self) -> tuple[str, ...]:
        return self.order or self.key

    @property
    def schema_hash(self) -> str:
        return stable_hash(self.name, str(self.schema), *self.key)

    def from_rows(self, rows: list[dict]) -> pa.Table:
        """A sorted table from row dictionaries; a missing nullable column is null, an unknown column is an error."""
        unknown = {name for row in rows for name in row} - set(self.schema.names)
        if unknown:
            raise KeyError(f"table {self.name}: unknown columns {sorted(unknown)}")
        return self.sort(pa.Table.from_pylist(rows, schema=self.schema))

    def empty(self) -> pa.Table:
        return self.schema.empty_table()

    def sort(self, rows: pa.Table) -> pa.Table:
        """`rows` cast to the schema, in file order: sorted, one chunk, so that equal content gives equal bytes.

        Rows that are sorted already are not copied to be sorted: tables of vectors are large.
        """
        cast = rows.select(self.schema.names).cast(self.schema)
        if pc.all(_is_less(cast, self.sort_columns)).as_py() is False:
            cast = cast.sort_by([(column, "ascending") for column in self.sort_columns])
        return cast.combine_chunks()


def _is_less(rows: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    """Whether each row is before the next one, by the columns in turn."""
    values = rows[columns[0]]
    before, after = values[:-1], values[1:]
    is_less = pc.less(before, after)
    if len(columns) == 1:
        return is_less
    return pc.or_(is_less, pc.and_(pc.equal(before, after), _is_less(rows, columns[1:])))


def _schema(*columns: tuple[str, pa.DataType] | tuple[str, pa.DataType, str]) -> pa.Schema:
    """Columns are not nullable unless marked "null"."""
    return pa.schema([pa.field(c[0], c[1], nullable=len(c) > 2) for c in columns])


# ---------------------------------------------------------------------------------------------- stage tables, by bucket

CORPUS_MANIFEST = Table(
    "corpus_manifest",
    _schema(
        ("document_id", pa.string()),
        ("path", pa.string()),  # relative to the input folder, with forward slashes
        ("record", pa.string()),  # the record's id or row inside a structured file; "" for a whole file
        ("format", pa.string()),  # txt, md, csv, json, jsonl, parquet, pdf, ...
        ("n_bytes", pa.int64()),
        ("content_hash", pa.string()),  # of what the document row is made from; "" if it could not be read
        ("problem", pa.string(), "null"),  # why there is no document of this id; null if there is one
        ("note", pa.string(), "null"),  # what was odd about the rows of a document that was read; else null
    ),
    key=("document_id",),
    owner="corpus_manifest",
)
DOCUMENTS = Table(
    "documents",
    _schema(
        ("id", pa.string()),
        ("title", pa.string()),
        ("text", pa.string()),
        ("path", pa.string()),
        ("record", pa.string()),
        ("content_hash", pa.string()),
        ("creation_date", pa.string(), "null"),  # from the document's own metadata, never from the clock
        ("metadata", pa.string()),  # JSON object, keys sorted
        ("chunks", CHUNKS, "null"),  # where the input holds the document in typed chunks
    ),
    key=("id",),
    owner="documents",
)
TEXT_UNITS = Table(
    "text_units",
    _schema(
        ("id", pa.string()),
        ("document_id", pa.string()),
        ("position", pa.int32()),  # 0-based order within the document
        ("start", pa.int64()),  # character offsets into the document's text: text == document.text[start:end]
        ("end", pa.int64()),
        ("text", pa.string()),
        ("n_tokens", pa.int32()),
    ),
    key=("id",),
    owner="text_units",
    references={"document_id": ("documents", "id")},
    order=("document_id", "position"),
)
ENTITY_MENTIONS = Table(
    "entity_mentions",
    _schema(
        ("text_unit_id", pa.string()),
        ("position", pa.int32()),  # order of the record within its text unit
        ("name", pa.string()),  # before any merge across documents
        ("type", pa.string()),  # upper case; UNKNOWN where the extractor does not say
        ("description", pa.string()),  # "" if none
        ("start", pa.int64(), "null"),  # character offsets into the document's text, where known
        ("end", pa.int64(), "null"),
        ("request_key", pa.string(), "null"),  # the model reply it came from
        ("written", pa.string(), "null"),  # text[start:end] where `name` is the form that stands for it; null: `name`
        ("is_about", pa.bool_(), "null"),  # the document's title names it; true in its first text unit only
    ),
    key=("text_unit_id", "position"),
    owner="extracted_graph",
    references={"text_unit_id": ("text_units", "id")},
)
RELATIONSHIP_MENTIONS = Table(
    "relationship_mentions",
    _schema(
        ("text_unit_id", pa.string()),
        ("position", pa.int32()),
        ("source", pa.string()),
        ("target", pa.string()),
        ("description", pa.string()),
        ("strength", pa.float64()),
        ("start", pa.int64(), "null"),
        ("end", pa.int64(), "null"),
        ("request_key", pa.string(), "null"),
        ("predicate", pa.string(), "null"),  # the verb phrase from source to target, where there is one
    ),
    key=("text_unit_id", "position"),
    owner="extracted_graph",
    references={"text_unit_id": ("text_units", "id")},
)
CLAIM_MENTIONS = Table(
    "claim_mentions",
    _schema(
        ("text_unit_id", pa.string()),
        ("position", pa.int32()),
        ("subject", pa.string()),
        ("object", pa.string()),
        ("type", pa.string()),
        ("status", pa.string()),  # TRUE, FALSE or SUSPECTED
        ("start_date", pa.string(), "null"),
        ("end_date", pa.string(), "null"),
        ("description", pa.string()),
        ("source_text", pa.string()),
        ("request_key", pa.string(), "null"),
    ),
    key=("text_unit_id", "position"),
    owner="extracted_graph",
    references={"text_unit_id": ("text_units", "id")},
)

# ------------------------------------------------------------------------------------------- stage tables, whole corpus

ENTITIES = Table(
    "entities",
    _schema(
        ("id", pa.string()),
        ("title", pa.string()),  # normalised name, the key across mentions
        ("type", pa.string()),  # voted by frequency
        ("types", STRINGS),  # all types, most frequent first
        ("names", STRINGS),  # all written forms, sorted
        ("descriptions", STRINGS),  # distinct, not empty, sorted
        ("description_key", pa.string()),  # row of `descriptions` that holds their summary
        ("text_unit_ids", STRINGS),  # sorted
        ("frequency", pa.int64()),  # number of text units
        ("n_mentions", pa.int64()),
        ("degree", pa.int64()),  # number of relationships
    ),
    key=("id",),
    owner="graph",
)
RELATIONSHIPS = Table(
    "relationships",
    _schema(
        ("id", pa.string()),
        ("source", pa.string()),  # titles; source < target, the pair is unordered
        ("target", pa.string()),
        ("source_id", pa.string()),
        ("target_id", pa.string()),
        ("descriptions", STRINGS),
        ("description_key", pa.string()),
        ("weight", pa.float64()),
        ("n_mentions", pa.int64()),
        ("combined_degree", pa.int64()),
        ("text_unit_ids", STRINGS),
        ("predicates", STRINGS, "null"),  # distinct, sorted
        ("pmi", pa.float64(), "null"),  # pointwise mutual information of the ends over text units, in bits
    ),
    key=("id",),
    owner="graph",
    references={"source_id": ("entities", "id"), "target_id": ("entities", "id")},
)
COVARIATES = Table(
    "covariates",
    _schema(
        ("id", pa.string()),
        ("covariate_type", pa.string()),  # always "claim" for now
        ("type", pa.string()),
        ("description", pa.string()),
        ("subject_id", pa.string()),  # an entity title, as in Microsoft GraphRAG, despite the column's name
        ("object_id", pa.string()),
        ("status", pa.string()),
        ("start_date", pa.string(), "null"),
        ("end_date", pa.string(), "null"),
        ("source_text", pa.string()),
        ("text_unit_id", pa.string()),
        ("request_key", pa.string(), "null"),
    ),
    key=("id",),
    owner="graph",
)
ENTITY_MERGES = Table(
    "entity_merges",
    _schema(
        ("name", pa.string()),  # the written form
        ("title", pa.string()),  # the entity it became
        ("rule", pa.string()),  # the rung of the ladder that merged them
        ("evidence", pa.string()),
        ("score", pa.float64()),  # 0 to 1
    ),
    key=("name", "title"),
    owner="graph",
    references={"title": ("entities", "title")},
)
DESCRIPTIONS = Table(
    "descriptions",
    _schema(
        ("description_key", pa.string()),
        ("kind", pa.string()),  # entity or relationship
        ("description", pa.string()),  # "" where no mention had one
        ("n_descriptions", pa.int64()),  # how many distinct descriptions it sums up
        ("is_fallback", pa.bool_()),  # filled by the embedded engine because the model failed
        ("request_key", pa.string(), "null"),
    ),
    key=("description_key",),
    owner="summarized_descriptions",
)
COMMUNITIES = Table(
    "communities",
    _schema(
        ("id", pa.string()),  # hash of level and members
        ("level", pa.int64()),  # 0 = coarsest
        ("parent_id", pa.string(), "null"),
        ("entity_ids", STRINGS),  # sorted
        ("size", pa.int64()),  # number of entities
    ),
    key=("id",),
    owner="communities",
    references={"parent_id": ("communities", "id"), "entity_ids": ("entities", "id")},
    order=("level", "id"),
)
COMMUNITY_REPORTS = Table(
    "community_reports",
    _schema(
        ("community_id", pa.string()),
        ("level", pa.int64()),
        ("title", pa.string()),
        ("summary", pa.string()),
        ("findings", FINDINGS),  # texts cite stable ids: [Data: Entities (id, ...); Relationships (id)]
        ("rank", pa.float64()),  # rating 0-10
        ("rating_explanation", pa.string()),
        ("is_verbatim", pa.bool_()),  # too small to be worth a model call: descriptions as they are
        ("is_fallback", pa.bool_()),
        ("inputs_key", pa.string()),  # hash of all that its context was chosen from
        ("context_key", pa.string()),  # hash of the context it was written from
        ("request_key", pa.string(), "null"),
        ("evidence", pa.list_(pa.int64())),  # hashes of all it was written from; empty where it may not lag
        ("new_share", pa.float64()),  # of what is known of the community now: what the report does not know
    ),
    key=("community_id",),
    owner="community_reports",
    references={"community_id": ("communities", "id")},
    order=("level", "community_id"),
)


def _embedding_table(name: str, owner: str) -> Table:
    return Table(
        name,
        _schema(("text_hash", pa.string()), ("vector", pa.list_(pa.float32()))),
        key=("text_hash",),
        owner=owner,
    )


SENTENCE_EMBEDDINGS = Table(
    "sentence_embeddings",
    _schema(
        ("text_unit_id", pa.string()),
        ("position", pa.int32()),  # 0-based order within the text unit
        ("start", pa.int64()),  # character offsets into the document's text, as those of text units
        ("end", pa.int64()),
        ("vector", INT8_VECTOR),  # zeros where it has no known word
    ),
    key=("text_unit_id", "position"),
    owner="sentence_embeddings",
    references={"text_unit_id": ("text_units", "id")},
)
TEXT_UNIT_EMBEDDINGS = _embedding_table("text_unit_embeddings", "text_unit_embeddings")
ENTITY_EMBEDDINGS = _embedding_table("entity_embeddings", "entity_embeddings")
RELATIONSHIP_EMBEDDINGS = _embedding_table("relationship_embeddings", "relationship_embeddings")
REPORT_EMBEDDINGS = _embedding_table("report_embeddings", "report_embeddings")

_FAILURE_COLUMNS = (
    ("record", pa.string()),  # what was asked about: a text unit id, a title, a community id, the hash of a text
    ("reason", pa.string()),  # in words for a person
    ("reply", pa.string()),  # how the reply starts, "" if there was none
    ("request_key", pa.string()),
)


def failures_table(stage: str) -> Table:
    """The table of the records of a stage that got no usable reply of its model."""
    return Table(f"{stage}_failures", _schema(*_FAILURE_COLUMNS), key=("record", "request_key"), owner=stage)


ASKING_STAGES = (
    "extracted_graph",
    "graph",
    "summarized_descriptions",
    "community_reports",
    "text_unit_embeddings",
    "entity_embeddings",
    "relationship_embeddings",
    "report_embeddings",
)
"""Stages that a settings line moves to a model: each owns a table of failures."""

STAGE_TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        CORPUS_MANIFEST, DOCUMENTS, TEXT_UNITS, ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, CLAIM_MENTIONS,
        ENTITIES, RELATIONSHIPS, COVARIATES, ENTITY_MERGES, DESCRIPTIONS, COMMUNITIES, COMMUNITY_REPORTS,
        SENTENCE_EMBEDDINGS, TEXT_UNIT_EMBEDDINGS, ENTITY_EMBEDDINGS, RELATIONSHIP_EMBEDDINGS, REPORT_EMBEDDINGS,
        *map(failures_table, ASKING_STAGES),
    )
}  # fmt: skip

# -------------------------------------------------------------------------------------- contract tables, in a snapshot
# Columns up to the blank line are Microsoft GraphRAG's, in its order. Lists of ids are ordered by record number.

_CANDIDATE = "index_candidate"

CONTRACT_DOCUMENTS = Table(
    "documents",
    _schema(
        ("id", pa.string()),
        ("human_readable_id", pa.int64()),
        ("title", pa.string()),
        ("text", pa.string()),
        ("text_unit_ids", STRINGS),
        ("creation_date", pa.string(), "null"),
        ("metadata", pa.string()),
        ("path", pa.string()),
        ("record", pa.string()),
    ),
    key=("id",),
    owner=_CANDIDATE,
    references={"text_unit_ids": ("text_units", "id")},
    order=("human_readable_id",),
)
CONTRACT_TEXT_UNITS = Table(
    "text_units",
    _schema(
        ("id", pa.string()),
        ("human_readable_id", pa.int64()),
        ("text", pa.string()),
        ("n_tokens", pa.int64()),
        ("document_id", pa.string()),
        ("entity_ids", STRINGS),
        ("relationship_ids", STRINGS),
        ("covariate_ids", STRINGS),
        ("start", pa.int64(), "null"),  # null in an imported index whose text is not found in its document
        ("end", pa.int64(), "null"),
    ),
    key=("id",),
    owner=_CANDIDATE,
    references={
        "document_id": ("documents", "id"),
        "entity_ids": ("entities", "id"),
        "relationship_ids": ("relationships", "id"),
        "covariate_ids": ("covariates", "id"),
    },
    order=("human_readable_id",),
)
CONTRACT_ENTITIES = Table(
    "entities",
    _schema(
        ("id", pa.string()),
        ("human_readable_id", pa.int64()),
        ("title", pa.string()),
        ("type", pa.string()),
        ("description", pa.string()),
        ("text_unit_ids", STRINGS),
        ("frequency", pa.int64()),
        ("degree", pa.int64()),
        ("types", STRINGS),
        ("names", STRINGS),
        ("n_mentions", pa.int64()),
        ("n_tokens", pa.int64()),  # of title and description
    ),
    key=("id",),
    owner=_CANDIDATE,
    references={"text_unit_ids": ("text_units", "id")},
    order=("human_readable_id",),
)
CONTRACT_RELATIONSHIPS = Table(
    "relationships",
    _schema(
        ("id", pa.string()),
        ("human_readable_id", pa.int64()),
        ("source", pa.string()),
        ("target", pa.string()),
        ("description", pa.string()),
        ("weight", pa.float64()),
        ("combined_degree", pa.int64()),
        ("text_unit_ids", STRINGS),
        ("source_id", pa.string()),
        ("target_id", pa.string()),
        ("n_mentions", pa.int64()),
        ("n_tokens", pa.int64()),  # of source, target and description
    ),
    key=("id",),
    owner=_CANDIDATE,
    references={
        "source_id": ("entities", "id"),
        "target_id": ("entities", "id"),
        "source": ("entities", "title"),
        "target": ("entities", "title"),
        "text_unit_ids": ("text_units", "id"),
    },
    order=("human_readable_id",),
)
CONTRACT_COVARIATES = Table(
    "covariates",
    _schema(
        ("id", pa.string()),
        ("human_readable_id", pa.int64()),
        ("covariate_type", pa.string()),
        ("type", pa.string()),
        ("description", pa.string()),
        ("subject_id", pa.string()),  # a title; may name something that is no entity
        ("object_id", pa.string()),
        ("status", pa.string()),
        ("start_date", pa.string(), "null"),
        ("end_date", pa.string(), "null"),
        ("source_text", pa.string()),
        ("text_unit_id", pa.string()),
        ("n_tokens", pa.int64()),  # of subject, object and description
    ),
    key=("id",),
    owner=_CANDIDATE,
    references={"text_unit_id": ("text_units", "id")},
    order=("human_readable_id",),
)
CONTRACT_COMMUNITIES = Table(
    "communities",
    _schema(
        ("id", pa.string()),
        ("human_readable_id", pa.int64()),
        ("community", pa.int64()),  # the number that `parent` and `children` speak of; = human_readable_id
        ("level", pa.int64()),
        ("parent", pa.int64()),  # -1 for a root
        ("children", pa.list_(pa.int64())),
        ("title", pa.string()),
        ("entity_ids", STRINGS),
        ("relationship_ids", STRINGS),  # both ends inside
        ("text_unit_ids", STRINGS),  # of those entities and relationships
        ("period", pa.string(), "null"),
        ("size", pa.int64()),
    ),
    key=("community",),
    owner=_CANDIDATE,
    references={
        "entity_ids": ("entities", "id"),
        "relationship_ids": ("relationships", "id"),
        "text_unit_ids": ("text_units", "id"),
        "children": ("communities", "community"),
    },
)
CONTRACT_COMMUNITY_REPORTS = Table(
    "community_reports",
    _schema(
        ("id", pa.string()),
        ("human_readable_id", pa.int64()),
        ("community", pa.int64()),
        ("level", pa.int64()),
        ("parent", pa.int64()),
        ("children", pa.list_(pa.int64())),
        ("title", pa.string()),
        ("summary", pa.string()),
        ("full_content", pa.string()),  # markdown; citations speak of human_readable_ids
        ("rank", pa.float64()),
        ("rating_explanation", pa.string()),
        ("findings", FINDINGS),
        ("full_content_json", pa.string()),
        ("period", pa.string(), "null"),
        ("size", pa.int64()),
        ("is_verbatim", pa.bool_()),
        ("is_fallback", pa.bool_()),
        ("n_tokens", pa.int64()),  # of full_content
        ("n_summary_tokens", pa.int64()),
    ),
    key=("community",),
    owner=_CANDIDATE,
    references={"community": ("communities", "community")},
)
RECORD_NUMBERS = Table(
    "record_numbers",
    _schema(
        ("kind", pa.string()),  # document, text_unit, entity, relationship, covariate, community
        ("id", pa.string()),  # "" holds the next free number of the kind, so that no number is ever reused
        ("number", pa.int64()),
    ),
    key=("kind", "id"),
    owner=_CANDIDATE,
)
CONTRACT_FAILURES = Table(
    "failures",
    _schema(
        ("stage", pa.string()),
        *_FAILURE_COLUMNS,
        ("n_asked", pa.int64()),  # records of the stage that its model was asked about
    ),
    key=("stage", "record", "request_key"),
    owner=_CANDIDATE,
)

CONTRACT_TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        CONTRACT_DOCUMENTS, CONTRACT_TEXT_UNITS, CONTRACT_ENTITIES, CONTRACT_RELATIONSHIPS, CONTRACT_COVARIATES,
        CONTRACT_COMMUNITIES, CONTRACT_COMMUNITY_REPORTS, CONTRACT_FAILURES, RECORD_NUMBERS,
    )
}  # fmt: skip

# Vector tables of a snapshot: name in LanceDB -> (contract table, stage table that holds the vectors).
VECTOR_TABLES: dict[str, tuple[str, str]] = {
    "default-text_unit-text": ("text_units", "text_unit_embeddings"),
    "default-entity-description": ("entities", "entity_embeddings"),
    "default-relationship-description": ("relationships", "relationship_embeddings"),
    "default-community-full_content": ("community_reports", "report_embeddings"),
}
