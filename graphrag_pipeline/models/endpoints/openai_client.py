"""Chat models at OpenAI-compatible endpoints: OpenAI, Azure OpenAI, Ollama, vLLM and similar servers.

A request is answered from the store, else by a running request with the same key, else by the endpoint. A reply is used
if the `parse` of its request accepts it. Of a reply that was cut off, what is whole is parsed. If `parse` rejects the
reply, the model gets the reason and one more request, with a larger cap if the reply was cut off.

Replies are stored before the caller gets them, except a stream, which is stored at its end. A rejected reply is stored,
too, since it was paid: a later run parses it again and, if it is still rejected, sends one more correction in other
words. After `MAX_ASKED` requests the record fails without a call, until prompt, model or parameters change. A refusal
is not stored.

If an endpoint refuses the form in which JSON is asked for, the next form is tried and kept (`reply_forms.py`). Neither
this nor a corrective turn, a cap or a limit changes the key of the reply.

A whole reply is stored under the key of its request, whatever cap and window were in force. A reply that was cut off
has a key with both: if the cap is raised, only such replies are requested again.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.accounting import Caller, CallStats
from graphrag_pipeline.models.cache import ResponseCache, StoredReply
from graphrag_pipeline.models.endpoints.batching import most_at_once
from graphrag_pipeline.models.endpoints.chat_sender import ChatSender, LearnedModel
from graphrag_pipeline.models.endpoints.endpoint import Endpoint, RejectedError, Sent
from graphrag_pipeline.models.endpoints.replies import (
    MAX_ASKED,
    Completion,
    add_to_last,
    correct_messages,
    correction_key,
    find_fault,
)
from graphrag_pipeline.models.endpoints.reply_forms import shape_request
from graphrag_pipeline.models.endpoints.streaming import OnToken
from graphrag_pipeline.models.endpoints.windows import PromptSize, count_prompt
from graphrag_pipeline.models.ports import (
    CUT_OFF,
    NOT_ASKED_AGAIN,
    CallFailedError,
    ChatReply,
    ChatRequest,
    Message,
    ReplyFormatError,
    canonical_json,
    request_key_of,
)
from graphrag_pipeline.models.reply_json import describe_schema, keep_whole_values
from graphrag_pipeline.models.spending import Spending
from graphrag_pipeline.settings.models import ChatModelSettings
from graphrag_pipeline.text.cut_texts import cut_note, is_loop

T = TypeVar("T")

_CUT = "the reply was cut off (finish_reason length)"
_LOOP = (
    f"{_CUT} while it repeated itself, which a larger cap does not help: set frequency_penalty in parameters of the "
    "model, or use a larger model"
)


def judge(request: ChatRequest[T], answer: Completion, cap_option: str = "") -> T:
    """Return the parsed value of a completion; of one that was cut off, of what is whole.

    Args:
        cap_option: the option that caps the reply, such as `answers.max_map_tokens`.

    Raises:
        ReplyFormatError: it cannot be used; with the reason.
    """
    if fault := find_fault(answer, cap_option):
        raise ReplyFormatError(fault)
    keep_whole: Callable[[str], str] | None = str
    if answer.is_cut:
        keep_whole = request.keep_whole or (keep_whole_values if request.response_format else None)
    cut = (_LOOP if is_loop(answer.text) else f"{_CUT}; raise {cap_option}") if answer.is_cut else ""
    if keep_whole is None:
        raise ReplyFormatError(cut)
    try:
        return request.parse(keep_whole(answer.text))
    except RecursionError:
        raise ReplyFormatError("the reply is nested too deeply") from None
    except (ReplyFormatError, ValueError) as error:
        raise ReplyFormatError(f"{cut}: {error}" if cut else str(error)) from None


def _reply_of(stored: StoredReply, value: T, key: str, is_cached: bool) -> ChatReply[T]:
    usage = stored.prompt_tokens, stored.completion_tokens, stored.seconds, stored.cost
    return ChatReply(stored.text, value, key, stored.finish_reason, *usage, is_cached)


WIDER = 2
"""How many times the usual cap a corrective request gets after a reply that was cut off."""
BOUNDED_COMPLETION = 4096  # most tokens of a completion under a budget, if the parameters set none; models allow it

_LOG = logging.getLogger(__name__)


class OpenAIChatModel:
    """A chat model with its store: a `ports.StreamingChatModel`. Requests of one instance share one event loop.

    Args:
        stage: the section of the settings that uses the model; stored with its replies and failures.
        max_reply_tokens: cap of the stage; parameters that set one replace it.
        learned: what is known about the model, if other clients share it.

    Attributes:
        stats: calls, tokens and cost of this model, for all callers.
    """

    def __init__(
        self,
        stage: str,
        settings: ChatModelSettings,
        cache: ResponseCache,
        spending: Spending,
        max_reply_tokens: int | None = None,
        learned: LearnedModel | None = None,
    ) -> None:
        self.stage = stage
        self.stats = CallStats()
        named = (settings.cache_name,) if settings.cache_name else ()
        self.fingerprint = stable_hash("chat", settings.model, canonical_json(settings.parameters), *named)
        self._settings = settings
        self._cache = cache
        # A budget holds only if no reply can be longer than its reservation.
        self._bounded = BOUNDED_COMPLETION if spending.has_ceiling else None
        self._cap = settings.reply_cap or max_reply_tokens or self._bounded
        self._cap_option = settings.name_reply_cap(stage)
        self._learned = learned or LearnedModel.of_settings(settings)
        self._endpoint = Endpoint(stage, settings, spending, limit_of=self._learned.limit_for)
        self._caller = Caller((self.stats,))
        self._sender = ChatSender(stage, settings, self._endpoint, self._learned, spending.has_ceiling)

    @property
    def max_concurrency(self) -> int:
        """See `ports.ChatModel.max_concurrency`."""
        return most_at_once(self.stage, self._settings)

    @property
    def window(self) -> int | None:
        """Tokens of the model's window, as far as it is known now."""
        return self._learned.window.tokens

    def for_caller(self, caller: Caller) -> Self:
        """Return this model for a caller whose accounts count its calls, too."""
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
            yield cut_note(reply.text)

    async def _complete(self, request: ChatRequest[T], on_token: OnToken | None) -> ChatReply[T]:
        key = self._key_of(request)
        under_way = self._cache.in_flight
        while True:
            [reply] = self._recall([request])
            if reply is not None:
                self._caller.add_cached()
                return reply
            if key not in under_way:
                break
            failure = await asyncio.shield(under_way[key])
            if failure is not None:
                raise CallFailedError(failure.reason, key, failure.reply, failure.is_unanswered, failure.n_excess)
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
        replies = self._recall(requests)
        self._caller.add_cached(sum(reply is not None for reply in replies))
        return replies

    def count_asked(self, requests: Sequence[ChatRequest[Any]]) -> list[int]:
        """Return how many replies to each request and its corrections are stored: at most `MAX_ASKED` are requested."""
        keys = [[correction_key(self._key_of(request), n) for n in range(MAX_ASKED)] for request in requests]
        stored = self._cache.read([one for some in keys for one in some]) if keys else {}
        return [sum(one in stored for one in some) for some in keys]

    def _key_of(self, request: ChatRequest[Any]) -> str:
        """Return the key of a whole reply."""
        return request_key_of(self._settings.model, self._settings.parameters, request, self._settings.cache_name)

    def _cut_key_of(self, request: ChatRequest[Any]) -> str:
        cap, window = request.cap_of(self._cap), self._settings.context_window
        return stable_hash("cut", self._key_of(request), str(cap), str(window))

    def _recall(self, requests: Sequence[ChatRequest[T]]) -> list[ChatReply[T] | None]:
        """Return the stored replies that can be used: whole ones, else ones that were cut off."""
        replies: list[ChatReply[T] | None] = [None] * len(requests)
        for key_of in (self._key_of, self._cut_key_of):
            keys = {place: key_of(requests[place]) for place, reply in enumerate(replies) if reply is None}
            stored = self._cache.read(keys.values()) if keys else {}
            for place, key in keys.items():
                if found := stored.get(key):
                    with contextlib.suppress(ReplyFormatError):
                        value = judge(requests[place], Completion(found.text, found.finish_reason))
                        replies[place] = _reply_of(found, value, key, is_cached=True)
        return replies

    async def _store(self, request: ChatRequest[Any], stored: StoredReply) -> str:
        """Store a reply that can be used; return its key when it is stored."""
        key = self._cut_key_of(request) if stored.finish_reason == CUT_OFF else self._key_of(request)
        await asyncio.wrap_future(self._cache.write(key, stored))
        return key

    async def _request_reply(self, request: ChatRequest[T], key: str, on_token: OnToken | None) -> ChatReply[T]:
        """Request a reply, once more if the first one cannot be used and no text of it was passed on; store it."""
        cap_option = request.cap_option or self._cap_option
        keys = [correction_key(key, n) for n in range(MAX_ASKED)]
        known = self._cache.read(keys)
        rejected: list[tuple[Completion, str]] = []
        for stored in (known[one] for one in keys if one in known):
            answer = Completion(stored.text, stored.finish_reason)
            try:  # it may be accepted now, as after a change of the parser
                value = judge(request, answer, cap_option)
            except ReplyFormatError as error:
                rejected.append((answer, str(error)))
            else:
                await self._store(request, stored)
                return _reply_of(stored, value, key, is_cached=True)
        unpaid = ""
        calls: list[Sent[Completion]] = []
        for _ in range(min(1 if rejected else 2, MAX_ASKED - len(rejected))):
            if not rejected:
                sent = await self._send_first(request, key, on_token)
            else:
                messages = self._correct(request, *rejected[-1], len(rejected))
                if messages is None:
                    break
                with_room = self._give_room(request, messages, rejected[-1][0])
                if gate := request.repeat_gate:
                    n_times = 1 if with_room is request else WIDER
                    unpaid = gate.refuse(messages, rejected[-1][0].text, n_times)
                    if unpaid:
                        break
                sent = await self._send(messages, with_room, key)
            calls.append(sent)
            answer = sent.value
            try:
                value = judge(request, answer, cap_option)
            except ReplyFormatError as error:
                if not answer.is_refused:
                    kept = self._to_store(answer, [sent])
                    await asyncio.wrap_future(self._cache.write(correction_key(key, len(rejected)), kept))
                rejected.append((answer, str(error)))
            else:
                stored = self._to_store(answer, calls)
                return _reply_of(stored, value, await self._store(request, stored), is_cached=False)
            if on_token is not None and answer.text.strip():  # it has readers
                break
        answer, reason = rejected[-1]
        if request.repeat_gate:
            request.repeat_gate.count_last(answer.text)
        unpaid = f"; not asked again: {unpaid}" if unpaid else ""
        raise CallFailedError(f"{reason}{_say_how_often(len(rejected))}{unpaid}", key, answer.text or answer.refusal)

    def _correct(
        self, request: ChatRequest[Any], answer: Completion, reason: str, n_asked: int
    ) -> list[Message] | None:
        """Return the corrective conversation; an endpoint that may ignore the schema gets it in words, too."""
        messages = correct_messages(request.messages, answer, reason, n_asked)
        is_silent = request.response_format is not None and self._learned.forms.current != "plain"
        if messages is None or not is_silent or answer.is_cut:
            return messages
        return add_to_last(messages, describe_schema(request.response_format or {}))

    def _give_room(self, request: ChatRequest[T], messages: Sequence[Message], answer: Completion) -> ChatRequest[T]:
        """Return the request with a larger cap if its last reply was cut off, did not run in a loop, and it fits."""
        cap = request.cap_of(self._cap)
        if cap is None or not answer.is_cut or is_loop(answer.text):
            return request
        fits = not self._learned.window.refuses(PromptSize(count_prompt(messages), WIDER * cap))
        return replace(request, max_tokens=WIDER * cap) if fits else request

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
                return await self._post(request.messages, {}, request, key, on_token)
            except RejectedError as error:
                if not error.problem.is_about_stream:
                    raise
        return await self._send(request.messages, request, key)

    async def _send(self, messages: Sequence[Message], request: ChatRequest[Any], key: str) -> Sent[Completion]:
        """Send a conversation; ask for JSON in the first form that the endpoint does not refuse."""
        if request.response_format is None:
            return await self._post(messages, {}, request, key)
        forms = self._learned.forms
        while True:
            try:
                async with forms.turn(bool(request.limits)) as form:
                    turns, more = shape_request(form, messages, request)
                    return await self._post(turns, more, request, key)
            except RejectedError as error:
                is_of_limits = bool(request.limits) and not error.problem.is_about_schema_type
                if not error.problem.is_about_format or not forms.leave(form, is_of_limits):
                    raise
                where = f"{self._settings.model} at {self._endpoint.host}"
                _LOG.warning("%s refuses JSON as %s (%s); next: %s", where, form, error.reason, forms.current)

    async def _post(
        self,
        messages: Sequence[Message],
        more: Mapping[str, Any],
        request: ChatRequest[Any],
        key: str,
        on_token: OnToken | None = None,
    ) -> Sent[Completion]:
        cap = self._settings.reply_cap or request.cap_of(self._cap) or self._bounded
        return await self._sender.send(messages, more, cap, key, self._caller, on_token)


def _say_how_often(n_asked: int) -> str:
    if n_asked == MAX_ASKED:
        return f" (asked {n_asked} times; {NOT_ASKED_AGAIN})"
    return " (asked twice)" if n_asked == 2 else f" (asked {n_asked} times)" if n_asked > 2 else ""
