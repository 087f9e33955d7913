"""Lists of records with filters, order and pages; facets of documents; the neighbourhood of an entity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filters import COLUMNS
from graphrag_pipeline.identity import best_name
from graphrag_pipeline.query.filtering.document_mask import DocumentFields
from graphrag_pipeline.query.index_reader import SnapshotReader
from graphrag_pipeline.query.records import read_text_units
from graphrag_pipeline.reading.lookup import find_by_key, find_record
from graphrag_pipeline.reading.pages import (
    CommunityRow,
    DocumentRow,
    EntityRow,
    FieldFacet,
    IndexFacets,
    NearEntity,
    Neighbourhood,
    PlacedText,
    RelationshipPage,
    RelationshipRow,
    ReportRow,
    ValueCount,
)
from graphrag_pipeline.reading.records import link_entities, read_metadata

TABLES = ("documents", "text_units", "entities", "relationships", "covariates", "communities", "community_reports")
_MAX_SHOWN = 200
"""Characters of a value; a longer one is left out, since no filter names it."""


def count_facets(reader: SnapshotReader, fields: DocumentFields, n_most: int = 50) -> IndexFacets:
    """Return the counts of the records that may be read.

    Args:
        fields: of the snapshot's documents.
        n_most: maximum of values of each field.
    """
    named = (name for name in fields.names if name not in COLUMNS)
    levels = reader.column("communities", "level")[reader.row_mask("communities")]
    return IndexFacets(
        {table: int(reader.row_mask(table).sum()) for table in TABLES},
        tuple(_count_types(reader)),
        tuple(ValueCount(str(level), int(n)) for level, n in zip(*np.unique(levels, return_counts=True), strict=True)),
        tuple(count_field(reader, fields, name, n_most) for name in named),
    )


def _count_types(reader: SnapshotReader) -> Iterator[ValueCount]:
    types = reader.snapshot.table("entities")["type"].filter(pa.array(reader.row_mask("entities")))
    counted = pc.value_counts(types.combine_chunks()).to_pylist()
    for one in sorted(counted, key=lambda one: (-one["counts"], one["values"] or "")):
        yield ValueCount(one["values"] or "", one["counts"])


def count_field(reader: SnapshotReader, fields: DocumentFields, name: str, n_most: int) -> FieldFacet:
    """Return the most frequent values of one of `fields.names` among the documents that may be read."""
    is_read = reader.row_mask("documents")
    field = fields.stored_or_derived(name)
    by_code = np.bincount(field.codes[is_read], minlength=len(field.values))
    counts: dict[str, int] = {}
    for value, n in zip(field.values, by_code.tolist(), strict=True):
        for one in value if isinstance(value, list) else [value]:
            if n and one is not None and len(str(one)) <= _MAX_SHOWN:
                counts[str(one)] = counts.get(str(one), 0) + n
    leading = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n_most]
    return FieldFacet(name, tuple(ValueCount(value, n) for value, n in leading), len(counts))


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
        names = reader.snapshot.table("entities")["names"].combine_chunks()
        matches = pc.fill_null(pc.match_substring(pc.list_flatten(names), search, ignore_case=True), False)
        parents = pc.list_parent_indices(names).to_numpy(zero_copy_only=False)
        found = np.zeros(len(names), dtype=bool)
        found[parents[matches.to_numpy(zero_copy_only=False)]] = True
        mask &= _contains(reader, "entities", ("title",), search) | found
    if type_name:
        types = reader.snapshot.table("entities")["type"]
        mask &= pc.fill_null(pc.equal(types, type_name), False).to_numpy()
    if community is not None:
        mask &= _in_community(reader, community)
    rows, n_found = _cut(reader, "entities", ENTITY_SORTS, sort, mask, limit, offset)
    return tuple(entity_rows(reader, rows)), n_found


def entity_rows(reader: SnapshotReader, rows: Sequence[int] | np.ndarray) -> list[EntityRow]:
    """Return the entities of some rows, in their order."""
    columns = ["human_readable_id", "id", "title", "names", "type", "description", "degree", "frequency"]
    return [
        EntityRow(
            one["human_readable_id"],
            one["id"],
            one["title"],
            best_name(one["title"], one["names"]),
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


N_RELATIONSHIPS = 5
"""Most relationships that a neighbourhood lists, for each entity of its limit."""


def read_neighbourhood(reader: SnapshotReader, name: str, depth: int = 1, n_most: int = 50) -> Neighbourhood:
    """Return the entities around the one that a name means, nearest first, then by degree.

    Args:
        depth: most relationships between it and another entity.
        n_most: maximum of entities, the one itself included; and a fifth of the maximum of relationships.
    """
    start = find_record(reader, "entity", name)
    rows, distances = _walk(reader, start, depth)
    degrees = reader.column("entities", "degree")[rows]
    order = np.lexsort((rows, -degrees, distances))[:n_most]
    near = rows[order]
    links = link_entities(reader, near.tolist())
    # The relationships with both ends among some entities, strongest first.
    adjacency = reader.snapshot.adjacency
    is_near = np.zeros(reader.snapshot.n_rows("entities"), dtype=bool)
    is_near[near] = True
    _, found = adjacency.of_all("entity_relationships", near)
    found = np.unique(found)
    ends = (adjacency.array(f"relationship_{end}")[found] for end in ("source", "target"))
    kept = found[np.logical_and(*(is_near[end] for end in ends))]
    between: np.ndarray = kept[np.lexsort((kept, -reader.column("relationships", "weight")[kept]))]
    return Neighbourhood(
        tuple(NearEntity(link, distance) for link, distance in zip(links, distances[order].tolist(), strict=True)),
        len(rows),
        tuple(relationship_rows(reader, between[: N_RELATIONSHIPS * n_most])),
        len(between),
    )


def _walk(reader: SnapshotReader, start: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of entities within a distance, and their distances."""
    adjacency = reader.snapshot.adjacency
    sources, targets = adjacency.array("relationship_source"), adjacency.array("relationship_target")
    distance = np.full(reader.snapshot.n_rows("entities"), -1, dtype=np.int64)
    distance[start] = 0
    frontier = np.array([start])
    for step in range(1, depth + 1):
        _, found = adjacency.of_all("entity_relationships", frontier)
        ends = np.unique(np.r_[sources[found], targets[found]])
        frontier = ends[(ends >= 0) & (distance[ends] < 0)]
        distance[frontier] = step
    rows = np.flatnonzero(distance >= 0)
    return rows, distance[rows]


def read_relationship(reader: SnapshotReader, key: str, n_most: int = 10) -> RelationshipPage:
    """Return the relationship of a number or id.

    Raises:
        RecordNameError: none that may be read has this key.
    """
    row = find_by_key(reader, "relationship", key)
    columns = ["human_readable_id", "id", "description", "weight", "n_mentions", "predicates"]
    [record] = reader.snapshot.take("relationships", [row], columns)
    adjacency = reader.snapshot.adjacency
    ends = [int(adjacency.array(f"relationship_{end}")[row]) for end in ("source", "target")]
    units = adjacency.of("relationship_text_units", row)
    shown = read_text_units(reader, units[:n_most], np.zeros(len(units[:n_most])))
    source, target = link_entities(reader, ends)
    return RelationshipPage(
        record["human_readable_id"],
        record["id"],
        source,
        target,
        record["description"] or "",
        record["weight"],
        record["n_mentions"],
        tuple(
            PlacedText(
                unit.text, unit.human_readable_id, unit.document_title, unit.document_id, unit.document_path,
                unit.start, unit.end,
            )
            for unit in shown
        ),
        len(units),
        tuple(record["predicates"] or ()),
    )  # fmt: skip
