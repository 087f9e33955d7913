"""What `doctor` finds at a real HTTP endpoint: a healthy one, and one with each fault that it names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.demo_model.vectors import embed
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inspection.doctor.diagnosis import RERANK_SECTION, Diagnosis, diagnose, render_diagnosis
from graphrag_pipeline.inspection.index_reports import report_ledger
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.model_server import Fault, ReceivedRequest, Reply, running_model_server
from graphrag_pipeline_tests.support.command_line import Call
from graphrag_pipeline_tests.support.models.model_roots import KEY_VARIABLE, ModelIndex, make_model_root

FREE = {"prompt_price": 0, "completion_price": 0}
GOOD = {"parameters": {"temperature": 0}, **FREE}


def make_root(path: Path, url: str, chat: dict[str, Any] | None = None, vectors: dict[str, Any] | None = None) -> Root:
    return make_model_root(
        path, url, n_articles=3, chat_model=GOOD | (chat or {}), embedding_model={"prompt_price": 0} | (vectors or {})
    )


def found(diagnosis: Diagnosis, section: str, check: str) -> tuple[str, str]:
    """The status and the text of one check."""
    [one] = [one for one in diagnosis.examinations if one.section == section]
    return next((finding.status, finding.text) for finding in one.findings if finding.check == check)


def test_a_healthy_endpoint_needs_nothing_and_gets_a_forecast(tmp_path: Path) -> None:
    with running_model_server(dimensions=48) as server:
        root = make_root(tmp_path / "root", server.base_url, {"max_concurrency": 2})
        diagnosis = diagnose(root)
        lines = list(render_diagnosis(diagnosis))
    assert not diagnosis.has_failed
    assert diagnosis.settings in ({}, {"chat_model": {"max_concurrency": 1}})  # a loaded machine may be slow
    for check in ("endpoint", "model", "reply", "stream", "JSON", "speed"):
        assert found(diagnosis, "chat_model", check)[0] == "ok"
    assert found(diagnosis, "embedding_model", "vectors")[1].startswith("48 numbers")
    assert found(diagnosis, "embedding_model", "longest text") == ("ok", "8,000 tokens are read to the end")
    assert diagnosis.forecast and {one.stage for one in diagnosis.forecast} >= {"extracted_graph", "community_reports"}
    assert sum(one.n_calls for one in diagnosis.forecast) > 0
    assert any(line.startswith("Next index run: about ") for line in lines)


KEY_ADVICE = f"Set the environment variable {KEY_VARIABLE}"


@pytest.mark.parametrize(
    ("fault", "advice"), [("401", KEY_ADVICE), ("404", "Set `model` to one"), ("html", "Correct base_url, which")]
)
def test_a_failed_request_says_what_to_set(tmp_path: Path, fault: str, advice: str) -> None:
    with running_model_server(lambda request: Fault(fault)) as server:
        root = make_root(tmp_path / "root", server.base_url, {"model": "other"}, {"model": "other"})
        diagnosis = diagnose(root)
    for section, check in (("chat_model", "reply"), ("embedding_model", "vectors")):
        status, text = found(diagnosis, section, check)
        assert status == "failed" and advice in text and "127.0.0.1" in text, text
        assert fault == "404" or "Set `model`" not in text


def test_no_server_is_one_failed_check(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root", "http://127.0.0.1:9/v1")
    diagnosis = diagnose(root)
    assert diagnosis.has_failed
    status, text = found(diagnosis, "chat_model", "endpoint")
    assert status == "failed" and "no server at http://127.0.0.1:9/v1" in text
    assert diagnosis.forecast is None and "not known" in diagnosis.why_no_forecast


def test_a_refused_key_names_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with running_model_server(api_key="right") as server:
        diagnosis = diagnose(make_root(tmp_path / "root", server.base_url))
    status, text = found(diagnosis, "chat_model", "endpoint")
    assert status == "failed" and "GRAPHRAG_TESTS_KEY (which is not set)" in text


def test_each_further_endpoint_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SECOND_KEY", raising=False)
    with running_model_server() as server, running_model_server(dimensions=48, api_key="right") as other:
        more = {"endpoints": [{"base_url": server.base_url}, {"base_url": other.base_url, "api_key_env": "SECOND_KEY"}]}
        root = make_root(tmp_path / "root", server.base_url, more, more)
        refused = diagnose(root)
        monkeypatch.setenv("SECOND_KEY", "right")
        answered = diagnose(root)
        lines = "\n".join(render_diagnosis(answered))
    assert found(refused, "chat_model.endpoints[0]", "reply")[0] == "ok"
    status, text = found(refused, "chat_model.endpoints[1]", "endpoint")
    assert status == "failed" and "SECOND_KEY (which is not set)" in text
    assert found(answered, "chat_model.endpoints[1]", "reply")[0] == "ok"
    assert found(answered, "embedding_model.endpoints[0]", "vectors")[0] == "ok"
    status, text = found(answered, "embedding_model.endpoints[1]", "vectors")
    assert status == "failed" and "48 numbers, and those of the first endpoint 256" in text
    assert f"embedding_model.endpoints[1]: test-embedding at {other.base_url}" in lines


def test_the_window_and_a_misspelt_model_are_told(tmp_path: Path) -> None:
    with running_model_server(dialect="llama.cpp", max_context_tokens=4096) as server:
        diagnosis = diagnose(make_root(tmp_path / "root", server.base_url, {"model": "tst-chat"}))
        told = diagnose(make_root(tmp_path / "other", server.base_url))
    assert found(diagnosis, "chat_model", "model")[1].endswith("it names test-chat")
    assert diagnosis.settings["chat_model"]["model"] == "test-chat"
    assert "window 4,096 tokens" in found(told, "chat_model", "model")[1]
    assert told.settings["chat_model"]["context_window"] == 4096


def test_the_only_model_of_a_server_is_meant_by_any_name(tmp_path: Path) -> None:
    file = "/m/x.gguf"
    with running_model_server(dialect="llama.cpp", max_context_tokens=4096, models=(file,)) as server:
        diagnosis = diagnose(make_root(tmp_path / "root", server.base_url, {"model": "qwen"}))
        reading = diagnose(make_root(tmp_path / "read", server.base_url, {"model": "qwen", "context_window": "read"}))
    status, text = found(diagnosis, "chat_model", "model")
    assert status == "ok" and f"lists {file} only" in text and text.endswith("any name, window 4,096 tokens")
    assert found(diagnosis, "embedding_model", "model")[0] == "ok"
    assert diagnosis.settings["chat_model"]["context_window"] == 4096
    assert "context_window" not in reading.settings.get("chat_model", {})
    [model] = [one for one in reading.examinations if one.section == "chat_model"]
    assert "window" not in [finding.check for finding in model.findings]


def test_what_an_endpoint_lacks_is_a_note_and_not_a_failure(tmp_path: Path) -> None:
    with running_model_server(refused_formats=("json_schema",), faults={"no-usage": 1.0}) as server:
        diagnosis = diagnose(make_root(tmp_path / "root", server.base_url))
    assert not diagnosis.has_failed
    assert "without token counts" in found(diagnosis, "chat_model", "reply")[1]
    status, text = found(diagnosis, "chat_model", "JSON")
    assert status == "note" and "json_schema is refused" in text and text.endswith(" works")


def test_the_form_of_json_that_works_now_is_kept_for_later_commands(tmp_path: Path) -> None:
    with running_model_server(refused_formats=("json_schema",)) as server:
        root = make_root(tmp_path / "root", server.base_url)
        root.models.known_forms.write(server.base_url, "test-chat", fact="plain").result()
        diagnose(root)
    assert root.models.known_forms.read(server.base_url, "test-chat") == "json_object"
    with running_model_server() as server:
        root = make_root(tmp_path / "other", server.base_url)
        root.models.known_forms.write(server.base_url, "test-chat", fact="plain").result()
        diagnose(root)
    assert root.models.known_forms.read(server.base_url, "test-chat") is None, "the first form works"


def test_the_batch_that_works_now_is_kept_for_later_commands(tmp_path: Path) -> None:
    place = "/embeddings", "test-embedding"
    with running_model_server(max_batch_items=10) as server:
        root = make_root(tmp_path / "root", server.base_url)
        assert diagnose(root).settings["embedding_model"]["batch_size"] == 8
    assert root.models.known_batches.read(server.base_url, *place) == 8
    with running_model_server() as server:
        root = make_root(tmp_path / "other", server.base_url)
        root.models.known_batches.write(server.base_url, *place, fact=1).result()
        diagnose(root)
    assert root.models.known_batches.read(server.base_url, *place) is None, "all of a batch is taken"


def test_limits_that_an_endpoint_refuses_are_a_note_of_doctor(tmp_path: Path) -> None:
    def refuse(request: ReceivedRequest) -> bool:
        return "maxLength" in str(request.body.get("response_format"))

    fault = Fault("400", message="Invalid schema for response_format: 'maxLength' is not permitted.")
    with running_model_server() as server:
        server.push((refuse, fault))
        root = make_root(tmp_path / "root", server.base_url)
        diagnosis = diagnose(root)
    status, text = found(diagnosis, "chat_model", "JSON")
    assert status == "note" and text.endswith("json_schema_unlimited works")
    assert "structured_output" not in diagnosis.settings.get("chat_model", {})
    assert root.models.known_forms.read(server.base_url, "test-chat") == "json_schema_unlimited"


def test_a_form_of_json_that_is_taken_and_not_followed_is_replaced(tmp_path: Path) -> None:
    prose = Reply("Very well.")
    with running_model_server([(lambda request: "json_schema" in str(request.body), prose)]) as server:
        diagnosis = diagnose(make_root(tmp_path / "root", server.base_url))
    assert "does not fit" in found(diagnosis, "chat_model", "JSON")[1]
    assert diagnosis.settings["chat_model"]["structured_output"] == "json_object"


@pytest.mark.parametrize(("n_refused", "works"), [(1, "json_object"), (2, "tool"), (3, "plain")])
def test_each_form_of_json_is_found_to_work_as_in_an_index(tmp_path: Path, n_refused: int, works: str) -> None:
    refused = ("json_schema", "json_object", "tools")[:n_refused]
    with running_model_server(refused_formats=refused) as server:
        diagnosis = diagnose(make_root(tmp_path / "root", server.base_url))
    status, text = found(diagnosis, "chat_model", "JSON")
    assert status == "note" and text.endswith(f"{works} works") and "does not fit" not in text
    assert text.count("is refused") == n_refused, "one refusal of the type json_schema is enough"


def test_latency_counts_once_for_each_request_and_not_for_each_token(tmp_path: Path) -> None:
    with running_model_server(n_slots=1, latency_s=0.4, tokens_per_s=400.0) as server:
        diagnosis = diagnose(make_root(tmp_path / "root", server.base_url, {"max_concurrency": 1}))
    [speed] = [one.speed for one in diagnosis.examinations if one.section == "chat_model"]
    assert speed and 0.35 < speed.latency_s < 1 and speed.written_per_s > 60
    assert speed.seconds(0, 0, n_calls=10) == pytest.approx(10 * speed.latency_s)
    assert "for each request" in found(diagnosis, "chat_model", "speed")[1]
    [extraction] = [one for one in diagnosis.forecast or () if one.stage == "extracted_graph"]
    assert extraction.seconds >= extraction.n_calls * speed.latency_s


def test_a_server_with_one_slot_gets_one_request_at_a_time(tmp_path: Path) -> None:
    with running_model_server(n_slots=1, latency_s=0.3) as server:
        diagnosis = diagnose(make_root(tmp_path / "root", server.base_url, {"max_concurrency": 4}))
    assert diagnosis.settings["chat_model"] == {"max_concurrency": 1}
    [speed] = [one.speed for one in diagnosis.examinations if one.section == "chat_model"]
    assert speed and speed.n_parallel < 1.3


def test_limits_of_an_embedding_server_are_found(tmp_path: Path) -> None:
    with running_model_server(dialect="llama.cpp", max_batch_items=20, max_input_tokens=512) as server:
        vectors = {"batch_size": 64, "batch_max_tokens": 1000, "model": "multilingual-e5-small"}
        diagnosis = diagnose(make_root(tmp_path / "root", server.base_url, None, vectors))
    wanted = diagnosis.settings["embedding_model"]
    assert wanted["batch_size"] == 16
    assert 200 < wanted["batch_max_tokens"] < 300  # the server counts about two tokens a word
    assert (wanted["query_prefix"], wanted["passage_prefix"]) == ("query: ", "passage: ")


def test_an_embedding_server_that_cuts_silently_is_found_out(tmp_path: Path) -> None:
    def cut(request: ReceivedRequest) -> Reply:
        return Reply(vectors=[embed(" ".join(str(item).split()[:200]), 32) for item in request.inputs])

    with running_model_server([("embedding", cut)]) as server:
        diagnosis = diagnose(make_root(tmp_path / "root", server.base_url, None, {"batch_max_tokens": 450}))
    status, text = found(diagnosis, "embedding_model", "longest text")
    assert status == "note" and "only the start of longer texts" in text
    assert 100 < diagnosis.settings["embedding_model"]["batch_max_tokens"] <= 210


def test_a_reranker_is_checked_if_one_is_set(tmp_path: Path) -> None:
    rerank = {"model": "test-rerank", "prompt_price": 0}
    with running_model_server(max_batch_items=20) as server:
        root = make_root(tmp_path / "root", server.base_url)
        assert RERANK_SECTION not in [one.section for one in diagnose(root).examinations]
        root = make_model_root(
            tmp_path / "other", server.base_url, 2, rerank_model=rerank | {"base_url": server.base_url}
        )
        diagnosis = diagnose(root)
    assert found(diagnosis, RERANK_SECTION, "order")[0] == "ok"
    assert diagnosis.settings[RERANK_SECTION]["batch_size"] == 12
    assert "candidates of a question take about" in found(diagnosis, RERANK_SECTION, "speed")[1]


def test_a_reranker_with_a_wrong_path_or_a_wrong_order_is_found_out(tmp_path: Path) -> None:
    def backwards(request: ReceivedRequest) -> Reply:
        return Reply(scores=[-float("capital of" in str(text)) for text in request.inputs])

    rerank = {"model": "test-rerank", "prompt_price": 0}
    with running_model_server([("rerank", backwards)]) as server:
        address = {"base_url": server.base_url}
        root = make_model_root(tmp_path / "root", server.base_url, 2, rerank_model=rerank | address)
        assert "is this a reranking model?" in found(diagnose(root), RERANK_SECTION, "order")[1]
        wrong = rerank | address | {"path": "/order"}
        diagnosis = diagnose(make_model_root(tmp_path / "wrong", server.base_url, 2, rerank_model=wrong))
    status, text = found(diagnosis, RERANK_SECTION, "scores")
    assert diagnosis.has_failed and status == "failed" and "the path is /order" in text


def test_the_command_prints_json_counts_its_cost_and_fails_with_the_check(tmp_path: Path, call: Call) -> None:
    with running_model_server() as server:
        root = make_root(tmp_path / "root", server.base_url)
        shown = call("--root", root.path, "doctor", "--json")
        assert shown.status == 0, shown.err
        values = json.loads(shown.out)
        assert [model["section"] for model in values["models"]] == ["chat_model", "embedding_model"]
        assert values["forecast"] and values["has_failed"] is False
        assert [run.command for run in report_ledger(root).runs] == ["doctor"]
        server.push(("chat", Fault("401")), (lambda request: request.kind != "embedding", Fault("401")))
        refused = call("--root", root.path, "doctor")
    assert refused.status == 1 and "failed  reply: " in refused.out


def test_another_embedding_model_behind_the_name_is_an_error_of_questions_and_of_doctor(
    model_index: ModelIndex,
) -> None:
    def answer_with_shorter_vectors(request: ReceivedRequest) -> Reply | None:
        return Reply(vectors=[[1.0] * 8] * len(request.inputs)) if request.inputs else None

    model_index.script = answer_with_shorter_vectors
    expected = "gives vectors of 8 numbers where [0-9]+ are expected .*the index"
    for method in ("local", "basic", "drift", "lazy"):
        with GraphIndex.open(model_index.root.path) as index, pytest.raises(PipelineError, match=expected):
            index.search("Where does Tom Veldt work?", method=method)
    diagnosis = diagnose(model_index.root)
    status, text = found(diagnosis, "embedding_model", "vectors")
    assert status == "failed" and text.startswith("vectors have 8 numbers, and those of the published index ")
    model_index.script = None
    with GraphIndex.open(model_index.root.path) as index:
        assert index.search("Where does Tom Veldt work?", method="local").answer, "the wrong vector was not stored"
