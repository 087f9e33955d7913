"""The entities around an entity, and one relationship in full. Keep out: ranking for a question."""

from __future__ import annotations

import numpy as np

from graphrag_pipeline.query.index_reader import SnapshotReader
from graphrag_pipeline.query.records import read_text_units
from graphrag_pipeline.reading.entities import link_entities
from graphrag_pipeline.reading.lists import relationship_rows
from graphrag_pipeline.reading.lookup import find_by_key, find_record
from graphrag_pipeline.reading.pages import PlacedText
from graphrag_pipeline.reading.rows import NearEntity, Neighbourhood, RelationshipPage

N_RELATIONSHIPS = 5
"""Most relationships that a neighbourhood lists, for each entity of its limit."""


def read_neighbourhood(reader: SnapshotReader, name: str, depth: int = 1, n_most: int = 50) -> Neighbourhood:
    """Return the entities around the one that a name means, nearest first, then by degree.

    Args:
        depth: most relationships between it and another entity.
        n_most: maximum of entities, the one itself included; and a fifth of the maximum of relationships.

    Raises:
        RecordNameError: see `lookup.find_record`.
    """
    start = find_record(reader, "entity", name)
    rows, distances = _walk(reader, start, depth)
    degrees = reader.column("entities", "degree")[rows]
    order = np.lexsort((rows, -degrees, distances))[:n_most]
    near = rows[order]
    links = link_entities(reader, near.tolist())
    between = _between(reader, near)
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


def _between(reader: SnapshotReader, rows: np.ndarray) -> np.ndarray:
    """Return the relationships with both ends among some entities, strongest first."""
    adjacency = reader.snapshot.adjacency
    is_near = np.zeros(reader.snapshot.n_rows("entities"), dtype=bool)
    is_near[rows] = True
    _, found = adjacency.of_all("entity_relationships", rows)
    found = np.unique(found)
    ends = (adjacency.array(f"relationship_{end}")[found] for end in ("source", "target"))
    kept = found[np.logical_and(*(is_near[end] for end in ends))]
    strongest: np.ndarray = kept[np.lexsort((kept, -reader.column("relationships", "weight")[kept]))]
    return strongest


def read_relationship(reader: SnapshotReader, key: str, n_most: int = 10) -> RelationshipPage:
    """Return the relationship of a number or id.

    Args:
        n_most: maximum of text units.

    Raises:
        RecordNameError: none that may be read has this key.
    """
    row = find_by_key(reader, "relationship", key)
    columns = ["human_readable_id", "id", "description", "weight", "n_mentions"]
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
    )  # fmt: skip
