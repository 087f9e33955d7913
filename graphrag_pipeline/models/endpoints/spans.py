"""OpenTelemetry spans: one per attempt at a request, with tokens, cost and error, below one per stage or query.

Names follow OpenTelemetry's semantic conventions for generative AI; other names start with `graphrag.`. A span contains
no prompt, reply or key. The package opentelemetry is optional. Without it, or without a TracerProvider, spans are not
sent.

Keep out: statistics (`models/accounting.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from graphrag_pipeline.models.endpoints.problems import Problem
from graphrag_pipeline.settings.models import ChatModelSettings, EmbeddingModelSettings, RerankModelSettings

ABANDONED = "abandoned"
"""`error.type` of an attempt that was cancelled, or whose stream broke after text was passed on."""


class AttemptSpan:
    """The span of one attempt, or no span. An attempt without an outcome counts as failed."""

    def __init__(self, span: Any = None) -> None:
        self._span = span
        self._has_outcome = False

    def add_answer(self, input_tokens: int, output_tokens: int, cost: float | None) -> None:
        """Record an answer: tokens of prompt and completion, and US dollars if the price is known."""
        self._has_outcome = True
        if self._span is not None:
            tokens = {"gen_ai.usage.input_tokens": input_tokens, "gen_ai.usage.output_tokens": output_tokens}
            self._span.set_attributes(tokens | ({} if cost is None else {"graphrag.cost_usd": cost}))

    def add_problem(self, problem: Problem) -> None:
        """Record a failure; `error.type` is the HTTP status, or the kind of failure."""
        self._has_outcome = True
        if problem.status is not None and self._span is not None:
            self._span.set_attribute("http.response.status_code", problem.status)
        self._fail(problem.kind, str(problem))

    def close(self) -> None:
        if not self._has_outcome:
            self._fail(ABANDONED, "the request was abandoned")

    def _fail(self, kind: str, message: str) -> None:
        if self._span is not None:
            from opentelemetry.trace import StatusCode

            self._span.set_attribute("error.type", kind)
            self._span.set_status(StatusCode.ERROR, message)


@contextmanager
def attempt_span(
    stage: str, settings: ChatModelSettings | EmbeddingModelSettings | RerankModelSettings, attempt: int
) -> Iterator[AttemptSpan]:
    """Open a span around one attempt at a request, if the process has OpenTelemetry.

    Args:
        stage: the stage that uses the model.
        attempt: 1 for the first attempt, more for retries.
    """
    tracer = _find_tracer()
    if tracer is None:
        yield AttemptSpan()
        return
    from opentelemetry.trace import SpanKind

    operation = "chat" if isinstance(settings, ChatModelSettings) else "embeddings"
    address = urlsplit(settings.base_url)
    attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": "azure.ai.openai" if settings.api_version else "openai",
        "gen_ai.request.model": settings.model,
        "server.address": address.hostname or settings.base_url,
        "server.port": address.port or (443 if address.scheme == "https" else 80),
        "graphrag.stage": stage,
        "graphrag.attempt": attempt,
    }
    with tracer.start_as_current_span(
        f"{operation} {settings.model}",
        kind=SpanKind.CLIENT,
        attributes=attributes,
        record_exception=False,  # the request in an exception of the SDK holds the key
        set_status_on_exception=False,
    ) as span:
        recorded = AttemptSpan(span)
        try:
            yield recorded
        finally:
            recorded.close()


@contextmanager
def parent_span(name: str, **attributes: str) -> Iterator[None]:
    """Open a span around a stage run or a query, above the spans of its requests.

    Args:
        name: name of the span, such as `stage graph`.
        attributes: values by name; `graphrag.` is put before each name.
    """
    tracer = _find_tracer()
    if tracer is None:
        yield
        return
    with tracer.start_as_current_span(name, attributes={f"graphrag.{key}": value for key, value in attributes.items()}):
        yield


def _find_tracer() -> Any | None:
    """Return the tracer of this process; what sets a TracerProvider has imported opentelemetry before."""
    trace = sys.modules.get("opentelemetry.trace")
    return trace.get_tracer("graphrag_pipeline") if trace else None
