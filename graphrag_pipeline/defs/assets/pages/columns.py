"""Columns of an asset's tables as the UI names them, and the upstream columns that each is made from.

An asset has one list of columns in the UI, but may own several tables: then a column is `table.column`. A contract
column comes from the stage column of its name unless it is in `_CONTRACT`. Add a column's origin here. Keep
out: columns that are only counted or hashed from a whole row.
"""

from collections.abc import Mapping
from functools import cache

import dagster as dg
import pyarrow as pa

from graphrag_pipeline.pipeline.stages import ALL_STAGES, CANDIDATE, Stage
from graphrag_pipeline.tables import CONTRACT_TABLES, STAGE_TABLES, Table

_UNIT_TEXT = ("text_units.text",)
_REPORTED = ("communities.entity_ids", "entities.title", "relationships.weight", "descriptions.description")

_STAGE: dict[str, Mapping[str, tuple[str, ...]]] = {
    "documents": {
        "id": ("corpus_manifest.document_id",),
        "path": ("corpus_manifest.path",),
        "record": ("corpus_manifest.record",),
        "content_hash": ("corpus_manifest.content_hash",),
    },
    "text_units": {
        "document_id": ("documents.id",),
        "text": ("documents.text", "documents.chunks"),
        "start": ("documents.text",),
        "end": ("documents.text",),
        "n_tokens": ("documents.text",),
        "header_start": ("documents.text", "documents.chunks"),
        "header_end": ("documents.text", "documents.chunks"),
        "heading_path": ("documents.text",),
        "heading_levels": ("documents.text",),
        "first_page": ("documents.text", "documents.chunks"),
        "last_page": ("documents.text", "documents.chunks"),
    },
    "entity_mentions": {
        "text_unit_id": ("text_units.id",), "name": _UNIT_TEXT, "type": _UNIT_TEXT, "description": _UNIT_TEXT,
        "written": _UNIT_TEXT, "is_about": ("documents.title",),
    },
    "relationship_mentions": {
        "text_unit_id": ("text_units.id",), "source": _UNIT_TEXT, "target": _UNIT_TEXT, "description": _UNIT_TEXT,
        "strength": _UNIT_TEXT, "predicate": _UNIT_TEXT,
    },
    "claim_mentions": {
        "text_unit_id": ("text_units.id",), "subject": _UNIT_TEXT, "object": _UNIT_TEXT, "description": _UNIT_TEXT,
        "source_text": _UNIT_TEXT,
    },
    "entities": {
        "title": ("entity_mentions.name",), "names": ("entity_mentions.name", "entity_mentions.written"),
        "type": ("entity_mentions.type",), "types": ("entity_mentions.type",),
        "descriptions": ("entity_mentions.description",), "text_unit_ids": ("entity_mentions.text_unit_id",),
        "frequency": ("entity_mentions.text_unit_id",),
        "degree": ("relationship_mentions.source", "relationship_mentions.target"),
    },
    "relationships": {
        "source": ("relationship_mentions.source",), "target": ("relationship_mentions.target",),
        "descriptions": ("relationship_mentions.description",), "weight": ("relationship_mentions.strength",),
        "text_unit_ids": ("relationship_mentions.text_unit_id",), "predicates": ("relationship_mentions.predicate",),
    },
    "covariates": {
        "subject_id": ("claim_mentions.subject",), "object_id": ("claim_mentions.object",),
        "text_unit_ids": ("claim_mentions.text_unit_id",),
        **{name: (f"claim_mentions.{name}",) for name in (
            "type", "description", "status", "start_date", "end_date", "source_text", "text_unit_id", "request_key")},
    },
    "entity_merges": {"name": ("entity_mentions.name",), "title": ("entity_mentions.name",)},
    "descriptions": {
        "description_key": ("entities.description_key", "relationships.description_key"),
        "description": ("entities.descriptions", "relationships.descriptions"),
        "n_descriptions": ("entities.descriptions", "relationships.descriptions"),
    },
    "communities": {"entity_ids": ("entities.id", "relationships.source_id", "relationships.target_id")},
    "community_reports": {
        "community_id": ("communities.id",), "level": ("communities.level",), "title": ("entities.title",),
        "summary": _REPORTED, "findings": (*_REPORTED, "covariates.description"), "rank": _REPORTED,
    },
    "sentence_embeddings": {"text_unit_id": ("text_units.id",), "vector": _UNIT_TEXT},
    "text_unit_embeddings": {"vector": _UNIT_TEXT},
    "entity_embeddings": {"vector": ("entities.title", "descriptions.description")},
    "relationship_embeddings": {
        "vector": ("relationships.source", "relationships.target", "descriptions.description"),
    },
    "report_embeddings": {
        "vector": ("community_reports.title", "community_reports.summary", "community_reports.findings"),
    },
}  # fmt: skip
"""Stage table -> column -> stage columns above it."""

_CONTRACT: dict[str, Mapping[str, tuple[str, ...]]] = {
    "documents": {"text_unit_ids": ("text_units.id",)},
    "text_units": {
        "entity_ids": ("entities.text_unit_ids",), "relationship_ids": ("relationships.text_unit_ids",),
        "covariate_ids": ("covariates.text_unit_ids",),
    },
    "entities": {"description": ("descriptions.description",)},
    "relationships": {"description": ("descriptions.description",)},
    "communities": {
        "parent": ("communities.parent_id",), "children": ("communities.parent_id",),
        "relationship_ids": ("relationships.id", "communities.entity_ids"),
        "text_unit_ids": ("entities.text_unit_ids", "relationships.text_unit_ids"),
    },
    "community_reports": {
        "level": ("communities.level",), "size": ("communities.size",), "parent": ("communities.parent_id",),
        "full_content": ("community_reports.title", "community_reports.summary", "community_reports.findings"),
        "full_content_json": (
            "community_reports.title", "community_reports.summary", "community_reports.findings",
            "community_reports.rank", "community_reports.rating_explanation"),
    },
    "failures": {name: tuple(f"{table}.{name}" for table in STAGE_TABLES if table.endswith("_failures"))
                 for name in ("record", "reason", "reply", "request_key")},
}  # fmt: skip
"""Contract table -> column -> stage columns it is joined from, if these have another name."""


def shown_tables(stage: Stage) -> dict[str, Table]:
    """Return the tables whose columns the UI lists for a stage."""
    return dict(CONTRACT_TABLES) if stage is CANDIDATE else {name: STAGE_TABLES[name] for name in stage.tables}


def column_name(stage: Stage, table: str, column: str) -> str:
    """Return the name of a stage table's column in the UI."""
    is_alone = sum(not name.endswith("_failures") for name in shown_tables(stage)) == 1
    return column if is_alone and not table.endswith("_failures") else f"{table}.{column}"


def short_type(column_type: pa.DataType) -> str:
    """Return a type without the names inside it, which would leave no room for the description beside it."""
    if pa.types.is_list(column_type) or pa.types.is_large_list(column_type) or pa.types.is_fixed_size_list(column_type):
        return f"list of {short_type(column_type.value_type)}"
    return "struct" if pa.types.is_struct(column_type) else str(column_type)


def column_schema(stage: Stage) -> dg.TableSchema:
    """Return all columns of a stage's tables with their descriptions."""
    columns = [
        dg.TableColumn(
            column_name(stage, name, column.name),
            short_type(column.type),
            description=column.description,
            constraints=dg.TableColumnConstraints(nullable=column.is_nullable),
        )
        for name, table in shown_tables(stage).items()
        for column in table.columns
    ]
    return dg.TableSchema(columns)


@cache
def column_lineage(stage_name: str, key_prefix: tuple[str, ...] = ()) -> dg.TableColumnLineage:
    """Return, for each column of a stage, the columns of other assets that it is made from."""
    stage = ALL_STAGES[stage_name]
    return dg.TableColumnLineage(
        {
            column_name(stage, table, column): [_dep(origin, key_prefix) for origin in origins]
            for table in shown_tables(stage)
            for column, origins in origins_of(stage, table).items()
        }
    )


def origins_of(stage: Stage, table: str) -> Mapping[str, tuple[str, ...]]:
    """Return column -> "table.column" of stage tables it is made from."""
    if stage is not CANDIDATE:
        return _STAGE.get(table, {})
    joined = set(STAGE_TABLES[table].schema.names) if table in STAGE_TABLES else set()
    kept = {name: (f"{table}.{name}",) for name in CONTRACT_TABLES[table].schema.names if name in joined}
    return {**kept, **_CONTRACT.get(table, {})}


def _dep(origin: str, key_prefix: tuple[str, ...]) -> dg.TableColumnDep:
    table, _, column = origin.partition(".")
    owner = ALL_STAGES[STAGE_TABLES[table].owner]
    key = dg.AssetKey([*key_prefix, owner.name])
    return dg.TableColumnDep(asset_key=key, column_name=column_name(owner, table, column))
