"""Contract tables: the tables of a snapshot, which searches read and `sql` queries.

Microsoft GraphRAG's columns come first, in its order, then ours. A column that a stage computed is taken from the stage
table (`stage.py`), so it is spelled once. Only columns of the join are spelled here: numbers, references and token
counts. Lists of ids are ordered by record number.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from graphrag_pipeline.tables import stage
from graphrag_pipeline.tables.schema import STRINGS, Column, Table

INDEX_CANDIDATE = "index_candidate"
"""The stage that joins the contract tables."""


def _derive(source: Table, *columns: str | Column) -> tuple[Column, ...]:
    """Return columns in order: a name is that of a column of `source`, a `Column` is new in the contract."""
    return tuple(source.column(column) if isinstance(column, str) else column for column in columns)


def _tokens_of(texts: str) -> Column:
    return Column("n_tokens", pa.int64(), f"Length of {texts}, in tokens.")


def _number_of(kind: str) -> Column:
    return Column(
        "human_readable_id", pa.int64(), f"Number of the {kind} in citations; it stays the same in later snapshots."
    )


_DESCRIPTION = stage.DESCRIPTIONS.column("description")

CONTRACT_DOCUMENTS = Table(
    "documents",
    _derive(
        stage.DOCUMENTS,
        "id",
        _number_of("document"),
        "title",
        "text",
        Column("text_unit_ids", STRINGS, "Ids of its text units."),
        "creation_date",
        "metadata",
        "path",
        "record",
    ),
    key=("id",),
    owner=INDEX_CANDIDATE,
    references={"text_unit_ids": ("text_units", "id")},
    order=("human_readable_id",),
    description="One row per document.",
)


def _nullable_offset(name: str) -> Column:
    """Return an offset of text units; it is null in an imported index if the document does not contain the text."""
    column = stage.TEXT_UNITS.column(name)
    return replace(column, is_nullable=True, description=f"{column.description} Null: not found (imported index).")


CONTRACT_TEXT_UNITS = Table(
    "text_units",
    _derive(
        stage.TEXT_UNITS,
        "id",
        _number_of("text unit"),
        "text",
        replace(stage.TEXT_UNITS.column("n_tokens"), type=pa.int64()),
        "document_id",
        Column("entity_ids", STRINGS, "Ids of the entities that it mentions."),
        Column("relationship_ids", STRINGS, "Ids of the relationships that it mentions."),
        Column("covariate_ids", STRINGS, "Ids of the claims that it makes."),
        _nullable_offset("start"),
        _nullable_offset("end"),
        "header_start",
        "header_end",
        "heading_path",
        "heading_levels",
        "first_page",
        "last_page",
    ),
    key=("id",),
    owner=INDEX_CANDIDATE,
    references={
        "document_id": ("documents", "id"),
        "entity_ids": ("entities", "id"),
        "relationship_ids": ("relationships", "id"),
        "covariate_ids": ("covariates", "id"),
    },
    order=("human_readable_id",),
    description="One row per text unit: a passage of a document, the unit of extraction and citation.",
)
CONTRACT_ENTITIES = Table(
    "entities",
    _derive(
        stage.ENTITIES,
        "id",
        _number_of("entity"),
        "title",
        "type",
        _DESCRIPTION,
        "text_unit_ids",
        "frequency",
        "degree",
        "types",
        "names",
        "n_mentions",
        _tokens_of("title and description"),
    ),
    key=("id",),
    owner=INDEX_CANDIDATE,
    references={"text_unit_ids": ("text_units", "id")},
    order=("human_readable_id",),
    description="One row per entity.",
)
CONTRACT_RELATIONSHIPS = Table(
    "relationships",
    _derive(
        stage.RELATIONSHIPS,
        "id",
        _number_of("relationship"),
        "source",
        "target",
        _DESCRIPTION,
        "weight",
        "combined_degree",
        "text_unit_ids",
        "source_id",
        "target_id",
        "n_mentions",
        "predicates",
        _tokens_of("source, target and description"),
    ),
    key=("id",),
    owner=INDEX_CANDIDATE,
    references={
        "source_id": ("entities", "id"),
        "target_id": ("entities", "id"),
        "source": ("entities", "title"),
        "target": ("entities", "title"),
        "text_unit_ids": ("text_units", "id"),
    },
    order=("human_readable_id",),
    description="One row per unordered pair of related entities.",
)
CONTRACT_COVARIATES = Table(
    "covariates",
    _derive(
        stage.COVARIATES,
        "id",
        _number_of("claim"),
        "covariate_type",
        "type",
        "description",
        "subject_id",
        "object_id",
        "status",
        "start_date",
        "end_date",
        "source_text",
        "text_unit_id",
        _tokens_of("subject, object and description"),
        "text_unit_ids",
    ),
    key=("id",),
    owner=INDEX_CANDIDATE,
    references={"text_unit_id": ("text_units", "id"), "text_unit_ids": ("text_units", "id")},
    order=("human_readable_id",),
    description="One row per claim (covariate).",
)
CONTRACT_COMMUNITIES = Table(
    "communities",
    _derive(
        stage.COMMUNITIES,
        "id",
        _number_of("community"),
        Column("community", pa.int64(), "Number of the community, which `parent` and `children` refer to."),
        "level",
        Column("parent", pa.int64(), "Number of the community one level above; -1 at level 0."),
        Column("children", pa.list_(pa.int64()), "Numbers of the communities one level below."),
        Column("title", pa.string(), "Title: `Community` and its number."),
        "entity_ids",
        Column("relationship_ids", STRINGS, "Ids of the relationships with both ends in the community."),
        Column("text_unit_ids", STRINGS, "Ids of the text units of these entities and relationships."),
        Column("period", pa.string(), "Date of an import's report, as Microsoft GraphRAG sets it; else null.", True),
        "size",
    ),
    key=("community",),
    owner=INDEX_CANDIDATE,
    references={
        "entity_ids": ("entities", "id"),
        "relationship_ids": ("relationships", "id"),
        "text_unit_ids": ("text_units", "id"),
        "children": ("communities", "community"),
    },
    description="One row per community.",
)
_OF_COMMUNITY = tuple(map(CONTRACT_COMMUNITIES.column, ("community", "level", "parent", "children")))

CONTRACT_COMMUNITY_REPORTS = Table(
    "community_reports",
    _derive(
        stage.COMMUNITY_REPORTS,
        Column("id", pa.string(), "Id of the report."),
        _number_of("report"),
        *_OF_COMMUNITY,
        "title",
        "summary",
        Column("full_content", pa.string(), "Whole report as markdown; citations use human-readable ids."),
        "rank",
        "rating_explanation",
        replace(
            stage.COMMUNITY_REPORTS.column("findings"),
            description="Findings (summary, explanation); citations use human-readable ids.",
        ),
        Column("full_content_json", pa.string(), "Whole report as JSON; citations use human-readable ids."),
        CONTRACT_COMMUNITIES.column("period"),
        CONTRACT_COMMUNITIES.column("size"),
        "is_verbatim",
        "is_fallback",
        _tokens_of("`full_content`"),
        Column("n_summary_tokens", pa.int64(), "Length of `summary`, in tokens."),
    ),
    key=("community",),
    owner=INDEX_CANDIDATE,
    references={"community": ("communities", "community")},
    description="One row per community report.",
)
RECORD_NUMBERS = Table(
    "record_numbers",
    (
        Column("kind", pa.string(), "document, text_unit, entity, relationship, covariate or community."),
        Column("id", pa.string(), "Id of the record; empty: the row holds the next free number of the kind."),
        Column("number", pa.int64(), "Human-readable number; it is never given to another record."),
    ),
    key=("kind", "id"),
    owner=INDEX_CANDIDATE,
    description="One row per record with its number, and one per kind with the next free number.",
)
CONTRACT_FAILURES = Table(
    "failures",
    (
        Column("stage", pa.string(), "Stage whose model failed."),
        *stage.FAILURE_COLUMNS,
        Column("n_asked", pa.int64(), "Number of records that the stage sent to its model."),
    ),
    key=("stage", "record", "request_key"),
    owner=INDEX_CANDIDATE,
    description="One row per record for which a stage got no usable reply from its model.",
)

CONTRACT_TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        CONTRACT_DOCUMENTS, CONTRACT_TEXT_UNITS, CONTRACT_ENTITIES, CONTRACT_RELATIONSHIPS, CONTRACT_COVARIATES,
        CONTRACT_COMMUNITIES, CONTRACT_COMMUNITY_REPORTS, CONTRACT_FAILURES, RECORD_NUMBERS,
    )
}  # fmt: skip

VECTOR_TABLES: dict[str, tuple[str, str]] = {
    "default-text_unit-text": ("text_units", "text_unit_embeddings"),
    "default-entity-description": ("entities", "entity_embeddings"),
    "default-relationship-description": ("relationships", "relationship_embeddings"),
    "default-community-full_content": ("community_reports", "report_embeddings"),
}
"""Vector tables of a snapshot: name in LanceDB -> (contract table, stage table that holds the vectors)."""
