"""Chat model that answers from stored replies only and records the requests without one.

Steps run with it to find the requests that they would send (`inspection/estimates.py`) or once sent
(`pipeline/document_traces.py`).

Keep out: sending.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from graphrag_pipeline.models.pool import Work, run_all
from graphrag_pipeline.models.ports import CallFailedError, ChatModel, ChatReply, ChatRequest

T = TypeVar("T")


class StoredReplies:
    """The stored replies of a model; implements `ports.ChatModel`.

    Attributes:
        keys: keys of the stored replies that were requested.
        missing: the requests without a stored reply, in order.
        n_cached: number of replies returned.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.stage, self.fingerprint, self.max_concurrency = model.stage, model.fingerprint, 1
        self.keys: set[str] = set()
        self.missing: list[ChatRequest[Any]] = []
        self.n_cached = 0

    def run_works(self, works: Sequence[Work[Any]]) -> None:
        """Run works that request this model; a work ends at its first request without a stored reply."""
        run_all(self.stage, works, self.max_concurrency)

    async def complete(self, request: ChatRequest[T]) -> ChatReply[T]:
        """Return the stored reply.

        Raises:
            CallFailedError: no reply is stored.
        """
        [reply] = self.recall([request])
        if reply is None:
            self.missing.append(request)
            raise CallFailedError("not stored", "")
        return reply

    def recall(self, requests: Sequence[ChatRequest[T]]) -> list[ChatReply[T] | None]:
        """See `ports.ChatModel.recall`."""
        replies = self._model.recall(requests)
        found = [reply.request_key for reply in replies if reply is not None]
        self.keys.update(found)
        self.n_cached += len(found)
        return replies
