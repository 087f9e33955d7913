"""Stores to test against: a folder, fsspec's store in memory, and an S3 server on loopback."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline_tests.support.machines import index, machine
from graphrag_pipeline_tests.support.roots import built_root

_numbers = itertools.count()


@pytest.fixture(params=["file", "memory", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty place in each kind of store."""
    if request.param == "s3":
        return str(request.getfixturevalue("s3_url"))
    return f"file://{tmp_path}/store" if request.param == "file" else f"memory://test-{next(_numbers)}"


@pytest.fixture
def folder_url(tmp_path: Path) -> str:
    return f"file://{tmp_path}/store"


@pytest.fixture(scope="session")
def indexed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root indexed without a store; tests must not change it."""
    return built_root(tmp_path_factory.mktemp("alone") / "root", stages=ALL_STAGES).path


@pytest.fixture
def indexed(indexed_once: Path) -> Callable[[Path, str], Root]:
    """Return a function that makes a machine whose index of three documents is in a store."""

    def make(path: Path, url: str) -> Root:
        for name in ("tables", "heads", "snapshots"):
            shutil.copytree(indexed_once / name, path / name)
        root = machine(path, url)
        assert index(root) == []
        return root

    return make
