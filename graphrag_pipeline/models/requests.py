"""Request keys: equal keys mean equal requests, for every sender and endpoint address.

The key is a hash of everything that decides the reply: model, parameters, messages, response format, repeat number. The
address is not part of it, so that replies serve after a server has moved. `chat_model.cache_name` tells two models of
one name apart.

Keep out: the address, the API key, time-outs, limits, and the form of a request for an endpoint that lacks a feature.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.ports import ChatRequest

# Not allowed in replies and prompts: JSON cannot encode lone surrogates as UTF-8, and PostgreSQL cannot store NUL.
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")


def canonical_json(value: object) -> str:
    """Return JSON that is unique per value: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def request_key_of(model: str, parameters: Mapping[str, Any], request: ChatRequest[Any], cache_name: str = "") -> str:
    """Return 32 hex digits of model, parameters, messages, response format, repeat number and name of the cache."""
    messages = [{"role": message["role"], "content": message["content"]} for message in request.messages]
    parts = [model, dict(parameters), messages, request.response_format, request.repeat]
    return stable_hash("chat", canonical_json([*parts, cache_name] if cache_name else parts))


def sendable(text: str) -> str:
    """Return the text with NUL and lone surrogates replaced by U+FFFD."""
    return _UNSENDABLE.sub("\ufffd", text)
