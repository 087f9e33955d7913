"""The JSON of OpenAI's protocol: completions, chunks, vectors, models, errors. Pure: no clock, no random numbers.

Ids come from the request's key and `created` is a constant, so the same request gives the same bytes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_CREATED = 1_735_689_600  # 2025-01-01
_N_STREAM_PARTS = 12
_FIRST_DELTAS = [{"role": "assistant", "content": ""}]
_ERROR_TYPES = {400: "invalid_request_error", 401: "invalid_request_error", 404: "invalid_request_error",
                413: "invalid_request_error", 429: "requests"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of the model. `text` None with a `refusal` is a refusal; `vectors` answer an embedding request.

    `latency_s` and the token counts replace the server's own when given. `tool` names a tool that is called with the
    text as its arguments. `scores` answer a request to rerank. `thoughts` are sent in `reasoning_content`; with
    `are_parts`, the content is a list of parts with thinking parts among them.
    """

    text: str | None = None
    finish_reason: str = "stop"
    refusal: str | None = None
    vectors: Sequence[Sequence[float] | np.ndarray] | None = None
    latency_s: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    tool: str | None = None
    scores: Sequence[float] | None = None
    thoughts: str | None = None
    are_parts: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int

    def as_json(self) -> dict[str, Any]:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": 0},
        }


def completion(key: str, model: str, reply: Reply, usage: Usage | None, n: int = 1) -> dict[str, Any]:
    """A whole chat completion with `n` equal choices."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    if reply.thoughts is not None:
        message["reasoning_content"] = reply.thoughts
    if reply.are_parts:
        message["content"] = _parts(reply.text or "")
    finish_reason = reply.finish_reason
    if reply.tool is not None:
        function = {"name": reply.tool, "arguments": reply.text or ""}
        message |= {
            "content": None,
            "tool_calls": [{"id": f"call_{key[:12]}", "type": "function", "function": function}],
        }
        finish_reason = "tool_calls" if finish_reason == "stop" else finish_reason
    choices = [{"index": i, "message": message, "finish_reason": finish_reason, "logprobs": None} for i in range(n)]
    return _completion(key, model, "chat.completion", choices) | _usage(usage)


def rankings(path: str, model: str, scores: Sequence[float], top_n: int | None, n_prompt: int) -> dict[str, Any]:
    """Scores of documents as vLLM's `/score` gives them, in order, or as `/rerank` endpoints do, best first."""
    usage = {"usage": {"prompt_tokens": n_prompt, "total_tokens": n_prompt}}
    if path.endswith("/score"):
        data = [{"index": i, "object": "score", "score": score} for i, score in enumerate(scores)]
        return {"object": "list", "model": model, "data": data, **usage}
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:top_n]
    return {"model": model, "results": [{"index": i, "relevance_score": scores[i]} for i in order], **usage}


def stream_parts(
    key: str, model: str, reply: Reply, usage: Usage | None, has_null_deltas: bool = False
) -> Iterator[bytes]:
    """Server-sent events of the same completion in up to 12 pieces of text; a usage event when `usage` is given.

    With `has_null_deltas`, the first delta has a role and a content of null, and the second delta is null.
    """
    field, text = ("refusal", reply.refusal) if reply.text is None else ("content", reply.text)
    text = text or ""
    if reply.tool is not None:
        field = "arguments"
    step = max(1, -(-len(text) // _N_STREAM_PARTS))
    pieces = [text[i : i + step] for i in range(0, len(text), step)]
    first: list[Any] = [{"role": None, "content": None}, None] if has_null_deltas else _FIRST_DELTAS
    if reply.are_parts:
        deltas = [*first, {"content": _parts("")}, *({"content": _text_part(piece)} for piece in pieces)]
    else:
        deltas = [*first, *(_delta(field, piece) for piece in pieces)]
    if reply.thoughts is not None:
        deltas.append({"reasoning_content": reply.thoughts})
    more: dict[str, Any] = {} if usage is None else {"usage": None}
    for delta in deltas:
        yield _event(_chunk(key, model, [{"index": 0, "delta": delta, "finish_reason": None}]) | more)
    yield _event(_chunk(key, model, [{"index": 0, "delta": {}, "finish_reason": reply.finish_reason}]) | more)
    if usage is not None:
        yield _event(_chunk(key, model, []) | {"usage": usage.as_json()})
    yield b"data: [DONE]\n\n"


def _parts(text: str) -> list[dict[str, Any]]:
    thoughts = [{"type": "text", "text": "A draft: " + text}]
    return [{"type": "thinking", "thinking": thoughts}, {"type": "reasoning", "text": "Hm."}, *_text_part(text)]


def _text_part(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


def _delta(field: str, piece: str) -> dict[str, Any]:
    return {field: piece} if field != "arguments" else {"tool_calls": [{"index": 0, "function": {field: piece}}]}


def embeddings(
    model: str, vectors: Sequence[Any], encoding_format: str, n_tokens: int, has_usage: bool = True
) -> dict[str, Any]:
    """One item per vector, in order; `encoding_format` is `float` or `base64` (little-endian float32)."""
    arrays = [np.asarray(vector, dtype="<f4") for vector in vectors]
    values = [
        base64.b64encode(array.tobytes()).decode() if encoding_format == "base64" else array.tolist()
        for array in arrays
    ]
    data = [{"object": "embedding", "index": i, "embedding": value} for i, value in enumerate(values)]
    usage = {"usage": {"prompt_tokens": n_tokens, "total_tokens": n_tokens}} if has_usage else {}
    return {"object": "list", "data": data, "model": model} | usage


def models(names: Sequence[str], more: Mapping[str, Any]) -> dict[str, Any]:
    """The list of models; `more` holds other fields of each."""
    entry = {"object": "model", "created": _CREATED, "owned_by": "model_server", **more}
    return {"object": "list", "data": [{"id": name, **entry} for name in names]}


def error(
    status: int,
    message: str,
    code: str | None = None,
    param: str | None = None,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """OpenAI's error body; a 5xx is a `server_error`. `more` replaces fields and adds others."""
    kind = "insufficient_quota" if code == "insufficient_quota" else _ERROR_TYPES.get(status, "server_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code, **(more or {})}}


def _usage(usage: Usage | None) -> dict[str, Any]:
    return {} if usage is None else {"usage": usage.as_json()}


def _completion(key: str, model: str, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": f"chatcmpl-{key[:24]}", "object": kind, "created": _CREATED, "model": model, "choices": choices}


def _chunk(key: str, model: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return _completion(key, model, "chat.completion.chunk", choices)


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
