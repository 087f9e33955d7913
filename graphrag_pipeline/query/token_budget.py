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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_pipeline.models.endpoints.windows import prompt_room
from graphrag_pipeline.models.ports import Failure
from graphrag_pipeline.text.tokens import count_tokens_each

if TYPE_CHECKING:
    from graphrag_pipeline.models.ports import ChatRequest, Message
    from graphrag_pipeline.settings.settings import Settings

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
