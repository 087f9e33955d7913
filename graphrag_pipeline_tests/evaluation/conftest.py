"""One small indexed root for all tests of evaluation, read-only, and the same indexed by a model server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.support.roots import built_root


@pytest.fixture(scope="package")
def root_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = built_root(tmp_path_factory.mktemp("evaluated") / "root", stages=ALL_STAGES)
    return root.path


@pytest.fixture(scope="package")
def index(root_folder: Path) -> Iterator[GraphIndex]:
    with GraphIndex.open(root_folder) as opened:
        yield opened
