"""All arrays of a snapshot that its contract tables define, in one folder: adjacency, lookups, mentions and layout.

Keep out: the sentences of the text units, which have a folder of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from graphrag_pipeline.arrow_columns import compress, list_pairs, positions
from graphrag_pipeline.storage.arrays import build_mentions
from graphrag_pipeline.storage.lookups import build_lookups


def build_arrays(tables: Mapping[str, pa.Table]) -> dict[str, np.ndarray]:
    """Return all arrays by name, for contract tables in file order."""
    arrays = build_adjacency(tables) | build_lookups(tables) | build_mentions(tables)
    return arrays | build_layout(tables, arrays.__getitem__)


def build_adjacency(tables: Mapping[str, pa.Table]) -> dict[str, np.ndarray]:
    """Return the arrays of the relations (`storage.arrays.Adjacency`), for contract tables in file order.

    They are `entity_relationships`, `entity_text_units` (in the order of the entity's list), `entity_communities` (all
    levels), `relationship_text_units`, `text_unit_entities`, `text_unit_relationships`, `entity_covariates` (claims
    about the entity), and the ends of relationships: `relationship_source`, `relationship_target` (int32 entity rows).
    """
    entities, relationships = tables["entities"], tables["relationships"]
    text_units, communities, covariates = tables["text_units"], tables["communities"], tables["covariates"]
    source = positions(relationships["source_id"], entities["id"])
    target = positions(relationships["target_id"], entities["id"])
    relationship_rows = np.arange(len(relationships), dtype=np.int64)
    entity_text_units = list_pairs(entities["text_unit_ids"], text_units["id"])
    relationship_text_units = list_pairs(relationships["text_unit_ids"], text_units["id"])
    community_entities = list_pairs(communities["entity_ids"], entities["id"])
    subject = positions(covariates["subject_id"], entities["title"])
    known = np.flatnonzero(subject >= 0)
    n_entities, n_text_units = len(entities), len(text_units)
    arrays = {"relationship_source": source.astype(np.int32), "relationship_target": target.astype(np.int32)}
    for name, (rows, values), n_rows in (
        ("entity_relationships", (np.r_[source, target], np.r_[relationship_rows, relationship_rows]), n_entities),
        ("entity_text_units", entity_text_units, n_entities),
        ("entity_communities", community_entities[::-1], n_entities),
        ("entity_covariates", (subject[known], known), n_entities),
        ("relationship_text_units", relationship_text_units, len(relationships)),
        ("text_unit_entities", entity_text_units[::-1], n_text_units),
        ("text_unit_relationships", relationship_text_units[::-1], n_text_units),
    ):
        arrays[f"{name}_indptr"], arrays[f"{name}_indices"] = compress(rows, values, n_rows)
    if len(arrays["entity_text_units_indices"]) == len(entity_text_units[1]):  # no list repeats an id
        arrays["entity_text_units_indices"] = entity_text_units[1].astype(np.int32)
    return arrays


_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
"""Turn between neighbours of a spiral, radians: it fills a disc evenly."""
_GAP = 1.04
"""Radius of the free space around a disc, per radius of the disc."""
_CLASS = 1.12
"""Ratio of two neighbouring classes of size; a disc gets the place of the largest of its class."""
_LOOSENESS = 1.2
"""Distance of the spiral's places per distance that the areas inside need; equal discs do not overlap from here on."""
_N_PUSHES = 60
_N_PER_SEARCH = 6
"""Pushes between two searches for places that are near each other."""
_N_CENTRE_STEPS = 40
_N_EXCHANGES = 12


def pack_discs(
    group: np.ndarray, radii: np.ndarray, pairs: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres of discs, each group around its own origin, and the radius of the circle around each group.

    Places come first: on a spiral, largest inside, pushed apart until no two overlap. Then discs of about one size and
    distance from the centre exchange their places, so that each lies in the direction of its related discs.

    Args:
        group: number of the group of each disc, from 0; every number has a disc.
        radii: of each disc, positive.
        pairs: int (n, 2), related discs of one group.
        weights: of each pair, positive.
    """
    size = np.ceil(np.log(radii) / math.log(_CLASS) - 1e-9).astype(np.int64)
    wide = _GAP * _CLASS ** size.astype(np.float64)
    related = np.bincount(pairs.ravel(), weights=np.repeat(weights, 2), minlength=len(group))
    order = np.lexsort((np.arange(len(group)), -related, -size, group))
    places = np.empty((len(group), 2))
    places[order] = _start(group[order], wide[order])
    places = _separate(group, wide, places)
    ring = np.floor(np.sqrt((places**2).sum(axis=1)) / (2.2 * wide)).astype(np.int64)
    exchangeable = np.unique(np.c_[group, size, ring], axis=0, return_inverse=True)[1].ravel()
    points = exchange_places(places, exchangeable, np.zeros_like(places), pairs.T, weights, _N_EXCHANGES)
    return _centre(points, wide, group)


def _start(group: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Return places on a spiral by the area of the discs further inside; discs are in the order of their group."""
    area = radii**2
    first = np.searchsorted(group, group)
    before = np.cumsum(area) - area
    inside = before - before[first]
    distance = _LOOSENESS * np.sqrt(np.where(inside > 0, inside + area / 2, 0))
    return distance[:, None] * _directions(np.arange(len(group)) - first)


def _separate(group: np.ndarray, radii: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the places after overlapping ones were pushed apart, and each group was widened by the overlap left."""
    near = np.zeros((0, 2), dtype=np.int64)
    for step in range(_N_PUSHES):
        if step % _N_PER_SEARCH == 0:
            near = _find_near(group, radii, places)
        if not _push(places, radii, near):
            break
    near = _find_near(group, radii, places)
    needed = np.ones(int(group.max()) + 1)
    np.maximum.at(needed, group[near[:, 0]], radii[near].sum(axis=1) / _ways(places, near)[1])
    return places * needed[group][:, None]


def _find_near(group: np.ndarray, radii: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the pairs of discs of one group that overlap or nearly do, int64 (n, 2), each pair once.

    Discs are searched by classes of size, so that a large disc does not make small ones look far.
    """
    from scipy.spatial import cKDTree

    apart = 10 * (np.abs(places).max() + radii.max())  # groups are far from each other
    points = np.c_[places, group * apart]
    size = np.floor(np.log2(radii)).astype(np.int64)
    found = [np.zeros((0, 2), dtype=np.int64)]
    for number in np.unique(size).tolist():
        large, smaller = np.flatnonzero(size == number), np.flatnonzero(size <= number)
        reach = 2.2 * float(radii[large].max())
        near = cKDTree(points[large]).sparse_distance_matrix(cKDTree(points[smaller]), reach, output_type="ndarray")
        pairs = np.c_[large[near["i"]], smaller[near["j"]]]
        is_close = near["v"] < 1.1 * radii[pairs].sum(axis=1)
        found.append(pairs[is_close & ((size[pairs[:, 1]] < number) | (pairs[:, 0] < pairs[:, 1]))])
    pairs = np.concatenate(found)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _push(places: np.ndarray, radii: np.ndarray, near: np.ndarray) -> bool:
    """Move overlapping discs apart, the smaller one further; return whether any overlapped. Changes `places`."""
    way, distance = _ways(places, near)
    overlap = radii[near].sum(axis=1) - distance
    is_over = overlap > 1e-3 * radii[near].min(axis=1, initial=np.inf)
    near, way = near[is_over], way[is_over] * (overlap / distance)[is_over, None]
    areas = radii[near] ** 2
    for end, sign in ((0, -0.6), (1, 0.6)):
        moves = sign * way * (areas[:, 1 - end] / areas.sum(axis=1))[:, None]
        for axis in (0, 1):
            places[:, axis] += np.bincount(near[:, end], weights=moves[:, axis], minlength=len(places))
    return bool(is_over.any())


def _ways(points: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the vector from the first to the second point of each pair, and its length; equal points differ a bit."""
    way = points[pairs[:, 1]] - points[pairs[:, 0]]
    same = (way == 0).all(axis=1)
    way[same] = 1e-6 * _directions(np.abs(pairs[same, 1] - pairs[same, 0]))
    return way, np.sqrt((way**2).sum(axis=1))


def _centre(points: np.ndarray, radii: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points around the centre of the smallest circle around their group, nearly, and its radius.

    The centre moves towards the farthest disc by ever smaller steps (Badoiu and Clarkson, 2003).
    """
    order = np.argsort(group, kind="stable")
    group, ordered, radius = group[order], points[order], radii[order]
    first = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    centre = ordered[first].copy()
    for step in range(_N_CENTRE_STEPS):
        reach = np.sqrt(((ordered - centre[group]) ** 2).sum(axis=1)) + radius
        farthest = np.lexsort((reach, group))[np.r_[first[1:], len(group)] - 1]
        way = ordered[farthest] - centre
        distance = np.maximum(np.sqrt((way**2).sum(axis=1)), 1e-9)
        centre += way * ((distance + radius[farthest]) / distance / (step + 2))[:, None]
    around = np.maximum.reduceat(np.sqrt(((ordered - centre[group]) ** 2).sum(axis=1)) + radius, first)
    centred = np.empty_like(points)
    centred[order] = ordered - centre[group]
    return centred, around


def spiral(slots: np.ndarray) -> np.ndarray:
    """Return the places of a spiral that fills a disc evenly: slot n lies at the distance sqrt(n), (n, 2)."""
    places: np.ndarray = np.sqrt(slots)[:, None] * _directions(slots)
    return places


def exchange_places(
    places: np.ndarray, ring: np.ndarray, origin: np.ndarray, ends: np.ndarray, weights: np.ndarray, n_passes: int
) -> np.ndarray:
    """Return the places after those of a ring were exchanged, so that each lies in the direction of its relations.

    Args:
        places: (n, 2).
        ring: number of the set in which each may be exchanged, -1: it stays.
        origin: (n, 2), around which directions are measured; one for each ring.
        ends: int (2, n pairs), related places.
        weights: of each pair.
    """
    movable = np.flatnonzero(ring >= 0)
    both, others, twice = ends.ravel(), ends[::-1].ravel(), np.tile(weights, 2)
    total = np.maximum(np.bincount(both, weights=twice, minlength=len(places)), 1e-9)[movable, None]
    by_place = _by_direction(places[movable] - origin[movable], ring[movable])
    placed = places.copy()
    for _ in range(n_passes):
        sums = [np.bincount(both, twice * placed[others, axis], minlength=len(places)) for axis in (0, 1)]
        wanted = np.stack(sums, axis=1)[movable] / total - origin[movable]
        is_free = (wanted == -origin[movable]).all(axis=1)  # without a relation it may stay
        wanted[is_free] = (placed - origin)[movable[is_free]]
        placed[movable[_by_direction(wanted, ring[movable])]] = places[movable[by_place]]
    return placed


def _by_direction(ways: np.ndarray, ring: np.ndarray) -> np.ndarray:
    return np.lexsort((np.round(np.arctan2(ways[:, 1], ways[:, 0]), 9), ring))


@lru_cache(maxsize=2)
def _circle(n: int) -> np.ndarray:
    """Return the unit vectors after 0, 1, 2 ... golden angles; by functions that every processor computes alike."""
    return np.array([(math.cos(i * _GOLDEN_ANGLE), math.sin(i * _GOLDEN_ANGLE)) for i in range(n)]).reshape(n, 2)


def _directions(steps: np.ndarray) -> np.ndarray:
    """Return the unit vectors after some numbers of golden angles, (n, 2)."""
    return _circle(1 << int(steps.max(initial=0)).bit_length())[steps]


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
    """Return the layout of the graph: communities as discs inside that of their parent, entities inside their discs.

    An entity takes about one unit of radius; entities without a community surround all discs. All arrays are in rows of
    the contract tables:
        `entity_positions` float32 (n entities, 2): x and y;
        `community_circles` float32 (n communities, 3): x, y and radius;
        `community_edges` int32 (n edges, 2), `community_edge_weights` float32: pairs of communities of one level with
        the sum of the weights of the relationships between them; the strongest `N_STRONGEST` of each community.

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
    """Return the pairs of communities with relationships between them, int64 (n, 2), and the sums of their weights."""
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
