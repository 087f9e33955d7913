"""One model at OpenAI-compatible endpoints: sending, rate limits, retries, cost and errors.

Every request goes through `Endpoint.post`. It waits for the concurrency limit and the rate limit, reserves money, sends
the request and settles the cost. It retries what may succeed later: status 408, 409, 425, 429 and 5xx, time-outs, lost
connections, and bodies that cannot be read. A whole reply without use is paid, so it is not requested unchanged again
(`ports.PaidReplyError`). A failure of every request (no access, unknown model, no quota) is a
PipelineError. A failure of one request is a CallFailedError.

If the model has several endpoints, a call that one of them cannot answer goes to another one (`places.py`). It fails as
with one endpoint once each of them failed, and the message has the words of each.

The key appears in no message or log: texts of the endpoint are searched for it and for the values of headers, and
errors of the SDK, which hold them in their request, become a `Problem` at once (`problems.py`).

Keep out: what is sent and how a reply is read (`openai_client.py`, `openai_embedder.py`).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.accounting import ASKED_TO_WAIT, BEFORE_RETRY, RATE_LIMIT, Caller
from graphrag_pipeline.models.endpoints.batching import PRICE_SHARE, WINDOW_S, BatchDesk, desk_for
from graphrag_pipeline.models.endpoints.limits import AdaptiveLimit, backoff_s
from graphrag_pipeline.models.endpoints.places import (
    REFUSED_REST_S,
    ModelPlace,
    ModelSettings,
    open_places,
    sort_places,
    unset_hint,
)
from graphrag_pipeline.models.endpoints.problems import (
    Problem,
    attempt_errors,
    describe_problem,
    read_error,
    secrets_of,
)
from graphrag_pipeline.models.endpoints.replies import TokenUsage, read_reasoning, read_usage
from graphrag_pipeline.models.endpoints.spans import AttemptSpan, attempt_span
from graphrag_pipeline.models.endpoints.streaming import OnToken, Post, make_post, read_silently
from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.models.spending import LedgerEntry, Spending
from graphrag_pipeline.settings.models import ChatModelSettings

if TYPE_CHECKING:
    import openai

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
FIRST_BACKOFF_S = 0.5
"""Seconds before the first retry; the wait doubles each time, up to 60 s."""

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


@dataclass(frozen=True)
class _Call(Generic[T]):
    """What `Endpoint.post` got; `post` sends a body."""

    path: str
    body: Mapping[str, Any]
    key: str
    expected: TokenUsage
    read: Callable[[object], T]
    caller: Caller
    cap: int | None
    post: Post


class _BetterElsewhereError(Exception):
    """The endpoint rests now, and another one does not."""


class Endpoint:
    """A model that requests are sent to. For one event loop at a time.

    Args:
        stage: the stage that uses the model, for spans and messages.
        spending: the budget and rate limits of the root.
        defaults: parameters of every request; those of the settings replace them.
        limit_of: returns the limit of concurrent requests at an endpoint, if stages that send to one model share it.

    Raises:
        SettingsError: no model is set, or the budget is in money and the model has no known price.
    """

    def __init__(
        self,
        stage: str,
        settings: ModelSettings,
        spending: Spending,
        defaults: Mapping[str, Any] | None = None,
        limit_of: Callable[[ModelSettings], AdaptiveLimit] | None = None,
    ) -> None:
        self.host = urlsplit(settings.base_url).hostname or settings.base_url
        if not settings.model:
            raise SettingsError(f"{stage}: no model is set; set `model` to one that {self.host} serves")
        self._settings = settings
        self._stage = stage
        self._spending = spending
        parameters = {**(defaults or {}), **settings.parameters}
        own = {"encoding_format"} & (defaults or {}).keys() - settings.parameters.keys()
        self._trial = asyncio.Lock()
        self._is_tried = False
        self._places = open_places(settings, parameters, own, limit_of or _new_limit)
        if spending.budget.max_cost is not None and not all(place.price for place in self._places):
            raise SettingsError(
                f"{stage}: budget.max_cost cannot be enforced: the price of {settings.model!r} is not known; set its "
                "prompt_price and completion_price (US dollars per million tokens, 0 if free), or budget.max_tokens"
            )

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
        said: dict[ModelPlace, Problem] = {}
        refused: list[ModelPlace] = []  # these take no request at all
        post = make_post(path, key, self._settings.timeout_s, on_token)
        call = _Call(path, body, key, expected, read, caller, cap, post)
        desk = desk_for(self._stage) if on_token in (None, read_silently) else None
        while True:
            n_attempt = n_failed + n_limited + n_adapted + len(refused) + 1
            if desk and await self._may_wait(desk, key):
                place, is_alone = self._places[0], False
                answered = await self._attempt_in_batch(desk, place, call)
                if answered is None:
                    desk = None
                    continue
                outcome = answered
            else:
                async with self._trial if desk else nullcontext():
                    if desk and self._is_tried:
                        continue
                    place, is_alone, outcome = await self._attempt_directly(call, refused, n_attempt)
            if isinstance(outcome, Sent):
                return outcome
            said[place] = outcome
            if n_adapted < MAX_ADAPTED and place.parameters.adapt(outcome):
                n_adapted += 1
                continue
            if outcome.is_fatal or (outcome.retry_after_s or 0.0) > MAX_RETRY_AFTER_S:
                refused.append(place)
                desk = None
                if len(refused) == len(self._places):
                    raise self._explain_refusal(outcome, said)
                place.rest(max(REFUSED_REST_S, outcome.retry_after_s or 0.0))
                _LOG.warning(
                    "%s takes no calls of %s (%s); they go to its other endpoints",
                    place.label, self._settings.model, outcome,
                )  # fmt: skip
                continue
            if not outcome.is_worth_retrying:
                raise RejectedError(outcome, key)
            if outcome.is_paid_in_vain:
                raise (UnusableError if n_attempts_500 else CallFailedError)(str(outcome), key)
            if outcome.status == 429:
                n_limited += 1
            else:
                n_failed += 1
            n_alone += outcome.is_timeout and is_alone
            is_hopeless = n_limited >= MAX_LIMITED or n_alone >= MAX_TIMED_OUT_ALONE
            if is_hopeless or n_failed >= self._most_attempts(outcome, n_attempts_500):
                raise self._give_up(outcome, said, n_failed + n_limited, key, n_attempts_500 > 0)
            caller.add_retry(outcome.is_timeout)
            if self._is_any_awake(refused):
                continue
            pause = backoff_s(n_failed + n_limited - 1, FIRST_BACKOFF_S, key)
            asked_s = outcome.retry_after_s or 0.0
            await _sleep(max(pause, asked_s), ASKED_TO_WAIT if asked_s >= pause else BEFORE_RETRY, caller)

    async def _may_wait(self, desk: BatchDesk, key: str) -> bool:
        """Whether a request may wait for a batch: the first one is sent alone, since it shows what would fail later."""
        return self._is_tried or desk.is_sent(key)

    async def _attempt_directly(
        self, call: _Call[T], refused: Sequence[ModelPlace], number: int
    ) -> tuple[ModelPlace, bool, Sent[T] | Problem]:
        """Return the endpoint that was tried, whether it had no other request, and the outcome."""
        while True:
            place = await self._choose(refused, call.expected.tokens, call.caller)
            is_alone = int(place.limit.current) == 1
            try:
                return place, is_alone, await self._attempt(place, refused, call, number)
            except _BetterElsewhereError:
                continue

    async def _attempt_in_batch(self, desk: BatchDesk, place: ModelPlace, call: _Call[T]) -> Sent[T] | Problem | None:
        """Return the outcome of a request in a batch; None if it is to be sent directly."""
        most = PRICE_SHARE * (_cost(place, call.expected) or 0.0)
        name = stable_hash("batched", call.key)
        reservation = await self._spending.reserve(call.expected.tokens, most, WINDOW_S, name)
        outcome: Sent[T] | Problem = Problem("the batch goes on")
        try:
            with call.caller.attempt(0):  # no limit is in force
                answer = await desk.ask(place, self._stage, call.path, self._body_at(place, call), call.key)
                if answer is not None:
                    outcome = answer if isinstance(answer, Problem) else self._read(place, answer, call, PRICE_SHARE)
        finally:
            self._book(place, outcome, call, reservation, 0.0, PRICE_SHARE)
        if isinstance(outcome, Problem) and outcome.is_worth_retrying and not outcome.is_paid_in_vain:
            return None
        return outcome

    def _body_at(self, place: ModelPlace, call: _Call[Any]) -> dict[str, Any]:
        return {"model": self._settings.model, **place.parameters.with_cap(call.cap), **call.body}

    async def _choose(self, refused: Sequence[ModelPlace], tokens: int, caller: Caller) -> ModelPlace:
        """Return the endpoint for an attempt when its rate limit lets it begin."""
        for place in self._places:
            place.connect()  # first, because a missing key must fail before anything is reserved
        places = sort_places([place for place in self._places if place not in refused])
        chosen, wait_s = await self._spending.take_turn([place.rate for place in places], tokens)
        await _sleep(wait_s, RATE_LIMIT, caller)
        return places[chosen]

    def _is_any_awake(self, refused: Sequence[ModelPlace]) -> bool:
        return any(not place.is_resting for place in self._places if place not in refused)

    async def list_models(self) -> object:
        """Return the body of the first list of models that an endpoint gives, or the `Problem` that prevented it."""
        found: object = None
        for place in self._places:
            found = await fetch_model_list(place.connect(), min(LIST_TIMEOUT_S, self._settings.timeout_s))
            if not isinstance(found, Problem):
                break
        return found

    def _most_attempts(self, problem: Problem, n_attempts_500: int) -> int:
        most = max(self._settings.max_attempts, len(self._places))
        if problem.status == 500 and n_attempts_500:
            return min(most, n_attempts_500)
        return min(most, max(MAX_UNREACHED, len(self._places))) if self._is_absent(problem) else most

    def _is_absent(self, problem: Problem) -> bool:
        """Whether no model seems to run there at all: no connection or a page of HTML, and no answer before."""
        has_answered = any(place.has_answered for place in self._places)
        return (problem.is_unreachable or problem.is_page) and not has_answered

    async def _attempt(
        self,
        place: ModelPlace,
        refused: Sequence[ModelPlace],
        call: _Call[T],
        number: int,
    ) -> Sent[T] | Problem:
        caller = call.caller

        async def wait(seconds: float) -> None:
            self._leave_if_resting(place, refused)
            await _sleep(seconds, ASKED_TO_WAIT, caller)

        async with place.limit.slot(wait) as started_at:
            self._leave_if_resting(place, refused)
            reservation = await self._reserve(place, call.expected)
            outcome: Sent[T] | Problem = Problem("the request was abandoned", may_be_paid=True)
            try:
                under_way = caller.attempt(int(place.limit.current))
                with under_way, attempt_span(self._stage, place.settings, number) as span:
                    outcome = await self._send(place, call)
                    _record_outcome(span, outcome)
            finally:
                seconds = asyncio.get_running_loop().time() - started_at
                self._book(place, outcome, call, reservation, seconds)
            self._note(place, outcome, started_at)
            caller.set_limit(int(place.limit.current))
            return outcome

    def _leave_if_resting(self, place: ModelPlace, refused: Sequence[ModelPlace]) -> None:
        if place.is_resting and self._is_any_awake(refused):
            raise _BetterElsewhereError

    def _note(self, place: ModelPlace, outcome: Sent[T] | Problem, started_at: float) -> None:
        if isinstance(outcome, Sent):
            self._is_tried = True
            place.note_answer(started_at)
            place.limit.succeed(started_at)
            return
        if outcome.is_worth_retrying and not outcome.is_paid_in_vain:
            place.note_failure(outcome, started_at)
        if outcome.is_overload:
            place.limit.refuse(started_at)
            place.limit.pause(min(outcome.retry_after_s or 0.0, MAX_RETRY_AFTER_S))
        elif outcome.is_timeout:
            place.limit.time_out(started_at)

    async def _send(self, place: ModelPlace, call: _Call[T]) -> Sent[T] | Problem:
        loop = asyncio.get_running_loop()
        started, client = loop.time(), place.connect()
        try:
            answer = await call.post(client, self._body_at(place, call))
        except attempt_errors() as error:
            problem = describe_problem(error, secrets_of(client), self._settings.timeout_s)
            place.has_answered = place.has_answered or problem.status is not None
            return problem
        return self._read(place, answer, call, seconds=loop.time() - started)

    def _read(
        self, place: ModelPlace, answer: object, call: _Call[T], price_share: float = 1.0, seconds: float = 0.0
    ) -> Sent[T] | Problem:
        """Return what the body of a response of status 200 holds."""
        secrets = secrets_of(place.connect())
        if problem := read_error(answer, secrets):
            return problem
        if isinstance(answer, str) and answer.lstrip().startswith("<"):
            title = " ".join(_TAG.sub(" ", answer[:_SHOWN_PAGE]).split())
            return Problem(f"it answers with a page of HTML ({title[:80]!r})", is_page=True)
        try:
            value = call.read(answer)
        except attempt_errors() as error:
            return describe_problem(error, secrets, self._settings.timeout_s)
        usage = read_usage(answer, call.expected)
        cost = _cost(place, usage)
        cost = None if cost is None else price_share * cost
        return Sent(value, usage, seconds, cost, read_reasoning(answer))

    async def _reserve(self, place: ModelPlace, expected: TokenUsage) -> str:
        if not self._spending.has_ceiling:
            return ""
        most = _cost(place, expected) or 0.0
        return await self._spending.reserve(expected.tokens, most, self._settings.timeout_s + SETTLE_S)

    def _book(
        self,
        place: ModelPlace,
        outcome: Sent[Any] | Problem,
        call: _Call[Any],
        reservation: str,
        seconds: float,
        price_share: float = 1.0,
    ) -> None:
        caller = call.caller
        if isinstance(outcome, Sent):
            usage, cost = outcome.usage, outcome.cost
            caller.add_call(usage.prompt_tokens, usage.completion_tokens, outcome.cost, outcome.seconds)
            is_answered = True
        else:
            is_answered = outcome.is_paid_in_vain
            usage = TokenUsage(call.expected.prompt_tokens if outcome.may_be_paid else 0)
            cost = _cost(place, usage)
            cost = None if cost is None else price_share * cost
            if is_answered:
                caller.add_call(usage.prompt_tokens, 0, cost, seconds)
            else:
                caller.add_unanswered(usage.prompt_tokens, cost)
        if reservation or usage.tokens or is_answered:
            model = self._settings.model
            tokens = usage.prompt_tokens, usage.completion_tokens
            entry = LedgerEntry(self._stage, model, *tokens, cost, is_answered)
            self._spending.settle(reservation, usage.tokens, cost or 0.0, entry)

    def _explain_refusal(self, problem: Problem, said: Mapping[ModelPlace, Problem]) -> PipelineError:
        """Return the error of a model that no request reaches: the last problem decides what to do."""
        where = f"model {self._settings.model!r} at {self._say_problems(said)}"
        if problem.is_not_served:
            return PipelineError(
                f"{where}. The server does not answer such requests: start it with what it "
                "asks for, or set `model` and `base_url` to a server that does; replies so far are stored"
            )
        if problem.is_out_of_credit:
            return PipelineError(
                f"{where}. The account has no credit or quota left: add some, or set "
                "`model` and base_url to another endpoint, and run again; replies so far are stored"
            )
        if problem.is_fatal:
            variables = dict.fromkeys(place.settings.api_key_env for place in self._places)
            named = " and ".join(f"{variable}{unset_hint(variable)}" for variable in variables)
            return PipelineError(
                f"{where}. Check the key in the environment variable {named}, the name of the model and "
                "base_url; replies so far are stored"
            )
        return PipelineError(
            f"model {self._settings.model!r} at {self.host}: the endpoint asks to wait {problem.retry_after_s:.0f} s "
            f"({self._say_problems(said, problem)}). Run again after that; replies so far are stored"
        )

    def _say_problems(self, said: Mapping[ModelPlace, Problem], only: Problem | None = None) -> str:
        """Return what each endpoint said; of a single one with its name in front, unless `only` is what it said."""
        if only is not None and len(self._places) == 1:
            return str(only)
        return "; ".join(f"{place.label}: {str(problem).rstrip('.')}" for place, problem in said.items())

    def _give_up(
        self, problem: Problem, said: Mapping[ModelPlace, Problem], n_attempts: int, key: str, is_divisible: bool
    ) -> PipelineError:
        if self._is_absent(problem):
            how = "Correct base_url, which usually ends in /v1" if problem.is_page else START_SERVER
            return PipelineError(f"model {self._settings.model!r} at {self._say_problems(said)}. {how}")
        chat = self._settings if isinstance(self._settings, ChatModelSettings) else None
        shorter = f", or lower {chat.name_reply_cap(self._stage)}" if chat else ""
        advice = f"; raise timeout_s{shorter}" if problem.is_timeout else ""
        words = self._say_problems(said, problem)
        reason = f"no answer in {n_attempts} attempts; the last said: {words}{advice}"
        kind = UnusableError if is_divisible and problem.status == 500 else CallFailedError
        return kind(reason, key, is_unanswered=True)


def _new_limit(settings: ModelSettings) -> AdaptiveLimit:
    return AdaptiveLimit(settings.max_concurrency, settings.timeout_s)


def _cost(place: ModelPlace, usage: TokenUsage) -> float | None:
    return place.price.cost(usage.prompt_tokens, usage.completion_tokens) if place.price else None


async def fetch_model_list(client: openai.AsyncOpenAI, timeout_s: float = LIST_TIMEOUT_S) -> object:
    """Return the body of an endpoint's list of models, or the `Problem` that prevented it."""
    try:
        async with asyncio.timeout(timeout_s):
            return await client.get("/models", cast_to=object)
    except attempt_errors() as error:
        return describe_problem(error, secrets_of(client), timeout_s)


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
