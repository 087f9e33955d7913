"""Query jobs through a real Dagster instance: visible ops, an answer as markdown, lineage to the snapshot."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline_tests.support.roots import build_tables, make_root

pytestmark = pytest.mark.slow

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
QUESTION = "Who is Scrooge's clerk?"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    root = make_root(tmp_path_factory.mktemp("queries") / "root")
    build_tables(root, tuple(ALL_STAGES))
    return root


def ask(root: Root, method: str, **config: object) -> tuple[dg.ExecuteInProcessResult, dg.DagsterInstance]:
    job = build_definitions(root).resolve_job_def(f"{method}_search_job")
    op = f"open_snapshot_for_{method}_search"
    run_config = {**QUIET, "ops": {op: {"config": {"question": QUESTION, **config}}}}
    with open_instance(root) as instance:
        return job.execute_in_process(instance=instance, run_config=run_config), instance


ANSWERING = {"global": "reduce_points", "drift": "answer_by_drift", "lazy": "answer_lazily", "auto": "answer_locally"}


@pytest.mark.parametrize(
    ("method", "n_ops"), [("local", 3), ("global", 4), ("basic", 3), ("drift", 4), ("lazy", 4), ("auto", 4)]
)
def test_a_query_job_answers_as_the_library_does(root: Root, method: str, n_ops: int) -> None:
    result, _ = ask(root, method)
    assert result.success
    last = [event for event in result.all_events if event.is_step_success]
    assert len(last) == n_ops
    answer = result.output_for_node(ANSWERING.get(method, "answer_question"))
    with GraphIndex.open(root.path) as index:
        assert answer["answer"] == index.search(QUESTION, method=method).answer
    shown = [event.step_output_data.metadata for event in result.all_events if event.is_successful_output]
    assert any(isinstance(values.get("answer"), dg.MarkdownMetadataValue) for values in shown)


def test_a_query_job_observes_the_snapshot_it_read(root: Root) -> None:
    result, _ = ask(root, "local", strategy="round_robin", settings={"top_k_entities": 2})
    observations = [event for event in result.all_events if event.event_type_value == "ASSET_OBSERVATION"]
    assert [event.asset_key for event in observations] == [dg.AssetKey("index_snapshot")]


def test_a_query_job_shows_the_matched_entities_that_the_context_has_no_text_about(root: Root) -> None:
    result, _ = ask(root, "local", settings={"max_context_tokens": 100, "top_k_entities": 2})
    [shown] = [
        event.step_output_data.metadata
        for event in result.all_events
        if event.is_successful_output and "unheard" in event.step_output_data.metadata
    ]
    assert shown["unheard"].value == 2 and shown["excerpts"].value == 0
    assert len(shown["unheard_entities"].value.split(", ")) == 2


def test_an_unknown_option_names_the_nearest_one(root: Root) -> None:
    with pytest.raises(Exception, match="did you mean 'top_k_entities'"):
        ask(root, "local", settings={"top_k_entites": 2})


def test_jobs_come_with_a_question_to_replace(tmp_path: Path) -> None:
    definitions = build_definitions(make_root(tmp_path))
    for method in METHODS:
        assert "question" in str(definitions.resolve_job_def(f"{method}_search_job").run_config)


@pytest.mark.parametrize("method", ["local", "global"])
def test_a_query_job_reads_only_documents_that_pass_its_filters(root: Root, method: str) -> None:
    filters = ["title~two"]
    result, _ = ask(root, method, filters=filters)
    answer = result.output_for_node(ANSWERING.get(method, "answer_question"))["answer"]
    with GraphIndex.open(root.path) as index:
        assert answer == index.search(QUESTION, method=method, filters=filters).answer
        assert answer != index.search(QUESTION, method=method).answer
    none, _ = ask(root, method, filters=["title=nowhere"])
    text = none.output_for_node(ANSWERING.get(method, "answer_question"))["answer"]
    assert text == "No document passes title=nowhere (3 documents looked at)."
