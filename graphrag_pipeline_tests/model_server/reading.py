"""Request bodies, and the reasons for which a real endpoint rejects them. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.demo_model.prompts import PromptMessages
from graphrag_pipeline.demo_model.replies import name_kind
from graphrag_pipeline.demo_model.requests import (
    count_input_tokens,
    count_message_tokens,
    hash_request,
    read_body,
    read_conversation,
    read_inputs,
    read_model,
    reply_limit,
)
from graphrag_pipeline_tests.model_server.dialects import Dialect, refused_format, too_large, too_long
from graphrag_pipeline_tests.model_server.faults import Fault
from graphrag_pipeline_tests.model_server.records import ReceivedRequest
from graphrag_pipeline_tests.model_server.wire import HttpRequest

RERANK_PATHS = ("/rerank", "/score")
_DEPLOYMENT = "/openai/deployments/"
_INPUT_KINDS = ("embedding", "rerank")
_FORMS = ("tools", "response_format")


def read_request(
    request: HttpRequest, is_chat: bool, attempt_of: Callable[[str], int], ignored_formats: Collection[str] = ()
) -> ReceivedRequest:
    """The request as scripts and the demo model see it; `attempt_of` numbers the requests with one key.

    Forms of structured outputs in `ignored_formats` have no effect.

    Raises:
        ValueError: the body is not a JSON object, or lacks a required field. The message is for the client.
    """
    body = read_body(request.body)
    is_azure = request.path.startswith(_DEPLOYMENT)
    model = request.path.removeprefix(_DEPLOYMENT).partition("/")[0] if is_azure else read_model(body)
    is_rerank = request.path.endswith(RERANK_PATHS)
    inputs = () if is_chat else _read_documents(body) if is_rerank else read_inputs(body.get("input"))
    heeded = {name: body[name] for name in body if name not in _FORMS} if format_of(body) in ignored_formats else body
    conversation = read_conversation(heeded) if is_chat else PromptMessages(())
    endpoint = "chat" if is_chat else "rerank" if is_rerank else "embedding"
    key = hash_request(endpoint, model, request.body)
    kind = name_kind(conversation) if is_chat else endpoint
    return ReceivedRequest(kind, request.path, model, body, key, attempt_of(key), request.headers, conversation, inputs)


def count_inputs(request: ReceivedRequest, count_tokens: Callable[[str], int]) -> list[int]:
    """Tokens of each message or of each input."""
    if request.kind in _INPUT_KINDS:
        return count_input_tokens(request.inputs, count_tokens)
    return count_message_tokens(request.conversation, count_tokens)


@dataclass(frozen=True, slots=True)
class Limits:
    """What an endpoint accepts; None means no limit.

    Attributes:
        max_context_tokens: tokens of a chat request; a reply ends there, too.
        max_input_tokens: tokens of one input to embed.
        max_batch_items: inputs of one request.
        refused_formats: forms of structured outputs that are refused.
    """

    max_context_tokens: int | None = None
    max_input_tokens: int | None = None
    max_batch_items: int = 2048
    dialect: Dialect = "openai"
    refused_formats: Collection[str] = ()


def find_refusal(request: ReceivedRequest, n_tokens: Sequence[int], limits: Limits) -> Fault | None:
    """Return why a real endpoint refuses a request: its form, its length, too many or empty inputs.

    Args:
        n_tokens: tokens of each message or input.
    """
    if request.kind not in _INPUT_KINDS:
        return _refuse_chat(request, sum(n_tokens), limits)
    if len(request.inputs) > limits.max_batch_items:
        message = (
            f"Invalid 'input': array too long. Expected at most {limits.max_batch_items} items, got "
            f"{len(request.inputs)}."
        )
        return Fault("400", message=message, param="input", code="array_above_max_length")
    if not request.inputs or any(len(item) == 0 for item in request.inputs):
        return Fault("400", message="Invalid 'input': it must not be empty.", param="input", code="invalid_value")
    limit = limits.max_input_tokens
    return None if limit is None or max(n_tokens) <= limit else too_large(limits.dialect, max(n_tokens), limit)


def _refuse_chat(request: ReceivedRequest, n_tokens: int, limits: Limits) -> Fault | None:
    form = format_of(request.body)
    if form in limits.refused_formats:
        return refused_format(form)
    window = limits.max_context_tokens
    n_reserved = (reply_limit(request.body) or 0) if limits.dialect == "vllm" else 0
    if window is None or n_tokens + n_reserved <= window:
        return None
    return too_long(limits.dialect, n_tokens, window, n_reserved)


def format_of(body: dict[str, Any]) -> str:
    """Return the form of structured outputs that a request asks for; empty for plain text."""
    if body.get("tools"):
        return "tools"
    return str((body.get("response_format") or {}).get("type") or "").replace("text", "")


def _read_documents(body: dict[str, Any]) -> tuple[str, ...]:
    """The documents of a request to rerank: `documents` with a `query`, or `text_2` with `text_1`."""
    query, documents = (body.get(a, body.get(b)) for a, b in (("query", "text_1"), ("documents", "text_2")))
    texts = [item.get("text") if isinstance(item, dict) else item for item in documents or ()]
    if not isinstance(query, str) or not query or not all(isinstance(text, str) for text in texts):
        raise ValueError("'query' must be a string, and 'documents' an array of strings or of objects with a text")
    return tuple(map(str, texts))
