"""The JSON of OpenAI's protocol: completions, chunks, vectors, models, errors. Pure: no clock, no random numbers.

Ids come from the request's key and `created` is a constant, so the same request gives the same bytes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from graphrag_pipeline.demo_model.requests import approximate_tokens

_CREATED = 1_735_689_600  # 2025-01-01
_N_STREAM_PARTS = 12


def usage_of(prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    """Return the usage of a chat request."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def message_of(key: str, text: str | None, tool: str | None = None) -> dict[str, Any]:
    """Return the assistant's message; with a tool, a call of it with the text as its arguments."""
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if tool is not None:
        function = {"name": tool, "arguments": text or ""}
        call = {"id": f"call_{key[:12]}", "type": "function", "function": function}
        message |= {"content": None, "tool_calls": [call]}
    return message


def cut_text(text: str, max_tokens: int | None, count: Callable[[str], int] = approximate_tokens) -> tuple[str, str]:
    """Return the text up to a number of tokens, and the finish reason: `stop`, or `length` where it was cut."""
    if max_tokens is None or (n_tokens := count(text)) <= max_tokens:
        return text, "stop"
    return text[: len(text) * max_tokens // n_tokens], "length"


def end_of(message: dict[str, Any], finish_reason: str) -> str:
    """Return the finish reason of a message; a whole call has one of its own."""
    return "tool_calls" if "tool_calls" in message and finish_reason == "stop" else finish_reason


def completion(
    key: str, model: str, message: dict[str, Any], finish_reason: str, usage: dict[str, Any], n: int = 1
) -> dict[str, Any]:
    """Return a whole chat completion with `n` equal choices."""
    reason = end_of(message, finish_reason)
    choices = [{"index": i, "message": message, "finish_reason": reason, "logprobs": None} for i in range(n)]
    return _completion(key, model, "chat.completion", choices) | {"usage": usage}


def split_text(text: str) -> list[str]:
    """Return up to 12 pieces of a text, as deltas of a stream hold them."""
    step = max(1, -(-len(text) // _N_STREAM_PARTS))
    return [text[i : i + step] for i in range(0, len(text), step)]


def deltas_of(message: dict[str, Any]) -> list[Any]:
    """Return a message in the parts of a stream: its role, then pieces of its text, of its refusal, or of its call."""
    if "tool_calls" in message:
        [call] = message["tool_calls"]
        begun = {**call, "index": 0, "function": {**call["function"], "arguments": ""}}
        pieces = split_text(call["function"]["arguments"])
        calls = [begun, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)]
        return [{"role": "assistant"}, *({"tool_calls": [call]} for call in calls)]
    field = "content" if message["refusal"] is None else "refusal"
    return [{"role": "assistant", "content": ""}, *({field: piece} for piece in split_text(message[field] or ""))]


def stream(
    key: str, model: str, deltas: Iterable[Any], finish_reason: str, usage: dict[str, Any] | None
) -> Iterator[bytes]:
    """Yield the events of a streamed completion: its deltas, the finish reason, and the usage unless it is None."""
    more: dict[str, Any] = {} if usage is None else {"usage": None}
    for delta in deltas:
        yield _event(_chunk(key, model, [{"index": 0, "delta": delta, "finish_reason": None}]) | more)
    yield _event(_chunk(key, model, [{"index": 0, "delta": {}, "finish_reason": finish_reason}]) | more)
    if usage is not None:
        yield _event(_chunk(key, model, []) | {"usage": usage})
    yield b"data: [DONE]\n\n"


def embeddings(model: str, vectors: Sequence[Any], encoding_format: str, n_tokens: int) -> dict[str, Any]:
    """Return one item per vector, in order; `encoding_format` is `float` or `base64` (little-endian float32)."""
    arrays = [np.asarray(vector, dtype="<f4") for vector in vectors]
    values = [
        base64.b64encode(array.tobytes()).decode() if encoding_format == "base64" else array.tolist()
        for array in arrays
    ]
    data = [{"object": "embedding", "index": i, "embedding": value} for i, value in enumerate(values)]
    usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
    return {"object": "list", "data": data, "model": model, "usage": usage}


def models(names: Sequence[str]) -> dict[str, Any]:
    """Return the list of models."""
    entry = {"object": "model", "created": _CREATED, "owned_by": "graphrag_pipeline"}
    return {"object": "list", "data": [{"id": name, **entry} for name in names]}


def error(message: str) -> dict[str, Any]:
    """Return the body of a refused request."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


def _completion(key: str, model: str, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": f"chatcmpl-{key[:24]}", "object": kind, "created": _CREATED, "model": model, "choices": choices}


def _chunk(key: str, model: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return _completion(key, model, "chat.completion.chunk", choices)


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
