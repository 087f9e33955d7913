"""Clustering of a weighted, undirected graph as a sparse matrix: building it, Leiden, components, modularity.

Leiden (Traag, Waltman and van Eck 2019, modularity) is graspologic's native core on the arrays of a sparse matrix. It
has no notion of a starting partition. Nothing here loops over relationships in Python. Keep out: hierarchies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse
from scipy.sparse import csgraph

from graphrag_pipeline.errors import PipelineError

_CARE = 300_000  # relationships times runs times rounds: half a second
_MOST_CARE = 128
MIN_WEIGHT = 1e-6
MAX_WEIGHT = 1e6


@dataclass(frozen=True)
class Blocks:
    """Sets of entities side by side, such as the communities of one level.

    Attributes:
        nodes: (m,) numbers of the entities, grouped by block, ascending inside each.
        starts: (k + 1,) where in `nodes` each block begins, and the end.
        parents: (k,) position of the block one level up that it is part of, -1 without one.
        graph: (m, m) weights between `nodes` by position, inside blocks only: block-diagonal.
    """

    nodes: np.ndarray
    starts: np.ndarray
    parents: np.ndarray
    graph: sparse.csr_matrix

    @property
    def sizes(self) -> np.ndarray:
        """(k,) number of entities in each block."""
        return np.diff(self.starts)

    @property
    def owners(self) -> np.ndarray:
        """(m,) block of each position."""
        return np.repeat(np.arange(len(self.starts) - 1), self.sizes)

    def bounds(self) -> Iterator[tuple[int, int]]:
        """Start and end of each block."""
        return zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)


def build_graph(ids: pa.Array, relationships: pa.Table) -> sparse.csr_matrix:
    """Symmetric weights between entities numbered in the order of `ids`.

    Raises:
        PipelineError: a relationship names no entity, or its weight is no finite number.
    """
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


def form_blocks(nodes: np.ndarray, graph: sparse.csr_matrix, labels: np.ndarray, parents: np.ndarray) -> Blocks:
    """Put the positions of a graph in the order of their labels and leave out the edges between labels."""
    rows = rows_of(graph)
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate(([0], np.flatnonzero(np.diff(labels[order])) + 1, [len(order)]))
    is_inside = labels[rows] == labels[graph.indices]
    inside = sparse.csr_matrix((graph.data[is_inside], (rows[is_inside], graph.indices[is_inside])), shape=graph.shape)
    return Blocks(nodes[order], starts, parents[order][starts[:-1]], induce(inside, order))


def take_blocks(blocks: Blocks, chosen: np.ndarray) -> Blocks:
    """Some of the blocks, in ascending order; their `parents` are their positions among all."""
    kept = np.flatnonzero(np.isin(blocks.owners, chosen))
    starts = np.concatenate(([0], np.cumsum(blocks.sizes[chosen])))
    return Blocks(blocks.nodes[kept], starts, chosen, induce(blocks.graph, kept))


def rows_of(graph: sparse.csr_matrix) -> np.ndarray:
    """Row of every stored value."""
    return np.repeat(np.arange(graph.shape[0], dtype=np.int32), np.diff(graph.indptr))


def induce(graph: sparse.csr_matrix, order: np.ndarray) -> sparse.csr_matrix:
    """Rows and columns `order` of a graph; edges to others are left out."""
    position = np.full(graph.shape[0], -1, dtype=np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    chosen = graph[order]
    columns = position[chosen.indices]
    is_kept = columns >= 0
    kept = np.concatenate(([0], np.cumsum(is_kept)))[chosen.indptr]
    induced = sparse.csr_matrix((chosen.data[is_kept], columns[is_kept], kept), shape=(len(order), len(order)))
    induced.sort_indices()
    return induced


@dataclass(frozen=True)
class LeidenEffort:
    """How thoroughly Leiden looks: the best of some runs (`trials`) of some rounds (`iterations`) each.

    One run of one round varies by 1.4 % of its modularity with its seed, so that a published hierarchy may look worse
    than it is; the best of 12 runs of 6 rounds varies by 0.4 %, at a modularity 2 % higher. A million entities would
    take minutes: the larger a graph, the less care.
    """

    trials: int
    iterations: int

    @classmethod
    def for_graph(cls, graph: sparse.csr_matrix) -> LeidenEffort:
        """What a graph allows; its parts are clustered with the same care."""
        n_rounds = min(_MOST_CARE, max(1, _CARE // max(1, graph.nnz // 2)))
        iterations = max(1, math.isqrt(n_rounds // 2))
        return cls(n_rounds // iterations, iterations)


def cluster(
    graph: sparse.csr_matrix, start: int, end: int, resolution: float, seed: int, effort: LeidenEffort
) -> np.ndarray:
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
        trials=effort.trials,
        iterations=effort.iterations,
    )
    return np.fromiter(map(found.__getitem__, range(end - start)), dtype=np.int64, count=end - start)


def label_components(graph: sparse.csr_matrix, labels: np.ndarray) -> np.ndarray:
    """Number the connected parts of every cluster by their first member; edges join positions of one label."""
    rows = rows_of(graph)
    is_inside = labels[rows] == labels[graph.indices]
    inside = sparse.csr_matrix(
        (np.ones(int(is_inside.sum()), dtype=np.int8), (rows[is_inside], graph.indices[is_inside])), shape=graph.shape
    )
    _, parts = csgraph.connected_components(inside, directed=False)
    _, first, numbers = np.unique(parts, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[numbers.reshape(-1)]


def score_modularity(blocks: Blocks, labels: np.ndarray, resolution: float) -> np.ndarray:
    """Modularity (Newman 2006) of clusters in each block's own graph; 0 where it has no edges.

    Args:
        labels: (m,) cluster of each position; no cluster is in two blocks.

    Returns:
        (k,) float64, summed in the order of positions, so that equal clusters score equally.
    """
    graph, owners, n_blocks = blocks.graph, blocks.owners, len(blocks.starts) - 1
    degrees = np.asarray(graph.sum(axis=1)).reshape(-1)
    doubled = np.bincount(owners, degrees, minlength=n_blocks)
    rows = rows_of(graph)
    is_inside = labels[rows] == labels[graph.indices]
    inside = np.bincount(owners[rows[is_inside]], graph.data[is_inside], minlength=n_blocks)
    _, first, clusters = np.unique(labels, return_index=True, return_inverse=True)
    squares = np.bincount(owners[first], np.bincount(clusters.reshape(-1), degrees) ** 2, minlength=n_blocks)
    scale = np.where(doubled > 0, doubled, 1.0)
    return inside / scale - resolution * squares / scale**2
