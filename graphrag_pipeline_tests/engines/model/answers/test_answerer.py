"""Lazy search by a chat model: subqueries, ratings of many text units at a time, points, and what is lost alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.engines.model.answers.answerer import read_subqueries
from graphrag_pipeline.engines.model.rating import N_FIRST
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.model_server import Fault, ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

QUESTION = "Who haunted Scrooge?"
RATES = {"rating": {"engine": "model"}}


def source_of(index: GraphIndex, text: str) -> int:
    units = index.snapshot.table("text_units").to_pylist()
    return int(next(unit["human_readable_id"] for unit in units if text in unit["text"]))


def test_subqueries_are_read_each_once() -> None:
    assert read_subqueries('{"subqueries": ["Who?", 3, "Who?", "", "Why?"]}') == ("Who?", "Why?")
    assert read_subqueries('["Who?"]') == ("Who?",)
    with pytest.raises(ReplyFormatError, match="list of subqueries"):
        read_subqueries("I would not split it.")


def replying(numbers: dict[int, int]) -> Any:
    """Ratings by number; other prompts as they come."""

    def reply(request: ReceivedRequest) -> str | None:
        if "split the user's question" in request.prompt:
            return json.dumps({"subqueries": ["Who is Marley?", "Who is Scrooge?"]})
        if request.kind == "ratings":
            return json.dumps({"ratings": [{"number": n, "rating": rating} for n, rating in numbers.items()]})
        return None

    return reply


def test_what_the_model_rates_relevant_is_read(small: GraphIndex, tmp_path: Path) -> None:
    marley, bob, fog = (source_of(small, text) for text in ("Marley haunted", "Scrooge hired", "The fog"))
    with running_model_server(replying({marley: 1, bob: 0, fog: 5})) as server:
        result = open_with_model(small, tmp_path, server, **RATES).search(QUESTION, method="lazy")
    assert [unit.human_readable_id for unit in result.context.text_units] == [fog]
    account = result.selection
    assert account["subqueries"] == [QUESTION, "Who is Marley?", "Who is Scrooge?"]
    assert account["rated_by_model"] + account["failed_ratings"] == account["tests"]
    assert account["rated_by_model"] == 3 and account["relevant"] == 1
    assert result.citations and result.citations[0].quote


def test_a_rating_that_cannot_be_had_is_the_embedded_engines(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server([("ratings", Fault("400"))]) as server:
        result = open_with_model(small, tmp_path, server, **RATES).search(QUESTION, method="lazy")
    assert result.selection["failed_ratings"] == result.selection["tests"] > 0
    assert source_of(small, "Marley haunted") in [unit.human_readable_id for unit in result.context.text_units]
    assert result.answering["engine"] == "model"


def test_a_model_that_cannot_rate_is_asked_for_a_few_batches_only(carol: GraphIndex, tmp_path: Path) -> None:
    with running_model_server([("ratings", "I cannot say.")]) as server:
        result = open_with_model(carol, tmp_path, server, **RATES).search("What becomes of Scrooge?", method="lazy")
        n_asked = sum(call.kind == "ratings" for call in server.calls)
    account = result.selection
    assert account["rating_calls"] == N_FIRST and n_asked == 2 * N_FIRST  # each is asked again once
    assert account["rated_by_model"] == 0 < account["failed_ratings"] < account["tests"]


def test_text_units_that_one_call_cannot_hold_are_mapped_to_points(carol: GraphIndex, tmp_path: Path) -> None:
    with running_model_server() as server:
        index = open_with_model(carol, tmp_path, server)
        *pieces, result = index.stream(
            "Who is Jacob Marley?", method="lazy", max_context_tokens=2_500, max_subqueries=1
        )
    assert result.selection["map"]["batches"] > 1 and result.selection["points"] > 0
    assert result.citations and {citation.kind for citation in result.citations} == {"text_unit"}
    documents = {row["id"]: row["text"] for row in carol.snapshot.table("documents").to_pylist()}
    for citation in result.citations:
        if citation.start is not None:
            assert documents[citation.document_id][citation.start : citation.end] == citation.quote
    assert "".join(map(str, pieces)) == result.answer


def test_a_batch_of_text_units_that_fails_is_told(carol: GraphIndex, tmp_path: Path) -> None:
    n_maps = 0

    def fail_first(request: ReceivedRequest) -> Any:
        nonlocal n_maps
        n_maps += request.kind == "map"
        return Fault("400") if request.kind == "map" and n_maps == 1 else None

    options = {"max_context_tokens": 2_500, "max_subqueries": 1}
    with running_model_server(fail_first) as server:
        result = open_with_model(carol, tmp_path, server).search("Who is Jacob Marley?", method="lazy", **options)
    unread = result.answering["unread"]
    assert unread["n_failed"] == 1 and unread["n_parts"] == result.selection["map"]["batches"] > 1
    assert f"(1 of {unread['n_parts']} batches of text units could not be read (" in result.answer


def test_nothing_relevant_is_said_with_what_was_tested(small: GraphIndex, tmp_path: Path) -> None:
    nothing = dict.fromkeys((source_of(small, text) for text in ("Marley", "The fog", "Scrooge hired")), 0)
    with running_model_server(replying(nothing)) as server:
        result = open_with_model(small, tmp_path, server, **RATES).search(QUESTION, method="lazy")
    assert result.answer.startswith("Not in the index: 3 text units tested, 0 of them relevant")
