"""Ports: what a step may ask of a model, whichever engine is behind it.

A step takes the port as an argument, so that a test passes a fake and a settings line another engine. Add a port when a
step needs a new kind of answer; keep out clients, settings and anything that knows one vendor.

A request carries the function that reads its reply. A reply that this function refuses is asked for once more, with the
reason, and is never stored; what is stored therefore always parses. One record whose calls fail is a `Failure`, data
like a reply; what fails for every record (a wrong key, a spent budget) is a `PipelineError` and ends the run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypedDict, TypeVar

from graphrag_pipeline.errors import PipelineError

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")

EXCERPT = 300  # characters of a reply that a failure keeps


class Message(TypedDict):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class ReplyFormatError(PipelineError):
    """A reply cannot be read: raised by the `parse` of a request, its message is told to the model and to the user."""


@dataclass(frozen=True)
class ChatRequest(Generic[T]):
    """One question to a chat model.

    Attributes:
        record: what is asked about (a text unit id, a title, a community): the address of a failure.
        messages: the conversation, ending with a user's turn.
        parse: reads the reply; raises ReplyFormatError (or ValueError, as pydantic does) with the reason it cannot.
        response_format: OpenAI's `response_format` (see `structured.json_schema_format`), or None for plain text.
        repeat: numbers independent answers to the same question.
    """

    record: str
    messages: Sequence[Message]
    parse: Callable[[str], T]
    response_format: Mapping[str, Any] | None = None
    repeat: int = 0


@dataclass(frozen=True)
class ChatReply(Generic[T]):
    """A validated reply.

    Attributes:
        value: what the request's `parse` made of `text`.
        request_key: identifies request, model and parameters; under it the reply is stored.
        prompt_tokens, completion_tokens: of all calls that led to this reply, a corrective one included.
        seconds: time of those calls, waiting between retries not included.
        cost: money paid for it, None if the model has no known price.
        is_cached: nothing was sent for it now.
    """

    text: str
    value: T
    request_key: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    cost: float | None
    is_cached: bool


@dataclass(frozen=True)
class Failure:
    """A record that got no usable reply.

    Attributes:
        stage, record: where.
        reason: why, in words for a person.
        reply: how the reply starts, empty if there was none.
        request_key: of the request that failed.
    """

    stage: str
    record: str
    reason: str
    reply: str
    request_key: str


class CallFailedError(PipelineError):
    """One record's call failed for good; the others go on (`pool` makes a Failure of it)."""

    def __init__(self, reason: str, request_key: str, reply: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.request_key = request_key
        self.reply = reply[:EXCERPT]


class ChatModel(Protocol):
    """Answers requests; equal requests get the stored reply."""

    @property
    def stage(self) -> str:
        """What the model is used for: the stage of its failures and of its stored replies."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes with the model or its parameters, not with the address it is served from."""
        ...

    @property
    def max_concurrency(self) -> int:
        """Most requests worth having under way at once."""
        ...

    async def complete(self, request: ChatRequest[T]) -> ChatReply[T]:
        """The stored reply, else a new one, stored before it is returned.

        Raises:
            CallFailedError: this request has no usable reply.
            PipelineError: no request can have one, or the budget is spent.
        """
        ...

    def recall(self, requests: Sequence[ChatRequest[T]]) -> list[ChatReply[T] | None]:
        """Stored replies in the order of the requests, None where there is none that still parses; sends nothing."""
        ...


class StreamingChatModel(ChatModel, Protocol):
    """A chat model whose reply somebody reads as it comes."""

    def stream(self, request: ChatRequest[Any]) -> AsyncIterator[str]:
        """The same reply in pieces as they come; a stored one in one piece. Stored when it has come whole.

        It is tried again until its first piece; what does not parse at the end cannot be asked for once more.

        Raises:
            CallFailedError: there is no usable reply, or it broke off; `reply` starts with what arrived.
            PipelineError: no request can have one, or the budget is spent.
        """
        ...


class Embedder(Protocol):
    """Turns texts into vectors; the same text gives the same vector whatever else is in the batch."""

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vector of a text may change."""
        ...

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 (n texts, dimensions): rows of length 1, or all zeros for a text that says nothing to the model."""
        ...

    def try_embed(
        self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> tuple[np.ndarray, list[Failure]]:
        """Like `embed`, but a text that fails has a row of zeros and a Failure, whose record is the text's hash.

        Args:
            progress: told how many of the requests to be sent are done, where there are any.
        """
        ...


def embed_distinct(texts: Sequence[str], embedder: Embedder) -> np.ndarray:
    """Embed texts, a repeated text once.

    Returns:
        float32 (n texts, dimensions), rows in the order of `texts`.
    """
    import numpy as np

    rows: dict[str, int] = {}
    order = [rows.setdefault(text, len(rows)) for text in texts]
    if not rows:
        return np.zeros((0, embedder.dimensions), dtype=np.float32)
    vectors = embedder.embed(list(rows))
    return vectors if len(rows) == len(order) else vectors[order]
