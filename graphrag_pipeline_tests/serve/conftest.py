"""A small indexed root, and a server of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline_tests.support.roots import built_root
from graphrag_pipeline_tests.support.serving import RunningServer, running_server


@pytest.fixture(scope="session")
def served_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root that no test changes."""
    root = built_root(tmp_path_factory.mktemp("served") / "carol", stages=ALL_STAGES)
    return root.path


@pytest.fixture(scope="session")
def server(served_root: Path) -> Iterator[RunningServer]:
    with running_server({"carol": served_root}) as running:
        yield running
