"""Communities: hierarchical Leiden clustering of the weighted, undirected graph (Edge et al. 2024, arXiv 2404.16130).

Level 0 is the coarsest and holds every entity, connected or not. A community with more than `max_cluster_size` entities
is clustered again, one level down, on the relationships inside it. If that gives a single cluster, the community is
final. So each entity is in exactly one community per level, down to the level where its branch ends.

Equal graphs with equal published hierarchies give equal communities. Entities are ordered by id. The seed of a split
comes from the ids of the entities, so an untouched community splits the same way again. Every community is connected,
because clusters are cut into connected components. `stable.py` decides what is kept of the published hierarchy.
Keep out: reports, human-readable numbers, disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.communities.leiden import (
    Blocks,
    LeidenEffort,
    build_graph,
    form_blocks,
    induce,
    take_blocks,
)
from graphrag_pipeline.indexing.communities.stable import LEAST_SHARE, Divider, Hierarchy, PublishedGraph
from graphrag_pipeline.settings.settings import CommunitiesSettings
from graphrag_pipeline.tables import COMMUNITIES

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    from scipy import sparse


def detect_communities(
    entities: pa.Table,
    relationships: pa.Table | ds.Dataset,
    settings: CommunitiesSettings,
    published: PublishedGraph | None = None,
    progress: Callable[[str], None] = lambda line: None,
    effort: LeidenEffort | None = None,
) -> pa.Table:
    """Cluster the graph into a hierarchy of communities.

    Args:
        entities: needs `id`; any row order.
        relationships: needs `id`, `source_id`, `target_id` and `weight`; rows of one pair add up, loops do not count.
            Of a dataset, only these columns are read, in slices.
        published: the graph and hierarchy published last; communities that did not change since are kept. Without it,
            everything is clustered (a cold run).
        progress: receives a line if a cold run replaces the published hierarchy because its modularity is higher.
        effort: of Leiden; None: the one for the graph.

    Returns:
        `tables.COMMUNITIES`: per level a partition of the entities whose branch reaches that level.

    Raises:
        PipelineError: an end of a relationship is not an entity, or a weight is not a finite number.
    """
    ids = entities["id"].take(pc.sort_indices(entities["id"])).combine_chunks()
    if not len(ids):
        return COMMUNITIES.empty()
    names: list[str] = ids.to_pylist()
    previous = Hierarchy.of(published, ids) if published else None
    parts = []
    parent_ids: list[str] = []
    graph = build_graph(ids, relationships)
    make_divider = partial(Divider, names=names, settings=settings, effort=effort or LeidenEffort.for_graph(graph))
    levels = _iterate_levels(graph, make_divider, previous, progress)
    for level, blocks in enumerate(levels):
        own_ids = _identify(blocks, level, names, previous)
        parents = [None if parent < 0 else parent_ids[parent] for parent in blocks.parents.tolist()]
        parts.append(_level_rows(level, blocks, own_ids, parents, ids))
        parent_ids = own_ids
    return COMMUNITIES.sort(*parts)


def _iterate_levels(
    graph: sparse.csr_matrix,
    make_divider: Callable[[int], Divider],
    previous: Hierarchy | None,
    progress: Callable[[str], None],
) -> Iterator[Blocks]:
    """Yield the levels of the hierarchy, coarsest first, until no community is split."""
    size = graph.shape[0]
    whole = Blocks(np.arange(size), np.array([0, size]), np.array([-1]), graph)
    division = make_divider(0).divide(whole, previous)
    if previous and not division.is_stable.all():
        progress(
            f"clustered from cold: the published hierarchy has less than {LEAST_SHARE:.0%} of a cold run's modularity"
        )
        previous = None
    blocks: Blocks | None = form_blocks(whole.nodes, graph, division.labels, np.full(size, -1))
    level = 0
    while blocks is not None:
        yield blocks
        level += 1
        blocks = _split_large(blocks, make_divider(level), previous)


def _split_large(blocks: Blocks, divider: Divider, previous: Hierarchy | None) -> Blocks | None:
    """Return the next level, the parts of communities over `max_cluster_size`; None if none of them splits."""
    large = np.flatnonzero(blocks.sizes > divider.settings.max_cluster_size)
    if not len(large):
        return None
    chosen = take_blocks(blocks, large)
    labels = divider.divide(chosen, previous).labels
    first = chosen.starts[:-1]
    is_split = np.maximum.reduceat(labels, first) > np.minimum.reduceat(labels, first)
    kept = np.flatnonzero(np.repeat(is_split, chosen.sizes))
    if not len(kept):
        return None
    parents = np.repeat(chosen.parents, chosen.sizes)
    return form_blocks(chosen.nodes[kept], induce(chosen.graph, kept), labels[kept], parents[kept])


def _identify(blocks: Blocks, level: int, names: list[str], previous: Hierarchy | None) -> list[str]:
    """Return the id of each community, a hash of its level and members; ids of published communities are reused."""
    known = previous.find_same(blocks, level) if previous else [None] * len(blocks.sizes)
    nodes = blocks.nodes
    return [
        same or stable_hash("community", str(level), *(names[node] for node in nodes[start:end].tolist()))
        for same, (start, end) in zip(known, blocks.bounds(), strict=True)
    ]


def _level_rows(level: int, blocks: Blocks, own_ids: list[str], parents: list[str | None], ids: pa.Array) -> pa.Table:
    members = pa.ListArray.from_arrays(pa.array(blocks.starts, pa.int32()), ids.take(pa.array(blocks.nodes)))
    return pa.table(
        {
            "id": pa.array(own_ids, pa.string()),
            "level": pa.array(np.full(len(own_ids), level), pa.int64()),
            "parent_id": pa.array(parents, pa.string()),
            "entity_ids": members,
            "size": pa.array(blocks.sizes, pa.int64()),
        },
        schema=COMMUNITIES.schema,
    )
