"""Query jobs through a real Dagster instance: visible ops, an answer as markdown, lineage to the snapshot."""

from __future__ import annotations

import functools
from pathlib import Path

import dagster as dg
import pytest

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.support.roots import built_root
from graphrag_pipeline_tests.support.thoroughness import usually

QUESTION = "Who is Scrooge's clerk?"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    root = built_root(tmp_path_factory.mktemp("queries") / "root", stages=ALL_STAGES)
    return root


@functools.cache
def definitions_of(path: Path) -> dg.Definitions:
    return build_definitions(Root(path))


def ask(root: Root, method: str, **config: object) -> tuple[dg.ExecuteInProcessResult, dg.DagsterInstance]:
    job = definitions_of(root.path).resolve_job_def(f"{method}_search_job")
    with open_instance(root) as instance:
        return job.execute_in_process(instance=instance, run_config={"question": QUESTION, **config}), instance


OTHER_OPS = {"basic": 3, "drift": 4, "lazy": 4, "auto": 4}
ANSWERING = {"global": "reduce_points", "drift": "answer_by_drift", "lazy": "answer_lazily", "auto": "answer_locally"}


@pytest.mark.parametrize(
    ("method", "n_ops"),
    [("local", 3), ("global", 4), *(pytest.param(*case, marks=pytest.mark.thorough) for case in OTHER_OPS.items())],
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
    result, _ = ask(root, "local", strategy="round_robin", with_options={"top_k_entities": 2})
    observations = [event for event in result.all_events if event.event_type_value == "ASSET_OBSERVATION"]
    assert [event.asset_key for event in observations] == [dg.AssetKey("index_snapshot")]


def test_a_query_job_shows_the_matched_entities_that_the_context_has_no_text_about(root: Root) -> None:
    result, _ = ask(root, "local", with_options={"max_context_tokens": 100, "top_k_entities": 2})
    [shown] = [
        event.step_output_data.metadata
        for event in result.all_events
        if event.is_successful_output and "unheard" in event.step_output_data.metadata
    ]
    assert shown["unheard"].value == 2 and shown["excerpts"].value == 0
    assert len(shown["unheard_entities"].value.split(", ")) == 2


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"with_options": {"top_k_entites": 2}}, "top_k_entites"),
        ({"strategy": "deepest"}, "not in enum type StrategyName got deepest"),
        ({"with_options": {"packing": "loose"}}, "not in enum type packing_value got loose"),
        ({"with_options": {"top_k_entities": "many"}}, "root:with_options:top_k_entities"),
        ({"strateggy": "balanced"}, "strateggy"),
        ({"with_options": {"strategy": "deepest"}}, "not in enum type strategy_value got deepest"),
    ],
)
def test_a_mistake_in_the_launchpad_is_refused_before_the_run(
    root: Root, config: dict[str, object], message: str
) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError, match=message):
        ask(root, "local", **config)


def test_a_number_out_of_bounds_fails_the_first_op_with_the_name_of_the_option(root: Root) -> None:
    with pytest.raises(Exception, match=r"options of local_search: top_k_entities: .*greater than or equal to 1"):
        ask(root, "local", with_options={"top_k_entities": 0})


def test_the_answer_is_in_the_log_and_recorded_with_strategy_and_options(root: Root) -> None:
    result, _ = ask(root, "local", strategy="round_robin", with_options={"top_k_entities": 3})
    answer = result.output_for_node("answer_question")["answer"]
    with open_instance(root) as instance:
        lines = [entry.user_message for entry in instance.all_logs(result.run_id)]
        event = instance.get_latest_materialization_event(dg.AssetKey("answers"))
    assert any(line.startswith("The answer, by local search") and answer in line for line in lines)
    assert event and event.asset_materialization
    shown = {name: value.value for name, value in event.asset_materialization.metadata.items()}
    assert shown["strategy"] == "round_robin"
    options = Root(root.path).settings.search("local").model_dump(mode="json", exclude={"for_questions"})
    assert shown["options of the method"] == options | {"strategy": "round_robin", "top_k_entities": 3}


@pytest.mark.parametrize("method", usually(["local", "global"], "global"))
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
