"""Callers of models: the accounts that count a caller's calls, and the scope in which they can be cancelled.

Code that opens an account hands it to the models that it calls: `Root.counted_in` for all models of a root,
`IndexReader.for_question` for those of one question. A model made by `for_caller` shares connections, limits and the
cache with the model that it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.models.accounting import CallStats

if TYPE_CHECKING:
    from graphrag_pipeline.models.event_loop import CallScope
    from graphrag_pipeline.models.ports import Embedder


@dataclass(frozen=True)
class Caller:
    """A caller of models.

    Attributes:
        accounts: statistics that count each call.
        scope: the group of calls to cancel together; None if they are never cancelled.
    """

    accounts: tuple[CallStats, ...] = ()
    scope: CallScope | None = None

    def joined_by(self, other: Caller) -> Caller:
        """Return a caller whose calls count in the accounts of both; the scope of `other` comes first."""
        return Caller((*self.accounts, *other.accounts), other.scope or self.scope)

    def add_call(self, prompt_tokens: int, completion_tokens: int, cost: float | None, seconds: float) -> None:
        """Count one answered call in each account."""
        for account in self.accounts:
            account.add_call(prompt_tokens, completion_tokens, cost, seconds)

    def add_unanswered(self, prompt_tokens: int, cost: float | None) -> None:
        """Count one request without an answer in each account, unless the endpoint charges nothing for it."""
        for account in self.accounts if prompt_tokens else ():
            account.add_unanswered(prompt_tokens, cost)

    def add_retry(self, is_timeout: bool = False) -> None:
        """Count one attempt that will be repeated in each account."""
        for account in self.accounts:
            account.add_retry(is_timeout)

    @contextmanager
    def attempt(self, limit: int) -> Iterator[None]:
        """Show an attempt as under way in each account, at an endpoint that may get `limit` at once."""
        attempt = object()
        for account in self.accounts:
            account.begin(attempt, limit)
        try:
            yield
        finally:
            for account in self.accounts:
                account.end(attempt)

    @contextmanager
    def waiting(self, seconds: float, reason: str) -> Iterator[None]:
        """Show in each account that an attempt starts only in so many seconds, and why."""
        attempt = object()
        for account in self.accounts:
            account.begin_wait(attempt, seconds, reason)
        try:
            yield
        finally:
            for account in self.accounts:
                account.end_wait(attempt)

    def set_limit(self, limit: int) -> None:
        """Note in each account how many calls the endpoint may get at once now."""
        for account in self.accounts:
            account.limit = limit

    def add_cached(self, n: int = 1) -> None:
        """Count requests answered from the store in each account."""
        for account in self.accounts:
            account.add_cached(n)


def embedder_for(embedder: Embedder, caller: Caller) -> Embedder:
    """Return an embedder for a caller; one that sends no request stays the same."""
    for_caller: Callable[[Caller], Embedder] | None = getattr(embedder, "for_caller", None)
    return embedder if for_caller is None else for_caller(caller)
