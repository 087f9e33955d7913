"""One model behind one OpenAI-compatible endpoint: sending, waiting, trying again, paying, and saying what is wrong.

Every request goes through `Endpoint.post`: it waits for a place and for the rate, reserves money, sends, settles, and
tries again what may succeed (408, 409, 429, 5xx, time-outs, lost connections, bodies that are no answer). What fails
for every request (no access, no such model, no quota) is a PipelineError; what fails for this one a CallFailedError.

The key is read from the environment when first needed and is in no message or log of ours; what the endpoint says is
searched for it. SDK errors carry it in their request: they are turned into words where they arise (`problems.py`).
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.models.endpoints.limits import AdaptiveLimit, backoff_s
from graphrag_pipeline.models.endpoints.problems import Problem, attempt_errors, describe_problem
from graphrag_pipeline.models.endpoints.sdk_client import make_client, unset_hint
from graphrag_pipeline.models.endpoints.spans import AttemptSpan, attempt_span
from graphrag_pipeline.models.endpoints.streaming import OnToken, Post, make_post
from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.models.prices import Price, find_price
from graphrag_pipeline.models.requests import sendable
from graphrag_pipeline.models.spending import Rate, Spending
from graphrag_pipeline.settings.models import ChatModelSettings, EmbeddingModelSettings

if TYPE_CHECKING:
    import openai

T = TypeVar("T")
ModelSettings = ChatModelSettings | EmbeddingModelSettings

MAX_LIMITED = 20  # times one request is sent while the endpoint answers 429
MAX_ADAPTED = 8  # times one request is sent with other parameters
MAX_UNREACHED = 3  # times one request is sent to an endpoint that nobody has reached yet
MAX_RETRY_AFTER_S = 300.0
SETTLE_S = 60.0  # over the time-out of a call, after which its reservation counts as spent

_LOG = logging.getLogger(__name__)


class RejectedError(CallFailedError):
    """The endpoint understood and refused this request (400, 413, 422, ...): a changed one may pass."""

    def __init__(self, problem: Problem, request_key: str) -> None:
        super().__init__(str(problem), request_key)
        self.problem = problem


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one call, expected or reported."""

    prompt_tokens: int
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class Sent(Generic[T]):
    """An answered call: what was read from the body, and what it took."""

    value: T
    usage: TokenUsage
    seconds: float
    cost: float | None


class Endpoint:
    """A model to send requests to. For one event loop at a time.

    Args:
        stage: what it is used for, in spans.
        spending: the budget and rates of the root.
        stats: where calls are counted.
        defaults: parameters of every request, under those of the settings.

    Raises:
        SettingsError: no model is named, or there is a money budget and no price to keep it by.
    """

    def __init__(
        self,
        stage: str,
        settings: ModelSettings,
        spending: Spending,
        stats: CallStats,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.host = urlsplit(settings.base_url).hostname or settings.base_url
        if not settings.model:
            raise SettingsError(f"{stage}: no model is named; set `model` to one that {self.host} serves")
        self._settings = settings
        if spending.budget.max_cost is not None and self._price is None:
            raise SettingsError(
                f"{stage}: budget.max_cost cannot be kept, the price of {settings.model!r} is not known; set its "
                "prompt_price and completion_price (US dollars for a million tokens; 0 if free), or budget.max_tokens"
            )
        self._stage = stage
        self._spending = spending
        self._stats = stats
        self._limit = AdaptiveLimit(settings.max_concurrency)
        self._rate = Rate(f"{self.host} {settings.model}", settings.requests_per_minute, settings.tokens_per_minute)
        self._parameters = {**(defaults or {}), **settings.parameters}
        self._left_out: set[str] = set()
        self._has_answered = False
        self._client: openai.AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @functools.cached_property
    def _price(self) -> Price | None:
        """Looked up when first needed: whoever asks nothing is not warned that there is none."""
        known = self._settings
        return find_price(known.model, known.base_url, known.prompt_price, known.completion_price)

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        key: str,
        expected: TokenUsage,
        read: Callable[[object], T],
        on_token: OnToken | None = None,
    ) -> Sent[T]:
        """Send a request until it is answered.

        Args:
            path: below the base URL, such as `/chat/completions`.
            body: what the request adds to model and parameters.
            key: names the request in failures and spreads its retries.
            expected: the most tokens it should take, for budget and rate.
            read: reads the JSON body; raises ReplyFormatError where it is no answer.
            tell: asks for a stream and gets its text as it comes.

        Raises:
            RejectedError: the endpoint refuses the request.
            CallFailedError: it was sent as often as allowed.
            PipelineError: the endpoint cannot be used, or the budget is spent.
        """
        n_failed = n_limited = n_adapted = 0
        post = make_post(path, key, self._settings.timeout_s, on_token)
        while True:
            n_attempt = n_failed + n_limited + n_adapted + 1
            outcome = await self._attempt(post, body, expected, read, n_attempt)
            if isinstance(outcome, Sent):
                return outcome
            if n_adapted < MAX_ADAPTED and self._adapt(outcome):
                n_adapted += 1
                continue
            self._raise_if_final(outcome, key)
            if outcome.status == 429:
                n_limited += 1
            else:
                n_failed += 1
            if n_failed >= self._most_attempts(outcome) or n_limited >= MAX_LIMITED:
                raise self._give_up(outcome, n_failed + n_limited, key)
            self._stats.add_retry()
            pause = backoff_s(n_failed + n_limited - 1, self._settings.backoff_s, key)
            await asyncio.sleep(max(pause, outcome.retry_after_s or 0.0))

    def _most_attempts(self, problem: Problem) -> int:
        most = self._settings.max_attempts
        return min(most, MAX_UNREACHED) if self._is_absent(problem) else most

    def _is_absent(self, problem: Problem) -> bool:
        """Whether there seems to be no server at all, rather than one that is gone for a moment."""
        return problem.is_unreachable and not self._has_answered

    async def _attempt(
        self, post: Post, body: Mapping[str, Any], expected: TokenUsage, read: Callable[[object], T], number: int
    ) -> Sent[T] | Problem:
        client = self._connect()  # before anything is reserved: without a key nothing is sent
        await self._spending.wait_for_turn(self._rate, expected.tokens)
        async with self._limit.slot() as started_at:
            reservation = await self._reserve(expected)
            outcome: Sent[T] | Problem = Problem("the request was abandoned", may_be_paid=True)
            try:
                with attempt_span(self._stage, self._settings, number) as span:
                    outcome = await self._send(client, post, body, expected, read)
                    _record_outcome(span, outcome)
            finally:
                self._book(outcome, expected, reservation)
            if isinstance(outcome, Sent):
                self._limit.grow()
            elif outcome.is_overload:
                self._limit.shrink(started_at)
                self._limit.pause(min(outcome.retry_after_s or 0.0, MAX_RETRY_AFTER_S))
            return outcome

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
        whole = {"model": self._settings.model, **self._parameters, **body}
        try:
            answer = await post(client, whole)
            value = read(answer)
        except attempt_errors() as error:
            problem = describe_problem(error, client.api_key, self._settings.timeout_s)
            self._has_answered = self._has_answered or problem.status is not None
            return problem
        self._has_answered = True
        usage = _read_usage(answer, expected)
        return Sent(value, usage, loop.time() - started, self._cost(usage))

    async def _reserve(self, expected: TokenUsage) -> str:
        if not self._spending.has_ceiling:
            return ""
        most = self._cost(expected) or 0.0
        return await self._spending.reserve(expected.tokens, most, self._settings.timeout_s + SETTLE_S)

    def _book(self, outcome: Sent[Any] | Problem, expected: TokenUsage, reservation: str) -> None:
        if isinstance(outcome, Sent):
            usage, cost = outcome.usage, outcome.cost
            self._stats.add_call(usage.prompt_tokens, usage.completion_tokens, outcome.cost, outcome.seconds)
        else:
            usage = TokenUsage(expected.prompt_tokens if outcome.may_be_paid else 0)
            cost = self._cost(usage)
        if reservation or usage.tokens:
            self._spending.settle(reservation, usage.tokens, cost or 0.0)

    def _cost(self, usage: TokenUsage) -> float | None:
        return self._price.cost(usage.prompt_tokens, usage.completion_tokens) if self._price else None

    def _adapt(self, problem: Problem) -> bool:
        """Change the parameters to what the model takes, if that is the problem; said once."""
        name = problem.unsupported_parameter
        if name not in self._parameters:
            return name in self._left_out  # this request was on its way before
        value = self._parameters.pop(name)
        self._left_out.add(name)
        if name == "max_tokens" and "max_completion_tokens" in problem.message:
            self._parameters["max_completion_tokens"] = value
        _LOG.warning("%s at %s does not take the parameter %r: going on without (%s)",
                     self._settings.model, self.host, name, problem.message)  # fmt: skip
        return True

    def _raise_if_final(self, problem: Problem, key: str) -> None:
        where = f"model {self._settings.model!r} at {self.host}"
        if problem.is_fatal:
            raise PipelineError(
                f"{where}: {str(problem).rstrip('.')}. Check the key in the environment variable "
                f"{self._settings.api_key_env}{unset_hint(self._settings.api_key_env)}, the model's name and "
                "base_url; every reply so far is kept"
            )
        if (problem.retry_after_s or 0.0) > MAX_RETRY_AFTER_S:
            raise PipelineError(
                f"{where}: asks to wait {problem.retry_after_s:.0f} s ({problem}). Run again then; replies are kept"
            )
        if not problem.is_worth_retrying:
            raise RejectedError(problem, key)

    def _give_up(self, problem: Problem, n_attempts: int, key: str) -> PipelineError:
        if self._is_absent(problem):
            return PipelineError(
                f"model {self._settings.model!r} at {self.host}: {problem}. Start the server, or mend base_url"
            )
        return CallFailedError(f"no answer in {n_attempts} attempts; the last said: {problem}", key)

    def _connect(self) -> openai.AsyncOpenAI:
        """The client of the running loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = make_client(self._settings, self.host), loop
        return self._client


def _record_outcome(span: AttemptSpan, outcome: Sent[Any] | Problem) -> None:
    if isinstance(outcome, Sent):
        span.add_answer(outcome.usage.prompt_tokens, outcome.usage.completion_tokens, outcome.cost)
    else:
        span.add_problem(outcome)


def _read_usage(answer: object, expected: TokenUsage) -> TokenUsage:
    """What the endpoint reports; where it reports nothing sensible, what was expected of the prompt and what came."""
    reported = answer.get("usage") if isinstance(answer, Mapping) else None
    usage = reported if isinstance(reported, Mapping) else {}
    prompt, completion = (_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    if completion is None:
        choices = answer.get("choices") if isinstance(answer, Mapping) else None
        completion = estimate_tokens(str(choices)) if choices else 0
    return TokenUsage(expected.prompt_tokens if prompt is None else prompt, completion)


def _count(value: object) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < 1_000_000_000 else None  # type: ignore[operator, return-value]


def estimate_tokens(text: str) -> int:
    """An upper estimate without a tokenizer: three bytes of UTF-8 a token (English has 4.5, Chinese 4)."""
    return len(sendable(text).encode()) // 3 + 1
