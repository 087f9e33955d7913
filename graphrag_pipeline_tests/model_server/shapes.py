"""Replies that a server of the tests gives beyond the demo model's: refusals, thoughts, parts, odd streams, rankings.

The plain shapes of OpenAI's protocol are in `graphrag_pipeline/demo_model/shapes.py`. Pure, as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphrag_pipeline.demo_model import shapes
from graphrag_pipeline.demo_model.vectors import embed, split_words

_ERROR_TYPES = {400: "invalid_request_error", 401: "invalid_request_error", 404: "invalid_request_error",
                413: "invalid_request_error", 429: "requests"}  # fmt: skip
_SCORED_DIMENSIONS = 256


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


def completion(key: str, model: str, reply: Reply, usage: dict[str, Any] | None, n: int = 1) -> dict[str, Any]:
    """A whole chat completion with `n` equal choices."""
    message = shapes.message_of(key, reply.text, reply.tool) | {"refusal": reply.refusal}
    if reply.thoughts is not None:
        message["reasoning_content"] = reply.thoughts
    if reply.are_parts and reply.tool is None:
        message["content"] = _parts(reply.text or "")
    body = shapes.completion(key, model, message, reply.finish_reason, usage or {}, n)
    return body if usage else {name: value for name, value in body.items() if name != "usage"}


def stream_parts(
    key: str, model: str, reply: Reply, usage: dict[str, Any] | None, has_null_deltas: bool = False
) -> Iterator[bytes]:
    """Server-sent events of the same completion in up to 12 pieces of text; a usage event when `usage` is given.

    With `has_null_deltas`, the first delta has a role and a content of null, and the second delta is null.
    """
    message = shapes.message_of(key, reply.text, reply.tool) | {"refusal": reply.refusal}
    deltas = shapes.deltas_of(message)
    if reply.are_parts:
        pieces = shapes.split_text(reply.text or "")
        deltas[1:] = [{"content": _parts("")}, *({"content": _text_part(piece)} for piece in pieces)]
    if has_null_deltas:
        deltas[:1] = [{"role": None, "content": None}, None]
    if reply.thoughts is not None:
        deltas.append({"reasoning_content": reply.thoughts})
    return shapes.stream(key, model, deltas, shapes.end_of(message, reply.finish_reason), usage)


def _parts(text: str) -> list[dict[str, Any]]:
    thoughts = [{"type": "text", "text": "A draft: " + text}]
    return [{"type": "thinking", "thinking": thoughts}, {"type": "reasoning", "text": "Hm."}, *_text_part(text)]


def _text_part(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


def score_texts(question: str, texts: Sequence[str | Sequence[int]]) -> list[float]:
    """Rerank by rule: the share of the question's longer words that a text has, then the cosine of both; 0 to 1."""
    wanted = {word for word in split_words(question) if len(word) > 3 or not word.isascii()}
    asked = embed(question, _SCORED_DIMENSIONS)
    found = [(wanted & set(split_words(str(text))), embed(text, _SCORED_DIMENSIONS)) for text in texts]
    return [
        round(0.9 * len(shared) / max(len(wanted), 1) + 0.1 * max(float(asked @ vector), 0.0), 6)
        for shared, vector in found
    ]


def rankings(path: str, model: str, scores: Sequence[float], top_n: int | None, n_prompt: int) -> dict[str, Any]:
    """Scores of documents as vLLM's `/score` gives them, in order, or as `/rerank` endpoints do, best first."""
    usage = {"usage": {"prompt_tokens": n_prompt, "total_tokens": n_prompt}}
    if path.endswith("/score"):
        data = [{"index": i, "object": "score", "score": score} for i, score in enumerate(scores)]
        return {"object": "list", "model": model, "data": data, **usage}
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:top_n]
    return {"model": model, "results": [{"index": i, "relevance_score": scores[i]} for i in order], **usage}


def models(names: Sequence[str], more: Mapping[str, Any]) -> dict[str, Any]:
    """The list of models; `more` holds other fields of each."""
    listed = shapes.models(names)
    return {**listed, "data": [entry | more for entry in listed["data"]]}


def error(
    status: int,
    message: str,
    code: str | None = None,
    param: str | None = None,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """OpenAI's error body; a 5xx is a `server_error`. `more` replaces fields and adds others."""
    kind = "insufficient_quota" if code == "insufficient_quota" else _ERROR_TYPES.get(status, "server_error")
    return {"error": {**shapes.error(message)["error"], "type": kind, "param": param, "code": code, **(more or {})}}
