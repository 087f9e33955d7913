"""Division of communities that keeps the published division where the graph did not change.

A block is the whole graph or a community that is too large. If no relationship inside a block changed, its published
division is kept. Otherwise only the entities that the change touched may move (`local_moves.py`), and Leiden also runs
on the block without the published division (a cold run). The cold run replaces the kept clusters if their modularity is
below `LEAST_SHARE` of its modularity. Inside a community the limit is `LEAST_PART_SHARE`, because Leiden varies more on
few entities.

So an unchanged graph keeps its communities, and equal inputs give equal communities. Keep out: moving entities, disk.
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
from graphrag_pipeline.indexing.communities.local_moves import Clustering, find_local_moves, join_groups
from graphrag_pipeline.settings.settings import CommunitiesSettings

if TYPE_CHECKING:
    from scipy import sparse

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
        every_id = pa.chunked_array([ids, *gone.chunks], pa.string())
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
