"""A chat model for tests: replies come from a function of the conversation; requests are kept for inspection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from graphrag_pipeline.models.ports import (
    CallFailedError,
    ChatReply,
    ChatRequest,
    Message,
    ReplyFormatError,
    request_key_of,
)

T = TypeVar("T")


class ScriptedModel:
    """Answers with `reply(messages)`; a reply that its request refuses fails at once.

    Args:
        finish_reason: of all replies; `length` if they are cut off.
    """

    stage = "test"
    fingerprint = "scripted"
    max_concurrency = 4

    def __init__(self, reply: Callable[[list[Message]], str], finish_reason: str = "stop") -> None:
        self._reply = reply
        self._finish_reason = finish_reason
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest[T]) -> ChatReply[T]:
        self.requests.append(request)
        text = self._reply(list(request.messages))
        key = request_key_of("scripted", {}, request)
        try:
            value = request.parse(text)
        except ReplyFormatError as error:
            raise CallFailedError(str(error), key, text) from None
        return ChatReply(text, value, key, self._finish_reason, 0, 0, 0.0, None, False)

    def recall(self, requests: Sequence[ChatRequest[T]]) -> list[ChatReply[T] | None]:
        return [None] * len(requests)

    @property
    def prompts(self) -> list[str]:
        """The last turn of each request."""
        return [request.messages[-1]["content"] for request in self.requests]


def replies_in_turn(*texts: str) -> Callable[[list[Message]], str]:
    """The n-th text answers the n-th question of a conversation; the last one all that follow."""

    def reply(messages: list[Message]) -> str:
        n = sum(message["role"] == "assistant" for message in messages)
        return texts[min(n, len(texts) - 1)]

    return reply
