"""The first requests of an index run, through HTTP: a model that cannot work shows before anything is paid."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inspection.costs import describe_models, read_costs
from graphrag_pipeline.inspection.estimates import estimate_index
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline_tests.model_server import Fault, ModelServer, running_model_server
from graphrag_pipeline_tests.support.models.model_roots import make_model_root


@pytest.fixture(autouse=True)
def _own_dagster_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


def make_root(path: Path, server: ModelServer, **sections: dict[str, Any]) -> Root:
    return make_model_root(path, server.base_url, 2, **sections)


@pytest.mark.parametrize(("status", "advice"), [("501", "to a server that does"), ("405", "to a server that does"),
                                                ("404", "the name of the model")])  # fmt: skip
def test_an_embedding_server_that_cannot_work_shows_before_extraction_is_paid(
    tmp_path: Path, status: str, advice: str
) -> None:
    with running_model_server([("embedding", Fault(status))]) as server:
        root = make_root(tmp_path / "root", server)
        with pytest.raises(
            PipelineError, match="only first tiny requests were paid for this run: model 'test-embedding'"
        ) as raised:
            run_index(root)
        assert advice in str(raised.value) and "base_url" in str(raised.value)
        assert server.count("extraction") == 0 and len(server.calls) == 2
    [run] = read_costs(root)
    assert run["stages"]["model_checks"]["actual"]["calls"] == 1, "the refused one is not paid"


def test_no_server_of_embeddings_shows_before_extraction_is_paid(tmp_path: Path) -> None:
    with running_model_server() as server:
        root = make_root(tmp_path / "root", server, embedding_model={"base_url": "http://127.0.0.1:9/v1"})
        with pytest.raises(PipelineError, match=r"cannot connect .* Start the server, or correct base_url"):
            run_index(root)
        assert server.count("extraction") == 0


def test_a_variable_that_is_not_set_is_named_before_anything_is_sent(tmp_path: Path) -> None:
    with running_model_server() as server:
        root = make_root(tmp_path / "root", server, embedding_model={"headers": {"X-Team": "$NOT_SET"}})
        with pytest.raises(PipelineError, match=r"^the header X-Team: set the environment variable NOT_SET"):
            run_index(root)
        assert server.count("extraction") == 0
        estimates = estimate_index(root, find_stale(root, detect_input(root)))
        assert describe_models(root.settings, estimates)[-1] == "set the environment variable NOT_SET before the run"


@pytest.mark.thorough
def test_the_check_is_booked_and_left_out_if_all_is_stored(tmp_path: Path) -> None:
    with running_model_server() as server:
        root = make_root(tmp_path / "root", server)
        # a failure that may pass: the run goes on
        server.push((lambda request: "one word" in str(request.body) and request.kind == "embedding", Fault("500")))
        run_index(root)
        [run] = read_costs(root)
        assert run["stages"]["model_checks"]["actual"]["calls"] == 1
        paid = sum(stage["actual"]["calls"] for stage in run["stages"].values() if stage["actual"])
        assert paid == sum(call.status == 200 for call in server.calls)
        for folder in ("heads", "tables", "snapshots"):
            shutil.rmtree(root.path / folder, ignore_errors=True)
        server.reset()
        run_index(Root(root.path))
        assert not server.calls
