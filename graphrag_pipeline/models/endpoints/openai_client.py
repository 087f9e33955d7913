"""Chat models at OpenAI-compatible endpoints: OpenAI, Azure OpenAI, Ollama, vLLM and similar servers.

A request is answered from the store, else by a running request with the same key, else by the endpoint. A reply is used
if the `parse` of its request accepts it. Of a reply that was cut off, what is whole is parsed. If `parse` rejects the
reply, the model gets the reason and one more request.

Replies are stored before the caller gets them, except a stream, which is stored at its end. A rejected reply is stored,
too, since it was paid: a later run parses it again and, if it is still rejected, sends one more correction in other
words. After `MAX_ASKED` requests the record fails without a call, until prompt, model or parameters change. A refusal
is not stored.

If an endpoint rejects `response_format` with status 400, 422 or 501, the schema is added to the prompt from then on.
Neither this nor a corrective turn changes the key of the reply.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.models.cache import ResponseCache, StoredReply
from graphrag_pipeline.models.caller import Caller
from graphrag_pipeline.models.endpoints.endpoint import Endpoint, RejectedError, Sent
from graphrag_pipeline.models.endpoints.judged_replies import (
    ReplyFault,
    judge,
    read_attempts,
    reply_of,
    revive,
    say_how_often,
)
from graphrag_pipeline.models.endpoints.replies import (
    MAX_ASKED,
    Completion,
    add_to_last,
    correct_messages,
    correction_key,
    read_completion,
)
from graphrag_pipeline.models.endpoints.streaming import OnToken
from graphrag_pipeline.models.endpoints.usage import TokenUsage, estimate_tokens
from graphrag_pipeline.models.ports import CUT_NOTE, CallFailedError, ChatReply, ChatRequest, Message
from graphrag_pipeline.models.requests import canonical_json, request_key_of, sendable
from graphrag_pipeline.models.spending import Spending
from graphrag_pipeline.models.structured import describe_schema
from graphrag_pipeline.settings.models import ChatModelSettings

T = TypeVar("T")

EXPECTED_COMPLETION = 1000  # tokens; rate limits expect it of a completion until a longer one arrives
BOUNDED_COMPLETION = 4096  # most tokens of a completion under a budget, if the parameters set none; models allow it

_LOG = logging.getLogger(__name__)
_PATH = "/chat/completions"


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
            revive(request, key, stored[key]) if key in stored else None
            for key, request in zip(keys, requests, strict=True)
        ]

    async def _request_reply(self, request: ChatRequest[T], key: str, on_token: OnToken | None) -> ChatReply[T]:
        """Request a reply, once more if the first one cannot be used and no text of it was passed on; store it."""
        attempts = read_attempts(self._cache, request, key)
        if attempts.accepted is not None and attempts.stored is not None:
            await asyncio.wrap_future(self._cache.write(key, attempts.stored))
            return attempts.accepted
        rejected = attempts.rejected
        calls: list[Sent[Completion]] = []
        for _ in range(min(1 if rejected else 2, MAX_ASKED - len(rejected))):
            if not rejected:
                sent = await self._send_first(request, key, on_token)
            else:
                messages = correct_messages(request.messages, *rejected[-1], len(rejected))
                if messages is None:
                    break
                sent = await self._send(messages, request.response_format, key)
            calls.append(sent)
            judged = judge(request, sent.value)
            if not isinstance(judged, ReplyFault):
                stored = self._to_store(sent.value, calls)
                await asyncio.wrap_future(self._cache.write(key, stored))
                return reply_of(stored, judged, key, is_cached=False)
            await self._store_rejected(correction_key(key, len(rejected)), sent)
            rejected.append((sent.value, judged.reason))
            if on_token is not None and sent.value.text.strip():  # it has readers
                break
        answer, reason = rejected[-1]
        raise CallFailedError(f"{reason}{say_how_often(len(rejected))}", key, answer.text or answer.refusal)

    async def _store_rejected(self, key: str, sent: Sent[Completion]) -> None:
        if not sent.value.refusal and sent.value.finish_reason != "content_filter":
            await asyncio.wrap_future(self._cache.write(key, self._to_store(sent.value, [sent])))

    def _to_store(self, answer: Completion, calls: Sequence[Sent[Completion]]) -> StoredReply:
        costs = [call.cost for call in calls if call.cost is not None]
        return StoredReply(
            model=self._settings.model,
            stage=self.stage,
            text=answer.text,
            finish_reason=answer.finish_reason,
            prompt_tokens=sum(call.usage.prompt_tokens for call in calls),
            completion_tokens=sum(call.usage.completion_tokens for call in calls),
            seconds=sum(call.seconds for call in calls),
            cost=sum(costs) if costs else None,
        )

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
