"""Division of communities that keeps the published division where the graph did not change.

A block is the whole graph or a community that is too large. If no relationship inside a block changed, its published
division is kept. Otherwise only the entities that the change touched may move, and Leiden also runs
on the block without the published division (a cold run). The cold run replaces the kept clusters if their modularity is
below `LEAST_SHARE` of its modularity. Inside a community the limit is `LEAST_PART_SHARE`, because Leiden varies more on
few entities.

So an unchanged graph keeps its communities, and equal inputs give equal communities.

One local-moving pass over the entities that a change touched (dynamic frontier, Sahu 2024, arXiv 2404.19634).

The gain of moving entity v to cluster C is

    w(v, C) - resolution * k_v * K_C / 2m

where w(v, C) is the weight between v and the members of C, k_v the degree of v, K_C the sum of the degrees of the
members of C without v, and 2m the sum of all degrees in the block. This is the change of modularity times m.

Unlike the paper, there is only one pass, and all touched entities are evaluated against the same clusters. Further
passes over the neighbours of moved entities made communities of a news corpus no better and slightly less stable. Ties
go to the lowest cluster number.

Keep out: moving entities, disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import list_pairs
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.communities.leiden import (
    Blocks,
    LeidenEffort,
    build_graph,
    cluster,
    induce,
    label_components,
    score_modularity,
    take_blocks,
)
from graphrag_pipeline.settings.settings import CommunitiesSettings

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


LEAST_SHARE = 0.99
"""Share of a cold run's modularity on the whole graph; below it, the cold run replaces the published hierarchy."""
LEAST_PART_SHARE = 0.95
"""Share of a cold run's modularity inside one community; below it, the cold run divides that community."""


@dataclass(frozen=True)
class PublishedGraph:
    """The graph and the communities of one snapshot, made with the current settings: stage tables or contract tables.

    Attributes:
        entities: needs `id`.
        relationships: needs `id`, `source_id`, `target_id` and `weight`.
        communities: needs `id`, `level` and `entity_ids`.
    """

    entities: pa.Table
    relationships: pa.Table
    communities: pa.Table


@dataclass(frozen=True)
class Hierarchy:
    """A published graph as arrays: n entities, first those of the current graph, then the deleted ones.

    Attributes:
        graph: (n, n) weights.
        labels: (levels, n) row of the community of each entity at each level; -1 without one.
        sizes: (rows,) number of entities of each community.
        ids: (rows,) ids of the communities.
    """

    graph: sparse.csr_matrix
    labels: np.ndarray
    sizes: np.ndarray
    ids: pa.ChunkedArray

    @classmethod
    def of(cls, published: PublishedGraph, ids: pa.Array) -> Hierarchy:
        """Read a published graph; `ids` are the entities of the current graph, in the order of their numbers."""
        old_ids = published.entities["id"]
        gone = old_ids.filter(pc.invert(pc.is_in(old_ids, value_set=ids)))
        every_id = pa.chunked_array([ids, *gone.cast(ids.type).chunks])
        rows, nodes = list_pairs(published.communities["entity_ids"], every_id)
        levels = published.communities["level"].to_numpy()
        labels = np.full((int(levels.max(initial=-1)) + 1, len(every_id)), -1, dtype=np.int64)
        labels[levels[rows], nodes] = rows
        graph = build_graph(every_id.combine_chunks(), published.relationships)
        return cls(graph, labels, np.bincount(rows, minlength=len(levels)), published.communities["id"])

    def at(self, level: int) -> np.ndarray:
        """Return the community of each entity at a level.

        Returns:
            (n,) int64; -1 without a community. At level -1 all published entities are in community 0.
        """
        if level < 0:
            return np.where(self.at(0) >= 0, 0, -1)
        return self.labels[level] if level < len(self.labels) else np.full(self.graph.shape[0], -1)

    def find_same(self, blocks: Blocks, level: int) -> list[str | None]:
        """Return for each block the id of the published community with exactly the same entities, or None."""
        # A block is a community if all its entities have one label and the community has no other entity. The smallest
        # and the largest label of each block show the former, the sizes the latter.
        labels, starts = self.at(level)[blocks.nodes], blocks.starts[:-1]
        rows = np.minimum.reduceat(labels, starts)
        is_same = (rows >= 0) & (rows == np.maximum.reduceat(labels, starts))
        is_same[is_same] = self.sizes[rows[is_same]] == blocks.sizes[is_same]
        ids = self.ids.take(pa.array(rows[is_same])).to_pylist()
        found: list[str | None] = [None] * len(rows)
        for block, community_id in zip(np.flatnonzero(is_same).tolist(), ids, strict=True):
            found[block] = community_id
        return found


@dataclass(frozen=True)
class Division:
    """Blocks divided into connected clusters.

    Attributes:
        labels: (m,) cluster of each position; no cluster is in two blocks.
        is_stable: (k,) whether a block kept its published division but for touched entities.
    """

    labels: np.ndarray
    is_stable: np.ndarray


@dataclass(frozen=True)
class Divider:
    """Divides blocks into the communities of one level.

    Attributes:
        level: level of the new communities; the blocks are one level up.
        names: (n,) entity ids of the current graph.
    """

    level: int
    names: list[str]
    settings: CommunitiesSettings
    effort: LeidenEffort

    def divide(self, blocks: Blocks, previous: Hierarchy | None) -> Division:
        """Divide every block as in `previous` if its modularity allows; without `previous`, by a cold run."""
        n_blocks = len(blocks.sizes)
        if previous is None:
            return Division(self.divide_cold(blocks), np.zeros(n_blocks, dtype=bool))
        old = previous.at(self.level)[blocks.nodes]
        touched = _find_touched(blocks, previous.graph, previous.at(self.level - 1))
        is_open = np.logical_or.reduceat(touched, blocks.starts[:-1])
        labels = label_components(blocks.graph, old)
        is_stable = np.ones(n_blocks, dtype=bool)
        if is_open.any():
            inside = np.repeat(is_open, blocks.sizes)
            division = self._divide_open(take_blocks(blocks, np.flatnonzero(is_open)), old[inside], touched[inside])
            labels[inside] = division.labels + len(labels)  # above the numbers of the kept clusters
            is_stable[is_open] = division.is_stable
        return Division(labels, is_stable)

    def divide_cold(self, blocks: Blocks) -> np.ndarray:
        """Return (m,) connected clusters that Leiden finds in each block; the seed depends on the block's entities."""
        labels = np.empty(len(blocks.nodes), dtype=np.int64)
        for start, end in blocks.bounds():
            seed = self._seed(blocks.nodes[start:end])
            labels[start:end] = cluster(blocks.graph, start, end, self.settings.resolution, seed, self.effort)
        return label_components(blocks.graph, labels)

    def _seed(self, nodes: np.ndarray) -> int:
        seed = self.settings.seed
        if self.level == 0:
            return seed
        return int(stable_hash("split", str(seed), *(self.names[node] for node in nodes.tolist()))[:16], 16)

    def _divide_open(self, blocks: Blocks, old: np.ndarray, touched: np.ndarray) -> Division:
        """Divide blocks with a change: keep the old clusters unless a cold run is better by more than the limit."""
        cold = self.divide_cold(blocks)
        kept = label_components(blocks.graph, self._move_touched(blocks, old, touched))
        best, found = (score_modularity(blocks, labels, self.settings.resolution) for labels in (cold, kept))
        least_share = LEAST_PART_SHARE if self.level else LEAST_SHARE
        is_stable = found >= best - (1 - least_share) * abs(best)
        cold += len(kept)  # above the numbers of the kept clusters
        return Division(np.where(np.repeat(is_stable, blocks.sizes), kept, cold), is_stable)

    def _move_touched(self, blocks: Blocks, old: np.ndarray, touched: np.ndarray) -> np.ndarray:
        """Return (m,) the old clusters after moving touched entities that gain by it and placing those without one.

        Leiden first groups the loose entities among themselves, so that new entities can form a cluster of their own.
        """
        clustering = Clustering.of(blocks, old, self.settings.resolution)
        movers = np.flatnonzero(touched & (clustering.labels >= 0))
        loose = np.union1d(movers[find_local_moves(clustering, movers)], np.flatnonzero(clustering.labels < 0))
        if not len(loose):
            return clustering.labels
        owners = blocks.owners[loose]
        starts = np.concatenate(([0], np.flatnonzero(np.diff(owners)) + 1, [len(loose)]))
        induced = Blocks(blocks.nodes[loose], starts, owners[starts[:-1]], induce(blocks.graph, loose))
        return join_groups(clustering, loose, self.divide_cold(induced))


def _find_touched(blocks: Blocks, old_graph: sparse.csr_matrix, old_parents: np.ndarray) -> np.ndarray:
    """Find entities that are new in their block or whose relationships inside the block changed.

    Args:
        old_parents: (n,) the published block of each entity; -1 without one.

    Returns:
        (m,) bool.
    """
    from scipy import sparse

    # Both graphs get one column per entity (n). Published edges that left the block are set to 0 and removed. A row
    # that then differs in any value belongs to a touched entity.
    nodes, graph = blocks.nodes, blocks.graph
    new = sparse.csr_matrix((graph.data, nodes[graph.indices], graph.indptr), shape=(len(nodes), len(old_parents)))
    old = old_graph[nodes]
    is_inside = old_parents[old.indices] == np.repeat(old_parents[nodes], np.diff(old.indptr))
    old.data[~is_inside] = 0.0
    old.eliminate_zeros()
    return (np.diff((new != old).indptr) > 0) | (old_parents[nodes] < 0)
