"""Two indexes to ask: the three-document one spelled out by hand, and Microsoft's own of A Christmas Carol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_pipeline.interchange.graphrag_import import import_graphrag
from graphrag_pipeline.models.static_embeddings import load_static_embeddings
from graphrag_pipeline.query.graph_index import GraphIndex
from graphrag_pipeline.settings import Settings
from graphrag_pipeline_tests import small_index

MICROSOFT_INDEX = Path(__file__).parents[1] / "data" / "microsoft_christmas_carol"


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    snapshot = small_index.freeze(tmp_path_factory.mktemp("small"))
    return GraphIndex(snapshot, Settings(), load_static_embeddings())


@pytest.fixture(scope="session")
def carol_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("carol")
    import_graphrag(MICROSOFT_INDEX, root, load_static_embeddings(), Settings())
    return root


@pytest.fixture(scope="session")
def carol(carol_root: Path) -> Iterator[GraphIndex]:
    with GraphIndex.open(carol_root) as index:
        yield index
