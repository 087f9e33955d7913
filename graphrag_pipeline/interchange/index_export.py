"""Export of a published snapshot into a folder, in the layout of other tools.

The folder is written beside its place and then moved there, so a reader finds the old export, none, or the new one. A
folder with a file that no export wrote is never touched; `MARKER` lists all files and folders of an export. Add a
format to `EXPORT_FORMATS`, and its name to `EXPORT_NAMES`.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.interchange import EXPORT_NAMES
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.storage.vectors.folders import connect
from graphrag_pipeline.tables import VECTOR_TABLES

if TYPE_CHECKING:
    import networkx as nx

MARKER = "graphrag_pipeline_export.json"
"""File with the format, the snapshot, and the paths of all files and folders of an export."""

Writer = Callable[[Snapshot, Path], dict[str, int]]
"""Writes a snapshot's files into an empty folder; returns their number of rows by path."""


@dataclass(frozen=True)
class ExportReport:
    """Result of an export.

    Attributes:
        folder: the folder that was written.
        rows: number of rows by path in the folder.
    """

    folder: Path
    rows: dict[str, int]


def export_snapshot(snapshot: Snapshot, target: Path, format: str) -> ExportReport:
    """Write a snapshot to `target`: a folder that does not exist, is empty, or holds only an earlier export.

    Args:
        format: one of `EXPORT_FORMATS`.

    Raises:
        PipelineError: `target` is a file, holds other files, or cannot be written; it is not changed.
    """
    target = target.resolve()  # the folder behind a link is replaced, not the link
    try:
        _check_target(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        new = _sibling(target)
        try:
            new.mkdir()
            rows = EXPORT_FORMATS[format](snapshot, new)
            content = {
                "format": format,
                "snapshot": snapshot.id,
                "embedding_fingerprint": snapshot.manifest.embedding_fingerprint,
                "files": sorted(_paths_below(new)),
            }
            (new / MARKER).write_text(json.dumps(content, indent=1), encoding="utf-8")
            files.flush_to_disk(new)
            _check_target(target)  # a file may have been added since
            _move(new, target)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    except (OSError, RuntimeError) as error:  # LanceDB raises RuntimeError
        raise files.write_error(target, error) from error
    return ExportReport(target, rows)


def _check_target(target: Path) -> None:
    if target.exists() and not target.is_dir():
        raise PipelineError(f"`{target}` is not a folder; pass a folder to `export`")
    foreign = sorted(set(_paths_below(target)) - _written_paths(target)) if target.is_dir() else []
    if foreign:
        raise PipelineError(
            f"`{target}` holds `{foreign[0]}`, which no export wrote (`{MARKER}` does not list it); nothing was "
            "changed. Move it, or pass a new or empty folder to `export`"
        )


def _paths_below(folder: Path) -> Iterator[str]:
    """Yield the relative paths of all files below a folder, and of all folders, which end with `/`."""
    for parent, folders, names in os.walk(folder, onerror=_raise):
        below = Path(parent).relative_to(folder)
        yield from ((below / name).as_posix() + "/" for name in folders)
        yield from ((below / name).as_posix() for name in names)


def _raise(error: OSError) -> NoReturn:
    raise error


def _written_paths(target: Path) -> set[str]:
    """Return the paths that an earlier export wrote into the folder; none if there was no export."""
    try:
        marker = json.loads((target / MARKER).read_bytes())
        return {MARKER, *marker["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _sibling(target: Path) -> Path:
    """Return a new name beside `target`; not by tempfile, whose folders only their owner can read."""
    return target.with_name(f"{files.TEMPORARY_PREFIX}{secrets.token_hex(8)}")


def _move(new: Path, target: Path) -> None:
    """Replace `target` by the folder `new`; a rename replaces only an empty folder."""
    if not (target.exists() and any(target.iterdir())):
        os.rename(new, target)
        return
    old = _sibling(target)
    os.rename(target, old)
    try:
        os.rename(new, target)
    except OSError:
        os.rename(old, target)
        raise
    shutil.rmtree(old)


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
    """Write CSV files with the headers of `neo4j-admin database import`; returns rows by path.

    Nodes are in `nodes/<label>.csv`, relationships in `relationships/<type>.csv`. Lists of ids become relationships,
    other lists array properties with U+001F between elements. Null is an empty field, an empty text is `""`. A text
    that a spreadsheet would run as a formula gets an apostrophe in front, ids included. A new column of the contract
    becomes a property; only the columns named here are left out.
    """
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
    """One text a list; null for an empty list, since "" would be a list of one empty text."""
    elements = pc.replace_substring(lists.values.cast(pa.string()), SEPARATOR, "\ufffd")
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


GRAPHML_FILE = "graph.graphml"
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_graph(snapshot: Snapshot) -> nx.Graph:
    """Return the entities and relationships of a snapshot as nodes and edges by their ids, all in memory.

    Every column is an attribute; null has none. Entities also have `community_0`, `community_1`, ...: the number of
    their community at each level.
    """
    import networkx as nx

    graph = nx.Graph()
    entities = _with_communities(snapshot.table("entities"), snapshot.table("communities"))
    graph.add_nodes_from((row["id"], _attributes(row)) for row in entities.to_pylist())
    relationships = snapshot.table("relationships").to_pylist()
    graph.add_edges_from((row["source_id"], row["target_id"], _attributes(row)) for row in relationships)
    return graph


def write_graphml(snapshot: Snapshot, folder: Path) -> dict[str, int]:
    """Write `graph.graphml` into a folder; returns its number of nodes and edges."""
    import networkx as nx

    graph = nx.relabel_nodes(read_graph(snapshot), xml_id, copy=False)
    for _, attributes in [*graph.nodes(data=True), *((None, data) for *_, data in graph.edges(data=True))]:
        attributes.update((name, xml_text(value)) for name, value in attributes.items() if not _is_number(value))
    nx.write_graphml_xml(graph, folder / GRAPHML_FILE, edge_id_from_attribute="id")  # with lxml, another file
    return {f"{GRAPHML_FILE} nodes": graph.number_of_nodes(), f"{GRAPHML_FILE} edges": graph.number_of_edges()}


def _attributes(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _with_communities(entities: pa.Table, communities: pa.Table) -> pa.Table:
    """Return `entities` with one column per level: the community number, null below the entity's finest community."""
    members = communities["entity_ids"].combine_chunks()
    rows = pc.index_in(members.flatten(), value_set=entities["id"].combine_chunks()).to_numpy(zero_copy_only=False)
    owners = members.value_parent_indices().to_numpy()
    levels, numbers = (communities[column].to_numpy()[owners] for column in ("level", "community"))
    for level in np.unique(levels):
        here = levels == level
        column = np.full(entities.num_rows, -1, dtype=np.int64)
        column[rows[here]] = numbers[here]
        entities = entities.append_column(f"community_{level}", pa.array(column, mask=column < 0))
    return entities


def xml_id(record_id: str) -> str:
    """Return an id for XML; one with characters that XML cannot hold ends with a hash, to be unique."""
    clean = _ILLEGAL.sub("\ufffd", record_id)
    return clean if clean == record_id else f"{clean}-{stable_hash(record_id)[:8]}"


def xml_text(value: Any) -> str:
    """Return a value as text for XML: lists as JSON, line ends as XML readers return them."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _ILLEGAL.sub("\ufffd", text).replace("\r\n", "\n").replace("\r", "\n")


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
    """Write an `output/` folder of Microsoft GraphRAG 3.x, which its own `query` command reads; returns rows by path.

    Tables have exactly its columns (3.3, `graphrag/data_model/schemas.py`); `lancedb/` has one table per vector field.
    GraphRAG compares by Euclidean distance, which for vectors of length 1 gives the order of the cosine. A record
    without a vector (zeros here) is left out, because a zero vector would be nearer to most questions than an unrelated
    record. Reports are finest level first, because its global search shuffles them from there.
    """
    written = {}
    for name, columns in _COLUMNS.items():
        rows = snapshot.table(name)
        if name == "documents":
            metadata = rows["metadata"]
            rows = rows.append_column("raw_data", pc.if_else(pc.equal(metadata, "{}"), None, metadata))
        if name == "community_reports":
            rows = rows.sort_by([("level", "descending"), ("community", "ascending")])
        pq.write_table(rows.select(columns).replace_schema_metadata(None), folder / f"{name}.parquet")
        written[f"{name}.parquet"] = rows.num_rows
    connection = connect(folder / "lancedb")
    for name, its_name in _VECTOR_NAMES.items():
        dimensions = snapshot.manifest.vectors[name].dimensions
        schema = pa.schema([("id", pa.string()), ("vector", pa.list_(pa.float32(), dimensions))])
        reader = pa.RecordBatchReader.from_batches(schema, _vector_batches(snapshot, name, schema))
        written[f"lancedb/{its_name}"] = connection.create_table(its_name, data=reader).count_rows()
    return written


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


EXPORT_FORMATS: dict[str, Writer] = dict(
    zip(EXPORT_NAMES, (write_graphrag, write_graphml, write_graph_csv), strict=True)
)
"""Writer by the name of its format."""
