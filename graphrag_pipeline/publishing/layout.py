"""Layout of a snapshot's graph: communities as discs inside the disc of their parent, entities inside their discs.

Arrays, in the folder of the adjacency, all in rows of the contract tables:
    `entity_positions` float32 (n entities, 2): x and y;
    `community_circles` float32 (n communities, 3): x, y and radius;
    `community_edges` int32 (n edges, 2), `community_edge_weights` float32: pairs of communities of one level with the
    sum of the weights of the relationships between them; the strongest `N_STRONGEST` of each community.
An entity takes about one unit of radius. Entities without a community surround all discs. The layout is a pure function
of the tables, so an update has the layout of a rebuild. Keep out: the packing of discs (`disc_packing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from graphrag_pipeline.publishing.disc_packing import exchange_places, pack_discs, spiral

N_STRONGEST = 8
"""Edges that are kept for each community, strongest first; an edge stays if either of its ends keeps it."""
LAYOUT_ARRAYS = ("entity_positions", "community_circles", "community_edges", "community_edge_weights")
_DECIMALS = 2
_N_RING_PASSES = 4
_RIM = 1.0
"""Distance from the outermost entity, or disc, to the edge of the disc around it."""


@dataclass(frozen=True)
class _Discs:
    """The discs of a graph: those of the communities, one for loose entities of each community, and the outermost.

    Attributes:
        parent: row of the disc around each; -1 for the outermost, which is the last.
        level: of the community; one more for loose entities, -1 for the outermost.
        of_entity: disc that each entity lies in directly; -1 without a community.
    """

    parent: np.ndarray
    level: np.ndarray
    of_entity: np.ndarray


def build_layout(tables: Mapping[str, pa.Table], array: Callable[[str], np.ndarray]) -> dict[str, np.ndarray]:
    """Return all arrays by name.

    Args:
        tables: contract tables in file order; `entities` (degree), `relationships` (weight) and `communities` are read.
        array: returns an array of the adjacency by its name.
    """
    communities = tables["communities"]
    number, level, parent = (communities[name].to_numpy() for name in ("community", "level", "parent"))
    members = _members_by_level(array, level, len(tables["entities"]))
    ends = np.stack([array("relationship_source"), array("relationship_target")]).astype(np.int64)
    weights = tables["relationships"]["weight"].to_numpy().astype(np.float64)
    is_whole = (ends >= 0).all(axis=0)
    ends, weights = ends[:, is_whole], weights[is_whole]
    edges = [_join_edges(row[ends], weights, len(number)) for row in members]
    discs = _nest(number, level, parent, members)
    degree = tables["entities"]["degree"].to_numpy()
    centres, radii, positions = _place(discs, edges, degree, ends)
    strongest = [_keep_strongest(*pair, len(number)) for pair in edges]
    pairs = np.concatenate([pair for pair, _ in strongest] or [np.zeros((0, 2))])
    return {
        "entity_positions": np.round(positions, _DECIMALS).astype(np.float32),
        "community_circles": np.round(np.c_[centres, radii][: len(number)], _DECIMALS).astype(np.float32),
        "community_edges": pairs.astype(np.int32),
        "community_edge_weights": np.concatenate([one for _, one in strongest] or [np.zeros(0)]).astype(np.float32),
    }


def _members_by_level(array: Callable[[str], np.ndarray], level: np.ndarray, n_entities: int) -> list[np.ndarray]:
    """Return, for each level from 0, the community of each entity, -1 without one: int64 (n entities,)."""
    entities = np.repeat(np.arange(n_entities), np.diff(array("entity_communities_indptr")))
    communities = array("entity_communities_indices").astype(np.int64)
    found = []
    for number in range(int(level.max(initial=-1)) + 1):
        is_here = level[communities] == number
        of_entity = np.full(n_entities, -1, dtype=np.int64)
        of_entity[entities[is_here]] = communities[is_here]
        found.append(of_entity)
    return found


def _join_edges(ends: np.ndarray, weights: np.ndarray, n_communities: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of communities with relationships between them, int64 (n, 2), and the sums of their weights.

    Args:
        ends: communities of both ends of each relationship, (2, n); -1 without one.
    """
    is_between = (ends[0] != ends[1]) & (ends >= 0).all(axis=0)
    low, high = np.sort(ends[:, is_between], axis=0)
    keys, place = np.unique(low * n_communities + high, return_inverse=True)
    sums = np.bincount(place, weights=weights[is_between], minlength=len(keys))
    return np.c_[keys // max(n_communities, 1), keys % max(n_communities, 1)], sums


def _keep_strongest(pairs: np.ndarray, weights: np.ndarray, n_communities: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges that are among the `N_STRONGEST` of one of their ends, strongest first."""
    owners, edges = pairs.T.ravel(), np.tile(np.arange(len(pairs)), 2)
    order = np.lexsort((edges, -weights[edges], owners))
    first = np.searchsorted(owners[order], np.arange(n_communities))
    rank = np.arange(len(order)) - first[owners[order]]
    kept = np.unique(edges[order][rank < N_STRONGEST])
    kept = kept[np.lexsort((kept, -weights[kept]))]
    return pairs[kept], weights[kept]


def _nest(number: np.ndarray, level: np.ndarray, parent: np.ndarray, members: list[np.ndarray]) -> _Discs:
    """Return the discs; a parent that is unknown, or not of a coarser level, is the outermost disc."""
    n = len(number)
    order = np.argsort(number)
    place = np.searchsorted(number[order], parent).clip(0, max(n - 1, 0))
    above = order[place] if n else place
    is_known = (number[above] == parent) & (level[above] < level) if n else np.zeros(0, dtype=bool)
    deepest = np.full(len(members[0]) if members else 0, -1, dtype=np.int64)
    for row in members:
        deepest = np.where(row >= 0, row, deepest)
    has_children = np.zeros(n, dtype=bool)
    has_children[above[is_known]] = True
    with_loose = np.unique(deepest[deepest >= 0][has_children[deepest[deepest >= 0]]])
    outermost = n + len(with_loose)
    loose = np.full(n, -1, dtype=np.int64)
    loose[with_loose] = n + np.arange(len(with_loose))
    is_loose = (deepest >= 0) & (loose[deepest] >= 0) if n else np.zeros(len(deepest), dtype=bool)
    return _Discs(
        parent=np.r_[np.where(is_known, above, outermost), with_loose, -1].astype(np.int64),
        level=np.r_[level, level[with_loose] + 1, -1].astype(np.int64),
        of_entity=np.where(is_loose, loose[deepest], deepest) if n else deepest,
    )


def _place(
    discs: _Discs, edges: list[tuple[np.ndarray, np.ndarray]], degree: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the centres and radii of the discs, and the positions of the entities."""
    of_entity = discs.of_entity if len(discs.of_entity) else np.full(len(degree), -1, dtype=np.int64)
    slots, sizes = _rank(of_entity, degree, len(discs.parent))
    radii = np.where(sizes > 0, np.sqrt(sizes) + _RIM, 0.0)
    offsets = np.zeros((len(radii), 2))
    for level in range(int(discs.level.max()), -1, -1):
        inner = np.flatnonzero((discs.level == level) & (radii > 0))
        pairs, weights = edges[level] if level < len(edges) else (np.zeros((0, 2), dtype=np.int64), np.zeros(0))
        is_sibling = discs.parent[pairs[:, 0]] == discs.parent[pairs[:, 1]]
        _pack_level(discs.parent, inner, radii, offsets, pairs[is_sibling], weights[is_sibling])
    centres = offsets
    for level in range(int(discs.level.max()) + 1):
        inner = np.flatnonzero(discs.level == level)
        centres[inner] += centres[discs.parent[inner]]
    return centres, radii, _place_entities(of_entity, slots, centres, radii, ends)


def _pack_level(
    parent: np.ndarray,
    inner: np.ndarray,
    radii: np.ndarray,
    offsets: np.ndarray,
    pairs: np.ndarray,
    weights: np.ndarray,
) -> None:
    """Place the discs of a level around the centres of their parents; changes `offsets`, and `radii` of the parents."""
    place = np.full(len(parent), -1, dtype=np.int64)
    place[inner] = np.arange(len(inner))
    is_placed = (place[pairs] >= 0).all(axis=1)
    outer, group = np.unique(parent[inner], return_inverse=True)
    if not len(outer):
        return
    offsets[inner], around = pack_discs(group, radii[inner], place[pairs[is_placed]], weights[is_placed])
    radii[outer] = np.maximum(radii[outer], around + _RIM)


def _rank(of_entity: np.ndarray, degree: np.ndarray, n_discs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of each entity in its disc, by degree from the centre, and the number of entities per disc."""
    order = np.lexsort((np.arange(len(degree)), -degree, of_entity))
    ordered = of_entity[order]
    slots = np.empty(len(order), dtype=np.int64)
    slots[order] = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return slots, np.bincount(of_entity[of_entity >= 0], minlength=n_discs)


def _place_entities(
    of_entity: np.ndarray, slots: np.ndarray, centres: np.ndarray, radii: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """Return the positions of the entities: on a spiral in their disc, or on one around all discs."""
    is_inside = of_entity >= 0
    first = 0 if radii[-1] == 0 else int(np.ceil((radii[-1] + 2 * _RIM) ** 2))
    positions = spiral(slots + np.where(is_inside, 0, first))
    origin = np.where(is_inside[:, None], centres[of_entity], 0.0)
    positions += origin
    ring = np.floor(np.sqrt(slots)).astype(np.int64)  # ring k has the slots from k * k to (k + 1) * (k + 1) - 1
    n_rings = int(ring.max(initial=0)) + 1
    ring = np.where(is_inside, of_entity * n_rings + ring, -1)
    return exchange_places(positions, ring, origin, ends, np.ones(ends.shape[1]), _N_RING_PASSES)
