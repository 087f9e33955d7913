"""Lists of records: search, filter, sort, and a part of the result; commands, servers and pages use the same functions.

Each function returns the rows from `offset`, at most `limit`, and the number of all that match. Under a mask, only
records that pass are listed and counted. Keep out: one record in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.index_reader import SnapshotReader
from graphrag_pipeline.reading.documents import read_metadata
from graphrag_pipeline.reading.lookup import find_record
from graphrag_pipeline.reading.rows import CommunityRow, DocumentRow, EntityRow, RelationshipRow, ReportRow

ENTITY_SORTS = {"degree": ("degree", True), "title": ("title", False), "text_units": ("frequency", True),
                "number": ("human_readable_id", False)}  # fmt: skip
"""Word of a request -> column, and whether the highest come first."""
RELATIONSHIP_SORTS = {"weight": ("weight", True), "degree": ("combined_degree", True), "source": ("source", False),
                      "target": ("target", False), "number": ("human_readable_id", False)}  # fmt: skip
COMMUNITY_SORTS = {"size": ("size", True), "number": ("community", False)}
REPORT_SORTS = {"rank": ("rank", True), "size": ("size", True), "title": ("title", False),
                "number": ("human_readable_id", False)}  # fmt: skip
DOCUMENT_SORTS = {"number": ("human_readable_id", False), "title": ("title", False), "path": ("path", False),
                  "date": ("creation_date", True)}  # fmt: skip

_Sorts = Mapping[str, tuple[str, bool]]


def list_entities(
    reader: SnapshotReader,
    search: str = "",
    type_name: str = "",
    community: int | None = None,
    sort: str = "degree",
    limit: int = 50,
    offset: int = 0,
) -> tuple[tuple[EntityRow, ...], int]:
    """Return entities.

    Args:
        search: a part of a title or of another written form, in any case.
        type_name: of the entity; "" is every type.
        community: number of a community that the entities belong to.

    Raises:
        PipelineError: `sort` is not one of `ENTITY_SORTS`.
    """
    mask = reader.row_mask("entities").copy()
    if search:
        mask &= _contains(reader, "entities", ("title",), search) | _names_contain(reader, search)
    if type_name:
        types = reader.snapshot.table("entities")["type"]
        mask &= pc.fill_null(pc.equal(types, type_name), False).to_numpy()
    if community is not None:
        mask &= _in_community(reader, community)
    rows, n_found = _cut(reader, "entities", ENTITY_SORTS, sort, mask, limit, offset)
    return tuple(entity_rows(reader, rows)), n_found


def entity_rows(reader: SnapshotReader, rows: Sequence[int] | np.ndarray) -> list[EntityRow]:
    """Return the entities of some rows, in their order."""
    columns = ["human_readable_id", "id", "title", "type", "description", "degree", "frequency"]
    return [
        EntityRow(
            one["human_readable_id"],
            one["id"],
            one["title"],
            one["type"] or "",
            one["description"] or "",
            one["degree"],
            one["frequency"],
        )
        for one in reader.snapshot.take("entities", list(rows), columns)
    ]


def list_relationships(
    reader: SnapshotReader,
    search: str = "",
    entity: str = "",
    sort: str = "weight",
    limit: int = 50,
    offset: int = 0,
) -> tuple[tuple[RelationshipRow, ...], int]:
    """Return relationships.

    Args:
        search: a part of the title of one end, or of the description, in any case.
        entity: name, number or id of an entity at one end.

    Raises:
        RecordNameError: see `lookup.find_record`.
        PipelineError: `sort` is not one of `RELATIONSHIP_SORTS`.
    """
    mask = reader.row_mask("relationships").copy()
    if entity:
        row = find_record(reader, "entity", entity)
        is_near = np.zeros(len(mask), dtype=bool)
        is_near[reader.snapshot.adjacency.of("entity_relationships", row)] = True
        mask &= is_near
    if search:
        columns = ("source", "target") if reader.document_mask else ("source", "target", "description")
        mask &= _contains(reader, "relationships", columns, search)
    rows, n_found = _cut(reader, "relationships", RELATIONSHIP_SORTS, sort, mask, limit, offset)
    return tuple(relationship_rows(reader, rows)), n_found


def relationship_rows(reader: SnapshotReader, rows: Sequence[int] | np.ndarray) -> list[RelationshipRow]:
    """Return the relationships of some rows, in their order."""
    wanted = np.asarray(rows, dtype=np.int64)
    adjacency, numbers = reader.snapshot.adjacency, reader.column("entities", "human_readable_id")
    ends = [numbers[adjacency.array(f"relationship_{end}")[wanted]].tolist() for end in ("source", "target")]
    positions, _ = adjacency.of_all("relationship_text_units", wanted)
    counts = np.bincount(positions, minlength=len(wanted)).tolist()
    columns = ["human_readable_id", "id", "source", "target", "description", "weight"]
    found = reader.snapshot.take("relationships", wanted, columns)
    return [
        RelationshipRow(
            one["human_readable_id"],
            one["id"],
            one["source"],
            one["target"],
            source,
            target,
            one["description"] or "",
            one["weight"],
            count,
        )
        for one, source, target, count in zip(found, *ends, counts, strict=True)
    ]


def list_communities(
    reader: SnapshotReader,
    level: int | None = None,
    parent: int | None = None,
    sort: str = "size",
    limit: int = 50,
    offset: int = 0,
) -> tuple[tuple[CommunityRow, ...], int]:
    """Return communities.

    Args:
        level: 0 is the coarsest.
        parent: number of the community one level above.

    Raises:
        PipelineError: `sort` is not one of `COMMUNITY_SORTS`.
    """
    mask = reader.row_mask("communities").copy()
    if level is not None:
        mask &= reader.column("communities", "level") == level
    if parent is not None:
        mask &= reader.column("communities", "parent") == parent
    rows, n_found = _cut(reader, "communities", COMMUNITY_SORTS, sort, mask, limit, offset)
    return tuple(community_rows(reader, rows)), n_found


def community_rows(reader: SnapshotReader, rows: Sequence[int] | np.ndarray) -> list[CommunityRow]:
    """Return the communities of some rows, in their order; under a mask, only children that pass are counted."""
    columns = ["community", "id", "level", "size", "title", "parent", "children"]
    found = reader.snapshot.take("communities", list(rows), columns)
    reports = _reports_of(reader, [one["community"] for one in found])
    readable = set(reader.column("communities", "community")[reader.row_mask("communities")].tolist())
    listed = []
    for one in found:
        report = reports.get(one["community"], {})
        listed.append(
            CommunityRow(
                one["community"],
                one["id"],
                one["level"],
                one["size"],
                report.get("title") or one["title"],
                one["parent"] if one["parent"] in readable else None,
                len(readable.intersection(one["children"] or ())),
                report.get("human_readable_id"),
                report.get("rank"),
            )
        )
    return listed


def _reports_of(reader: SnapshotReader, communities: Sequence[int]) -> dict[int, dict]:
    """Return the reports of some communities by the number of the community."""
    is_wanted = np.isin(reader.column("community_reports", "community"), communities)
    rows = np.flatnonzero(is_wanted & reader.row_mask("community_reports"))
    columns = ["community", "human_readable_id", "title", "rank"]
    return {one["community"]: one for one in reader.snapshot.take("community_reports", rows, columns)}


def list_reports(
    reader: SnapshotReader,
    search: str = "",
    level: int | None = None,
    sort: str = "rank",
    limit: int = 50,
    offset: int = 0,
) -> tuple[tuple[ReportRow, ...], int]:
    """Return community reports.

    Args:
        search: a part of the title or the text, in any case.
        level: of the communities; 0 is the coarsest.

    Raises:
        PipelineError: `sort` is not one of `REPORT_SORTS`.
    """
    mask = reader.row_mask("community_reports").copy()
    if search:
        mask &= _contains(reader, "community_reports", ("title", "full_content"), search)
    if level is not None:
        mask &= reader.column("community_reports", "level") == level
    rows, n_found = _cut(reader, "community_reports", REPORT_SORTS, sort, mask, limit, offset)
    columns = ["human_readable_id", "id", "community", "level", "size", "title", "summary", "rank"]
    found = reader.snapshot.take("community_reports", rows, columns)
    return tuple(ReportRow(number=one.pop("human_readable_id"), **one) for one in found), n_found


def list_documents(
    reader: SnapshotReader, search: str = "", sort: str = "number", limit: int = 50, offset: int = 0
) -> tuple[tuple[DocumentRow, ...], int]:
    """Return documents.

    Args:
        search: a part of the title or path, in any case.

    Raises:
        PipelineError: `sort` is not one of `DOCUMENT_SORTS`.
    """
    mask = reader.row_mask("documents").copy()
    if search:
        mask &= _contains(reader, "documents", ("title", "path"), search)
    rows, n_found = _cut(reader, "documents", DOCUMENT_SORTS, sort, mask, limit, offset)
    columns = ["human_readable_id", "id", "title", "path", "record", "creation_date", "metadata", "text_unit_ids"]
    lengths = pc.utf8_length(reader.snapshot.table("documents")["text"].take(pa.array(rows))).to_pylist()
    found = reader.snapshot.take("documents", rows, columns)
    return tuple(_document_row(one, n or 0) for one, n in zip(found, lengths, strict=True)), n_found


def _document_row(one: dict, n_characters: int) -> DocumentRow:
    return DocumentRow(
        one["human_readable_id"],
        one["id"],
        one["title"],
        one["path"] or "",
        one["record"] or "",
        one["creation_date"],
        read_metadata(one["metadata"]),
        n_characters,
        len(one["text_unit_ids"] or ()),
    )


# ------------------------------------------------------------------------------------------------------------- choosing


def _cut(
    reader: SnapshotReader, table: str, sorts: _Sorts, sort: str, mask: np.ndarray, limit: int, offset: int
) -> tuple[np.ndarray, int]:
    """Return the rows of one part of a sorted list, and the number of all."""
    if sort not in sorts:
        raise PipelineError(f"{table} cannot be sorted by `{sort[:80]}`; choose one of {', '.join(sorts)}")
    order = reader.order(table, *sorts[sort])
    wanted = order[mask[order]]
    return wanted[offset : offset + limit].astype(np.int64), len(wanted)


def _contains(reader: SnapshotReader, table: str, columns: Sequence[str], text: str) -> np.ndarray:
    """Return which rows have a text in one of some columns, in any case: bool (n rows,)."""
    found = np.zeros(reader.snapshot.n_rows(table), dtype=bool)
    for column in columns:
        values = reader.snapshot.table(table)[column]
        found |= pc.fill_null(pc.match_substring(values, text, ignore_case=True), False).to_numpy()
    return found


def _names_contain(reader: SnapshotReader, text: str) -> np.ndarray:
    names = reader.snapshot.table("entities")["names"].combine_chunks()
    matches = pc.fill_null(pc.match_substring(pc.list_flatten(names), text, ignore_case=True), False)
    parents = pc.list_parent_indices(names).to_numpy(zero_copy_only=False)
    found = np.zeros(len(names), dtype=bool)
    found[parents[matches.to_numpy(zero_copy_only=False)]] = True
    return found


def _in_community(reader: SnapshotReader, community: int) -> np.ndarray:
    """Return which entities belong to a community: bool (n entities,).

    Raises:
        PipelineError: no such community may be read.
    """
    row = find_record(reader, "community", str(community))
    [record] = reader.snapshot.take("communities", [row], ["entity_ids"])
    rows = reader.snapshot.rows_of("entities", record["entity_ids"])
    found = np.zeros(reader.snapshot.n_rows("entities"), dtype=bool)
    found[rows[rows >= 0]] = True
    return found
