"""A root that was indexed once through Dagster, shared by all tests; each test changes a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.roots import indexed_root


@pytest.fixture(autouse=True)
def _own_dagster_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


@pytest.fixture(scope="session")
def indexed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DAGSTER_HOME", raising=False)
        return indexed_root(tmp_path_factory.mktemp("indexed_once") / "root").path


@pytest.fixture(name="indexed_root")
def _indexed_root(indexed_once: Path, tmp_path: Path) -> Root:
    """A copy of an indexed root of three documents in two buckets, with its Dagster home."""
    shutil.copytree(indexed_once, tmp_path / "root")
    return Root(tmp_path / "root")
