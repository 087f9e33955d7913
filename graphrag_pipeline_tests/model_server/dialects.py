"""Dialects of real servers: how each refuses a request that is too long, and how it lists its models.

| dialect | a chat request over the window | a text too long to embed | window in the list of models |
|---|---|---|---|
| `openai` | 400 `context_length_exceeded` | the same | no |
| `llama.cpp` | 400 with `n_ctx`, `exceed_context_size_error` | 500 "input is too large to process" | `meta.n_ctx` |
| `vllm` | 400; the tokens that the request allows for the reply count, too | 400 | `max_model_len` |
| `ollama` | 500 "exceeds the available context size" | 400 "input length exceeds the context length" | no |
| `tei` | 413 "must have less than" | the same | no |

A refusal of a form of structured outputs (`json_schema`, `json_object`, `tools`) is worded as OpenAI's, but for tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from graphrag_pipeline_tests.model_server.faults import Fault

Dialect = Literal["openai", "llama.cpp", "vllm", "ollama", "tei"]
DIALECTS = get_args(Dialect)
FORMATS = ("json_schema", "json_object", "tools")
"""Forms of structured outputs that a request may ask for."""

_TRAINED = 4  # a llama.cpp server usually serves a part of the window that its model was trained with


def too_long(dialect: Dialect, n_tokens: int, limit: int, n_reserved: int = 0) -> Fault:
    """Return the refusal of a chat request of `n_tokens` tokens that allows `n_reserved` tokens for its reply."""
    match dialect:
        case "llama.cpp":
            message = (
                f"request ({n_tokens} tokens) exceeds the available context size ({limit} tokens), try increasing it"
            )
            return _error(400, message, "exceed_context_size_error", {"n_prompt_tokens": n_tokens, "n_ctx": limit})
        case "vllm":
            message = (
                f"This model's maximum context length is {limit} tokens. However, you requested {n_tokens + n_reserved}"
                f" tokens ({n_tokens} in the messages, {n_reserved} in the completion). Please reduce the length of "
                "the messages or completion."
            )
            return _error(400, message, "BadRequestError")
        case "ollama":
            return _error(500, "the prompt exceeds the available context size, try increasing the context", "api_error")
        case "tei":
            return _not_less(n_tokens, limit)
    return _openai(n_tokens, limit, "messages")


def too_large(dialect: Dialect, n_tokens: int, limit: int) -> Fault:
    """Return the refusal of a text of `n_tokens` tokens to embed."""
    match dialect:
        case "llama.cpp":
            message = (
                f"input ({n_tokens} tokens) is too large to process. increase the physical batch size "
                f"(current batch size: {limit})"
            )
            return _error(500, message, "server_error")
        case "ollama":
            return _error(400, "the input length exceeds the context length", "api_error")
        case "tei":
            return _not_less(n_tokens, limit)
    return _openai(n_tokens, limit, "input")


def refused_format(name: str) -> Fault:
    """Return the refusal of a form of structured outputs."""
    if name == "tools":
        return _error(400, "this model does not support tools", "api_error")
    message = f"Invalid parameter: 'response_format' of type '{name}' is not supported with this model."
    return Fault("400", message=message, param="response_format")


def describe_window(dialect: Dialect, window: int | None) -> Mapping[str, Any]:
    """Return the fields with the window in the entry of a model; none where the dialect has none."""
    if window is None:
        return {}
    if dialect == "llama.cpp":
        return {"meta": {"n_ctx": window, "n_ctx_train": _TRAINED * window, "n_embd": 896}}
    return {"max_model_len": window} if dialect == "vllm" else {}


def _openai(n_tokens: int, limit: int, param: str) -> Fault:
    message = (
        f"This model's maximum context length is {limit} tokens, however you requested {n_tokens} tokens. "
        f"Please reduce the length of the {param}."
    )
    return Fault("too-long", message=message, param=param)


def _not_less(n_tokens: int, limit: int) -> Fault:
    message = f"Input validation error: `inputs` must have less than {limit} tokens. Given: {n_tokens}"
    return _error(413, message, "Validation")


def _error(status: int, message: str, kind: str, more: Mapping[str, Any] | None = None) -> Fault:
    return Fault(str(status), message=message, more={"code": status, "type": kind, **(more or {})})
