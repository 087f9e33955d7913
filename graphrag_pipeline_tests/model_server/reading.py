"""Request bodies, and the reasons for which a real endpoint rejects them. Pure functions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline_tests.model_server.brains import name_kind
from graphrag_pipeline_tests.model_server.dialects import Dialect, refused_format, too_large, too_long
from graphrag_pipeline_tests.model_server.faults import Fault
from graphrag_pipeline_tests.model_server.prompts import PromptMessages
from graphrag_pipeline_tests.model_server.records import ReceivedRequest
from graphrag_pipeline_tests.model_server.wire import HttpRequest

RERANK_PATHS = ("/rerank", "/score")
_DEPLOYMENT = "/openai/deployments/"
_INPUT_KINDS = ("embedding", "rerank")


def read_request(
    request: HttpRequest, is_chat: bool, attempt_of: Callable[[str], int], ignored_formats: Collection[str] = ()
) -> ReceivedRequest:
    """The request as scripts and brains see it; `attempt_of` numbers the requests with one key.

    Forms of structured outputs in `ignored_formats` have no effect.

    Raises:
        ValueError: the body is not a JSON object, or lacks a required field. The message is for the client.
    """
    try:
        body = json.loads(request.body)
    except ValueError as error:
        raise ValueError(f"We could not parse the JSON body of your request: {error}") from None
    if not isinstance(body, dict):
        raise ValueError("The body of your request must be a JSON object.")
    is_azure = request.path.startswith(_DEPLOYMENT)
    model = request.path.removeprefix(_DEPLOYMENT).partition("/")[0] if is_azure else str(body.get("model") or "")
    if not model:
        raise ValueError("you must provide a model parameter")
    for name in ("n", "dimensions", "max_tokens", "max_completion_tokens"):
        if not isinstance(body.get(name), int | None) or body.get(name) == 0:
            raise ValueError(f"Invalid '{name}': it must be a whole number above 0")
    is_rerank = request.path.endswith(RERANK_PATHS)
    inputs = () if is_chat else _read_documents(body) if is_rerank else _read_inputs(body.get("input"))
    conversation = _read_conversation(body, ignored_formats) if is_chat else PromptMessages(())
    endpoint = "chat" if is_chat else "rerank" if is_rerank else "embedding"
    key = hashlib.blake2b(f"{endpoint}\0{model}\0".encode() + request.body, digest_size=16).hexdigest()
    kind = name_kind(conversation) if is_chat else endpoint
    return ReceivedRequest(kind, request.path, model, body, key, attempt_of(key), request.headers, conversation, inputs)


def count_inputs(request: ReceivedRequest, count_tokens: Callable[[str], int]) -> list[int]:
    """Tokens of each message or of each input; a list of token ids counts itself, a message 4 more for its role."""
    if request.kind in _INPUT_KINDS:
        return [count_tokens(item) if isinstance(item, str) else len(item) for item in request.inputs]
    return [count_tokens(text) + 4 for _, text in request.conversation.messages]


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


def reply_limit(body: dict[str, Any]) -> int | None:
    """Return the most tokens of a reply that a request sets itself."""
    return body.get("max_completion_tokens") or body.get("max_tokens")


def _read_inputs(given: Any) -> tuple[str | Sequence[int], ...]:
    """One text, texts, one list of token ids, or lists of token ids."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list):
        raise ValueError("'input' must be a string, an array of strings, or an array of token ids")
    if given and all(isinstance(item, int) for item in given):
        return (tuple(given),)
    if not all(isinstance(item, str) or _is_token_list(item) for item in given):
        raise ValueError("'input' must hold strings, or arrays of token ids")
    return tuple(item if isinstance(item, str) else tuple(item) for item in given)


def _read_documents(body: dict[str, Any]) -> tuple[str, ...]:
    """The documents of a request to rerank: `documents` with a `query`, or `text_2` with `text_1`."""
    query, documents = (body.get(a, body.get(b)) for a, b in (("query", "text_1"), ("documents", "text_2")))
    texts = [item.get("text") if isinstance(item, dict) else item for item in documents or ()]
    if not isinstance(query, str) or not query or not all(isinstance(text, str) for text in texts):
        raise ValueError("'query' must be a string, and 'documents' an array of strings or of objects with a text")
    return tuple(map(str, texts))


def _is_token_list(item: Any) -> bool:
    return isinstance(item, list) and all(isinstance(token, int) for token in item)


def _read_conversation(body: dict[str, Any], ignored_formats: Collection[str]) -> PromptMessages:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise ValueError("'messages' must be an array of at least one message")
    pairs = tuple((str(message.get("role")), _text_of(message.get("content"))) for message in messages)
    if format_of(body) in ignored_formats:
        return PromptMessages(pairs)
    if body.get("tools"):
        function = body["tools"][0]["function"]
        return PromptMessages(pairs, function["parameters"], tool=str(function["name"]))
    response_format = body.get("response_format") or {}
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    wrapped = response_format.get("json_schema") if kind == "json_schema" else None
    schema = wrapped.get("schema") if isinstance(wrapped, dict) else None
    if kind == "json_schema" and not isinstance(schema, dict):
        raise ValueError("Missing required parameter: 'response_format.json_schema.schema'")
    return PromptMessages(pairs, schema, wants_json=kind == "json_object")


def _text_of(content: Any) -> str:
    """The text of a message given as a string, as parts, or as nothing."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
