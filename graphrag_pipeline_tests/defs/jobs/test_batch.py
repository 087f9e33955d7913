"""The batch job and the history of answers, through a real Dagster instance."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.index_runs.definitions import build_index_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.session import IndexSession
from graphrag_pipeline.pipeline.root import Root, init_root
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.corpora import small_index

NUMBERS = (
    "tokens sent to models and received",
    "model calls",
    "model cost (USD)",
    "seconds to answer",
    "citations in the answer",
)
WHO = "Who haunted Scrooge?"
LOVED = "Whom did Bob Cratchit love?"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    path = tmp_path_factory.mktemp("batch") / "root"
    init_root(path)
    SnapshotStore(path).point_at(small_index.freeze(path).id)
    return Root(path)


@pytest.fixture(scope="module")
def definitions(root: Root) -> dg.Definitions:
    return build_definitions(root)


def run_job(
    root: Root, definitions: dg.Definitions, job: str, **config: object
) -> tuple[dg.ExecuteInProcessResult, list[dict[str, Any]]]:
    """The result of a job, and the metadata of the answers that it added to the history."""
    with open_instance(root) as instance:
        result = definitions.resolve_job_def(job).execute_in_process(
            instance=instance, run_config=config, raise_on_error=False
        )
        events = instance.get_records_for_run(result.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION).records
    kept = [record.asset_materialization for record in events]
    assert {str(event.asset_key.to_user_string()) for event in kept if event} <= {"answers"}
    return result, [{name: value.value for name, value in event.metadata.items()} for event in kept if event]


def test_a_batch_job_answers_a_file_and_keeps_each_answer_with_its_account(
    root: Root, definitions: dg.Definitions
) -> None:
    (root.path / "questions.txt").write_text(f"{WHO}\n{LOVED}\n")
    result, kept = run_job(root, definitions, "batch_job", questions="questions.txt", method="local")
    assert result.success
    lines = (root.path / "questions.answers.jsonl").read_text().splitlines()
    answers = [json.loads(line) for line in lines]
    assert [answer["question"] for answer in answers] == [WHO, LOVED] == [shown["question"] for shown in kept]
    assert kept[0]["answer"].startswith(answers[0]["answer"]) and "[1] " in kept[0]["answer"]
    assert kept[0]["citations in the answer"] == len(answers[0]["citations"]) > 0
    assert (kept[0]["method"], kept[0]["snapshot"], kept[0]["model cost (USD)"]) == (
        "local",
        root.snapshots.current(),
        0.0,
    )
    assert kept[0]["tokens sent to models and received"] == kept[0]["model calls"] == 0
    assert kept[0]["tokens of context and answer without a model"] == answers[0]["usage"]["tokens"] > 0, (
        "the embedded engine's count as well"
    )
    assert kept[0]["selection"] == answers[0]["selection"] and kept[0]["seconds to answer"] > 0
    observed = [event.asset_key for event in result.all_events if event.event_type_value == "ASSET_OBSERVATION"]
    assert observed == [dg.AssetKey("index_snapshot")]
    again, kept = run_job(root, definitions, "batch_job", questions="questions.txt", method="local")
    assert again.output_for_node("tell_batch_account")["kept"] == 2 and kept == []


def test_a_batch_with_a_question_that_fails_answers_the_others_and_fails(
    root: Root, definitions: dg.Definitions
) -> None:
    (root.path / "mixed.jsonl").write_text(json.dumps({"question": WHO, "method": "hybrid"}) + f'\n"{WHO}"\n')
    result, kept = run_job(root, definitions, "batch_job", questions="mixed.jsonl", answers="out.jsonl")
    assert not result.success and len(kept) == 1
    failed, answered = map(json.loads, (root.path / "out.jsonl").read_text().splitlines())
    assert "unknown search method 'hybrid'" in failed["error"] and answered["answer"]
    failure = next(event for event in result.all_events if event.is_step_failure).step_failure_data
    assert "unknown search method 'hybrid'" in str(failure.user_failure_data)


@pytest.mark.parametrize(("method", "chosen"), [("global", "global"), ("auto", "local")])
def test_a_query_job_adds_its_answer_to_the_history(
    root: Root, definitions: dg.Definitions, method: str, chosen: str
) -> None:
    _, [shown] = run_job(root, definitions, f"{method}_search_job", question=WHO, filters=["title!=c.txt"])
    assert (shown["question"], shown["method"], shown["filters"]) == (WHO, chosen, "title!=c.txt")
    assert shown["answer"] and shown["snapshot"] == root.snapshots.current()
    assert all(isinstance(shown[name], int | float) for name in NUMBERS)


def test_a_model_answer_is_kept_with_the_account_of_all_ops(root: Root, tmp_path: Path) -> None:
    copied = Root(Path(shutil.copytree(root.path, tmp_path / "root")))
    with running_model_server() as server:
        asking = {"model": "test-chat", "base_url": server.base_url, "prompt_price": 1.0, "completion_price": 1.0}
        settings = {"chat_model": asking, "answers": {"engine": "model"}, "rating": {"engine": "model"}}
        settings["global_search"] = {"threshold": 0}  # else no report is relevant, and none is mapped
        (copied.path / "settings.yaml").write_text(yaml.safe_dump(settings))
        _, [shown] = run_job(copied, build_definitions(copied), "global_search_job", question=WHO)
    assert shown["model calls"] == server.count() > 2, "rating, mapping and reducing"
    n_tokens = shown["tokens sent to models and received"]
    assert n_tokens > 0 and shown["model cost (USD)"] == pytest.approx(n_tokens / 1e6)
    assert shown["models"].startswith("test-chat: ")


def test_the_history_is_downstream_of_the_snapshot_and_no_job_makes_it(root: Root, definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    answers = graph.get(dg.AssetKey("answers"))
    assert [str(key.to_user_string()) for key in answers.parent_keys] == ["index_snapshot"]
    assert not answers.is_materializable
    index_graph = build_index_definitions(root, IndexSession()).resolve_asset_graph()
    assert dg.AssetKey("answers") not in index_graph.get_all_asset_keys()


def test_a_missing_file_of_questions_is_named(root: Root, definitions: dg.Definitions) -> None:
    result, _ = run_job(root, definitions, "batch_job", questions="nowhere.txt")
    failure = next(event for event in result.all_events if event.is_step_failure).step_failure_data
    assert f"{Path(root.path) / 'nowhere.txt'}: cannot be read" in str(failure.error)
