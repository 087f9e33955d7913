"""Dividing communities so that what a change did not touch stays as it was published.

A block (the whole graph, or a community that is too large) is divided as it was last time where no relationship inside
it changed. Where one did, the old clusters are frozen but for what the change touched (`frontier.py`), and a cold run
of Leiden on the block stands beside: it is taken where the modularity comes out under `LEAST_SHARE` of its own, or
under `LEAST_PART_SHARE` inside a community, where few entities make Leiden vary more.

So an unchanged graph keeps its communities, and equal inputs give equal communities. Keep out: moving entities, disk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

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

LEAST_SHARE = 0.99
"""Of a cold run's modularity on the whole graph; below it, everything is clustered from cold."""
LEAST_PART_SHARE = 0.95
"""Of a cold run's modularity inside one community; below it, that community is divided from cold."""


@dataclass(frozen=True)
class PublishedGraph:
    """The graph and the communities of one snapshot, made with the settings of now: stage tables or contract tables.

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
    """A published graph in numbers: those of the entities that are there now first, then of those that are gone.

    Attributes:
        graph: (n, n) its weights.
        labels: (levels, n) row of the community of each entity at each level; -1 where it has none.
        sizes: (rows,) entities in each community.
        ids: of the communities, by row.
    """

    graph: sparse.csr_matrix
    labels: np.ndarray
    sizes: np.ndarray
    ids: pa.ChunkedArray

    @classmethod
    def of(cls, published: PublishedGraph, ids: pa.Array) -> Hierarchy:
        """The hierarchy of a published graph; `ids` are the entities that are there now, in the order of numbers."""
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
        """(n,) community of each entity at a level, -1 where it has none; at level -1 all that were there are one."""
        if level < 0:
            return np.where(self.at(0) >= 0, 0, -1)
        return self.labels[level] if level < len(self.labels) else np.full(self.graph.shape[0], -1)

    def find_same(self, blocks: Blocks, level: int) -> list[str | None]:
        """The id of the community of a level that has exactly the entities of a block, for each block."""
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
        is_stable: (k,) whether a block kept its last division, as far as it could.
    """

    labels: np.ndarray
    is_stable: np.ndarray


@dataclass(frozen=True)
class Divider:
    """Divides blocks into the communities of one level.

    Attributes:
        level: of the communities to be; the blocks are one level up.
        names: id of every entity that is there now.
        care: how thoroughly Leiden looks.
    """

    level: int
    names: list[str]
    settings: CommunitiesSettings
    effort: LeidenEffort

    def divide(self, blocks: Blocks, previous: Hierarchy | None) -> Division:
        """Divide every block as it was divided in `previous`, if that is possible and good; without it, from cold."""
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
            labels[inside] = division.labels + len(labels)  # numbers that no frozen cluster has
            is_stable[is_open] = division.is_stable
        return Division(labels, is_stable)

    def divide_cold(self, blocks: Blocks) -> np.ndarray:
        """(m,) connected clusters that Leiden finds in every block, seeded from its content."""
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
        """Divide blocks in which something changed: the better of frozen and cold, frozen being given some lead."""
        cold = self.divide_cold(blocks)
        kept = label_components(blocks.graph, self._thaw(blocks, old, touched))
        best, found = (score_modularity(blocks, labels, self.settings.resolution) for labels in (cold, kept))
        least_share = LEAST_PART_SHARE if self.level else LEAST_SHARE
        is_stable = found >= best - (1 - least_share) * abs(best)
        cold += len(kept)  # numbers that no kept cluster has, in whatever block
        return Division(np.where(np.repeat(is_stable, blocks.sizes), kept, cold), is_stable)

    def _thaw(self, blocks: Blocks, old: np.ndarray, touched: np.ndarray) -> np.ndarray:
        """(m,) the old clusters, without touched entities that gain by leaving and with everybody who is in none."""
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
    """(m,) whether an entity is new in its block, or has another relationship inside it than it had.

    Args:
        old_parents: (n,) the block that each entity was in; -1 where it was in none.
    """
    nodes, graph = blocks.nodes, blocks.graph
    new = sparse.csr_matrix((graph.data, nodes[graph.indices], graph.indptr), shape=(len(nodes), len(old_parents)))
    old = old_graph[nodes]
    is_inside = old_parents[old.indices] == np.repeat(old_parents[nodes], np.diff(old.indptr))
    old.data[~is_inside] = 0.0
    old.eliminate_zeros()
    return (np.diff((new != old).indptr) > 0) | (old_parents[nodes] < 0)
