"""A chat model that sends nothing: it answers from the stored replies and keeps what was asked and is not there.

With it the steps that ask a model are walked to see what they would ask (`estimates.py`) or what they once asked
(`document_traces.py`). Keep out: sending.
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
        keys: of the stored replies asked for.
        missing: the requests without one, in the order they were asked.
        n_cached: how often a stored reply was given.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.stage, self.fingerprint, self.max_concurrency = model.stage, model.fingerprint, 1
        self.keys: set[str] = set()
        self.missing: list[ChatRequest[Any]] = []
        self.n_cached = 0

    def run_works(self, works: Sequence[Work[Any]]) -> None:
        """Do works that ask this model, as far as there are replies."""
        run_all(self.stage, works, self.max_concurrency)

    async def complete(self, request: ChatRequest[T]) -> ChatReply[T]:
        """The stored reply.

        Raises:
            CallFailedError: there is none.
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
