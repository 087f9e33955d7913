"""OpenTelemetry spans: one per attempt at a request, with its tokens, money and error, below one per stage or query.

Names are those of OpenTelemetry's semantic conventions for generative AI; what those have no name for starts with
`graphrag.`. A span shows no prompt, reply or key. The package opentelemetry is optional: without it, and without a
TracerProvider, nothing is sent. Keep out: counting (`accounting.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from graphrag_pipeline.models.endpoints.problems import Problem
from graphrag_pipeline.settings.models import ChatModelSettings, EmbeddingModelSettings

ABANDONED = "abandoned"
"""`error.type` of an attempt that was cancelled or whose stream broke after somebody had read of it."""


class AttemptSpan:
    """The span of one attempt; tells nothing where there is none. An attempt that ends untold failed."""

    def __init__(self, span: Any = None) -> None:
        self._span = span
        self._has_outcome = False

    def add_answer(self, input_tokens: int, output_tokens: int, cost: float | None) -> None:
        """Tell that the model answered: tokens of prompt and completion, and US dollars if the price is known."""
        self._has_outcome = True
        if self._span is not None:
            tokens = {"gen_ai.usage.input_tokens": input_tokens, "gen_ai.usage.output_tokens": output_tokens}
            self._span.set_attributes(tokens | ({} if cost is None else {"graphrag.cost_usd": cost}))

    def add_problem(self, problem: Problem) -> None:
        """Tell that the attempt failed; `error.type` is the HTTP status, or what kind of failure it was."""
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
    stage: str, settings: ChatModelSettings | EmbeddingModelSettings, attempt: int
) -> Iterator[AttemptSpan]:
    """A span around one attempt at a request, if the model's settings want it.

    Args:
        stage: what the model is used for.
        attempt: 1 for the first; more is a retry.
    """
    tracer = _find_tracer() if settings.use_spans else None
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
        record_exception=False,  # an exception of the SDK holds the key in its request
        set_status_on_exception=False,
    ) as span:
        told = AttemptSpan(span)
        try:
            yield told
        finally:
            told.close()


@contextmanager
def parent_span(is_wanted: bool, name: str, **attributes: str) -> Iterator[None]:
    """A span around a stage run or a query, above those of its requests.

    Args:
        name: such as `stage graph`.
        attributes: written as `graphrag.` and their name.
    """
    tracer = _find_tracer() if is_wanted else None
    if tracer is None:
        yield
        return
    with tracer.start_as_current_span(name, attributes={f"graphrag.{key}": value for key, value in attributes.items()}):
        yield


@functools.cache
def _find_tracer() -> Any | None:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("graphrag_pipeline")
