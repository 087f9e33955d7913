"""Two ways to get the replies of tuning: `ModelAsker` sends requests, `CostCounter` counts what they would cost.

`CostCounter` takes stored replies, counts the other requests and goes on with a guess, so that the cost of later
requests is known before, too. Keep out: requests and their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol, TypeVar

from graphrag_pipeline.engines.model.tuning.sample_text import SampleRequest
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.pool import Work, complete_all, run_all
from graphrag_pipeline.models.ports import ChatModel, ChatReply, ChatRequest, Failure
from graphrag_pipeline.models.shortening import complete_within_window
from graphrag_pipeline.text.tokens import count_tokens_each

T = TypeVar("T")

REPLY_TOKENS = {"corpus": 80, "entity types": 60, "rating scale": 90}
"""Guessed tokens of a reply, by the record of its request; for an example `EXAMPLE_TOKENS`."""
EXAMPLE_TOKENS = 600


class Asker(Protocol):
    """A way to get the replies of requests."""

    def ask(self, requests: Sequence[ChatRequest[T]], guess: T) -> Sequence[T | Failure]:
        """Return what the replies say, in order; `guess` is what a reply might say."""
        ...

    def ask_about_sample(self, request: SampleRequest[T], room: int | None, guess: T) -> T | Failure:
        """Return what the reply to a request about the sample says; the sample is cut to what the window holds.

        Args:
            room: most tokens of a prompt; None if the window is not known.

        Raises:
            PipelineError: the window has no room for a sample.
        """
        ...


class ModelAsker:
    """Sends requests to a chat model."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    def ask(self, requests: Sequence[ChatRequest[T]], guess: T) -> list[T | Failure]:
        """See `Asker.ask`.

        Raises:
            PipelineError: the endpoint gave no answer to a request; the next try asks for that one only.
        """
        return self._read(complete_all(self._model, requests))

    def ask_about_sample(self, request: SampleRequest[T], room: int | None, guess: T) -> T | Failure:
        """See `Asker.ask_about_sample`; a window that the endpoint tells by a refusal is kept to, too."""
        first = request.fit(room)
        work = Work(first.record, partial(complete_within_window, self._model, first, request.shorten))
        [found] = run_all(self._model.stage, [work], 1)
        [value] = self._read([found if isinstance(found, Failure) else found[0]])
        return value

    def _read(self, replies: Sequence[ChatReply[T] | Failure]) -> list[T | Failure]:
        unanswered = [reply for reply in replies if isinstance(reply, Failure) and reply.is_unanswered]
        if unanswered:
            raise PipelineError(
                f"{unanswered[0].record}: {unanswered[0].reason}; {len(unanswered)} of {len(replies)} calls were not "
                "answered. Nothing was written; replies so far are stored, so run the same command again"
            )
        return [reply if isinstance(reply, Failure) else reply.value for reply in replies]


class CostCounter:
    """Counts what requests would cost; implements `Asker` without sending."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.n_calls = self.n_cached = self.prompt_tokens = self.completion_tokens = 0

    def ask(self, requests: Sequence[ChatRequest[T]], guess: T) -> list[T | Failure]:
        """See `Asker.ask`."""
        return [
            self._count(request, reply, guess)
            for request, reply in zip(requests, self._model.recall(requests), strict=True)
        ]

    def ask_about_sample(self, request: SampleRequest[T], room: int | None, guess: T) -> T | Failure:
        """See `Asker.ask_about_sample`."""
        [found] = self.ask([request.fit(room)], guess)
        return found

    def _count(self, request: ChatRequest[T], reply: ChatReply[T] | None, guess: T) -> T:
        if reply is not None:
            self.n_cached += 1
            return reply.value
        self.n_calls += 1
        self.prompt_tokens += sum(count_tokens_each([message["content"] for message in request.messages]))
        self.completion_tokens += REPLY_TOKENS.get(request.record, EXAMPLE_TOKENS)
        return guess
