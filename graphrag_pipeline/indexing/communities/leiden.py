"""Clustering of a weighted, undirected graph: sparse matrix, Leiden, connected components, modularity.

The Leiden algorithm (Traag, Waltman and van Eck 2019, arXiv 1810.08473) runs in graspologic's native core on the arrays
of a sparse matrix. It maximizes modularity and cannot start from a given partition. No function here loops over
relationships in Python. Keep out: hierarchies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    from scipy import sparse

_EFFORT = 300_000  # relationships * trials * iterations; takes about 0.5 s
_MAX_ROUNDS = 128  # trials * iterations
_SLICE_ROWS = 4_000_000
"""Relationships whose ends are looked up at once: each look-up first takes 0.1 s a million entities."""
MIN_WEIGHT = 1e-6
MAX_WEIGHT = 1e6


@dataclass(frozen=True)
class Blocks:
    """Disjoint sets of entities, such as the communities of one level.

    Attributes:
        nodes: (m,) numbers of the entities, grouped by block, ascending inside each block.
        starts: (k + 1,) offset of each block in `nodes`, then the length of `nodes`.
        parents: (k,) position of the block one level up that contains the block; -1 without one.
        graph: (m, m) weights between positions of `nodes`; block-diagonal, since edges between blocks are left out.
    """

    nodes: np.ndarray
    starts: np.ndarray
    parents: np.ndarray
    graph: sparse.csr_matrix

    @property
    def sizes(self) -> np.ndarray:
        """(k,) number of entities of each block."""
        return np.diff(self.starts)

    @property
    def owners(self) -> np.ndarray:
        """(m,) block of each position."""
        return np.repeat(np.arange(len(self.starts) - 1), self.sizes)

    def bounds(self) -> Iterator[tuple[int, int]]:
        """Return the start and the end of each block in `nodes`."""
        return zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)


def build_graph(ids: pa.Array, relationships: pa.Table | ds.Dataset) -> sparse.csr_matrix:
    """Build the symmetric weights between entities; a dataset of relationships is read in slices.

    Returns:
        (n, n) with rows and columns in the order of `ids`. Relationships of one pair add up; loops are left out.

    Raises:
        PipelineError: an end of a relationship is not in `ids`, or a weight is not a finite number.
    """
    from scipy import sparse

    slices = [relationships] if isinstance(relationships, pa.Table) else _read_slices(relationships)
    parts = [_number_ends(rows, ids) for rows in slices]
    rows, columns, weights = (np.concatenate(values) for values in zip(*parts, strict=True))
    del parts
    size = len(ids)
    half = sparse.csr_matrix((weights, (rows, columns)), shape=(size, size))
    del rows, columns, weights
    graph = (half + half.T).tocsr()
    graph.sort_indices()
    return graph


def _read_slices(relationships: ds.Dataset) -> Iterator[pa.Table]:
    """Yield the columns that a graph needs, in tables of about `_SLICE_ROWS` rows; at least one table."""
    columns, batches, n_rows = ["id", "source_id", "target_id", "weight"], list[pa.RecordBatch](), 0
    for batch in relationships.to_batches(columns=columns):
        batches.append(batch)
        n_rows += len(batch)
        if n_rows >= _SLICE_ROWS:
            yield pa.Table.from_batches(batches)
            batches, n_rows = [], 0
    yield pa.Table.from_batches(batches, pa.schema([relationships.schema.field(name) for name in columns]))


def _number_ends(relationships: pa.Table, ids: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the numbers of both ends, int32, and the weight of each relationship that is not a loop."""
    weights = relationships["weight"].to_numpy()
    if not np.isfinite(weights).all():
        bad = int(np.flatnonzero(~np.isfinite(weights))[0])
        raise PipelineError(
            f"relationship `{relationships['id'][bad]}`: weight {weights[bad]} is not a finite number; "
            "materialize `graph` again"
        )
    rows, columns = (_number(relationships, column, ids) for column in ("source_id", "target_id"))
    keep = rows != columns
    # A relationship of weight 0 still connects its ends; a huge weight must not dominate the sums.
    return rows[keep], columns[keep], np.clip(weights[keep], MIN_WEIGHT, MAX_WEIGHT)


def _number(relationships: pa.Table, column: str, ids: pa.Array) -> np.ndarray:
    numbers = pc.index_in(relationships[column], value_set=ids)
    if numbers.null_count:
        bad = pc.index(numbers.is_null(), True).as_py()
        raise PipelineError(
            f"relationship `{relationships['id'][bad]}`: {column} `{relationships[column][bad]}` is not an entity; "
            "entities and relationships come from different runs, materialize `graph` again"
        )
    return numbers.to_numpy().astype(np.int32, copy=False)


def form_blocks(nodes: np.ndarray, graph: sparse.csr_matrix, labels: np.ndarray, parents: np.ndarray) -> Blocks:
    """Make one block of the positions of each label.

    Args:
        nodes, graph, labels: (m,), (m, m), (m,) entity numbers, weights and labels by position.
        parents: (m,) number of the block one level up, by position; equal for equal labels.
    """
    from scipy import sparse

    # A stable sort by label keeps the positions of a block ascending. Edges between two labels are left out.
    rows = rows_of(graph)
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate(([0], np.flatnonzero(np.diff(labels[order])) + 1, [len(order)]))
    is_inside = labels[rows] == labels[graph.indices]
    inside = sparse.csr_matrix((graph.data[is_inside], (rows[is_inside], graph.indices[is_inside])), shape=graph.shape)
    return Blocks(nodes[order], starts, parents[order][starts[:-1]], induce(inside, order))


def take_blocks(blocks: Blocks, chosen: np.ndarray) -> Blocks:
    """Return some of the blocks; their `parents` are their positions in `blocks`.

    Args:
        chosen: positions of blocks, ascending.
    """
    kept = np.flatnonzero(np.isin(blocks.owners, chosen))
    starts = np.concatenate(([0], np.cumsum(blocks.sizes[chosen])))
    return Blocks(blocks.nodes[kept], starts, chosen, induce(blocks.graph, kept))


def rows_of(graph: sparse.csr_matrix) -> np.ndarray:
    """Return the row of every stored value."""
    return np.repeat(np.arange(graph.shape[0], dtype=np.int32), np.diff(graph.indptr))


def induce(graph: sparse.csr_matrix, order: np.ndarray) -> sparse.csr_matrix:
    """Return the rows and columns `order` of a graph, in this order; edges to other positions are left out."""
    from scipy import sparse

    # `position` maps an old column to its new one, -1 where it is dropped. The running count of kept values, read at
    # the old row ends, gives the new row ends.
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
    """How long Leiden searches: the best of `trials` runs of `iterations` rounds each.

    The modularity of one run of one round varies by 1.4 % with its seed, so a published hierarchy can look worse than
    it is. The best of 12 runs of 6 rounds varies by 0.4 % and is 2 % higher. A million entities would take minutes, so
    larger graphs get less effort.
    """

    trials: int
    iterations: int

    @classmethod
    def for_graph(cls, graph: sparse.csr_matrix) -> LeidenEffort:
        """Return the effort for a graph; its parts are clustered with the same effort."""
        n_rounds = min(_MAX_ROUNDS, max(1, _EFFORT // max(1, graph.nnz // 2)))
        iterations = max(1, math.isqrt(n_rounds // 2))
        return cls(n_rounds // iterations, iterations)


LEAST_EFFORT = LeidenEffort(1, 1)
"""For counts and pictures, which are not published."""


def cluster(
    graph: sparse.csr_matrix, start: int, end: int, resolution: float, seed: int, effort: LeidenEffort
) -> np.ndarray:
    """Cluster the positions from `start` to `end` with Leiden; they must not have edges to other positions.

    Returns:
        (end - start,) labels in any numbering.
    """
    from graspologic_native import leiden_csr

    low, high = int(graph.indptr[start]), int(graph.indptr[end])
    if low == high:  # the native core panics without edges
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
    """Label the connected components of every cluster.

    Args:
        labels: (m,) cluster of each position; only edges inside a cluster connect.

    Returns:
        (m,) component of each position, numbered in the order of first members.
    """
    from scipy import sparse
    from scipy.sparse import csgraph

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
    """Compute the modularity of the clusters of each block, in the block's own graph.

    Q = sum over clusters C of w(C, C) / 2m - resolution * (K_C / 2m)^2

    w(C, C) is the weight inside C with each edge counted twice, K_C the sum of the degrees of C, and 2m the sum of all
    degrees of the block (Newman and Girvan 2004, arXiv cond-mat/0308217; the resolution is that of Reichardt and
    Bornholdt 2006, arXiv cond-mat/0603718).

    Args:
        labels: (m,) cluster of each position; no cluster is in two blocks.

    Returns:
        (k,) float64; 0 for a block without edges. Sums run in the order of positions, so equal clusters score equally.
    """
    # All blocks at once: `np.bincount` sums by block (`owners`) or by cluster. No (k, n_clusters) array is needed,
    # since a cluster belongs to the block of its first position (`owners[first]`).
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
