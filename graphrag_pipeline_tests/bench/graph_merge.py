"""`python -m graphrag_pipeline_tests.bench.graph_merge FOLDER`: a graph and its communities from many mentions.

A separate process, so its memory is that of the two steps alone. Keep out: making the mentions.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.dataset as ds

from graphrag_pipeline.indexing.communities.detection import detect_communities
from graphrag_pipeline.indexing.graph.merge import merge_graph
from graphrag_pipeline.settings.settings import CommunitiesSettings, GraphSettings
from graphrag_pipeline.tables import CLAIM_MENTIONS, ENTITY_MENTIONS, RELATIONSHIP_MENTIONS


def main(folder: Path) -> None:
    """Merge the mentions in `folder`, as `mention_generator` writes them, and cluster the graph; default settings."""
    entity_mentions, relationship_mentions = (
        ds.dataset(folder / table.name, schema=table.schema) for table in (ENTITY_MENTIONS, RELATIONSHIP_MENTIONS)
    )
    graph = merge_graph(entity_mentions, relationship_mentions, CLAIM_MENTIONS.empty(), GraphSettings())
    entities = graph["entities"].select(["id"])
    relationships = graph["relationships"].select(["id", "source_id", "target_id", "weight"])
    del graph  # the stage of communities reads no more than this
    detect_communities(entities, relationships, CommunitiesSettings())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
