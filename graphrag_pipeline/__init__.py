"""graphrag_pipeline: documents indexed as a knowledge graph by Dagster, and questions answered over it.

The map: `settings`, `tables`, `stages` (contracts) -> `indexing` (pure steps) -> `defs` (Dagster assets) -> `storage`
(stage tables, candidate, snapshot) -> `query` (searches) ; `models` holds the ports to models and the embedded
engine, `cli` the commands.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphrag_pipeline.query.graph_index import GraphIndex

__all__ = ["GraphIndex"]


def __getattr__(name: str) -> Any:
    # Lazily, so that importing the package costs nothing.
    if name == "GraphIndex":
        from graphrag_pipeline.query.graph_index import GraphIndex

        return GraphIndex
    raise AttributeError(name)
