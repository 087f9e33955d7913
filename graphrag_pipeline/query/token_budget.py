"""The most tokens that one question may spend with chat models.

Whoever answers a query limits it (`limited`); whoever asks a model asks first what the budget admits (`admit`) and
says what came back (`settle`). The budget follows the thread, as accounts do. Tokens are those of prompts and replies
as our tokenizer counts them, stored replies like new ones, so that the same question has the same answer whatever the
store holds. A call is made only where its prompt and the reply that it asks for fit into what is left (a model that
writes more than it was asked for goes over by that); one that is not made is a `Failure` like any other, so each method
goes on with what it has. Keep out: the budget of a root (`models/spending.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.models.ports import Failure
from graphrag_pipeline.text.tokens import count_tokens_each

if TYPE_CHECKING:
    from graphrag_pipeline.models.ports import ChatRequest
    from graphrag_pipeline.settings.settings import Settings

RATING_TOKENS = 100
"""What a reply that rates may take."""
TOKENS_PER_WORD = 1.5
"""Of an answer of so many words, with its citations."""
FRAME_TOKENS = 500
"""What a prompt takes besides its data, and the question."""


@dataclass
class TokenBudget:
    """What one question may spend and has spent; None is no limit."""

    most: int | None
    spent: int = 0

    @property
    def left(self) -> int | None:
        return None if self.most is None else max(0, self.most - self.spent)


_budget: ContextVar[TokenBudget | None] = ContextVar("token_budget", default=None)


@contextmanager
def limited(most: int | None, spent: int = 0) -> Iterator[TokenBudget]:
    """Keep a budget meanwhile, of which some may be spent already."""
    budget = TokenBudget(most, spent)
    token = _budget.set(budget)
    try:
        yield budget
    finally:
        _budget.reset(token)


def reply_tokens(settings: Settings, section: str) -> int:
    """What a reply to a section's model may take."""
    return RATING_TOKENS if section == "rating" else round(TOKENS_PER_WORD * settings.answers.max_words)


def answer_cost(settings: Settings, n_data: int) -> int:
    """What a call about so many tokens of data may take, with its reply."""
    return n_data + FRAME_TOKENS + reply_tokens(settings, "answers")


def fit_context(settings: Settings, most: int, max_context_tokens: int) -> int:
    """A context's limit, lowered so far that a call about it fits into a budget.

    As it is where the budget does not pay for one text unit: a call that does not fit is refused, which says why.
    """
    room = most - answer_cost(settings, 0)
    return min(max_context_tokens, room) if room > settings.text_units.size + FRAME_TOKENS else max_context_tokens


def is_affordable(n_tokens: int) -> bool:
    """Whether so many tokens are left."""
    budget = _budget.get()
    return budget is None or budget.left is None or n_tokens <= budget.left


def admit(requests: Sequence[ChatRequest[Any]], n_reply: int, reserve: int = 0) -> int:
    """How many of some requests, the first in order, fit into what is left.

    Args:
        n_reply: tokens that each reply may take.
        reserve: tokens that stay for what comes after.
    """
    budget = _budget.get()
    if budget is None or budget.left is None:
        return len(requests)
    left = budget.left - reserve
    for n_admitted, cost in enumerate(_count_prompts(requests)):
        left -= cost + n_reply
        if left < 0:
            return n_admitted
    return len(requests)


def settle(requests: Sequence[ChatRequest[Any]], replies: Sequence[str]) -> None:
    """Book what was asked and what came back."""
    budget = _budget.get()
    if budget is not None and budget.most is not None:
        budget.spent += sum(_count_prompts(requests)) + sum(count_tokens_each(list(replies)))


def refuse(section: str, request: ChatRequest[Any]) -> Failure:
    """What stands for a reply where a request was not sent."""
    budget = _budget.get()
    most = budget.most if budget and budget.most is not None else 0
    reason = f"the budget of {most:,} tokens for this question does not allow it"
    return Failure(section, request.record, reason, "", "")


def _count_prompts(requests: Sequence[ChatRequest[Any]]) -> list[int]:
    counts = iter(count_tokens_each([turn["content"] for request in requests for turn in request.messages]))
    return [sum(next(counts) for _ in request.messages) for request in requests]
