"""Bad habits of small models and the refusals of real servers, as the SDK sees them."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import openai
import pytest

from graphrag_pipeline.models.prompts import load_prompt
from graphrag_pipeline_tests.model_server import Fault, ModelServer, Reply, running_model_server
from graphrag_pipeline_tests.model_server.dialects import Dialect
from graphrag_pipeline_tests.support.models.openai_calls import ask, connect

PASSAGE = "Ada Lovelace met Charles Babbage in London in 1833. She wrote the first program for his engine."
EXTRACTION = load_prompt(None, "extract_graph").render(
    input_text=PASSAGE, entity_types="PERSON, GEO", context="", language="Write in English."
)
REPORTS = "-----Reports-----\n[1] Engines of Charles Babbage.\n[2] Programs of Ada Lovelace."
RATINGS = load_prompt(None, "rate_reports").render(context_data=REPORTS, question="Who wrote programs?")
MAP = load_prompt(None, "global_search_map").render(
    context_data=REPORTS, max_length="100", language="Write in English."
)
SUMMARY = load_prompt(None, "summarize_descriptions").render(
    entity_name="ADA", description_list='["Ada wrote."]', max_length="50", language="Write in English."
)


def text_of(server: ModelServer, prompt: str, **options: Any) -> str:
    return ask(connect(server), prompt, **options).choices[0].message.content or ""


def test_an_endless_list_runs_until_the_most_tokens_of_a_reply() -> None:
    with running_model_server(faults={"endless-list": 1}) as server:
        choice = ask(connect(server), RATINGS, max_tokens=400).choices[0]
        numbers = [part.split(",")[0] for part in choice.message.content.split('"number": ')[1:]]
        assert choice.finish_reason == "length" and numbers[2:6] == ["1", "2", "3", "4"] and len(numbers) > 20
        assert text_of(server, EXTRACTION, max_tokens=2000).count("\n##\n") > 20
        assert server.calls[1].completion_tokens == 2000 and len(text_of(server, SUMMARY)) >= 40_000


def test_an_endless_reply_ends_with_the_window() -> None:
    with running_model_server(faults={"endless-list": 1}, max_context_tokens=500) as server:
        usage = ask(connect(server), RATINGS).usage
        assert usage.total_tokens == pytest.approx(500, abs=2)


def test_an_echoed_placeholder_is_the_example_of_the_prompt() -> None:
    with running_model_server(faults={"echoed-placeholder": 1}) as server:
        assert json.loads(text_of(server, RATINGS)).keys() == {"ratings"}
        assert "what the reports say about the question" in text_of(server, MAP)
        records = text_of(server, EXTRACTION)
        assert records.startswith('("entity"<|>') and "Ada" not in records and "<|>NAME<|>" not in records
        assert text_of(server, SUMMARY).startswith("The descriptions below")


def test_an_echoed_passage_is_the_passage_instead_of_a_reply() -> None:
    with running_model_server(faults={"echoed-passage": 1}) as server:
        assert text_of(server, EXTRACTION) == PASSAGE
        [point] = json.loads(text_of(server, MAP))["points"]
        assert "Programs of Ada Lovelace" in point["description"] and isinstance(point["score"], int)


def test_missing_brackets_leave_replies_open() -> None:
    with running_model_server(faults={"missing-brackets": 1}) as server:
        with pytest.raises(ValueError):
            json.loads(text_of(server, RATINGS))
        records = text_of(server, EXTRACTION)
        assert records.count('("entity"') >= 2 and ")\n" not in records


def test_a_stream_may_begin_with_null_deltas_and_a_reply_lack_its_usage() -> None:
    with running_model_server(faults={"null-delta": 1}) as server:
        deltas = [event.choices[0].delta for event in ask(connect(server), stream=True)]
        assert deltas[0].role is None and deltas[0].content is None and deltas[1] is None
        assert "".join(delta.content or "" for delta in deltas[2:]) == "Echo: Hello there"
    with running_model_server(faults={"no-usage": 1}) as server:
        assert ask(connect(server)).usage is None
        assert not any(
            event.usage for event in ask(connect(server), stream=True, stream_options={"include_usage": True})
        )
        body = connect(server).embeddings.with_raw_response.create(model="e", input="x").text
        assert "usage" not in json.loads(body)


CHAT: list[tuple[Dialect, int, str]] = [
    ("openai", 400, "maximum context length is 50 tokens"),
    ("llama.cpp", 400, "exceeds the available context size (50 tokens)"),
    ("vllm", 400, "(104 in the messages, 20 in the completion)"),
    ("ollama", 500, "exceeds the available context size"),
]


@pytest.mark.parametrize(("dialect", "status", "words"), CHAT, ids=[row[0] for row in CHAT])
def test_each_dialect_refuses_a_prompt_over_its_window(dialect: Dialect, status: int, words: str) -> None:
    with running_model_server(dialect=dialect, max_context_tokens=50) as server:
        with pytest.raises(openai.APIStatusError) as caught:
            ask(connect(server), "word " * 80, max_tokens=20)
        assert caught.value.status_code == status and words in str(caught.value)
        body: Any = caught.value.body
        assert body.get("n_ctx") == (50 if dialect == "llama.cpp" else None)


def test_vllm_counts_the_tokens_of_the_reply() -> None:
    for dialect, is_refused in (("llama.cpp", False), ("vllm", True)):
        with running_model_server(dialect=dialect, max_context_tokens=50) as server:
            replies: list[Any] = []
            with contextlib.suppress(openai.BadRequestError):
                replies.append(ask(connect(server), max_tokens=45))
            assert (not replies) == is_refused


TEXTS: list[tuple[Dialect, int]] = [("openai", 400), ("llama.cpp", 500), ("ollama", 400), ("tei", 413)]


@pytest.mark.parametrize(("dialect", "status"), TEXTS, ids=[row[0] for row in TEXTS])
def test_each_dialect_refuses_a_text_too_long_to_embed(dialect: Dialect, status: int) -> None:
    with running_model_server(dialect=dialect, max_input_tokens=5) as server:
        with pytest.raises(openai.APIStatusError) as caught:
            connect(server).embeddings.create(model="e", input="word " * 40)
        assert caught.value.status_code == status


def test_the_list_of_models_names_the_window_where_the_dialect_does() -> None:
    for dialect, name in (("llama.cpp", "meta"), ("vllm", "max_model_len"), ("openai", None)):
        with running_model_server(dialect=dialect, max_context_tokens=2048) as server:
            [entry, _] = [model.model_dump() for model in connect(server).models.list()]
            assert (entry.get("max_model_len"), (entry.get("meta") or {}).get("n_ctx")) == (
                2048 if name == "max_model_len" else None,
                2048 if name == "meta" else None,
            )


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"kind": {"enum": ["same"]}}, "required": ["kind"]}
FORMATS: list[tuple[str, dict[str, Any]]] = [
    ("json_schema", {"response_format": {"type": "json_schema", "json_schema": {"name": "v", "schema": SCHEMA}}}),
    ("json_object", {"response_format": {"type": "json_object"}}),
    ("tools", {"tools": [{"type": "function", "function": {"name": "reply", "parameters": SCHEMA}}]}),
]


@pytest.mark.parametrize(("name", "options"), FORMATS, ids=[row[0] for row in FORMATS])
def test_a_form_of_structured_outputs_is_served_refused_or_ignored(name: str, options: dict[str, Any]) -> None:
    with running_model_server() as server:
        message = ask(connect(server), **options).choices[0].message
        served = message.tool_calls[0].function.arguments if name == "tools" else message.content
        assert isinstance(json.loads(served), dict)
    with running_model_server(refused_formats=(name,)) as server, pytest.raises(openai.BadRequestError):
        ask(connect(server), **options)
    with running_model_server(ignored_formats=(name,)) as server:
        assert text_of(server, "Hello there", **options) == "Echo: Hello there"


def test_a_scripted_habit_concerns_one_request() -> None:
    with running_model_server([("echo", (Fault("missing-brackets"), Reply("{}", completion_tokens=7)))]) as server:
        assert text_of(server, "Hello") == "Echo: Hello" and ask(connect(server), "Hello").usage.completion_tokens == 7
