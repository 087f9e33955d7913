"""Searches, streams and suggested questions through a real socket."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.settings.search_names import SEARCH_METHODS, STRATEGIES
from graphrag_pipeline_tests.model_server import ReceivedRequest
from graphrag_pipeline_tests.support.models.model_roots import ModelIndex
from graphrag_pipeline_tests.support.serving import RunningServer, running_server
from graphrag_pipeline_tests.support.thoroughness import usually

QUESTION = "Who is Bob Cratchit?"


def read_events(text: str) -> list[tuple[str, Any]]:
    """The events of a stream."""
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def without_seconds(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key not in ("seconds", "root", "context_text")}


@pytest.mark.parametrize("method", SEARCH_METHODS)
def test_a_search_gives_what_python_gives(server: RunningServer, served_root: Path, method: str) -> None:
    answer = server.client.post("/search", json={"question": QUESTION, "method": method}).raise_for_status().json()
    with GraphIndex.open(served_root) as index:
        expected = json.loads(index.search(QUESTION, method).to_json())
    assert without_seconds(answer) == without_seconds(expected)
    assert answer["root"] == "carol" and answer["snapshot"] == expected["snapshot"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_and_filter_counts(server: RunningServer, strategy: str) -> None:
    body = {"question": QUESTION, "strategy": strategy, "filters": ["path=one.txt"], "context_only": True}
    answer = server.client.post("/search", json=body).raise_for_status().json()
    assert answer["answer"] == "" and answer["context_text"]
    assert {unit["document_path"] for unit in answer["context"]["text_units"]} == {"one.txt"}


def test_events_end_with_the_same_result(server: RunningServer) -> None:
    body = {"question": QUESTION}
    whole = server.client.post("/search", json=body).json()
    events = read_events(server.client.post("/search/stream", json=body).raise_for_status().text)
    names = [name for name, _ in events]
    assert names[0] == "context" and names[-1] == "result" and set(names[1:-1]) == {"token"}
    assert "".join(data["text"] for name, data in events if name == "token") == whole["answer"]
    assert without_seconds(events[-1][1]) == without_seconds(whole)
    assert events[0][1]["snapshot"] == whole["snapshot"]


def test_explain_shows_all_strategies(server: RunningServer) -> None:
    answer = server.client.post("/explain", json={"question": QUESTION, "strategy": "graph"}).json()
    assert set(answer["strategies"]) == set(STRATEGIES) and answer["strategies"][0] == "graph"


def test_history_reaches_the_search(server: RunningServer) -> None:
    history = [{"role": "user", "content": "Who is Tiny Tim?"}, {"role": "assistant", "content": "A child."}]
    body = {"question": "What did he do then?", "history": history, "context_only": True}
    answer = server.client.post("/search", json=body).raise_for_status().json()
    assert "TINY TIM" in {one["title"] for one in answer["context"]["entities"]}
    refused = server.client.post("/search", json={**body, "method": "global"})
    assert refused.status_code == 400 and "history" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"question": ""}, 400, "question"),
        ({"question": "   "}, 400, "empty"),
        ({"question": QUESTION, "method": "telepathy"}, 400, "method"),
        ({"question": QUESTION, "strategy": "best"}, 400, "strategy"),
        ({"question": QUESTION, "filters": ["colour=red"]}, 400, "colour"),
        ({"question": QUESTION, "filters": ["path"]}, 400, "path"),
        ({"question": QUESTION, "options": {"top_k_entitys": 3}}, 400, "top_k_entities"),
        ({"question": QUESTION, "options": {"top_k_entities": "many"}}, 400, "top_k_entities"),
        ({"question": QUESTION, "snapshot": "../../etc"}, 404, "snapshot"),
        ({"question": QUESTION, "colour": "red"}, 400, "colour"),
        ([QUESTION], 400, "request"),
    ],
)
@pytest.mark.parametrize("path", ["/search", "/search/stream"])
def test_a_bad_request_says_what_is_wrong(server: RunningServer, path: str, body: Any, status: int, word: str) -> None:
    answer = server.client.post(path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["status"]) == (status, status)
    assert word in error["message"] and error["code"] and error["what_to_do"]


def test_a_body_that_is_no_json_is_refused(server: RunningServer) -> None:
    assert server.client.post("/search", content=b"question=1").status_code == 415
    sent = {"content-type": "application/json"}
    assert server.client.post("/search", content=b"{", headers=sent).status_code == 400
    assert server.client.post("/search", content=b"\xff\xfe", headers=sent).status_code == 400
    assert server.client.post("/search", content=b" " * 1_000_001, headers=sent).status_code == 413
    parts = (b" " * 100_000 for _ in range(11))
    assert server.client.post("/search", content=parts, headers=sent).status_code == 413


TURN = {"role": "user", "content": "Who is Bob Cratchit?"}


@pytest.mark.parametrize(
    "body", [{}, {"question": "Who is Bob Cratchit?", "n": 3}, {"history": [TURN]}, {"filters": ["path=one.txt"]}]
)
def test_suggestions_are_those_of_python(server: RunningServer, served_root: Path, body: dict) -> None:
    answer = server.client.post("/follow-ups", json=body).raise_for_status().json()
    turns = [(turn["role"], turn["content"]) for turn in body.get("history", [])]
    with GraphIndex.open(served_root) as index:
        expected = index.suggest_questions(body.get("question", ""), turns, body.get("n", 5), body.get("filters", ()))
    assert answer["questions"] == expected.to_dict()["questions"] and answer["questions"]
    assert answer["snapshot"] == expected.snapshot and answer["engine"] == "embedded"


@pytest.mark.parametrize("body", [{"n": 0}, {"n": 99}, {"history": [{"role": "system", "content": ""}]}, {"x": 1}, []])
def test_a_wrong_body_is_refused(server: RunningServer, body: object) -> None:
    assert server.client.post("/follow-ups", json=body).status_code == 400


@pytest.mark.parametrize("path", usually(["/search", "/search/stream"], "/search/stream"))
def test_model_calls_end_when_the_client_goes_away(model_index: ModelIndex, path: str) -> None:
    is_asked, may_answer = threading.Event(), threading.Event()

    def wait(request: ReceivedRequest) -> object:
        is_asked.set()
        may_answer.wait(60)
        return None

    model_index.script = wait
    try:
        with running_server({"articles": model_index.root.path}) as server:
            body = json.dumps({"question": "Who leads the council?"}).encode()
            head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
                assert is_asked.wait(30)
            deadline = time.monotonic() + 30
            while "graphrag_requests_running 0.0" not in server.client.get("/metrics").text:
                assert time.monotonic() < deadline, "the search goes on without its client"
                time.sleep(0.05)
    finally:
        may_answer.set()
