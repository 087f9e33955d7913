"""Settings of all tests: property tests have no deadline (a loaded machine is no failure) and fixed examples.

And a root that was indexed once by a model, for tests of what comes after.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline_tests.model_server import Asked, ModelServer
    from graphrag_pipeline_tests.model_server.scripts import Script

settings.register_profile("graphrag_pipeline", deadline=None, derandomize=True)
settings.load_profile("graphrag_pipeline")


@dataclass
class ModelIndex:
    """A root that a model indexed, and the server behind it; `script` may be set to change replies from then on."""

    root: Root
    server: ModelServer
    script: Script | None = None

    def change_prompt(self, name: str) -> None:
        """Edit a prompt; the opened root is a new one, as the next command's is."""
        from graphrag_pipeline.pipeline.root import Root

        path = self.root.path / "prompts" / f"{name}.txt"
        path.write_text("Be brief.\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
        self.root = Root(self.root.path)


@pytest.fixture(scope="session")
def indexed_by_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelIndex]:
    """Six articles in two buckets, indexed by a model through Dagster; not to be changed."""
    from graphrag_pipeline.defs.index_runs.index_run import run_index
    from graphrag_pipeline_tests.model_server import running_model_server
    from graphrag_pipeline_tests.test_model_engine import KEY, KEY_VARIABLE, make_model_root

    def reply(asked: Asked) -> object:
        return index.script(asked) if index.script else None

    with running_model_server(reply) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLE, KEY)
        patch.delenv("DAGSTER_HOME", raising=False)
        path = tmp_path_factory.mktemp("by_model") / "root"
        prices = {"prompt_price": 1.0, "completion_price": 2.0}
        index = ModelIndex(make_model_root(path, server.base_url, n_articles=6, chat_model=prices), server)
        run_index(index.root)
        yield index


@pytest.fixture
def model_index(indexed_by_model: ModelIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelIndex]:
    """A copy to change; the server counts from here and answers as ever afterwards."""
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline_tests.test_model_engine import KEY, KEY_VARIABLE

    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    shutil.copytree(indexed_by_model.root.path, tmp_path / "root")
    indexed_by_model.server.reset()
    changed = ModelIndex(Root(tmp_path / "root"), indexed_by_model.server)
    indexed_by_model.script = lambda asked: changed.script(asked) if changed.script else None
    yield changed
    indexed_by_model.script = None
