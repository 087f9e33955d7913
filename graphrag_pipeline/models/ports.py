"""Ports to models: the protocols that steps use, independent of the engine behind them.

A step takes the port as an argument, so that a test can pass a fake and a setting can choose another engine.

A request carries the function that parses its reply. If the function rejects a reply, the model gets the reason and one
more request. A rejected reply is stored, too, since it was paid, but no caller gets it: a later run corrects it instead
of repeating the request. A record whose calls fail becomes a `Failure`, which is data like a reply. An error that
concerns every record (a wrong key, a spent budget) is a `PipelineError` and ends the run.

Equal request keys mean equal requests, for every sender and endpoint address. The key is a hash of everything that
decides the reply: model, parameters, messages, response format, repeat number. The address is not part of it, so that
replies serve after a server has moved. `chat_model.cache_name` tells two models of one name apart.

Add here: a port when a step needs a new kind of answer. Keep out: clients, settings, and details of one vendor.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypedDict, TypeVar

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.ports import load_port

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")

EXCERPT = 300  # characters of a reply in a failure
CUT_OFF = "length"  # OpenAI's `finish_reason` of a reply that reached the most tokens
"""What readers of an answer get after a reply that was cut off."""


class Message(TypedDict):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class ReplyFormatError(PipelineError):
    """A reply cannot be parsed. The `parse` of a request raises it; the model and the user get its message."""


class PaidReplyError(ReplyFormatError):
    """A whole reply holds nothing of use; an equal request would be paid for an equal reply."""


NOT_ASKED_AGAIN = "it is not asked again until the prompt, the model or its parameters change"
"""Part of the reason of a failure that another run does not change."""


class RepeatGate(Protocol):
    """Decides whether a reply that cannot be used may be asked for again, and counts the repeats."""

    def refuse(self, messages: Sequence[Message], rejected: str, n_times: int) -> str:
        """Return why a corrective request is not sent; "" if it is, and then it is counted.

        Args:
            rejected: the reply that cannot be used.
            n_times: how many times the usual most tokens the next reply may have.
        """
        ...

    def count_last(self, rejected: str) -> None:
        """Count the last reply of a request that fails; a `Failure` shows only its start."""
        ...


@dataclass(frozen=True)
class ChatRequest(Generic[T]):
    """One request to a chat model.

    Attributes:
        record: the record that the request is about (a text unit id, a title, a community); the address of a failure.
        messages: the conversation; its last turn is the user's.
        parse: parses the reply; raises ReplyFormatError (or ValueError, as pydantic does) with the reason.
        response_format: OpenAI's `response_format` (see `structured.json_schema_format`), or None for plain text.
        repeat: number of this request among independent repeats of the same messages.
        keep_whole: returns what is whole of a text that was cut off, for `parse`; None means that a text which was cut
            off cannot be used. Replies with a `response_format` are cut back to whole JSON values without it.
        max_tokens: most tokens of the reply, if it is not that of the stage.
        is_uncapped: whether the cap of the stage does not hold; without `max_tokens`, only the window and a budget
            limit the reply.
        cap_option: the option that sets `max_tokens`, for messages; "" is that of the stage.
        limits: keywords that the schema of `response_format` gets on the way to an endpoint, by property: the most
            items of a list, the allowed numbers. Like `max_tokens`, they shorten a reply that runs on, and are not
            part of the key.
        repeat_gate: is asked before a corrective request; None lets all be sent.
    """

    record: str
    messages: Sequence[Message]
    parse: Callable[[str], T]
    response_format: Mapping[str, Any] | None = None
    repeat: int = 0
    keep_whole: Callable[[str], str] | None = None
    max_tokens: int | None = None
    is_uncapped: bool = False
    cap_option: str = ""
    limits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    repeat_gate: RepeatGate | None = None

    def cap_of(self, usual: int | None) -> int | None:
        """Return the most tokens of the reply; `usual` is the cap of the stage, None means no cap."""
        return self.max_tokens or (None if self.is_uncapped else usual)


@dataclass(frozen=True)
class ChatReply(Generic[T]):
    """A validated reply.

    Attributes:
        value: the result of the request's `parse` on `text`.
        request_key: hash of request, model and parameters; the key of the stored reply.
        prompt_tokens, completion_tokens: of all calls for this reply, including a corrective one.
        seconds: duration of those calls, without waits between retries.
        cost: US dollars; None if the model has no known price.
        is_cached: whether the reply came from the store.
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

    @property
    def is_cut(self) -> bool:
        """Whether the reply was cut off at the most tokens of a reply; `value` holds what is whole of it."""
        return self.finish_reason == CUT_OFF


@dataclass(frozen=True)
class Failure:
    """A record without a usable reply.

    Attributes:
        stage, record: where the failure happened.
        reason: the reason, for a person.
        reply: start of the reply, empty without a reply.
        request_key: key of the failed request.
        is_unanswered: whether the endpoint gave no answer, so that prompt and model are not to blame.
        n_excess: tokens by which the prompt is too long for the model's window, as this package counts; else 0.
    """

    stage: str
    record: str
    reason: str
    reply: str
    request_key: str
    is_unanswered: bool = False
    n_excess: int = 0


class CallFailedError(PipelineError):
    """The calls of one record failed for good; other records are not affected. `pool` turns it into a Failure."""

    def __init__(
        self, reason: str, request_key: str, reply: str = "", is_unanswered: bool = False, n_excess: int = 0
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_unanswered = is_unanswered
        self.n_excess = n_excess
        self.request_key = request_key
        self.reply = reply[:EXCERPT]


class ChatModel(Protocol):
    """A chat model that gives equal requests the same stored reply."""

    @property
    def stage(self) -> str:
        """The stage that uses the model; written to its failures and stored replies."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash that changes with the model or its parameters, but not with the address of the endpoint."""
        ...

    @property
    def max_concurrency(self) -> int:
        """The largest useful number of concurrent requests."""
        ...

    async def complete(self, request: ChatRequest[T]) -> ChatReply[T]:
        """Return the stored reply, or request one and store it.

        Raises:
            CallFailedError: the request got no usable reply.
            PipelineError: no request can succeed, or the budget is spent.
        """
        ...

    def recall(self, requests: Sequence[ChatRequest[T]]) -> list[ChatReply[T] | None]:
        """Return stored replies in the order of the requests, None without one that still parses; send nothing."""
        ...


class StreamingChatModel(ChatModel, Protocol):
    """A chat model that can stream its reply."""

    def stream(self, request: ChatRequest[Any]) -> AsyncIterator[str]:
        """Yield the reply of `complete` in pieces as they arrive; a stored reply is one piece.

        A complete reply is stored. The request is retried until its first piece. After that piece, a reply that does
        not parse is an error, without a corrective request. The last piece of a reply that was cut off is the note of
        `text.cut_texts.cut_note`.

        Raises:
            CallFailedError: there is no usable reply, or the stream broke; `reply` holds the start of the text.
            PipelineError: no request can succeed, or the budget is spent.
        """
        ...


class Embedder(Protocol):
    """An embedding model; the vector of a text does not depend on the other texts of a batch."""

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash that changes whenever the vector of a text may change."""
        ...

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 (n texts, dimensions): rows of length 1, or all zeros for a text unknown to the model."""
        ...

    def try_embed(
        self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> tuple[np.ndarray, list[Failure]]:
        """Embed texts; a failed text has a row of zeros and a Failure whose record is the hash of the text.

        Args:
            progress: receives (done, total) requests, if any request is sent.
        """
        ...


def load_static_embedder() -> Embedder:
    """Return the embedder of the embedded engine: it needs no model, and compares sentences under any settings."""
    embedder: Embedder = load_port("embedder")()
    return embedder


def can_search(embedder: Embedder, fingerprint: str) -> bool:
    """Whether vectors of a fingerprint can be compared with those that an embedder makes for questions."""
    return fingerprint in (embedder.fingerprint, *getattr(embedder, "equal_fingerprints", ()))


def for_questions(embedder: Embedder) -> Embedder:
    """Return the embedder that makes vectors of questions: the same, unless the model tells them from other texts."""
    return getattr(embedder, "for_questions", embedder)


def expecting(embedder: Embedder, dimensions: int | None) -> Embedder:
    """Return an embedder whose vectors must have this length, if it can check that; None leaves it as it is."""
    expect: Callable[[int], Embedder] | None = getattr(embedder, "expecting", None)
    return embedder if expect is None or dimensions is None else expect(dimensions)


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


# --------------------------------------------------------------------------------------------------------- request keys

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
