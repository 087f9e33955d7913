"""One local-moving pass over the entities that a change touched (dynamic frontier, Sahu 2024, arXiv 2404.19634).

The gain of moving entity v to cluster C is

    w(v, C) - resolution * k_v * K_C / 2m

where w(v, C) is the weight between v and the members of C, k_v the degree of v, K_C the sum of the degrees of the
members of C without v, and 2m the sum of all degrees in the block. This is the change of modularity times m.

Unlike the paper, there is only one pass, and all touched entities are evaluated against the same clusters. Further
passes over the neighbours of moved entities made communities of a news corpus no better and slightly less stable. Ties
go to the lowest cluster number. Keep out: which entities a change touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphrag_pipeline.indexing.communities.leiden import Blocks

if TYPE_CHECKING:
    from scipy import sparse

_LEAST_GAIN = 1e-9  # as a share of an entity's degree; a smaller gain is a rounding error


@dataclass(frozen=True)
class Clustering:
    """Clusters of some positions of a graph.

    Attributes:
        graph: (m, m) weights.
        labels: (m,) cluster of each position, counted from 0; -1 without a cluster.
        degrees: (m,) k_v, the sum of the weights of each position.
        penalties: (m,) resolution * k_v / 2m of the block; each unit of a cluster's degree lowers the gain by it.
    """

    graph: sparse.csr_matrix
    labels: np.ndarray
    degrees: np.ndarray
    penalties: np.ndarray

    @classmethod
    def of(cls, blocks: Blocks, labels: np.ndarray, resolution: float) -> Clustering:
        """Number the clusters that `labels` describe; positions of two blocks never share one.

        Args:
            labels: (m,) any numbers; a negative one means no cluster.
        """
        # (block, label) as one number per position; `np.unique` turns these numbers into cluster numbers from 0.
        owners = blocks.owners
        degrees = np.asarray(blocks.graph.sum(axis=1)).reshape(-1)
        totals = np.bincount(owners, degrees)
        penalties = resolution * degrees / np.where(totals > 0, totals, 1.0)[owners]
        numbers = np.full(len(labels), -1, dtype=np.int64)
        is_placed = labels >= 0
        keys = owners * (labels.max(initial=0) + 1) + labels
        numbers[is_placed] = np.unique(keys[is_placed], return_inverse=True)[1].reshape(-1)
        return cls(blocks.graph, numbers, degrees, penalties)

    @property
    def n_clusters(self) -> int:
        return int(self.labels.max(initial=-1)) + 1

    def cluster_degrees(self) -> np.ndarray:
        """(n_clusters,) sum of the degrees in each cluster."""
        is_placed = self.labels >= 0
        return np.bincount(self.labels[is_placed], self.degrees[is_placed], minlength=self.n_clusters)

    def weights_of(self, positions: np.ndarray) -> sparse.csr_matrix:
        """(p, n_clusters) w(v, C): the weight between each position and each cluster."""
        from scipy import sparse

        # A 0/1 matrix (m, n_clusters) holds the members; its product with rows of the graph sums weights by cluster.
        placed = np.flatnonzero(self.labels >= 0)
        shape = (len(self.labels), self.n_clusters)
        members = sparse.csr_matrix((np.ones(len(placed)), (placed, self.labels[placed])), shape=shape)
        return (self.graph[positions] @ members).tocsr()


def find_local_moves(clustering: Clustering, positions: np.ndarray) -> np.ndarray:
    """Find the positions that gain modularity by moving to another cluster with which they share an edge.

    Args:
        positions: (p,) positions that have a cluster.

    Returns:
        (p,) bool.
    """
    # One entry per (position, cluster) with an edge between them, so memory grows with edges, not with p * n_clusters.
    # `stay` is the gain of the own cluster without the position itself; `best` is the largest gain of another cluster.
    weights, totals = clustering.weights_of(positions), clustering.cluster_degrees()
    own, penalties, degrees = (
        values[positions] for values in (clustering.labels, clustering.penalties, clustering.degrees)
    )
    rows, columns = _coordinates(weights)
    is_own = columns == own[rows]
    stay = -penalties * (totals[own] - degrees)
    stay[rows[is_own]] += weights.data[is_own]
    best = np.full(len(positions), -np.inf)
    gains = weights.data - penalties[rows] * totals[columns]
    np.maximum.at(best, rows[~is_own], gains[~is_own])
    return best > stay + _LEAST_GAIN * degrees


def join_groups(clustering: Clustering, loose: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Remove positions from their clusters and let each group of them join the cluster with the largest gain.

    Args:
        loose: (p,) positions to remove.
        groups: (p,) group of each, counted from 0; no group is in two blocks.

    Returns:
        (m,) the new cluster of each position. A group without a positive gain becomes a new cluster.
    """
    from scipy import sparse

    # Gains of groups are computed like those of single entities: weights and degrees are summed over the group.
    labels = clustering.labels.copy()
    labels[loose] = -1
    frozen = Clustering(clustering.graph, labels, clustering.degrees, clustering.penalties)
    n_groups = int(groups.max()) + 1
    targets = frozen.n_clusters + np.arange(n_groups)
    members = sparse.csr_matrix((np.ones(len(loose)), (groups, np.arange(len(loose)))), (n_groups, len(loose)))
    weights = (members @ frozen.weights_of(loose)).tocsr()
    rows, columns = _coordinates(weights)
    penalties = np.bincount(groups, clustering.penalties[loose])
    gains = weights.data - penalties[rows] * frozen.cluster_degrees()[columns]
    order = np.lexsort((columns, -gains, rows))
    best = order[np.unique(rows[order], return_index=True)[1]]
    best = best[gains[best] > 0]
    targets[rows[best]] = columns[best]
    labels[loose] = targets[groups]
    return labels


def _coordinates(matrix: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and the column of every stored value."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices
