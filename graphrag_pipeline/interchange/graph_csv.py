"""Export as CSV files for graph databases, with the headers of `neo4j-admin database import`.

Nodes are in `nodes/<label>.csv` (Document, TextUnit, Entity, Covariate, Community, CommunityReport), relationships in
`relationships/<type>.csv`. Lists of ids become relationships. Other lists become array properties with U+001F between
elements, because a name may hold any character that a person types. Null is an empty field, an empty text is `""`.
Fields may span lines. A text that a spreadsheet would run as a formula (it begins with =, +, -, @, one of their wide
forms, a tab or the end of a line) gets an apostrophe in front, ids included. A new column of the contract becomes a
property; only the columns named here are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from graphrag_pipeline.storage.snapshots import Snapshot

SEPARATOR = "\x1f"
"""Between the elements of an array property (`--array-delimiter=U+001F`)."""

_FORMULA = r"^([=+\-@\t\r\n＝＋－＠])"
"""The beginning of a text that spreadsheets run."""

_NODES: dict[str, tuple[str, frozenset[str]]] = {
    "Document": ("documents", frozenset(("text_unit_ids",))),
    "TextUnit": ("text_units", frozenset(("document_id", "entity_ids", "relationship_ids", "covariate_ids"))),
    "Entity": ("entities", frozenset(("text_unit_ids",))),
    "Covariate": ("covariates", frozenset(("text_unit_id", "text_unit_ids"))),
    "Community": (
        "communities", frozenset(("parent", "children", "entity_ids", "relationship_ids", "text_unit_ids")),
    ),
    "CommunityReport": ("community_reports", frozenset(("parent", "children", "findings"))),
}  # fmt: skip
"""Label -> contract table, and its columns that are relationships or, like `findings`, are in `full_content_json`."""

_ENDS = frozenset(("source", "target", "source_id", "target_id"))


@dataclass(frozen=True)
class _Edges:
    """Relationships of one type: ids of their ends, whose labels are `start` and `end`, and their properties."""

    start: str
    end: str
    start_ids: pa.Array
    end_ids: pa.Array
    properties: pa.Table | None = None


def write_graph_csv(snapshot: Snapshot, folder: Path) -> dict[str, int]:
    """Write all files; returns rows by path."""
    written = {}
    (folder / "nodes").mkdir()
    (folder / "relationships").mkdir()
    for label, (table, left_out) in _NODES.items():
        written[f"nodes/{label}.csv"] = _write_nodes(
            folder / "nodes" / f"{label}.csv", label, snapshot, table, left_out
        )
    for kind, edges in _all_edges(snapshot).items():
        path = f"relationships/{kind}.csv"
        _write_edges(folder / path, kind, edges)
        written[path] = len(edges.start_ids)
    return written


def _write_nodes(path: Path, label: str, snapshot: Snapshot, table: str, left_out: Collection[str]) -> int:
    rows = snapshot.table(table)
    columns = {f"id:ID({label})": rows["id"]} | _properties(rows, {"id", *left_out})
    _write(columns | {":LABEL": pa.repeat(label, rows.num_rows)}, path)
    return rows.num_rows


def _write_edges(path: Path, kind: str, edges: _Edges) -> None:
    columns = {f":START_ID({edges.start})": edges.start_ids, f":END_ID({edges.end})": edges.end_ids}
    if edges.properties is not None:
        columns |= _properties(edges.properties, _ENDS)
    _write(columns | {":TYPE": pa.repeat(kind, len(edges.start_ids))}, path)


def _write(columns: Mapping[str, pa.Array | pa.ChunkedArray], path: Path) -> None:
    pa_csv.write_csv(pa.table({name: without_formulas(column) for name, column in columns.items()}), path)


def without_formulas(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a column with an apostrophe before each text that a spreadsheet would run."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    return pc.replace_substring_regex(column, pattern=_FORMULA, replacement=r"'\1")


def _properties(rows: pa.Table, left_out: Collection[str]) -> dict[str, pa.ChunkedArray]:
    """Columns by their names in the header."""
    properties = {}
    for field in rows.schema:
        if field.name in left_out:
            continue
        column = rows[field.name]
        is_list = pa.types.is_list(field.type)
        kind = _property_type(field.type.value_type) + "[]" if is_list else _property_type(field.type)
        properties[f"{field.name}:{kind}"] = _join_elements(column.combine_chunks()) if is_list else column
    return properties


def _property_type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "long"
    return "double" if pa.types.is_floating(kind) else "boolean" if pa.types.is_boolean(kind) else "string"


def _join_elements(lists: pa.ListArray) -> pa.Array:
    """One text a list of texts; null for an empty list, since "" would be a list of one empty text."""
    elements = pc.replace_substring(lists.values, SEPARATOR, "\ufffd")
    joined = pc.binary_join(pa.ListArray.from_arrays(lists.offsets, elements), SEPARATOR)
    return pc.if_else(pc.equal(pc.list_value_length(lists), 0), None, joined)


def _all_edges(snapshot: Snapshot) -> dict[str, _Edges]:
    """Relationships by type."""
    units, entities, claims, communities, reports, relationships = (
        snapshot.table(name)
        for name in ("text_units", "entities", "covariates", "communities", "community_reports", "relationships")
    )
    id_of_number = (communities["community"], communities["id"])
    id_of_title = (entities["title"], entities["id"])
    return {
        "PART_OF": _Edges("TextUnit", "Document", units["id"], units["document_id"]),
        "HAS_ENTITY": _Edges("TextUnit", "Entity", *_pairs(units, "entity_ids")),
        "RELATED": _Edges("Entity", "Entity", relationships["source_id"], relationships["target_id"], relationships),
        "HAS_COVARIATE": _Edges("TextUnit", "Covariate", *_pairs(units, "covariate_ids")),
        "HAS_SUBJECT": _Edges("Covariate", "Entity", *_found(claims, "subject_id", *id_of_title)),
        "HAS_OBJECT": _Edges("Covariate", "Entity", *_found(claims, "object_id", *id_of_title)),
        "HAS_MEMBER": _Edges("Community", "Entity", *_pairs(communities, "entity_ids")),
        "HAS_PARENT": _Edges("Community", "Community", *_found(communities, "parent", *id_of_number)),
        "HAS_REPORT": _Edges("Community", "CommunityReport", *reversed(_found(reports, "community", *id_of_number))),
    }


def _pairs(rows: pa.Table, column: str) -> tuple[pa.Array, pa.Array]:
    """(id of the row, element) for each element of a list column."""
    lists = rows[column].combine_chunks()
    return rows["id"].combine_chunks().take(lists.value_parent_indices()), lists.flatten()


def _found(rows: pa.Table, column: str, keys: pa.ChunkedArray, ids: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """(id of the row, id whose key the column names) for each row that names a known key."""
    places = pc.index_in(rows[column].combine_chunks(), value_set=keys.combine_chunks())
    is_known = places.is_valid()
    return rows["id"].combine_chunks().filter(is_known), ids.combine_chunks().take(places.drop_null())
