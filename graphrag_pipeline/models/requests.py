"""The identity of a request: equal keys mean equal requests, whoever sends them and wherever the endpoint is.

The key is of what decides the reply: model, parameters, messages, response format, repeat number. Keep out: the
address, the key, time-outs and limits, and how a request is put to an endpoint that lacks a feature.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.ports import ChatRequest

# What no reply and no prompt may hold: JSON cannot carry lone surrogates as UTF-8, nor PostgreSQL NUL.
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")


def canonical_json(value: object) -> str:
    """One text per value: keys sorted, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def request_key_of(model: str, parameters: Mapping[str, Any], request: ChatRequest[Any]) -> str:
    """32 hex digits of model, parameters, messages, response format and repeat number."""
    messages = [{"role": message["role"], "content": message["content"]} for message in request.messages]
    return stable_hash(
        "chat", canonical_json([model, dict(parameters), messages, request.response_format, request.repeat])
    )


def sendable(text: str) -> str:
    """The text with NUL and lone surrogates shown as U+FFFD."""
    return _UNSENDABLE.sub("\ufffd", text)
