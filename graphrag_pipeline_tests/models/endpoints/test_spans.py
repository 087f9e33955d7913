"""Spans as OpenTelemetry's SDK exports them: the attributes of each attempt, and its parent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.endpoints import spans
from graphrag_pipeline.models.endpoints.spans import parent_span
from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.model_server import Fault, Reply, running_model_server
from graphrag_pipeline_tests.support.corpora.small_index import freeze
from graphrag_pipeline_tests.support.models.model_clients import ask, chat_model, complete, embedder, in_loop

FACT = Reply("fact: Marley was dead", prompt_tokens=11, completion_tokens=4)
KEY = "sk-test-0123456789abcdef-very-secret"


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """The exporter of this process's spans, set up as by `opentelemetry-instrument`."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def sent(exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    exporter.clear()
    yield exporter
    exporter.clear()


def attributes_of(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def test_each_attempt_shows_its_tokens_cost_and_error(tmp_path: Path, sent: InMemorySpanExporter) -> None:
    with running_model_server(lambda request: [Fault("500"), FACT]) as server:
        chat = chat_model(server.base_url, tmp_path, prompt_price=1.0, completion_price=1.0)
        complete(chat, ask("Who?"))
        complete(chat, ask("Who?"))  # from the store: no request, no span
        port = int(server.base_url.rpartition(":")[2].partition("/")[0])
    failed, answered = sent.get_finished_spans()
    request = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "test-chat",
        "server.address": "127.0.0.1",
        "server.port": port,
        "graphrag.stage": "extraction",
    }
    assert (failed.name, failed.kind) == ("chat test-chat", SpanKind.CLIENT)
    assert failed.status.status_code == StatusCode.ERROR
    error = {"graphrag.attempt": 1, "error.type": "500", "http.response.status_code": 500}
    assert attributes_of(failed) == request | error
    tokens = {"gen_ai.usage.input_tokens": 11, "gen_ai.usage.output_tokens": 4}
    cost = {"graphrag.attempt": 2, "graphrag.cost_usd": pytest.approx(15e-6)}
    assert attributes_of(answered) == request | tokens | cost
    assert answered.status.status_code == StatusCode.UNSET


def test_vectors_are_a_separate_operation(tmp_path: Path, sent: InMemorySpanExporter) -> None:
    with running_model_server() as server:
        embedder(server.base_url, tmp_path).embed(["Marley"])
    [span] = sent.get_finished_spans()
    attributes = attributes_of(span)
    assert (span.name, attributes["gen_ai.operation.name"]) == ("embeddings test-embedding", "embeddings")
    assert attributes["gen_ai.usage.input_tokens"] and attributes["graphrag.stage"] == "embeddings"


@pytest.mark.parametrize(("fault", "kind"), [("hang", "timeout"), ("garbage", "no_answer"), ("401", "401")])
def test_a_failed_attempt_names_the_kind_of_error(
    tmp_path: Path, sent: InMemorySpanExporter, fault: str, kind: str
) -> None:
    with running_model_server(lambda request: Fault(fault)) as server, pytest.raises((CallFailedError, PipelineError)):
        complete(chat_model(server.base_url, tmp_path, timeout_s=0.2, max_attempts=1), ask("Who?"))
    [span] = sent.get_finished_spans()
    assert (attributes_of(span)["error.type"], span.status.status_code) == (kind, StatusCode.ERROR)


def test_an_abandoned_attempt_is_an_error_and_no_span_holds_key_or_text(
    tmp_path: Path, sent: InMemorySpanExporter
) -> None:
    with running_model_server(lambda request: Fault("hang")) as server, pytest.raises(TimeoutError):
        chat = chat_model(server.base_url, tmp_path)
        in_loop(asyncio.wait_for(chat.complete(ask("Who is Marley?")), 0.3))
    [span] = sent.get_finished_spans()
    assert attributes_of(span)["error.type"] == spans.ABANDONED
    assert not span.events and KEY not in span.to_json() and "Marley" not in span.to_json()


def test_requests_are_children_of_the_stage_or_query_that_makes_them(
    tmp_path: Path, sent: InMemorySpanExporter
) -> None:
    with (
        running_model_server(lambda request: FACT) as server,
        parent_span("stage extracted_graph", partition="003"),
    ):
        complete(chat_model(server.base_url, tmp_path), ask("Who?"))
    request, stage = sent.get_finished_spans()
    assert request.parent is not None and request.parent.span_id == stage.context.span_id
    assert (stage.name, attributes_of(stage)) == ("stage extracted_graph", {"graphrag.partition": "003"})


def test_a_query_has_a_span(tmp_path: Path, sent: InMemorySpanExporter) -> None:
    snapshot = freeze(tmp_path)
    GraphIndex(snapshot, Settings(), load_static_embeddings()).search("Who is Scrooge?", method="basic")
    [span] = sent.get_finished_spans()
    assert (span.name, attributes_of(span)) == ("query basic", {"graphrag.snapshot": snapshot.id})


def test_spans_need_no_opentelemetry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    with running_model_server(lambda request: FACT) as server, parent_span("stage graph"):
        assert complete(chat_model(server.base_url, tmp_path), ask("Who?")).value
