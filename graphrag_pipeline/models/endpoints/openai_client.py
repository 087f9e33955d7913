"""Chat models at OpenAI-compatible endpoints: OpenAI, Azure OpenAI, Ollama, vLLM and similar servers.

A request is answered from the store, else by a running request with the same key, else by the endpoint. A reply is used
if the `parse` of its request accepts it. Of a reply that was cut off, what is whole is parsed. If `parse` rejects the
reply, the model gets the reason and one more request.
Only replies that parse are stored. They are stored before the caller gets them, except a stream, which is stored at
its end.

If an endpoint rejects `response_format` with status 400, 422 or 501, the schema is added to the prompt from then on.
Neither this nor a corrective turn changes the key of the reply.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.models.cache import ResponseCache, StoredReply
from graphrag_pipeline.models.caller import Caller
from graphrag_pipeline.models.endpoints.endpoint import Endpoint, RejectedError, Sent
from graphrag_pipeline.models.endpoints.replies import (
    Completion,
    add_to_last,
    correct_messages,
    find_fault,
    read_completion,
)
from graphrag_pipeline.models.endpoints.streaming import OnToken
from graphrag_pipeline.models.endpoints.usage import TokenUsage, estimate_tokens
from graphrag_pipeline.models.ports import CUT_NOTE, CallFailedError, ChatReply, ChatRequest, Message, ReplyFormatError
from graphrag_pipeline.models.reply_json import keep_whole_values
from graphrag_pipeline.models.requests import canonical_json, request_key_of, sendable
from graphrag_pipeline.models.spending import Spending
from graphrag_pipeline.models.structured import describe_schema
from graphrag_pipeline.settings.models import ChatModelSettings

T = TypeVar("T")

EXPECTED_COMPLETION = 1000  # tokens; rate limits expect it of a completion until a longer one arrives
BOUNDED_COMPLETION = 4096  # most tokens of a completion under a budget, if the parameters set none; models allow it

_LOG = logging.getLogger(__name__)
_PATH = "/chat/completions"
_CUT_ADVICE = "the reply was cut off (finish_reason length); allow more tokens in the model's parameters"


class OpenAIChatModel:
    """A chat model with its store: a `ports.StreamingChatModel`. Requests of one instance share one event loop.

    Args:
        stage: the stage that uses the model; stored with its replies and failures.

    Attributes:
        stats: calls, tokens and cost of this model, for all callers.
    """

    def __init__(self, stage: str, settings: ChatModelSettings, cache: ResponseCache, spending: Spending) -> None:
        self.stage = stage
        self.stats = CallStats()
        self.fingerprint = stable_hash("chat", settings.model, canonical_json(settings.parameters))
        self.max_concurrency = settings.max_concurrency
        self._settings = settings
        self._cache = cache
        limits = [settings.parameters.get(name) for name in ("max_completion_tokens", "max_tokens")]
        self._most = next((int(most) for most in limits if most), BOUNDED_COMPLETION if spending.has_ceiling else None)
        # A budget holds only if no reply can be longer than its reservation.
        defaults = {"max_tokens": self._most} if spending.has_ceiling and not any(limits) else {}
        self._endpoint = Endpoint(stage, settings, spending, defaults)
        self._caller = Caller((self.stats,))
        self._learned = _Learned()

    def for_caller(self, caller: Caller) -> Self:
        """See `caller.CallingModel.for_caller`."""
        model = copy.copy(self)  # shares all state, which is in `stats`, `_cache`, `_endpoint` and `_learned`
        model._caller = self._caller.joined_by(caller)
        return model

    async def complete(self, request: ChatRequest[T]) -> ChatReply[T]:
        """See `ports.ChatModel.complete`."""
        return await self._complete(request, None)

    async def stream(self, request: ChatRequest[Any]) -> AsyncIterator[str]:
        """See `ports.StreamingChatModel.stream`."""
        tokens: asyncio.Queue[str | None] = asyncio.Queue()
        n_passed_on = 0
        completing = asyncio.create_task(self._complete(request, tokens.put_nowait))
        completing.add_done_callback(lambda _: tokens.put_nowait(None))
        try:
            while (token := await tokens.get()) is not None:
                n_passed_on += bool(token.strip())
                yield token
            reply = await completing
        finally:
            completing.cancel()
            await asyncio.gather(completing, return_exceptions=True)
        if not n_passed_on:  # the reply was stored, or was not streamed
            yield reply.text
        if reply.is_cut:
            yield CUT_NOTE

    async def _complete(self, request: ChatRequest[T], on_token: OnToken | None) -> ChatReply[T]:
        key = self._key_of(request)
        under_way = self._cache.in_flight
        while True:
            [reply] = self._recall([key], [request])
            if reply is not None:
                self._caller.add_cached()
                return reply
            if key not in under_way:
                break
            failure = await asyncio.shield(under_way[key])
            if failure is not None:
                raise CallFailedError(failure.reason, key, failure.reply, failure.is_unanswered)
        done: asyncio.Future[CallFailedError | None] = asyncio.get_running_loop().create_future()
        under_way[key] = done
        failure = None
        try:
            return await self._request_reply(request, key, on_token)
        except CallFailedError as error:
            failure = error
            raise
        finally:
            del under_way[key]
            done.set_result(failure)

    def recall(self, requests: Sequence[ChatRequest[T]]) -> list[ChatReply[T] | None]:
        """See `ports.ChatModel.recall`."""
        replies = self._recall([self._key_of(request) for request in requests], requests)
        self._caller.add_cached(sum(reply is not None for reply in replies))
        return replies

    def _key_of(self, request: ChatRequest[Any]) -> str:
        return request_key_of(self._settings.model, self._settings.parameters, request)

    def _recall(self, keys: Sequence[str], requests: Sequence[ChatRequest[T]]) -> list[ChatReply[T] | None]:
        stored = self._cache.read(keys)
        return [
            _revive(request, key, stored[key]) if key in stored else None
            for key, request in zip(keys, requests, strict=True)
        ]

    async def _request_reply(self, request: ChatRequest[T], key: str, on_token: OnToken | None) -> ChatReply[T]:
        """Request a reply, once more if the first one cannot be used and no text of it was passed on; store it."""
        first = await self._send_first(request, key, on_token)
        judged = _judge(request, first.value)
        calls = [first]
        if isinstance(judged, _ReplyFault):
            has_readers = on_token is not None and bool(first.value.text.strip())
            messages = None if has_readers else correct_messages(request.messages, first.value, judged.reason)
            if messages is None:
                raise CallFailedError(judged.reason, key, first.value.text or first.value.refusal)
            calls.append(await self._send(messages, request.response_format, key))
            judged = _judge(request, calls[-1].value)
        answer = calls[-1].value
        if isinstance(judged, _ReplyFault):
            raise CallFailedError(f"{judged.reason} (asked twice)", key, answer.text or answer.refusal)
        costs = [call.cost for call in calls if call.cost is not None]
        stored = StoredReply(
            model=self._settings.model,
            stage=self.stage,
            text=answer.text,
            finish_reason=answer.finish_reason,
            prompt_tokens=sum(call.usage.prompt_tokens for call in calls),
            completion_tokens=sum(call.usage.completion_tokens for call in calls),
            seconds=sum(call.seconds for call in calls),
            cost=sum(costs) if costs else None,
        )
        await asyncio.wrap_future(self._cache.write(key, stored))
        return _reply_of(stored, judged, key, is_cached=False)

    async def _send_first(self, request: ChatRequest[Any], key: str, on_token: OnToken | None) -> Sent[Completion]:
        """Send a request, as a stream if `on_token` is set and the endpoint supports streams."""
        if on_token is not None and request.response_format is None:
            try:
                return await self._post(request.messages, {}, key, on_token)
            except RejectedError as error:
                if "stream" not in str(error.problem):
                    raise
        return await self._send(request.messages, request.response_format, key)

    async def _send(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None, key: str
    ) -> Sent[Completion]:
        if response_format is not None and self._learned.accepts_response_format:
            try:
                return await self._post(messages, {"response_format": response_format}, key)
            except RejectedError as error:
                if not error.problem.is_about_format:
                    raise
                reason = error.reason
            if self._learned.accepts_response_format:
                self._learned.accepts_response_format = False
                _LOG.warning("%s at %s does not accept response_format (%s): the prompt holds the schema from now on",
                             self._settings.model, self._endpoint.host, reason)  # fmt: skip
        if response_format is not None:
            messages = add_to_last(messages, describe_schema(response_format))
        return await self._post(messages, {}, key)

    async def _post(
        self, messages: Sequence[Message], more: Mapping[str, Any], key: str, on_token: OnToken | None = None
    ) -> Sent[Completion]:
        turns = [{"role": message["role"], "content": sendable(message["content"])} for message in messages]
        prompt_tokens = sum(estimate_tokens(turn["content"]) for turn in turns)
        expected = TokenUsage(prompt_tokens, self._most or self._learned.longest_completion)
        body = {"messages": turns, **more}
        sent = await self._endpoint.post(_PATH, body, key, expected, read_completion, self._caller, on_token)
        self._learned.longest_completion = max(self._learned.longest_completion, sent.usage.completion_tokens)
        return sent


@dataclass
class _Learned:
    """What answers showed about a model."""

    accepts_response_format: bool = True
    longest_completion: int = EXPECTED_COMPLETION


@dataclass(frozen=True)
class _ReplyFault:
    reason: str


def _judge(request: ChatRequest[T], answer: Completion) -> T | _ReplyFault:
    """Return the parsed value of a completion, or why it cannot be used; of one that was cut off, of what is whole."""
    fault = find_fault(answer)
    if fault:
        return _ReplyFault(fault)
    keep_whole: Callable[[str], str] | None = str
    if answer.is_cut:
        keep_whole = request.keep_whole or (keep_whole_values if request.response_format else None)
    if keep_whole is None:
        return _ReplyFault(_CUT_ADVICE)
    try:
        return request.parse(keep_whole(answer.text))
    except RecursionError:
        return _ReplyFault("the reply is nested too deeply")
    except (ReplyFormatError, ValueError) as error:
        return _ReplyFault(f"{_CUT_ADVICE}: {error}" if answer.is_cut else str(error))


def _revive(request: ChatRequest[T], key: str, stored: StoredReply) -> ChatReply[T] | None:
    """Return a stored reply, or None if the `parse` of the request rejects it now."""
    value = _judge(request, Completion(stored.text, stored.finish_reason))
    return None if isinstance(value, _ReplyFault) else _reply_of(stored, value, key, is_cached=True)


def _reply_of(stored: StoredReply, value: T, key: str, is_cached: bool) -> ChatReply[T]:
    return ChatReply(
        text=stored.text,
        value=value,
        request_key=key,
        finish_reason=stored.finish_reason,
        prompt_tokens=stored.prompt_tokens,
        completion_tokens=stored.completion_tokens,
        seconds=stored.seconds,
        cost=stored.cost,
        is_cached=is_cached,
    )
