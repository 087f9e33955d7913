"""A chat model whose replies are counted, stored ones like new ones."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from graphrag_pipeline.models.ports import ChatReply, ChatRequest, StreamingChatModel

T = TypeVar("T")


@dataclass
class Meter:
    """Usage of models: replies, prompt and completion tokens, cost in US dollars, and replies without a price."""

    replies: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def add(self, reply: ChatReply[Any]) -> None:
        with _lock:
            self.replies += 1
            self.prompt_tokens += reply.prompt_tokens
            self.completion_tokens += reply.completion_tokens
            self.cost += reply.cost or 0.0
            self.unpriced += reply.cost is None

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


_lock = threading.Lock()  # one for all meters: it is held for a microsecond, and a meter stays plain data


class MeteredModel:
    """Implements `ports.StreamingChatModel`; streamed replies are not counted.

    Args:
        repeat: added to the repeat number of every request.
    """

    def __init__(self, model: StreamingChatModel, meter: Meter, repeat: int = 0) -> None:
        self._model = model
        self._meter = meter
        self._repeat = repeat
        self.stage, self.fingerprint, self.max_concurrency = model.stage, model.fingerprint, model.max_concurrency

    async def complete(self, request: ChatRequest[T]) -> ChatReply[T]:
        reply = await self._model.complete(self._repeated(request))
        self._meter.add(reply)
        return reply

    def recall(self, requests: Sequence[ChatRequest[T]]) -> list[ChatReply[T] | None]:
        replies = self._model.recall([self._repeated(request) for request in requests])
        for reply in replies:
            if reply is not None:
                self._meter.add(reply)
        return replies

    def stream(self, request: ChatRequest[Any]) -> AsyncIterator[str]:
        return self._model.stream(self._repeated(request))

    def _repeated(self, request: ChatRequest[T]) -> ChatRequest[T]:
        return replace(request, repeat=request.repeat + self._repeat) if self._repeat else request
