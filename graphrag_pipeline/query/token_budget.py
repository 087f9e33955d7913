"""The token budget of one question: the most tokens that it may spend with chat models.

Each step of a search has a `TokenBudget`, which `IndexReader.for_question` carries. Code that calls a model first asks
the budget how many requests it admits (`admit`), and then adds the replies (`settle`). A call is made only if its
prompt and the longest reply that it allows fit into what is left. A model that writes more than allowed exceeds the
budget. A call that is not made is a `Failure` like any other, so each method continues with what it has.

A reply that cannot be used is asked for again only if that fits beside all calls under way and what is kept for later
ones (`gated`). If it does not, the reply stays unusable. Each repeat counts with its prompt and the rejected reply.

Tokens are those of prompts and replies as this package's tokenizer counts them. Stored replies count like new ones, so
that a question has the same answer with any store. Only repeats that an earlier question paid do not count again. Keep
out: the budget of a root (`models/spending.py`).

Usage of models for one question: calls, tokens, money and seconds, by model.

An `Account` counts the calls of one question by section of the settings; `IndexReader.for_question` hands it to the
models. The JSON form of `QueryUsage` is part of the contract of a search's result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.models.endpoints.windows import prompt_room
from graphrag_pipeline.models.ports import Failure
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.text.counted import counted
from graphrag_pipeline.text.tokens import count_tokens_each

if TYPE_CHECKING:
    from graphrag_pipeline.models.ports import ChatRequest, Message
    from graphrag_pipeline.settings.settings import Settings

EMBEDDINGS = "embeddings"
"""The section that calls to the embedding model count in."""
RERANKING = "reranking"
"""The section that calls to the reranking model count in."""


@dataclass(frozen=True)
class ModelUsage:
    """Usage of one model for a query.

    Attributes:
        calls: calls that the endpoint answered; `cached` requests were answered from the store.
        cost: US dollars, without those of the `unpriced` calls. 0 for the embedded engine.
        seconds: total time of all calls; calls side by side count each.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    cached: int = 0
    unpriced: int = 0
    seconds: float = 0.0

    def __add__(self, other: ModelUsage) -> ModelUsage:
        return ModelUsage(**{name: mine + vars(other)[name] for name, mine in vars(self).items()})

    def __str__(self) -> str:
        cached = f", {self.cached} cached" if self.cached else ""
        unpriced = f" and {counted(self.unpriced, 'calls')} of unknown price" if self.unpriced else ""
        priced = f"${self.cost:.4f}{unpriced}"
        cost = priced if self.cost or not self.unpriced else "price unknown"
        tokens = self.input_tokens + self.output_tokens
        calls = f"{counted(self.calls, 'calls')}{cached}"
        return f"{calls}, {tokens:,} tokens, {cost}, {self.seconds:.1f} s"


EMBEDDED = "embedded"
"""The embedded engine's name where usage is given by model."""


@dataclass(frozen=True)
class QueryUsage:
    """Calls, tokens and cost of a query, by model."""

    by_model: dict[str, ModelUsage] = field(default_factory=dict)

    def __add__(self, other: QueryUsage) -> QueryUsage:
        names = sorted({*self.by_model, *other.by_model})
        none = ModelUsage()
        return QueryUsage({name: self.by_model.get(name, none) + other.by_model.get(name, none) for name in names})

    @property
    def of_models(self) -> ModelUsage:
        """The usage of all models, without that of the embedded engine."""
        return sum((used for name, used in self.by_model.items() if name != EMBEDDED), ModelUsage())

    def to_dict(self) -> dict[str, Any]:
        total = sum(self.by_model.values(), ModelUsage())
        return {
            "calls": total.calls,
            "cached": total.cached,
            "tokens": total.input_tokens + total.output_tokens,
            "cost": total.cost,
            "by_model": {name: asdict(used) for name, used in sorted(self.by_model.items())},
        }

    def to_line(self) -> str:
        """Return one line about the chat and embedding models that were called, "" if none was."""
        lines = ((name, used) for name, used in sorted(self.by_model.items()) if name != EMBEDDED)
        return "; ".join(f"{name}: {used}" for name, used in lines)


def embedded_usage(n_read: int, n_written: int) -> QueryUsage:
    """Return the usage of the embedded engine: tokens read and written, no call, no cost."""
    return QueryUsage({EMBEDDED: ModelUsage(input_tokens=n_read, output_tokens=n_written)})


# ------------------------------------------------------------------------------------------------------------- accounts


@dataclass(frozen=True)
class Account:
    """Calls by section of the settings."""

    by_section: dict[str, CallStats] = field(default_factory=dict)

    def section(self, name: str) -> CallStats:
        """Return the statistics that count the calls of a section."""
        return self.by_section.setdefault(name, CallStats())

    def by_model(self, settings: Settings) -> dict[str, ModelUsage]:
        """Return the usage of each model by its name; models without calls are left out."""
        used: dict[str, ModelUsage] = {}
        for section, stats in self.by_section.items():
            if stats.n_calls or stats.n_cached:
                name = _model_of(section, settings)
                used[name] = used.get(name, ModelUsage()) + _usage_of(stats)
        return used


def _model_of(section: str, settings: Settings) -> str:
    if section == EMBEDDINGS:
        return settings.embedding_model.model
    return settings.rerank_model.model if section == RERANKING else settings.chat_model_for(section).model


def _usage_of(stats: CallStats) -> ModelUsage:
    return ModelUsage(
        calls=stats.n_calls,
        input_tokens=stats.prompt_tokens,
        output_tokens=stats.completion_tokens,
        cost=stats.cost,
        cached=stats.n_cached,
        unpriced=stats.n_unpriced,
        seconds=stats.seconds,
    )


T = TypeVar("T")

RATING_TOKENS = 100
"""Most tokens of a reply that rates."""
TOKENS_PER_WORD = 1.5
"""Tokens of an answer for each of its words, with citations."""
LEAST_CONTEXT = 200
"""Tokens of a context below which a window does not lower it."""
FRAME_TOKENS = 500
"""Tokens of a prompt besides its data, with the question."""


@dataclass
class TokenBudget:
    """Tokens that one question may spend and has spent; without a limit if `most` is None."""

    most: int | None = None
    spent: int = 0

    @property
    def left(self) -> int | None:
        return None if self.most is None else max(0, self.most - self.spent)

    def is_affordable(self, n_tokens: int) -> bool:
        """Return whether so many tokens are left."""
        return self.left is None or n_tokens <= self.left

    def admit(self, requests: Sequence[ChatRequest[Any]], n_reply: int, reserve: int = 0) -> int:
        """Return how many requests, the first in order, fit into what is left.

        Args:
            n_reply: tokens that each reply may take.
            reserve: tokens that are kept for later calls.
        """
        if self.left is None:
            return len(requests)
        left = self.left - reserve
        for n_admitted, cost in enumerate(count_prompts(requests)):
            left -= cost + n_reply
            if left < 0:
                return n_admitted
        return len(requests)

    def gated(self, requests: Sequence[ChatRequest[T]], n_reply: int, reserve: int = 0) -> Sequence[ChatRequest[T]]:
        """Return the admitted requests; their repeats are asked of this budget.

        Args:
            n_reply: tokens that each reply may take.
            reserve: tokens that are kept for later calls.
        """
        n_admitted = self.admit(requests, n_reply, reserve)
        admitted = requests[:n_admitted]
        if self.most is None or not admitted:
            return admitted
        gate = _Repeats(self, reserve + sum(count_prompts(admitted)) + n_reply * n_admitted, n_reply)
        return [replace(request, repeat_gate=gate) for request in admitted]

    def settle(self, requests: Sequence[ChatRequest[Any]], replies: Sequence[str]) -> None:
        """Subtract the tokens of requests and their replies."""
        if self.most is not None:
            self.spent += sum(count_prompts(requests)) + sum(count_tokens_each(list(replies)))

    def refuse(self, section: str, request: ChatRequest[Any]) -> Failure:
        """Return the failure of a request that was not sent."""
        return Failure(section, request.record, self.refusal, "", "")

    @property
    def refusal(self) -> str:
        """Why a call is not made."""
        return f"the budget of {self.most or 0:,} tokens for this question does not allow it"


@dataclass(frozen=True)
class _Repeats:
    """The repeats of requests that are sent together; a `ports.RepeatGate`.

    Attributes:
        held: tokens that these requests, their longest replies and later calls need, besides repeats.
    """

    budget: TokenBudget
    held: int
    n_reply: int

    def refuse(self, messages: Sequence[Message], rejected: str, n_times: int) -> str:
        *prompt, n_rejected = count_tokens_each([*(turn["content"] for turn in messages), rejected])
        if not self.budget.is_affordable(self.held + sum(prompt) + n_times * self.n_reply):
            return self.budget.refusal
        self.budget.spent += sum(prompt) + n_rejected
        return ""

    def count_last(self, rejected: str) -> None:
        self.budget.spent += sum(count_tokens_each([rejected]))


def reply_tokens(settings: Settings, section: str) -> int:
    """Return the most tokens of a reply to a section's model."""
    return RATING_TOKENS if section == "rating" else round(TOKENS_PER_WORD * settings.answers.max_words)


def answer_cost(settings: Settings, n_data: int) -> int:
    """Return the most tokens of a call about so many tokens of data, with its reply."""
    return n_data + FRAME_TOKENS + reply_tokens(settings, "answers")


def fit_context(settings: Settings, most: int, max_context_tokens: int) -> int:
    """Return a context's limit, lowered so far that a call about the context fits into a budget.

    The limit stays if the budget does not pay for one text unit: the call is then refused with the reason.
    """
    room = most - answer_cost(settings, 0)
    return min(max_context_tokens, room) if room > settings.text_units.size + FRAME_TOKENS else max_context_tokens


def window_room(settings: Settings) -> int | None:
    """Return the most tokens of a context in the window of the model of `answers`; None if no window is set."""
    window = settings.chat_model_for("answers").context_window
    if not isinstance(window, int):
        return None
    return max(LEAST_CONTEXT, prompt_room(window, settings.reply_tokens_for("answers")) - 2 * FRAME_TOKENS)


def count_prompts(requests: Sequence[ChatRequest[Any]]) -> list[int]:
    """Return the tokens of the messages of each request."""
    counts = iter(count_tokens_each([turn["content"] for request in requests for turn in request.messages]))
    return [sum(next(counts) for _ in request.messages) for request in requests]
