"""`python -m graphrag_pipeline_tests.bench.graph_merge FOLDER`: the stage `graph` on mentions of `mention_generator`.

A process of its own, so that its memory is that of the merge alone. Keep out: making the mentions.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.dataset as ds

from graphrag_pipeline.indexing.graph import merge_graph
from graphrag_pipeline.settings import GraphSettings
from graphrag_pipeline.tables import CLAIM_MENTIONS, ENTITY_MENTIONS, RELATIONSHIP_MENTIONS


def main(folder: Path) -> None:
    """Merge the mentions in `folder` with default settings."""
    entity_mentions, relationship_mentions = (
        ds.dataset(folder / table.name, schema=table.schema) for table in (ENTITY_MENTIONS, RELATIONSHIP_MENTIONS)
    )
    merge_graph(entity_mentions, relationship_mentions, CLAIM_MENTIONS.empty(), GraphSettings())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
