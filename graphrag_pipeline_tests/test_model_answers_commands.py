"""Answers by a model through real processes and through Dagster: printed, streamed and recorded as metadata."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest
import yaml

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline_tests.model_server import ModelServer, ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.command_line import Call, run
from graphrag_pipeline_tests.support.roots import built_root

QUESTION = "Who is Scrooge's clerk?"
REPLY = "His clerk is Bob Cratchit [Data: Sources (1)], who has a small fire [Data: Reports (4711)]."
ANSWER = "His clerk is Bob Cratchit [1], who has a small fire."


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = built_root(tmp_path_factory.mktemp("answers") / "root", stages=ALL_STAGES)
    return root.path


def is_answer(request: ReceivedRequest) -> bool:
    return request.kind == "answer"


def ask_model(root: Path, server: ModelServer) -> None:
    """Return settings for answers by the server's model; no stage reads them."""
    settings = yaml.safe_load((root / "settings.yaml").read_text())
    settings |= {"chat_model": {"model": "test-chat", "base_url": server.base_url}}
    settings |= {"answers": {"engine": "model"}, "rating": {"engine": "model"}}
    (root / "settings.yaml").write_text(yaml.safe_dump(settings))


def test_a_query_prints_the_answer_its_sources_and_one_line_of_account(indexed: Path, call: Call) -> None:
    with running_model_server([(is_answer, REPLY)]) as server:
        ask_model(indexed, server)
        whole = call("query", QUESTION, "--root", indexed, "--option", "top_k_entities=4")
        streamed = call("query", QUESTION, "--root", indexed, "--option", "top_k_entities=4", "--stream")
        as_json = call("query", QUESTION, "--root", indexed, "--option", "top_k_entities=4", "--json")
    assert whole.status == streamed.status == as_json.status == 0, whole.err + streamed.err
    answer, sources, *notes, account = whole.out.rstrip("\n").split("\n\n")
    assert notes == ["Note: 1 citation of the model named a record that it was not shown, and was removed."]
    assert answer == ANSWER and sources.startswith("[1] ")
    assert account.startswith("test-chat: 1 call, ") and account.endswith(" s") and "\n" not in account
    assert [part.rstrip() for part in streamed.out.split("\n\n")][:2] == [answer, sources]
    assert "test-chat: 0 calls, 1 cached" in streamed.out
    output = json.loads(as_json.out)
    assert (output["answer"], output["answering"]["invented_citations"]) == (ANSWER, 1)
    assert output["usage"]["by_model"]["test-chat"]["cached"] == 1
    assert server.count() == 1


def test_a_stream_is_printed_as_it_comes(indexed: Path) -> None:
    with running_model_server([(is_answer, REPLY)], chunk_latency_s=0.01) as server:
        ask_model(indexed, server)
        streamed = run("query", QUESTION, "--root", indexed, "--option", "top_k_entities=3", "--stream")
    assert streamed.stdout.startswith(f"{ANSWER}\n\n[1] ") and "test-chat: 1 call, " in streamed.stdout


def test_query_jobs_call_the_same_model_and_show_its_account(indexed: Path) -> None:
    with running_model_server([(is_answer, REPLY)]) as server:
        ask_model(indexed, server)
        root = Root(indexed)
        for method, last in (("local", "answer_question"), ("global", "reduce_points")):
            job = build_definitions(root).resolve_job_def(f"{method}_search_job")
            with open_instance(root) as instance:
                result = job.execute_in_process(instance=instance, run_config={"question": QUESTION})
            assert result.output_for_node(last)["answer"].startswith("His clerk is Bob Cratchit")
            shown = {
                event.step_key: event.step_output_data.metadata
                for event in result.all_events
                if event.is_successful_output
            }
            assert shown[last]["models"] == dg.TextMetadataValue(shown[last]["models"].value)
            assert "test-chat: " in shown[last]["models"].value
    assert (
        "failed_ratings" in shown["rate_reports"]
        and "small_reports_per_call" in shown["rate_reports"]["options_used"].value
    )
    assert "static_search" in shown["map_points"]
