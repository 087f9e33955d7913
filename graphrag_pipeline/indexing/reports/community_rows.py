"""Records of each community, read one level at a time without a loop over relationships in Python.

Records are positions in `GraphRecords`. Keep out: the choice of records for a context (`contexts.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import one_chunk, positions
from graphrag_pipeline.indexing.reports.records import GraphRecords


@dataclass(frozen=True)
class CommunityRows:
    """Positions of the records of one community in `GraphRecords`.

    Attributes:
        id, level: of the community.
        entities: (n,) by degree inside the community, highest first, ties by title.
        relationships: (r,) both ends inside, by the sum of their degrees, highest first, ties by title.
        claims: (c,) in the order of their entities.
        children: ids of the sub-communities.
        child_of_entity, child_of_relationship, child_of_claim: (n,), (r,), (c,) position in `children` of the
            sub-community that contains the record. It is -1 for a relationship between two of them, and without any.
    """

    id: str
    level: int
    entities: np.ndarray
    relationships: np.ndarray
    claims: np.ndarray
    children: tuple[str, ...]
    child_of_entity: np.ndarray
    child_of_relationship: np.ndarray
    child_of_claim: np.ndarray


def iterate_levels(communities: pa.Table, records: GraphRecords) -> Iterator[list[CommunityRows]]:
    """Yield the communities of each level with their records, deepest level first."""
    levels = communities["level"].to_numpy()
    finer: _Level | None = None
    for level in sorted(set(levels.tolist()), reverse=True):
        rows = communities.filter(pa.array(levels == level)).sort_by("id")
        current = _read_level(rows, len(records.entity_ids), records)
        yield [_collect_rows(position, level, current, finer, records) for position in range(rows.num_rows)]
        finer = current


@dataclass(frozen=True)
class _Level:
    """One level as arrays.

    Attributes:
        ids, parent_ids: (k,) of the communities.
        community_of: (n_entities,) community of each entity of the graph; -1 if its branch ended above.
        entities, relationships: positions in `GraphRecords`, grouped by community.
        entity_starts, relationship_starts: (k + 1,) offset of each community in these arrays.
    """

    ids: list[str]
    parent_ids: list[str | None]
    community_of: np.ndarray
    entities: np.ndarray
    entity_starts: np.ndarray
    relationships: np.ndarray
    relationship_starts: np.ndarray

    @cached_property
    def children_of(self) -> dict[str, list[int]]:
        """Parent id -> positions of its children in this level."""
        children: dict[str, list[int]] = {}
        for position, parent in enumerate(self.parent_ids):
            if parent is not None:
                children.setdefault(parent, []).append(position)
        return children

    @cached_property
    def child_number(self) -> np.ndarray:
        """Position of each community among the children of its parent."""
        numbers = np.zeros(len(self.ids), dtype=np.int64)
        for children in self.children_of.values():
            numbers[children] = np.arange(len(children))
        return numbers


def _read_level(rows: pa.Table, n_entities: int, records: GraphRecords) -> _Level:
    # A relationship is inside a community if both ends are. Sorting by (community, -degree, title) groups the records,
    # and `np.searchsorted` on the sorted community numbers finds where each group starts.
    members = positions(pc.list_flatten(rows["entity_ids"]), records.entity_ids)
    owners = one_chunk(pc.list_parent_indices(rows["entity_ids"].combine_chunks())).to_numpy(zero_copy_only=False)
    community_of = np.full(n_entities, -1, dtype=np.int64)
    community_of[members] = owners
    community = community_of[records.sources]
    inside = np.flatnonzero((community >= 0) & (community == community_of[records.targets]))
    ends = records.sources[inside], records.targets[inside]
    degree = np.bincount(np.concatenate(ends), minlength=n_entities)
    by_degree = np.lexsort((records.title_order[members], -degree[members], owners))
    importance = degree[ends[0]] + degree[ends[1]]
    by_importance = np.lexsort((records.relationship_order[inside], -importance, community[inside]))
    bounds = np.arange(rows.num_rows + 1)
    return _Level(
        ids=rows["id"].to_pylist(),
        parent_ids=rows["parent_id"].to_pylist(),
        community_of=community_of,
        entities=members[by_degree],
        entity_starts=np.searchsorted(owners[by_degree], bounds),
        relationships=inside[by_importance],
        relationship_starts=np.searchsorted(community[inside][by_importance], bounds),
    )


def _collect_rows(
    position: int, level: int, current: _Level, finer: _Level | None, records: GraphRecords
) -> CommunityRows:
    entities = current.entities[current.entity_starts[position] : current.entity_starts[position + 1]]
    start, end = current.relationship_starts[position : position + 2]
    relationships = current.relationships[start:end]
    claims = records.claims_of(entities)
    children = finer.children_of.get(current.ids[position], []) if finer else []
    child_of_entity = np.full(len(entities), -1)
    child_of_relationship = np.full(len(relationships), -1)
    child_of_claim = np.full(len(claims), -1)
    if finer and children:
        child_of_entity = finer.child_number[finer.community_of[entities]]
        ends = (finer.community_of[end[relationships]] for end in (records.sources, records.targets))
        sources, targets = (finer.child_number[end] for end in ends)
        child_of_relationship = np.where(sources == targets, sources, -1)
        child_of_claim = finer.child_number[finer.community_of[records.claim_owners[claims]]]
    return CommunityRows(
        id=current.ids[position],
        level=level,
        entities=entities,
        relationships=relationships,
        claims=claims,
        children=tuple(finer.ids[child] for child in children) if finer else (),
        child_of_entity=child_of_entity,
        child_of_relationship=child_of_relationship,
        child_of_claim=child_of_claim,
    )
