"""Bodies of requests in OpenAI's protocol: the conversation or the texts to embed, and their tokens. Pure functions.

All raise `UnreadableRequestError` where a required field is missing or has another form.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from graphrag_pipeline.demo_model.prompts import PromptMessages

_ROLE_TOKENS = 4  # of each message, beside its text


class UnreadableRequestError(ValueError):
    """A request that an endpoint answers with status 400; the message is for the client."""


def read_body(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a request; its counts are whole numbers above 0."""
    try:
        body = json.loads(content)
    except ValueError as error:
        raise UnreadableRequestError(f"We could not parse the JSON body of your request: {error}") from None
    if not isinstance(body, dict):
        raise UnreadableRequestError("The body of your request must be a JSON object.")
    for name in ("n", "dimensions", "max_tokens", "max_completion_tokens"):
        if (count := body.get(name)) is not None and not (isinstance(count, int) and count > 0):
            raise UnreadableRequestError(f"Invalid '{name}': it must be a whole number above 0")
    return body


def read_model(body: dict[str, Any]) -> str:
    """Return the name of the model that a request is for."""
    if not body.get("model"):
        raise UnreadableRequestError("you must provide a model parameter")
    return str(body["model"])


def hash_request(endpoint: str, model: str, content: bytes) -> str:
    """Return the key of a request: 32 hexadecimal digits, the same for the same bytes."""
    return hashlib.blake2b(f"{endpoint}\0{model}\0".encode() + content, digest_size=16).hexdigest()


def read_conversation(body: dict[str, Any]) -> PromptMessages:
    """Return the messages of a chat request, and the form that it asks for; of several tools, the first is called."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise UnreadableRequestError("'messages' must be an array of at least one message")
    pairs = tuple((str(message.get("role")), _text_of(message.get("content"))) for message in messages)
    if body.get("tools"):
        return _read_tool(pairs, body["tools"])
    response_format = body.get("response_format") or {}
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    wrapped = response_format.get("json_schema") if kind == "json_schema" else None
    schema = wrapped.get("schema") if isinstance(wrapped, dict) else None
    if kind == "json_schema" and not isinstance(schema, dict):
        raise UnreadableRequestError("Missing required parameter: 'response_format.json_schema.schema'")
    return PromptMessages(pairs, schema, wants_json=kind == "json_object")


def read_inputs(given: Any) -> tuple[str | Sequence[int], ...]:
    """Return the inputs to embed: one text, texts, one list of token ids, or lists of token ids."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list):
        raise UnreadableRequestError("'input' must be a string, an array of strings, or an array of token ids")
    if given and all(isinstance(item, int) for item in given):
        return (tuple(given),)
    if not all(isinstance(item, str) or _is_token_list(item) for item in given):
        raise UnreadableRequestError("'input' must hold strings, or arrays of token ids")
    return tuple(item if isinstance(item, str) else tuple(item) for item in given)


def reply_limit(body: dict[str, Any]) -> int | None:
    """Return the most tokens of a reply that a request sets itself."""
    return body.get("max_completion_tokens") or body.get("max_tokens")


def approximate_tokens(text: str) -> int:
    """Return UTF-8 bytes divided by 4, rounded up, which is accurate enough for English prose."""
    return math.ceil((len(text) if text.isascii() else len(text.encode("utf-8", "replace"))) / 4)


def count_message_tokens(conversation: PromptMessages, count: Callable[[str], int] = approximate_tokens) -> list[int]:
    """Return the tokens of each message, with those of its role."""
    return [count(text) + _ROLE_TOKENS for _, text in conversation.messages]


def count_input_tokens(
    inputs: Sequence[str | Sequence[int]], count: Callable[[str], int] = approximate_tokens
) -> list[int]:
    """Return the tokens of each input; a list of token ids counts itself."""
    return [count(item) if isinstance(item, str) else len(item) for item in inputs]


def _read_tool(messages: tuple[tuple[str, str], ...], tools: Any) -> PromptMessages:
    try:
        function = tools[0]["function"]
        return PromptMessages(messages, dict(function["parameters"]), tool=str(function["name"]))
    except (TypeError, LookupError, ValueError):
        raise UnreadableRequestError("'tools' must be an array of functions with a name and parameters") from None


def _is_token_list(item: Any) -> bool:
    return isinstance(item, list) and all(isinstance(token, int) for token in item)


def _text_of(content: Any) -> str:
    """Return the text of a message given as a string, as parts, or as nothing."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
