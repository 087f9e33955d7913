"""`python -m graphrag_pipeline_tests.bench.graph_merge FOLDER`: a graph and its communities from many mentions.

A separate process, so its memory is that of the two steps alone. Keep out: making the mentions.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.dataset as ds

from graphrag_pipeline.indexing.communities.detection import detect_communities
from graphrag_pipeline.indexing.graph.merge import merge_in_slices
from graphrag_pipeline.settings.settings import CommunitiesSettings, GraphSettings
from graphrag_pipeline.storage.table_store import put_parquet
from graphrag_pipeline.tables import CLAIM_MENTIONS, ENTITY_MENTIONS, RELATIONSHIP_MENTIONS


def main(folder: Path) -> None:
    """Merge the mentions in `folder`, as `mention_generator` writes them, and cluster the graph; default settings."""
    mentions = (
        ds.dataset(folder / table.name, schema=table.schema) for table in (ENTITY_MENTIONS, RELATIONSHIP_MENTIONS)
    )
    with merge_in_slices(*mentions, CLAIM_MENTIONS.empty(), GraphSettings(), folder=folder) as tables:
        files = {name: folder / put_parquet(folder, slices)[0] for name, slices in tables.items()}
    entities = ds.dataset(files["entities"]).to_table(columns=["id"])
    detect_communities(entities, ds.dataset(files["relationships"]), CommunitiesSettings())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
