"""Streamed replies: passes on each piece of text as it arrives, then assembles the complete response body.

A failure before the first piece is a failed attempt that may be retried. A failure after it is a `CallFailedError` with
the text so far, because the caller has already received that text. The reply of an endpoint without streams is
accepted in one piece. A text that repeats itself for certain is not read to its end: the stream is closed, and the text
so far counts as cut off. Its tokens are then estimated, because the usage comes last.

Keep out: the meaning of a reply, storage, cost.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_pipeline.models.endpoints.problems import attempt_errors, describe_problem, secrets_of
from graphrag_pipeline.models.endpoints.replies import text_of, thoughts_of
from graphrag_pipeline.models.endpoints.thoughts import ThoughtFilter
from graphrag_pipeline.models.event_loop import CallScope, start_in_loop
from graphrag_pipeline.models.ports import CUT_OFF, CallFailedError, ReplyFormatError, sendable
from graphrag_pipeline.text.cut_texts import ends_in_certain_loop

if TYPE_CHECKING:
    import openai

T = TypeVar("T")
OnToken = Callable[[str], None]
"""Receives each piece of text, in the event loop of model calls."""
Post = Callable[["openai.AsyncOpenAI", Mapping[str, Any]], Awaitable[object]]

STREAM_OPTIONS: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
"""Fields of the request body that only a streamed request has."""

CLOSING_S = 5.0
CHECKED_AFTER = 200  # characters after which a text is looked at for a loop
_END = object()


def read_silently(_text: str) -> None:
    """Receive the text of a stream that has no readers: it is read only to stop a loop, and may be sent again."""


def make_post(path: str, key: str, timeout_s: float, on_token: OnToken | None) -> Post:
    """Return a function that sends a request body: as a stream if `on_token` is set, else for one response.

    Args:
        key: request key, for failures.
        timeout_s: longest duration of a whole response; longest silence of a stream.
    """

    async def post(client: openai.AsyncOpenAI, body: Mapping[str, Any]) -> object:
        if on_token is not None:
            return await post_streamed(client, path, {**body, **STREAM_OPTIONS}, on_token, timeout_s, key)
        async with asyncio.timeout(timeout_s):
            return await client.post(path, cast_to=object, body=dict(body))

    return post


async def post_streamed(
    client: openai.AsyncOpenAI, path: str, body: Mapping[str, Any], on_token: OnToken, timeout_s: float, key: str
) -> object:
    """Send a chat request and read its stream.

    Args:
        on_token: receives the text, without the thoughts before it.
        timeout_s: longest silence.
        key: request key, for a failure.

    Returns:
        The body that the same completion has without a stream.

    Raises:
        CallFailedError: the stream broke after text was passed on to readers.
        Exception: one of `problems.attempt_errors`, for an earlier failure.
    """
    import openai

    reply = _StreamedReply(on_token)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s) as silence:
            stream = await client.post(
                path, cast_to=object, body=dict(body), stream=True, stream_cls=openai.AsyncStream[object]
            )
            async with stream:
                async for chunk in stream:
                    silence.reschedule(loop.time() + timeout_s)
                    if _is_error(chunk):
                        raise openai.APIError("an error in the stream", request=stream.response.request, body=chunk)
                    reply.add(chunk)
                    if reply.is_in_loop():
                        break
            if reply.is_empty:
                return await _post_whole(client, path, body)
        if not reply.finish_reason:
            raise ReplyFormatError("the stream ended too early")
    except attempt_errors() as error:
        if not reply.n_passed_on or on_token is read_silently:
            raise
        reason = str(describe_problem(error, secrets_of(client), timeout_s))
        raise CallFailedError(f"the reply broke off: {reason}", key, reply.text) from None
    return reply.whole()


def _is_error(chunk: object) -> bool:
    """Whether an event is an error without the usual field `error`."""
    return isinstance(chunk, Mapping) and "choices" not in chunk and isinstance(chunk.get("message"), str)


async def _post_whole(client: openai.AsyncOpenAI, path: str, body: Mapping[str, Any]) -> object:
    plain = {name: value for name, value in body.items() if name not in STREAM_OPTIONS}
    return await client.post(path, cast_to=object, body=plain)


class _StreamedReply:
    """The pieces of one stream that have arrived.

    Attributes:
        is_empty: whether no piece of a completion has arrived.
        n_passed_on: number of pieces of text passed to `on_token`.
    """

    def __init__(self, on_token: OnToken) -> None:
        self.is_empty = True
        self.n_passed_on = 0
        self.finish_reason = ""
        self._on_token = on_token
        self._thoughts = ThoughtFilter()
        self._text: list[str] = []
        self._apart: list[str] = []  # thoughts that are not part of the text
        self._refusal: list[str] = []
        self._arguments: list[str] = []
        self._usage: Any = None
        self._n_unchecked = 0

    def add(self, chunk: object) -> None:
        if not isinstance(chunk, Mapping):
            return
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return
        self.is_empty = False
        self.finish_reason = str(choice.get("finish_reason") or self.finish_reason)
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            self._add_text(text_of(delta.get("content")))
            self._apart.append(thoughts_of(delta))
            self._add_arguments(delta.get("tool_calls"))
            if isinstance(refusal := delta.get("refusal"), str):
                self._refusal.append(refusal)

    @property
    def text(self) -> str:
        return "".join(self._text)

    def is_in_loop(self) -> bool:
        """Return whether the text repeats itself for certain; it then counts as cut off. Looks at times only."""
        if self._n_unchecked < CHECKED_AFTER:
            return False
        self._n_unchecked = 0
        if not ends_in_certain_loop("".join(self._arguments) or self.text):
            return False
        self.finish_reason = CUT_OFF
        return True

    def whole(self) -> dict[str, Any]:
        """Return the response body; first pass on what was held back and is no thought."""
        self._pass_on(self._thoughts.rest())
        message: dict[str, Any] = {"role": "assistant", "content": self.text, "refusal": "".join(self._refusal) or None}
        message["reasoning_content"] = "".join(self._apart)
        if self._arguments:
            message["tool_calls"] = [{"function": {"arguments": "".join(self._arguments)}}]
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        return {"choices": [choice], "usage": self._usage}

    def _add_text(self, content: str) -> None:
        if content:
            self._text.append(content)
            self._n_unchecked += len(content)
            self._pass_on(self._thoughts.add(sendable(content)))

    def _add_arguments(self, calls: object) -> None:
        """Add a piece of the arguments of the first called tool."""
        first = calls[0] if isinstance(calls, list) and calls else None
        function = first.get("function") if isinstance(first, Mapping) and not first.get("index") else None
        piece = function.get("arguments") if isinstance(function, Mapping) else None
        if isinstance(piece, str):
            self._arguments.append(piece)
            self._n_unchecked += len(piece)

    def _pass_on(self, text: str) -> None:
        if text:
            self.n_passed_on += 1
            self._on_token(text)


def iterate_in_loop(items: AsyncIterator[T], scope: CallScope | None = None) -> Iterator[T]:
    """Yield the items of an async generator in synchronous code; close it when the caller stops early.

    Args:
        scope: cancels the generator, if given.
    """
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()
    is_closed = threading.Event()

    async def pump() -> None:
        try:
            async with aclosing(items) as closing:  # type: ignore[type-var]
                async for item in closing:
                    found.put(item)
        finally:
            is_closed.set()

    future = start_in_loop(pump(), scope)
    future.add_done_callback(lambda _: found.put(_END))
    try:
        while (item := found.get()) is not _END:
            yield item
        future.result()
    finally:
        future.cancel()
        is_closed.wait(CLOSING_S)  # paid calls are booked before the caller may end the process
