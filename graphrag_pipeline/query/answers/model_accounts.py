"""What the models did for one query: calls, tokens, money and seconds, by section of the settings and by model.

Whoever asks a model says for which section (`booked`); whoever answers a query opens an account around it
(`accounted`). Both follow the thread, so that queries side by side do not mix. Keep out: what was asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from graphrag_pipeline.models.accounting import CallStats, booked_to
from graphrag_pipeline.query.answers.usage import ModelUsage
from graphrag_pipeline.settings.settings import Settings

EMBEDDINGS = "embeddings"


@dataclass(frozen=True)
class Account:
    """Calls by section of the settings."""

    by_section: dict[str, CallStats] = field(default_factory=dict)

    def by_model(self, settings: Settings) -> dict[str, ModelUsage]:
        """What each model did, by its name; models that did nothing are left out."""
        used: dict[str, ModelUsage] = {}
        for section, stats in self.by_section.items():
            if stats.n_calls or stats.n_cached:
                is_embedder = section == EMBEDDINGS
                name = (settings.embedding_model if is_embedder else settings.chat_model_for(section)).model
                used[name] = used.get(name, ModelUsage()) + _usage_of(stats)
        return used


_account: ContextVar[Account | None] = ContextVar("query_account", default=None)


@contextmanager
def accounted() -> Iterator[Account]:
    """Keep an account of what is booked meanwhile."""
    account = Account()
    token = _account.set(account)
    try:
        yield account
    finally:
        _account.reset(token)


@contextmanager
def booked(section: str) -> Iterator[None]:
    """Book the calls made meanwhile to a section, if somebody keeps an account."""
    account = _account.get()
    if account is None:
        yield
        return
    with booked_to(account.by_section.setdefault(section, CallStats())):
        yield


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
