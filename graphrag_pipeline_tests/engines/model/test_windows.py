"""Stages by a model with a small window: prompts are made shorter, and what is left out is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.engines.model.descriptions import Subject, SummaryPlan, summarize_subject
from graphrag_pipeline.engines.model.extraction.conversations import ExtractionPlan, extract_text_unit
from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.models.prompts import load_prompt
from graphrag_pipeline_tests.model_server import Fault, ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.models.model_clients import chat_model, in_loop

TEXT = "Ada Lovelace met Charles Babbage in London. Mary Somerville taught Ada Lovelace in Jedburgh. "


def plan(max_gleanings: int) -> ExtractionPlan:
    prompts = load_prompt(None, "extract_graph"), load_prompt(None, "extract_graph_continue")
    return ExtractionPlan(*prompts, entity_types=("PERSON", "GEO"), max_gleanings=max_gleanings)


@pytest.mark.parametrize("options", [{}, {"context_window": 2048}], ids=["learnt", "set"])
def test_a_gleaning_forgets_the_start_of_its_history(tmp_path: Path, options: dict[str, Any]) -> None:
    def answer(request: ReceivedRequest) -> str | Fault:
        if request.kind == "gleaning" and "Person 0<|>" in request.prompt:
            message = "request (2300 tokens) exceeds the available context size (2048 tokens), try increasing it"
            return Fault("400", message=message)
        numbers = range(45) if request.kind == "extraction" else range(45, 46)
        records = [f'("entity"<|>Person {n}<|>PERSON<|>Person {n} lives in town {n} by the sea.)' for n in numbers]
        return "\n##\n".join(records) + "\n<|COMPLETE|>"

    with running_model_server(answer, dialect="llama.cpp", max_context_tokens=2048) as server:
        model = chat_model(server.base_url, tmp_path, max_reply_tokens=4000, **options)
        found = in_loop(extract_text_unit("u1", TEXT, plan(1), model))
        answered = [call for call in server.calls if call.status == 200]
    assert found.problems == {"history of a gleaning shortened to the model's window": 1}
    assert len(found.entities) == 46 and found.n_replies == 2
    history = (answered[-1].body or {})["messages"][1]["content"]
    assert history.startswith("\u2026") and "Person 44" in history and "Person 0<|>" not in history
    assert all(call.prompt_tokens + call.completion_tokens <= 2048 for call in answered)


def test_a_gleaning_without_room_is_left_out_and_counted(tmp_path: Path) -> None:
    with running_model_server(max_context_tokens=2048, dialect="llama.cpp") as server:
        model = chat_model(server.base_url, tmp_path, max_reply_tokens=4000, context_window=2048)
        found = in_loop(extract_text_unit("u1", TEXT * 32, plan(1), model))
    assert found.entities and found.problems.get("gleaning left out, which does not fit the model's window") == 1
    assert server.count() == 1


@pytest.mark.parametrize("options", [{}, {"context_window": 2048}], ids=["learnt", "set"])
def test_a_text_unit_that_is_longer_than_the_window_is_read_in_parts(tmp_path: Path, options: dict[str, Any]) -> None:
    numbered = [
        f"Ada Lovelace met Person {n} in London in the spring of that year, so people say. " for n in range(150)
    ]

    def answer(request: ReceivedRequest) -> str:
        passage = request.prompt.rpartition("<text>")[2]
        told = [n for n in range(150) if f"Person {n} " in passage]
        records = [f'("entity"<|>Person {n}<|>PERSON<|>A guest.)' for n in (told[0], told[-1])] if told else []
        return "\n##\n".join(records) + "\n<|COMPLETE|>"

    with running_model_server(answer, dialect="llama.cpp", max_context_tokens=2048) as server:
        model = chat_model(server.base_url, tmp_path, max_reply_tokens=500, **options)
        found = in_loop(extract_text_unit("u1", "".join(numbered), plan(0), model))
        n_calls = server.count()
        assert in_loop(extract_text_unit("u1", "".join(numbered), plan(0), model)) == found
    names = [row["name"] for row in found.entities]
    assert names[0] == "Person 0" and names[-1] == "Person 149" and len(names) == 2 * found.n_replies > 2
    assert [row["position"] for row in found.entities] == list(range(len(names)))
    assert found.problems == {"text unit read in parts, which fit the model's window": 1}
    assert server.count() == n_calls or not options, "stored replies serve the parts"
    assert not options or all(call.status == 200 for call in server.calls)


def test_a_text_unit_that_is_much_longer_than_the_window_fails_with_that_reason(tmp_path: Path) -> None:
    with running_model_server(max_context_tokens=1400) as server:
        model = chat_model(server.base_url, tmp_path)
        with pytest.raises(CallFailedError, match=r"1,400 tokens; .* lower text_units\.size"):
            in_loop(extract_text_unit("u1", TEXT * 400, plan(1), model))


@pytest.mark.parametrize("options", [{}, {"context_window": 1024}], ids=["learnt", "set"])
def test_descriptions_that_do_not_fit_are_summarized_in_more_calls(tmp_path: Path, options: dict[str, Any]) -> None:
    descriptions = tuple(
        f"Fact {n} about Ada says that she met person {n} in {1800 + n} in town {n}." for n in range(60)
    )
    subject = Subject("k", "entity", "ADA", descriptions)
    seen: set[str] = set()

    def answer(request: ReceivedRequest) -> str:
        block = request.prompt.partition("Descriptions:\n")[2]
        seen.update(text for text in descriptions if json.dumps(text) in block)
        return "Ada met many persons."

    with running_model_server(answer, dialect="llama.cpp", max_context_tokens=1024) as server:
        model = chat_model(server.base_url, tmp_path, max_reply_tokens=200, **options)
        summary = SummaryPlan(load_prompt(None, "summarize_descriptions"), max_words=100)
        row = in_loop(summarize_subject(subject, summary, model))
        refused = sum(call.status == 400 for call in server.calls)
    assert row["description"] == "Ada met many persons." and seen == set(descriptions)
    assert refused == (0 if options else 1)
