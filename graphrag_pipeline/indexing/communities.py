"""Communities: hierarchical Leiden clustering of the weighted, undirected graph.

Level 0 is the coarsest and holds every entity, connected or not. A community with more than `max_cluster_size` entities
is clustered again, one level down, on the relationships inside it; where that gives a single cluster the community is
final. So each entity is in exactly one community per level, down to where its branch ends.

Same graph, same communities: entities are ordered by id, and a split is seeded from the ids of what it splits, so that
an untouched community splits the same way again. Every community is connected: clusters are cut into components,
whatever the clustering returns.

The clustering is Leiden (Traag, Waltman and van Eck 2019, modularity) in graspologic's native core, on the arrays
of a sparse matrix. Nothing here loops over relationships in Python. Keep out: reports, human-readable numbers, disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse
from scipy.sparse import csgraph

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.settings import CommunitiesSettings
from graphrag_pipeline.tables import COMMUNITIES, stable_hash

MIN_WEIGHT = 1e-6
MAX_WEIGHT = 1e6


def detect_communities(entities: pa.Table, relationships: pa.Table, settings: CommunitiesSettings) -> pa.Table:
    """Cluster the graph into a hierarchy of communities.

    Args:
        entities: needs `id`; any row order.
        relationships: needs `id`, `source_id`, `target_id` and `weight`; rows of one pair add up, loops do not count.

    Returns:
        `tables.COMMUNITIES`: per level a partition of the entities whose branch reaches that level.

    Raises:
        PipelineError: a relationship names no entity, or its weight is no finite number.
    """
    ids = pc.sort_indices(entities["id"])
    ids = entities["id"].take(ids).combine_chunks()
    if not len(ids):
        return COMMUNITIES.empty()
    names: list[str] = ids.to_pylist()
    parts = []
    parent_ids: list[str] = []
    for level, blocks in enumerate(_iterate_levels(_build_graph(ids, relationships), names, settings)):
        members = [names[node] for node in blocks.nodes.tolist()]
        own_ids = [stable_hash("community", str(level), *members[start:end]) for start, end in blocks.bounds()]
        parents = [None if parent < 0 else parent_ids[parent] for parent in blocks.parents.tolist()]
        parts.append(_level_rows(level, blocks, own_ids, parents, ids))
        parent_ids = own_ids
    return COMMUNITIES.sort(pa.concat_tables(parts))


@dataclass(frozen=True)
class _Blocks:
    """The communities of one level, side by side.

    Attributes:
        nodes: (m,) numbers of the entities that reach this level, grouped by community, ascending inside each.
        starts: (k + 1,) where in `nodes` each community begins, and the end.
        parents: (k,) position of the community one level up, -1 at level 0.
        graph: (m, m) weights between `nodes` by position, inside communities only: block-diagonal.
    """

    nodes: np.ndarray
    starts: np.ndarray
    parents: np.ndarray
    graph: sparse.csr_matrix

    def bounds(self) -> Iterator[tuple[int, int]]:
        return zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)


def _build_graph(ids: pa.Array, relationships: pa.Table) -> sparse.csr_matrix:
    """Symmetric weights between entities numbered in the order of `ids`."""
    weights = relationships["weight"].to_numpy()
    if not np.isfinite(weights).all():
        bad = int(np.flatnonzero(~np.isfinite(weights))[0])
        raise PipelineError(
            f"relationship {relationships['id'][bad]}: weight {weights[bad]} is no finite number; "
            "the graph stage must not write it: materialise `graph` again"
        )
    rows, columns = (_number(relationships, column, ids) for column in ("source_id", "target_id"))
    keep = rows != columns
    rows, columns = rows[keep], columns[keep]
    # A relationship without strength still connects; one without bound must not swamp the sums.
    weights = np.clip(weights[keep], MIN_WEIGHT, MAX_WEIGHT)
    size = len(ids)
    half = sparse.csr_matrix((weights, (rows, columns)), shape=(size, size))
    graph = (half + half.T).tocsr()
    graph.sort_indices()
    return graph


def _number(relationships: pa.Table, column: str, ids: pa.Array) -> np.ndarray:
    numbers = pc.index_in(relationships[column], value_set=ids)
    if numbers.null_count:
        bad = pc.index(numbers.is_null(), True).as_py()
        raise PipelineError(
            f"relationship {relationships['id'][bad]}: {column} {relationships[column][bad]} is no entity; "
            "entities and relationships are of different runs: materialise `graph` again"
        )
    return numbers.to_numpy().astype(np.int32, copy=False)


def _iterate_levels(graph: sparse.csr_matrix, names: list[str], settings: CommunitiesSettings) -> Iterator[_Blocks]:
    """The levels of the hierarchy, coarsest first, until no community is split."""
    size = graph.shape[0]
    labels = _label_components(graph, _cluster(graph, 0, size, settings.resolution, settings.seed))
    blocks: _Blocks | None = _form_blocks(np.arange(size), graph, labels, np.full(size, -1))
    while blocks is not None:
        yield blocks
        blocks = _split_large(blocks, names, settings)


def _split_large(blocks: _Blocks, names: list[str], settings: CommunitiesSettings) -> _Blocks | None:
    """The next level: every community over `max_cluster_size` clustered again; None if none of them falls apart."""
    sizes = np.diff(blocks.starts)
    labels = np.zeros(len(blocks.nodes), dtype=np.int64)
    for position in np.flatnonzero(sizes > settings.max_cluster_size).tolist():
        start, end = int(blocks.starts[position]), int(blocks.starts[position + 1])
        members = [names[node] for node in blocks.nodes[start:end].tolist()]
        seed = int(stable_hash("split", str(settings.seed), *members)[:16], 16)
        labels[start:end] = _cluster(blocks.graph, start, end, settings.resolution, seed)
    labels = _label_components(blocks.graph, labels)
    is_split = np.maximum.reduceat(labels, blocks.starts[:-1]) > np.minimum.reduceat(labels, blocks.starts[:-1])
    kept = np.flatnonzero(np.repeat(is_split, sizes))
    if not len(kept):
        return None
    block_of = np.repeat(np.arange(len(sizes)), sizes)
    return _form_blocks(blocks.nodes[kept], _permute(blocks.graph, kept), labels[kept], block_of[kept])


def _form_blocks(nodes: np.ndarray, graph: sparse.csr_matrix, labels: np.ndarray, parents: np.ndarray) -> _Blocks:
    """Put the positions of a graph in the order of their labels and leave out the edges between labels."""
    rows = np.repeat(np.arange(graph.shape[0], dtype=np.int32), np.diff(graph.indptr))
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate(([0], np.flatnonzero(np.diff(labels[order])) + 1, [len(order)]))
    is_inside = labels[rows] == labels[graph.indices]
    inside = sparse.csr_matrix((graph.data[is_inside], (rows[is_inside], graph.indices[is_inside])), shape=graph.shape)
    return _Blocks(nodes[order], starts, parents[order][starts[:-1]], _permute(inside, order))


def _permute(graph: sparse.csr_matrix, order: np.ndarray) -> sparse.csr_matrix:
    """Rows and columns `order` of a graph; edges to other rows must not exist."""
    position = np.zeros(graph.shape[0], dtype=np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    chosen = graph[order]
    permuted = sparse.csr_matrix((chosen.data, position[chosen.indices], chosen.indptr), shape=(len(order), len(order)))
    permuted.sort_indices()
    return permuted


def _cluster(graph: sparse.csr_matrix, start: int, end: int, resolution: float, seed: int) -> np.ndarray:
    """Leiden labels of the positions from `start` to `end`, which have no edges to others; any numbering."""
    from graspologic_native import leiden_csr

    low, high = int(graph.indptr[start]), int(graph.indptr[end])
    if low == high:  # the native core panics on a graph without edges
        return np.arange(end - start)
    _, found = leiden_csr(
        graph.indptr[start : end + 1].astype(np.int64) - low,
        graph.indices[low:high].astype(np.int32, copy=False) - np.int32(start),
        graph.data[low:high],
        end - start,
        resolution=resolution,
        seed=seed % 2**64,
    )
    return np.fromiter(map(found.__getitem__, range(end - start)), dtype=np.int64, count=end - start)


def _label_components(graph: sparse.csr_matrix, labels: np.ndarray) -> np.ndarray:
    """Number the connected parts of every cluster by their first member; edges join positions of one label."""
    rows = np.repeat(np.arange(graph.shape[0], dtype=np.int32), np.diff(graph.indptr))
    is_inside = labels[rows] == labels[graph.indices]
    inside = sparse.csr_matrix(
        (np.ones(int(is_inside.sum()), dtype=np.int8), (rows[is_inside], graph.indices[is_inside])), shape=graph.shape
    )
    _, parts = csgraph.connected_components(inside, directed=False)
    _, first, numbers = np.unique(parts, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[numbers.reshape(-1)]


def _level_rows(level: int, blocks: _Blocks, own_ids: list[str], parents: list[str | None], ids: pa.Array) -> pa.Table:
    members = pa.ListArray.from_arrays(pa.array(blocks.starts, pa.int32()), ids.take(pa.array(blocks.nodes)))
    return pa.table(
        {
            "id": pa.array(own_ids, pa.string()),
            "level": pa.array(np.full(len(own_ids), level), pa.int64()),
            "parent_id": pa.array(parents, pa.string()),
            "entity_ids": members,
            "size": pa.array(np.diff(blocks.starts), pa.int64()),
        },
        schema=COMMUNITIES.schema,
    )
