"""Stored replies of one chat model that can be used: whole ones, and ones that were cut off.

A whole reply is stored under the key of its request, whatever cap and window were in force. A reply that was cut off
has a key with both: if the cap is raised, only such replies are requested again.

Keep out: the store itself (`models/cache.py`), rejected replies (`judged_replies.py`), and parsing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.cache import ResponseCache, StoredReply
from graphrag_pipeline.models.ports import CUT_OFF, ChatRequest
from graphrag_pipeline.models.requests import request_key_of
from graphrag_pipeline.settings.models import ChatModelSettings


class ReplyStore:
    """The stored replies of one model.

    Args:
        cap: most tokens of a reply, if the request sets none.
    """

    def __init__(self, settings: ChatModelSettings, cache: ResponseCache, cap: int | None) -> None:
        self._settings = settings
        self._cache = cache
        self._cap = cap

    def key_of(self, request: ChatRequest[Any]) -> str:
        """Return the key of a whole reply."""
        return request_key_of(self._settings.model, self._settings.parameters, request, self._settings.cache_name)

    def read(self, requests: Sequence[ChatRequest[Any]], is_cut: bool) -> list[tuple[str, StoredReply] | None]:
        """Return the key and the stored reply of each request: a whole or rejected one, or else one that was cut."""
        keys = [self.key_of(request) for request in requests]
        if is_cut:
            keys = [self._cut_key(key, request) for key, request in zip(keys, requests, strict=True)]
        found = self._cache.read(keys) if keys else {}
        return [(key, found[key]) if key in found else None for key in keys]

    async def write(self, request: ChatRequest[Any], reply: StoredReply) -> str:
        """Store a reply that can be used; return its key when it is stored."""
        key = self.key_of(request)
        key = self._cut_key(key, request) if reply.finish_reason == CUT_OFF else key
        await asyncio.wrap_future(self._cache.write(key, reply))
        return key

    def _cut_key(self, key: str, request: ChatRequest[Any]) -> str:
        return stable_hash("cut", key, str(request.cap_of(self._cap)), str(self._settings.context_window))
