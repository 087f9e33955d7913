"""Suggested questions through a real socket."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.support.serving import RunningServer

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
