"""The frontier of a change: which entities would rather be in another cluster, and where loose groups go.

After the dynamic frontier of Sahu 2024 (arXiv 2405.11658), in one pass: only entities that the change touched are
asked, and all at once. More passes, to neighbours of those that moved, made communities of news no better and a little
less stable. All in gains of modularity, on arrays; ties go to the lowest number. Keep out: what was touched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graphrag_pipeline.indexing.communities.leiden import Blocks

_LEAST_GAIN = 1e-9  # of an entity's weights: less is rounding


@dataclass(frozen=True)
class Clustering:
    """Clusters of some positions of a graph.

    Attributes:
        graph: (m, m) weights.
        labels: (m,) cluster of each position, counted from 0; -1 for one in no cluster.
        degrees: (m,) sum of the weights of each position.
        pulls: (m,) `resolution` x degree / (sum of all degrees in its block): what a unit of degree in a cluster costs.
    """

    graph: sparse.csr_matrix
    labels: np.ndarray
    degrees: np.ndarray
    pulls: np.ndarray

    @classmethod
    def of(cls, blocks: Blocks, labels: np.ndarray, resolution: float) -> Clustering:
        """Clusters by any labels, those below 0 being none; clusters end where blocks end."""
        owners = blocks.owners
        degrees = np.asarray(blocks.graph.sum(axis=1)).reshape(-1)
        totals = np.bincount(owners, degrees)
        pulls = resolution * degrees / np.where(totals > 0, totals, 1.0)[owners]
        numbers = np.full(len(labels), -1, dtype=np.int64)
        is_placed = labels >= 0
        keys = owners * (labels.max(initial=0) + 1) + labels
        numbers[is_placed] = np.unique(keys[is_placed], return_inverse=True)[1].reshape(-1)
        return cls(blocks.graph, numbers, degrees, pulls)

    @property
    def n_clusters(self) -> int:
        return int(self.labels.max(initial=-1)) + 1

    def cluster_degrees(self) -> np.ndarray:
        """(n_clusters,) sum of the degrees in each cluster."""
        is_placed = self.labels >= 0
        return np.bincount(self.labels[is_placed], self.degrees[is_placed], minlength=self.n_clusters)

    def weights_of(self, positions: np.ndarray) -> sparse.csr_matrix:
        """(p, n_clusters) weights between positions and clusters."""
        placed = np.flatnonzero(self.labels >= 0)
        shape = (len(self.labels), self.n_clusters)
        members = sparse.csr_matrix((np.ones(len(placed)), (placed, self.labels[placed])), shape=shape)
        return (self.graph[positions] @ members).tocsr()


def find_local_moves(clustering: Clustering, positions: np.ndarray) -> np.ndarray:
    """(p,) which of some clustered positions gain modularity by moving to another cluster they touch."""
    weights, totals = clustering.weights_of(positions), clustering.cluster_degrees()
    own, pulls, degrees = (values[positions] for values in (clustering.labels, clustering.pulls, clustering.degrees))
    rows, columns = _coordinates(weights)
    is_own = columns == own[rows]
    stay = -pulls * (totals[own] - degrees)
    stay[rows[is_own]] += weights.data[is_own]
    best = np.full(len(positions), -np.inf)
    gains = weights.data - pulls[rows] * totals[columns]
    np.maximum.at(best, rows[~is_own], gains[~is_own])
    return best > stay + _LEAST_GAIN * degrees


def join_groups(clustering: Clustering, loose: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Take positions out of their clusters and let each group of them join the cluster that gains most by it.

    Args:
        loose: (p,) positions.
        groups: (p,) group of each, counted from 0; no group is in two blocks.

    Returns:
        (m,) the new cluster of each position; a group that no cluster gains by becomes one of its own.
    """
    labels = clustering.labels.copy()
    labels[loose] = -1
    frozen = Clustering(clustering.graph, labels, clustering.degrees, clustering.pulls)
    n_groups = int(groups.max()) + 1
    targets = frozen.n_clusters + np.arange(n_groups)
    members = sparse.csr_matrix((np.ones(len(loose)), (groups, np.arange(len(loose)))), (n_groups, len(loose)))
    weights = (members @ frozen.weights_of(loose)).tocsr()
    rows, columns = _coordinates(weights)
    pulls = np.bincount(groups, clustering.pulls[loose])
    gains = weights.data - pulls[rows] * frozen.cluster_degrees()[columns]
    order = np.lexsort((columns, -gains, rows))
    best = order[np.unique(rows[order], return_index=True)[1]]
    best = best[gains[best] > 0]
    targets[rows[best]] = columns[best]
    labels[loose] = targets[groups]
    return labels


def _coordinates(matrix: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of every stored value."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices
