"""Budget and rate limits of a root: tokens and money spent, reserved and allowed; requests and tokens per minute.

All processes of a root share the rows, so two concurrent runs keep one budget and one rate. Before a call is sent, it
reserves the most that it may cost. After the call, the real cost replaces the reservation. Near the ceiling, a call
waits until other reservations are settled. If no reservation is left to wait for, the budget is spent. A reservation
that is older than the time-out of its call (its process was killed) counts as spent: the endpoint may have charged it.

Rate limits follow the generic cell rate algorithm (ITU-T I.371), without bursts. A call takes the next free moment,
moves the schedule forward by its own share, and sleeps until its moment.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sqlalchemy import Connection, ScalarSelect, Table, bindparam, delete, func, insert, select

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.database import RATES, RESERVATIONS, SPENDING, SharedDatabase
from graphrag_pipeline.settings.models import BudgetSettings

MAX_WAIT_S = 1.0  # between checks of the reservations of other processes


class BudgetExceededError(PipelineError):
    """The budget of the root is spent; every paid reply is stored."""


_RESERVE = insert(RESERVATIONS)
_FREE = delete(RESERVATIONS).where(RESERVATIONS.c.id == bindparam("reservation"))


@dataclass(frozen=True)
class Rate:
    """Rate limits of one endpoint and model; None means no limit."""

    name: str
    requests_per_minute: int | None
    tokens_per_minute: int | None


class _ReservationResult(Enum):
    RESERVED = 1
    WAIT = 2
    SPENT = 3


class Spending:
    """The budget and the rates of a root.

    Args:
        scope: name of the rows that the budget counts. A new name starts a new budget.

    Attributes:
        has_ceiling: whether the budget has a limit.
    """

    def __init__(self, database: SharedDatabase, budget: BudgetSettings, scope: str = "root") -> None:
        self.budget = budget
        self._database = database
        self._scope = scope
        self.has_ceiling = budget.max_tokens is not None or budget.max_cost is not None
        self._totals = select(*_sums(SPENDING, scope), *_sums(RESERVATIONS, scope))
        upsert = database.insert(SPENDING)
        self._add = upsert.on_conflict_do_update(
            index_elements=["scope"],
            set_={
                "tokens": SPENDING.c.tokens + upsert.excluded.tokens,
                "cost": SPENDING.c.cost + upsert.excluded.cost,
            },
        )

    def total(self) -> tuple[int, float]:
        """Return the tokens and US dollars spent so far."""
        rows = self._database.read(select(SPENDING.c.tokens, SPENDING.c.cost).where(SPENDING.c.scope == self._scope))
        return (rows[0][0], rows[0][1]) if rows else (0, 0.0)

    def describe(self) -> str:
        """Return a line on what is spent and what the budget allows."""
        tokens, cost = self.total()
        max_tokens = "no limit" if self.budget.max_tokens is None else f"{self.budget.max_tokens:,}"
        max_cost = "no limit" if self.budget.max_cost is None else f"{self.budget.max_cost:g}"
        return f"spent so far: {tokens:,} tokens (budget: {max_tokens}), {cost:.4f} USD (budget: {max_cost})"

    async def reserve(self, tokens: int, cost: float, timeout_s: float) -> str:
        """Reserve the most that a call may cost.

        Args:
            timeout_s: longest duration of the call; after it, the reservation counts as spent.

        Returns:
            The id of the reservation to settle; empty without a ceiling.

        Raises:
            BudgetExceededError: the ceiling does not allow the call.
        """
        if not self.has_ceiling:
            return ""
        reservation = uuid.uuid4().hex
        wait_s = MAX_WAIT_S / 16
        while True:
            change = self._database.submit(
                lambda connection: self._try_reserve(connection, reservation, tokens, cost, timeout_s)
            )
            verdict = await asyncio.wrap_future(change)
            if verdict is _ReservationResult.RESERVED:
                return reservation
            if verdict is _ReservationResult.SPENT:
                raise BudgetExceededError(self._explain())
            await asyncio.sleep(wait_s)
            wait_s = min(MAX_WAIT_S, wait_s * 2)

    def settle(self, reservation: str, tokens: int, cost: float) -> Future[None]:
        """Book the real cost of a call and remove its reservation."""
        row = {"scope": self._scope, "tokens": tokens, "cost": cost}
        if not reservation:
            return self._database.submit_rows(self._add, [row])

        def change(connection: Connection) -> None:
            freed = connection.execute(_FREE, {"reservation": reservation})
            if freed.rowcount:  # else it expired, and the reserved amount was booked
                connection.execute(self._add, row)

        return self._database.submit(change)

    async def wait_for_turn(self, rate: Rate, tokens: int) -> None:
        """Sleep until the rate limits allow a request of `tokens` tokens."""
        if rate.requests_per_minute is None and rate.tokens_per_minute is None:
            return
        change = self._database.submit(lambda connection: self._take_turn(connection, rate, tokens))
        await asyncio.sleep(await asyncio.wrap_future(change))

    def _try_reserve(
        self, connection: Connection, reservation: str, tokens: int, cost: float, timeout_s: float
    ) -> _ReservationResult:
        now = time.time()
        spent_tokens, spent_cost, held_tokens, held_cost = connection.execute(self._totals).one()
        if self._allows(spent_tokens + held_tokens + tokens, spent_cost + held_cost + cost):
            expires_at = now + timeout_s
            row = {"id": reservation, "scope": self._scope, "tokens": tokens, "cost": cost, "expires_at": expires_at}
            connection.execute(_RESERVE, row)
            return _ReservationResult.RESERVED
        self._book_expired(connection, now)
        spent_tokens, spent_cost, *_ = connection.execute(self._totals).one()
        return (
            _ReservationResult.WAIT
            if self._allows(spent_tokens + tokens, spent_cost + cost)
            else _ReservationResult.SPENT
        )

    def _allows(self, tokens: int, cost: float) -> bool:
        max_tokens, max_cost = self.budget.max_tokens, self.budget.max_cost
        return (max_tokens is None or tokens <= max_tokens) and (max_cost is None or cost <= max_cost)

    def _book_expired(self, connection: Connection, now: float) -> None:
        is_expired = (RESERVATIONS.c.scope == self._scope) & (RESERVATIONS.c.expires_at < now)
        for row in connection.execute(select(RESERVATIONS.c.tokens, RESERVATIONS.c.cost).where(is_expired)).all():
            connection.execute(self._add, {"scope": self._scope, "tokens": row[0], "cost": row[1]})
        connection.execute(delete(RESERVATIONS).where(is_expired))

    def _take_turn(self, connection: Connection, rate: Rate, tokens: int) -> float:
        """Move the schedule forward; return the seconds until this call may start."""
        now = time.time()
        row = connection.execute(select(RATES).where(RATES.c.name == rate.name)).first()
        requests_at = max(now, row.requests_free_at if row else now)
        tokens_at = max(now, row.tokens_free_at if row else now)
        start = max(requests_at if rate.requests_per_minute else now, tokens_at if rate.tokens_per_minute else now)
        upsert = self._database.insert(RATES)
        names = ("requests_free_at", "tokens_free_at")
        connection.execute(
            upsert.on_conflict_do_update(index_elements=["name"], set_={name: upsert.excluded[name] for name in names}),
            {
                "name": rate.name,
                "requests_free_at": start + 60 / (rate.requests_per_minute or 1_000_000),
                "tokens_free_at": start + 60 * tokens / (rate.tokens_per_minute or 1_000_000_000),
            },
        )
        return start - now

    def _explain(self) -> str:
        tokens, cost = self.total()
        ceilings = []
        if self.budget.max_cost is not None:
            ceilings.append(f"{cost:.4f} of budget.max_cost = {self.budget.max_cost:g} US dollars")
        if self.budget.max_tokens is not None:
            ceilings.append(f"{tokens:,} of budget.max_tokens = {self.budget.max_tokens:,}")
        return (
            f"budget: {' and '.join(ceilings)} spent, and the next call does not fit; every paid reply is stored. "
            "Raise the limit in settings.yaml and run again: the run continues where it stopped"
        )


def _sums(table: Table, scope: str) -> list[ScalarSelect[Any]]:
    """Return subqueries for the tokens and money of a scope's rows in a table; 0 without rows."""
    columns = (table.c.tokens, table.c.cost)
    return [select(func.coalesce(func.sum(c), 0)).where(table.c.scope == scope).scalar_subquery() for c in columns]
