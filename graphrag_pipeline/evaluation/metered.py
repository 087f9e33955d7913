"""An index whose chat models count every reply, stored replies included.

The usage of a query counts what was paid now. A comparison needs what a condition costs without the response cache. An
A/A control needs a second, independent answer to the same question, so it sends the same requests under another repeat
number. Keep out: prompts and questions.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_pipeline.models.ports import ChatReply, ChatRequest
from graphrag_pipeline.query.index.graph_index import GraphIndex

if TYPE_CHECKING:
    from graphrag_pipeline.models.ports import StreamingChatModel

T = TypeVar("T")

SECOND_ANSWER = 1_000
"""Added to the repeat number of requests; ratings of one question are repeated at most 9 times."""


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


class MeteredIndex(GraphIndex):
    """The same snapshot and models as another index, metered.

    Args:
        index: an index that was opened with a root.
        repeat: added to the repeat number of every request.
    """

    def __init__(self, index: GraphIndex, repeat: int = 0) -> None:
        super().__init__(index.snapshot, index.settings, index.embedder, index._root)
        self._columns = index._columns
        self.meter = Meter()
        self._repeat = repeat

    def chat_model(self, section: str) -> StreamingChatModel:
        """Return the chat model of a settings section, metered."""
        return _MeteredModel(super().chat_model(section), self.meter, self._repeat)


class _MeteredModel:
    """Implements `ports.StreamingChatModel`."""

    def __init__(self, model: StreamingChatModel, meter: Meter, repeat: int) -> None:
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
