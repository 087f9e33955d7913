"""One model at one OpenAI-compatible endpoint: sending, rate limits, retries, cost and errors.

Every request goes through `Endpoint.post`. It waits for the concurrency limit and the rate limit, reserves money, sends
the request and settles the cost. It retries what may succeed later: status 408, 409, 425, 429 and 5xx, time-outs, lost
connections, and bodies that cannot be read. A whole reply without use is paid, so it is not requested unchanged again
(`ports.PaidReplyError`). A failure of every request (no access, unknown model, no quota) is a
PipelineError. A failure of one request is a CallFailedError.

The key is read from the environment at the first request. It appears in no message or log: texts of the endpoint are
searched for it, and errors of the SDK, which hold it in their request, become a `Problem` at once (`problems.py`).

Parameters of the requests to one model, adapted to what the model accepts.

A model that rejects a parameter names it in its error. The parameter is then left out of all further requests.

Keep out: what is sent and how a reply is read (`openai_client.py`, `openai_embedder.py`).
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.models.accounting import ASKED_TO_WAIT, BEFORE_RETRY, RATE_LIMIT, Caller
from graphrag_pipeline.models.endpoints.limits import AdaptiveLimit, backoff_s
from graphrag_pipeline.models.endpoints.problems import NO_KEY, Problem, attempt_errors, describe_problem, read_error
from graphrag_pipeline.models.endpoints.replies import TokenUsage, read_reasoning, read_usage
from graphrag_pipeline.models.endpoints.spans import AttemptSpan, attempt_span
from graphrag_pipeline.models.endpoints.streaming import OnToken, Post, make_post
from graphrag_pipeline.models.event_loop import http_client
from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.models.spending import LedgerEntry, Price, Rate, Spending, find_price
from graphrag_pipeline.settings.models import ChatModelSettings, EmbeddingModelSettings, RerankModelSettings

if TYPE_CHECKING:
    import openai

_LOG = logging.getLogger(__name__)
CAPS = ("max_tokens", "max_completion_tokens")
"""Names of the parameter with the most tokens of a reply: the usual one, and that of OpenAI's newer models."""


class ModelParameters:
    """The parameters that each request to a model carries.

    Args:
        model_name: model and host, for the log.
        parameters: name -> value at the start.
        defaults: names that are not in the settings. Until a request is answered, they are left out after any refusal
            that names no cause.

    Attributes:
        current: name -> value of the parameters in use.
        cap_name: parameter with the most tokens of a reply.
    """

    def __init__(self, model_name: str, parameters: Mapping[str, Any], defaults: Collection[str] = ()) -> None:
        self._may_be_refused = set(defaults)
        self.current = dict(parameters)
        self.cap_name = CAPS[1] if CAPS[1] in parameters else CAPS[0]
        self._model_name = model_name
        self._left_out: set[str] = set()

    def with_cap(self, cap: int | None) -> dict[str, Any]:
        """Return the parameters of a request whose reply has at most `cap` tokens, if the model accepts a cap."""
        if cap is None or self.cap_name in self._left_out:
            return dict(self.current)
        return {**self.current, self.cap_name: cap}

    def note_answer(self) -> None:
        """Note that the model takes these parameters."""
        self._may_be_refused.clear()

    def adapt(self, problem: Problem) -> bool:
        """Leave out the parameter that a problem names as unsupported, with one warning in the log.

        Returns:
            Whether the request may succeed now: a parameter was left out, by this call or after the request was sent.
        """
        name = problem.find_refused({*self.current, self.cap_name, *self._left_out})
        if not name and self._may_be_refused & self.current.keys() and problem.is_of_unknown_cause:
            name = min(self._may_be_refused & self.current.keys())
        if not name or name in self._left_out:
            return bool(name)
        value = self.current.pop(name, None)
        self._left_out.add(name)
        if name == CAPS[0] and CAPS[1] in problem.message:
            self.cap_name = CAPS[1]
            self.current |= {} if value is None else {CAPS[1]: value}
        _LOG.warning(
            "%s does not accept the parameter %r; requests go without it from now on (%s)",
            self._model_name,
            name,
            problem.message,
        )
        return True


T = TypeVar("T")
FIRST_BACKOFF_S = 0.5
"""Seconds before the first retry; the wait doubles each time, up to 60 s."""
ModelSettings = ChatModelSettings | EmbeddingModelSettings | RerankModelSettings

MAX_LIMITED = 20  # attempts of one request that the endpoint may answer with 429
MAX_ADAPTED = 8  # attempts of one request with changed parameters
MAX_UNREACHED = 3  # attempts of one request at an endpoint that never answered, or with pages of HTML only
MAX_TIMED_OUT_ALONE = 2  # attempts that time out although no other request was under way: more would time out, too
MAX_RETRY_AFTER_S = 300.0
LIST_TIMEOUT_S = 10.0
START_SERVER = "Start the server, or correct base_url"
_TAG = re.compile(r"<[^<>]{0,500}>")
_SHOWN_PAGE = 2000  # characters of a page that are looked at for its words
SETTLE_S = 60.0  # after the time-out of a call, its reservation counts as spent


class RejectedError(CallFailedError):
    """The endpoint rejected this request (400, 413, 422, ...); a changed request may succeed."""

    def __init__(self, problem: Problem, request_key: str) -> None:
        super().__init__(str(problem), request_key)
        self.problem = problem


class UnusableError(CallFailedError):
    """The endpoint answers this request with nothing of use, or with status 500; fewer texts may fare better."""


@dataclass(frozen=True)
class Sent(Generic[T]):
    """An answered call: the value read from its body, and its usage, duration and cost.

    Attributes:
        n_reasoning: tokens of the completion that were thoughts, if the endpoint reports them.
    """

    value: T
    usage: TokenUsage
    seconds: float
    cost: float | None
    n_reasoning: int = 0


class Endpoint:
    """A model that requests are sent to. For one event loop at a time.

    Args:
        stage: the stage that uses the model, for spans and messages.
        spending: the budget and rate limits of the root.
        defaults: parameters of every request; those of the settings replace them.
        limit: of concurrent requests, shared by the stages that send to one model; None makes one.

    Raises:
        SettingsError: no model is set, or the budget is in money and the model has no known price.
    """

    def __init__(
        self,
        stage: str,
        settings: ModelSettings,
        spending: Spending,
        defaults: Mapping[str, Any] | None = None,
        limit: AdaptiveLimit | None = None,
    ) -> None:
        self.host = urlsplit(settings.base_url).hostname or settings.base_url
        if not settings.model:
            raise SettingsError(f"{stage}: no model is set; set `model` to one that {self.host} serves")
        self._settings = settings
        if spending.budget.max_cost is not None and self._price is None:
            raise SettingsError(
                f"{stage}: budget.max_cost cannot be enforced: the price of {settings.model!r} is not known; set its "
                "prompt_price and completion_price (US dollars per million tokens, 0 if free), or budget.max_tokens"
            )
        self._stage = stage
        self._spending = spending
        self._limit = limit or AdaptiveLimit(settings.max_concurrency, settings.timeout_s)
        self._rate = Rate(f"{self.host} {settings.model}", settings.requests_per_minute, settings.tokens_per_minute)
        parameters = {**(defaults or {}), **settings.parameters}
        own = {"encoding_format"} & (defaults or {}).keys() - settings.parameters.keys()
        self._parameters = ModelParameters(f"{settings.model} at {self.host}", parameters, own)
        self._has_answered = False
        self._client: openai.AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @functools.cached_property
    def _price(self) -> Price | None:
        """The price; looked up at first use, so that a command without calls logs no warning."""
        known = self._settings
        return find_price(known.model, known.base_url, known.prompt_price, known.completion_price)

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        key: str,
        expected: TokenUsage,
        read: Callable[[object], T],
        caller: Caller,
        on_token: OnToken | None = None,
        cap: int | None = None,
        n_attempts_500: int = 0,
    ) -> Sent[T]:
        """Send a request, and retry it, until it is answered.

        Args:
            path: path below the base URL, such as `/chat/completions`.
            body: the body of the request without model and parameters.
            key: request key, for failures and for the jitter of retries.
            expected: the most tokens that the call should use, for budget and rate limit.
            read: reads the JSON body of the response; raises ReplyFormatError if it is not an answer.
            caller: its accounts count the calls.
            on_token: receives streamed text; None requests a whole response.
            cap: most tokens of the reply.
            n_attempts_500: attempts that may end with status 500 before the caller sends fewer texts, one of which may
                be the cause; 0 if the request cannot be divided.

        Raises:
            RejectedError: the endpoint rejects the request.
            CallFailedError: all allowed attempts failed.
            PipelineError: the endpoint cannot be used, or the budget is spent.
        """
        n_failed = n_limited = n_adapted = n_alone = 0
        post = make_post(path, key, self._settings.timeout_s, on_token)
        while True:
            n_attempt = n_failed + n_limited + n_adapted + 1
            is_alone = int(self._limit.current) == 1
            whole = {"model": self._settings.model, **self._parameters.with_cap(cap), **body}
            outcome = await self._attempt(post, whole, expected, read, caller, n_attempt)
            if isinstance(outcome, Sent):
                return outcome
            if n_adapted < MAX_ADAPTED and self._parameters.adapt(outcome):
                n_adapted += 1
                continue
            self._raise_if_final(outcome, key)
            if outcome.is_paid_in_vain:
                raise (UnusableError if n_attempts_500 else CallFailedError)(str(outcome), key)
            if outcome.status == 429:
                n_limited += 1
            else:
                n_failed += 1
            n_alone += outcome.is_timeout and is_alone
            is_hopeless = n_limited >= MAX_LIMITED or n_alone >= MAX_TIMED_OUT_ALONE
            if is_hopeless or n_failed >= self._most_attempts(outcome, n_attempts_500):
                raise self._give_up(outcome, n_failed + n_limited, key, n_attempts_500 > 0)
            caller.add_retry(outcome.is_timeout)
            pause = backoff_s(n_failed + n_limited - 1, FIRST_BACKOFF_S, key)
            asked_s = outcome.retry_after_s or 0.0
            await _sleep(max(pause, asked_s), ASKED_TO_WAIT if asked_s >= pause else BEFORE_RETRY, caller)

    async def list_models(self) -> object:
        """Return the body of the endpoint's list of models, or the `Problem` that prevented it."""
        return await fetch_model_list(self._connect(), min(LIST_TIMEOUT_S, self._settings.timeout_s))

    def _most_attempts(self, problem: Problem, n_attempts_500: int) -> int:
        most = self._settings.max_attempts
        if problem.status == 500 and n_attempts_500:
            return min(most, n_attempts_500)
        return min(most, MAX_UNREACHED) if self._is_absent(problem) else most

    def _is_absent(self, problem: Problem) -> bool:
        """Whether no model seems to run there at all: no connection or a page of HTML, and no answer before."""
        return (problem.is_unreachable or problem.is_page) and not self._has_answered

    async def _attempt(
        self,
        post: Post,
        body: Mapping[str, Any],
        expected: TokenUsage,
        read: Callable[[object], T],
        caller: Caller,
        number: int,
    ) -> Sent[T] | Problem:
        client = self._connect()  # first, because a missing key must fail before anything is reserved
        await _sleep(await self._spending.take_turn(self._rate, expected.tokens), RATE_LIMIT, caller)
        async with self._limit.slot(functools.partial(_sleep, reason=ASKED_TO_WAIT, caller=caller)) as started_at:
            reservation = await self._reserve(expected)
            outcome: Sent[T] | Problem = Problem("the request was abandoned", may_be_paid=True)
            try:
                under_way = caller.attempt(int(self._limit.current))
                with under_way, attempt_span(self._stage, self._settings, number) as span:
                    outcome = await self._send(client, post, body, expected, read)
                    _record_outcome(span, outcome)
            finally:
                seconds = asyncio.get_running_loop().time() - started_at
                self._book(outcome, expected, reservation, caller, seconds)
            self._adapt_limit(outcome, started_at)
            caller.set_limit(int(self._limit.current))
            return outcome

    def _adapt_limit(self, outcome: Sent[T] | Problem, started_at: float) -> None:
        if isinstance(outcome, Sent):
            self._limit.succeed(started_at)
        elif outcome.is_overload:
            self._limit.refuse(started_at)
            self._limit.pause(min(outcome.retry_after_s or 0.0, MAX_RETRY_AFTER_S))
        elif outcome.is_timeout:
            self._limit.time_out(started_at)

    async def _send(
        self,
        client: openai.AsyncOpenAI,
        post: Post,
        body: Mapping[str, Any],
        expected: TokenUsage,
        read: Callable[[object], T],
    ) -> Sent[T] | Problem:
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            answer = await post(client, body)
            if problem := read_error(answer, client.api_key):
                return problem
            if isinstance(answer, str) and answer.lstrip().startswith("<"):
                title = " ".join(_TAG.sub(" ", answer[:_SHOWN_PAGE]).split())
                return Problem(f"it answers with a page of HTML ({title[:80]!r})", is_page=True)
            value = read(answer)
        except attempt_errors() as error:
            problem = describe_problem(error, client.api_key, self._settings.timeout_s)
            self._has_answered = self._has_answered or problem.status is not None
            return problem
        self._has_answered = True
        self._parameters.note_answer()
        usage = read_usage(answer, expected)
        return Sent(value, usage, loop.time() - started, self._cost(usage), read_reasoning(answer))

    async def _reserve(self, expected: TokenUsage) -> str:
        if not self._spending.has_ceiling:
            return ""
        most = self._cost(expected) or 0.0
        return await self._spending.reserve(expected.tokens, most, self._settings.timeout_s + SETTLE_S)

    def _book(
        self, outcome: Sent[Any] | Problem, expected: TokenUsage, reservation: str, caller: Caller, seconds: float
    ) -> None:
        if isinstance(outcome, Sent):
            usage, cost = outcome.usage, outcome.cost
            caller.add_call(usage.prompt_tokens, usage.completion_tokens, outcome.cost, outcome.seconds)
            is_answered = True
        else:
            is_answered = outcome.is_paid_in_vain
            usage = TokenUsage(expected.prompt_tokens if outcome.may_be_paid else 0)
            cost = self._cost(usage)
            if is_answered:
                caller.add_call(usage.prompt_tokens, 0, cost, seconds)
            else:
                caller.add_unanswered(usage.prompt_tokens, cost)
        if reservation or usage.tokens or is_answered:
            model = self._settings.model
            tokens = usage.prompt_tokens, usage.completion_tokens
            entry = LedgerEntry(self._stage, model, *tokens, cost, is_answered)
            self._spending.settle(reservation, usage.tokens, cost or 0.0, entry)

    def _cost(self, usage: TokenUsage) -> float | None:
        return self._price.cost(usage.prompt_tokens, usage.completion_tokens) if self._price else None

    def _raise_if_final(self, problem: Problem, key: str) -> None:
        where = f"model {self._settings.model!r} at {self.host}"
        if problem.is_not_served:
            raise PipelineError(
                f"{where}: {str(problem).rstrip('.')}. The server does not answer such requests: start it with what it "
                "asks for, or set `model` and `base_url` to a server that does; replies so far are stored"
            )
        if problem.is_out_of_credit:
            raise PipelineError(
                f"{where}: {str(problem).rstrip('.')}. The account has no credit or quota left: add some, or set "
                "`model` and base_url to another endpoint, and run again; replies so far are stored"
            )
        if problem.is_fatal:
            raise PipelineError(
                f"{where}: {str(problem).rstrip('.')}. Check the key in the environment variable "
                f"{self._settings.api_key_env}{unset_hint(self._settings.api_key_env)}, the name of the model and "
                "base_url; replies so far are stored"
            )
        if (problem.retry_after_s or 0.0) > MAX_RETRY_AFTER_S:
            raise PipelineError(
                f"{where}: the endpoint asks to wait {problem.retry_after_s:.0f} s ({problem}). Run again after that; "
                "replies so far are stored"
            )
        if not problem.is_worth_retrying:
            raise RejectedError(problem, key)

    def _give_up(self, problem: Problem, n_attempts: int, key: str, is_divisible: bool) -> PipelineError:
        if self._is_absent(problem):
            how = "Correct base_url, which usually ends in /v1" if problem.is_page else START_SERVER
            return PipelineError(f"model {self._settings.model!r} at {self.host}: {problem}. {how}")
        chat = self._settings if isinstance(self._settings, ChatModelSettings) else None
        shorter = f", or lower {chat.name_reply_cap(self._stage)}" if chat else ""
        advice = f"; raise timeout_s{shorter}" if problem.is_timeout else ""
        reason = f"no answer in {n_attempts} attempts; the last said: {problem}{advice}"
        kind = UnusableError if is_divisible and problem.status == 500 else CallFailedError
        return kind(reason, key, is_unanswered=True)

    def _connect(self) -> openai.AsyncOpenAI:
        """Return the SDK client of the running event loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = make_client(self._settings, self.host), loop
        return self._client


async def fetch_model_list(client: openai.AsyncOpenAI, timeout_s: float = LIST_TIMEOUT_S) -> object:
    """Return the body of an endpoint's list of models, or the `Problem` that prevented it."""
    try:
        async with asyncio.timeout(timeout_s):
            return await client.get("/models", cast_to=object)
    except attempt_errors() as error:
        return describe_problem(error, client.api_key, timeout_s)


async def _sleep(seconds: float, reason: str, caller: Caller) -> None:
    """Sleep, and show the wait in the accounts of a caller."""
    if seconds > 0:
        with caller.waiting(seconds, reason):
            await asyncio.sleep(seconds)


def _record_outcome(span: AttemptSpan, outcome: Sent[Any] | Problem) -> None:
    if isinstance(outcome, Sent):
        span.add_answer(outcome.usage.prompt_tokens, outcome.usage.completion_tokens, outcome.cost)
    else:
        span.add_problem(outcome)


# ----------------------------------------------------------------------------------------------------------- SDK client

_NEEDS_KEY = ("api.openai.com", ".openai.azure.com")


def make_client(settings: ModelSettings, host: str) -> openai.AsyncOpenAI:
    """Open the SDK client of an endpoint, without the retries of the SDK (`endpoint.py` retries).

    Raises:
        SettingsError: the endpoint needs a key and the variable is empty, or its value cannot be a key.
    """
    import openai

    key = _read_key(settings.api_key_env, host)
    shared: Any = {"timeout": settings.timeout_s, "max_retries": 0, "http_client": http_client()}
    if settings.api_version:
        return openai.AsyncAzureOpenAI(
            azure_endpoint=settings.base_url,
            api_version=settings.api_version,
            api_key=key,
            **shared,
        )
    return openai.AsyncOpenAI(base_url=settings.base_url, api_key=key, **shared)


def unset_hint(variable: str) -> str:
    """Return an addition to the name of the key's variable in a message: whether it is not set."""
    return "" if os.environ.get(variable, "").strip() else " (which is not set)"


def _read_key(variable: str, host: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key and host.endswith(_NEEDS_KEY):
        raise SettingsError(f"{host} needs a key: set the environment variable {variable} (named by api_key_env)")
    if not (key.isascii() and key.isprintable()):
        raise SettingsError(
            f"the environment variable {variable} holds characters that a key cannot have; set it again"
        )
    return key or NO_KEY
