"""Parts of the graph as it is drawn: the entities with most relationships, a level of communities, the inside of a
community, the surroundings of an entity, and a path between two.

Positions come from the layout of the snapshot (`publishing/arrays.py`), so every part has its place in one picture;
those of the entities with most relationships follow their relationships instead.
Under a filter, a part holds only records that pass, and sizes count only those. Keep out: drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow.compute as pc

from graphrag_pipeline.query.index_reader import SnapshotReader
from graphrag_pipeline.reading.lookup import find_record
from graphrag_pipeline.reading.records import link_communities, link_entities

MAX_EDGES_PER_NODE = 4
"""Edges of a part of the graph, per node of it; the strongest are kept."""
MAX_EDGES = 3_000
"""Edges of a part of the graph; more of them cover each other in a picture."""

_N_STEPS = 60
"""Steps of stress majorization: more change a picture of 150 entities by less than the size of one."""
_ROOM = 2.3
"""Radius of the picture of one entity, in units of x and y; its area grows with their number."""

MAX_STEPS = 6
"""Relationships of a path between two entities; a longer one says nothing about them."""


@dataclass(frozen=True)
class GraphNode:
    """A community or an entity in the picture.

    Attributes:
        kind: community or entity.
        name: best written form of an entity, of a community that of its leading one.
        radius: of a community's disc, in units of x and y; 1 for an entity.
        size: entities of a community, of the wanted types; degree of an entity.
        type: of an entity; "" for a community.
        level: of a community; -1 for an entity.
        parent: number of the community around it in this part; -1 for none.
        has_parts: whether a community holds finer communities.
    """

    kind: str
    number: int
    title: str
    name: str
    type: str
    x: float
    y: float
    radius: float
    size: int
    level: int
    parent: int
    has_parts: bool


@dataclass(frozen=True)
class GraphEdge:
    """A relationship, or all relationships between two communities; ends are places in the list of nodes."""

    source: int
    target: int
    weight: float


@dataclass(frozen=True)
class GraphPart:
    """A part of the graph; nodes are largest first.

    Attributes:
        n_nodes: of the whole part, which `nodes` may hold a beginning of.
        n_levels: levels of communities in the index.
    """

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    n_nodes: int
    n_levels: int


def draw_level(reader: SnapshotReader, level: int, types: Sequence[str] = (), n_most: int = 2000) -> GraphPart:
    """Return the communities of a level.

    Args:
        types: entities that count; none: of all types.
        n_most: maximum of nodes.
    """
    sizes = _count_members(reader, types)
    rows = np.flatnonzero((reader.column("communities", "level") == level) & (sizes > 0))
    rows = rows[np.lexsort((rows, -sizes[rows]))]
    shown = rows[:n_most]
    nodes = _community_nodes(reader, shown, sizes, parent=-1)
    return GraphPart(nodes, _community_edges(reader, shown), len(rows), _n_levels(reader))


def draw_community(reader: SnapshotReader, name: str, types: Sequence[str] = (), n_most: int = 2000) -> GraphPart:
    """Return the communities inside a community and the entities that lie in no finer one, both largest first."""
    row = find_record(reader, "community", name)
    number = int(reader.column("communities", "community")[row])
    sizes = _count_members(reader, types)
    is_inside = (reader.column("communities", "parent") == number) & (reader.column("communities", "level") > 0)
    children = np.flatnonzero(is_inside & (sizes > 0))
    children = children[np.lexsort((children, -sizes[children]))]
    loose = _loose_members(reader, row, np.flatnonzero(is_inside), types)
    shown, entities = children[:n_most], loose[: max(n_most - len(children), 0)]
    nodes = (*_community_nodes(reader, shown, sizes, number), *_entity_nodes(reader, entities, number))
    edges = (*_community_edges(reader, shown), *_entity_edges(reader, entities, len(shown)))
    return GraphPart(nodes, edges, len(children) + len(loose), _n_levels(reader))


def draw_top(reader: SnapshotReader, n_most: int, types: Sequence[str] = ()) -> GraphPart:
    """Return the entities with most relationships, most first, as far as these join them to each other.

    Their places follow these relationships, from those in the layout of the snapshot on.
    """
    wanted = np.flatnonzero(_wanted_entities(reader, types))
    rows = wanted[np.lexsort((wanted, -reader.column("entities", "degree")[wanted]))][:n_most]
    edges = _entity_edges(reader, rows, 0)
    if edges:
        joined = sorted({end for edge in edges for end in (edge.source, edge.target)})
        place = {end: i for i, end in enumerate(joined)}
        rows, edges = rows[joined], tuple(GraphEdge(place[e.source], place[e.target], e.weight) for e in edges)
    nodes = _entity_nodes(reader, rows, -1)
    if edges:
        places = _spread(np.array([(node.x, node.y) for node in nodes]), edges)
        nodes = tuple(replace(node, x=x, y=y) for node, (x, y) in zip(nodes, places.round(2).tolist(), strict=True))
    return GraphPart(nodes, edges, len(wanted), _n_levels(reader))


def _spread(places: np.ndarray, edges: Sequence[GraphEdge]) -> np.ndarray:
    """Return places, (n, 2), whose distances follow the steps between the entities, with as much room in the middle.

    Distances by stress majorization (Gansner, Koren and North 2004); then the farther a place is from the middle in the
    order of all, the farther it lies, so that the best connected ones do not cover each other.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    n = len(places)
    ends = np.array([(edge.source, edge.target) for edge in edges]).T
    steps = shortest_path(coo_array((np.ones(len(edges)), ends), shape=(n, n)).tocsr(), directed=False, unweighted=True)
    steps[np.isinf(steps)] = steps[np.isfinite(steps)].max() + 1
    np.fill_diagonal(steps, 1)
    weights = steps**-2
    np.fill_diagonal(weights, 0)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    found = places / max(float(np.abs(places).max()), 1.0)
    for _ in range(_N_STEPS):
        distances = np.maximum(np.linalg.norm(found[:, None] - found, axis=2), 1e-9)
        pull = -weights * steps / distances
        np.fill_diagonal(pull, -pull.sum(axis=1))
        found = inverse @ (pull @ found)
    found -= np.median(found, axis=0)
    radii = np.maximum(np.linalg.norm(found, axis=1), 1e-9)
    order = np.argsort(np.argsort(radii, kind="stable"))
    return found * (_ROOM * np.sqrt(order + 0.5) / radii)[:, None]


def draw_surroundings(
    reader: SnapshotReader, name: str, depth: int = 1, types: Sequence[str] = (), n_most: int = 200
) -> GraphPart:
    """Return an entity, which comes first, and those within a number of relationships, strongest first."""
    found = np.array([find_record(reader, "entity", name)], dtype=np.int64)
    edge, is_wanted = found, _wanted_entities(reader, types)
    for _ in range(depth):
        edge = _neighbours(reader, edge)
        edge = edge[is_wanted[edge] & ~np.isin(edge, found)]
        found = np.r_[found, edge]
    shown = found[:n_most]
    nodes = _entity_nodes(reader, shown, -1)
    return GraphPart(nodes, _entity_edges(reader, shown, 0), len(found), _n_levels(reader))


def draw_path(reader: SnapshotReader, name: str, other: str) -> GraphPart:
    """Return the entities of a shortest path between two, in its order; none if it is longer than `MAX_STEPS`."""
    start, end = (find_record(reader, "entity", one) for one in (name, other))
    may_read = reader.row_mask("entities")
    seen = np.array([start], dtype=np.int64)
    steps = [seen]
    while end not in steps[-1]:
        edge = _neighbours(reader, steps[-1])
        steps.append(edge[may_read[edge] & ~np.isin(edge, seen)])
        seen = np.r_[seen, steps[-1]]
        if not len(steps[-1]) or len(steps) > MAX_STEPS + 1:
            return GraphPart((), (), 0, _n_levels(reader))
    path = np.array([end], dtype=np.int64)
    for step in steps[-2::-1]:
        near = _neighbours(reader, path[:1])
        path = np.r_[near[np.isin(near, step)][0], path]
    return GraphPart(_entity_nodes(reader, path, -1), _entity_edges(reader, path, 0), len(path), _n_levels(reader))


def _n_levels(reader: SnapshotReader) -> int:
    return int(reader.column("communities", "level").max(initial=-1)) + 1


def _wanted_entities(reader: SnapshotReader, types: Sequence[str]) -> np.ndarray:
    """Return which entities may be read and have one of some types, bool (n entities,)."""
    mask = reader.row_mask("entities")
    if not types:
        return mask
    column = reader.snapshot.table("entities")["type"]
    return mask & pc.is_in(column, value_set=pc.cast(list(types), column.type)).to_numpy()


def _count_members(reader: SnapshotReader, types: Sequence[str]) -> np.ndarray:
    """Return the number of wanted entities of each community; 0 for one that may not be read."""
    wanted = np.flatnonzero(_wanted_entities(reader, types))
    _, communities = reader.snapshot.adjacency.of_all("entity_communities", wanted)
    counts = np.bincount(communities, minlength=reader.snapshot.n_rows("communities"))
    return np.where(reader.row_mask("communities"), counts, 0)


def _loose_members(reader: SnapshotReader, row: int, children: np.ndarray, types: Sequence[str]) -> np.ndarray:
    """Return the wanted entities of a community that are in none of its children, by degree."""
    wanted = np.flatnonzero(_wanted_entities(reader, types))
    places, communities = reader.snapshot.adjacency.of_all("entity_communities", wanted)
    is_member, is_inner = np.zeros(len(wanted), dtype=bool), np.zeros(len(wanted), dtype=bool)
    is_member[places[communities == row]] = True
    is_inner[places[np.isin(communities, children)]] = True
    found = wanted[is_member & ~is_inner]
    ordered: np.ndarray = found[np.lexsort((found, -reader.column("entities", "degree")[found]))]
    return ordered


def _relationships(reader: SnapshotReader, rows: np.ndarray) -> np.ndarray:
    """Return the relationships of some entities that may be read."""
    _, found = reader.snapshot.adjacency.of_all("entity_relationships", rows)
    return found[reader.row_mask("relationships")[found]]


def _neighbours(reader: SnapshotReader, rows: np.ndarray) -> np.ndarray:
    """Return the entities related to some entities, each once, by the weight of the strongest relationship."""
    adjacency = reader.snapshot.adjacency
    relationships = _relationships(reader, rows)
    weights = np.tile(reader.column("relationships", "weight")[relationships], 2)
    ends = np.concatenate([adjacency.array(f"relationship_{end}")[relationships] for end in ("source", "target")])
    ends = ends.astype(np.int64)[np.lexsort((ends, -weights))]
    _, first = np.unique(ends, return_index=True)
    return ends[np.sort(first)]


# --------------------------------------------------------------------------------------------------------------- nodes


def _community_nodes(reader: SnapshotReader, rows: np.ndarray, sizes: np.ndarray, parent: int) -> tuple[GraphNode, ...]:
    numbers = reader.column("communities", "community")[rows].tolist()
    links = {link.number: link for link in link_communities(reader, numbers)}
    names = _name_communities(reader, rows)
    with_parts = set(reader.column("communities", "parent").tolist())
    circles = reader.layout["community_circles"][rows].astype(float).round(2).tolist()
    return tuple(
        GraphNode(
            "community", number, links[number].title or f"Community {number}", names.get(row, ""), "", x, y, radius,
            size, links[number].level, parent, number in with_parts,
        )
        for row, number, (x, y, radius), size in zip(rows.tolist(), numbers, circles, sizes[rows].tolist(), strict=True)
    )  # fmt: skip


def _name_communities(reader: SnapshotReader, rows: np.ndarray) -> dict[int, str]:
    """Return the name of the entity with most relationships inside each of some communities that share no entity."""
    entities = np.flatnonzero(reader.row_mask("entities"))
    places, communities = reader.snapshot.adjacency.of_all("entity_communities", entities)
    is_shown = np.isin(communities, rows)
    home = np.full(reader.snapshot.n_rows("entities"), -1, dtype=np.int64)
    home[entities[places[is_shown]]] = communities[is_shown]
    ends = np.stack([reader.snapshot.adjacency.array(f"relationship_{end}") for end in ("source", "target")])
    ends = ends[:, reader.row_mask("relationships") & (home[ends[0]] == home[ends[1]])]
    inner = np.bincount(ends.ravel(), minlength=len(home))
    order = np.lexsort((-reader.column("entities", "degree"), -inner))
    order = order[home[order] >= 0]
    found, first = np.unique(home[order], return_index=True)
    return {
        row: link.name for row, link in zip(found.tolist(), link_entities(reader, order[first].tolist()), strict=True)
    }


def _entity_nodes(reader: SnapshotReader, rows: np.ndarray, parent: int) -> tuple[GraphNode, ...]:
    positions = reader.layout["entity_positions"][rows].astype(float).round(2).tolist()
    return tuple(
        GraphNode("entity", one.number, one.title, one.name, one.type, x, y, 1.0, one.degree, -1, parent, False)
        for one, (x, y) in zip(link_entities(reader, rows.tolist()), positions, strict=True)
    )


# --------------------------------------------------------------------------------------------------------------- edges


def _community_edges(reader: SnapshotReader, rows: np.ndarray) -> tuple[GraphEdge, ...]:
    """Return the stored edges between some communities.

    Under a filter there are none, since their weights count relationships of documents that do not pass.
    """
    if reader.document_mask is not None:
        return ()
    pairs, weights = reader.layout["community_edges"], reader.layout["community_edge_weights"]
    return _join(rows, pairs, weights, reader.snapshot.n_rows("communities"), 0)


def _entity_edges(reader: SnapshotReader, rows: np.ndarray, first: int) -> tuple[GraphEdge, ...]:
    adjacency = reader.snapshot.adjacency
    relationships = np.unique(_relationships(reader, rows))
    pairs = np.stack([adjacency.array(f"relationship_{end}")[relationships] for end in ("source", "target")], axis=1)
    weights = reader.column("relationships", "weight")[relationships]
    return _join(rows, pairs, weights, reader.snapshot.n_rows("entities"), first)


def _join(rows: np.ndarray, pairs: np.ndarray, weights: np.ndarray, n_rows: int, first: int) -> tuple[GraphEdge, ...]:
    """Return the strongest edges with both ends among some rows; the first row has the place `first`."""
    place = np.full(n_rows, -1, dtype=np.int64)
    place[rows] = first + np.arange(len(rows))
    ends = place[pairs]
    inside = np.flatnonzero((ends >= 0).all(axis=1)) if len(pairs) else np.arange(0)
    kept = inside[np.lexsort((inside, -weights[inside]))][: min(MAX_EDGES_PER_NODE * len(rows), MAX_EDGES)]
    found = zip(ends[kept].tolist(), weights[kept].astype(float).round(4).tolist(), strict=True)
    return tuple(GraphEdge(source, target, weight) for (source, target), weight in found)
