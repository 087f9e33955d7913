"""Budget, rate limits and prices: tokens and money spent, reserved and allowed; requests and tokens per minute.

All processes of a root share the rows, so two concurrent runs keep one budget and one rate. Before a call is sent, it
reserves the most that it may cost. After the call, the real cost replaces the reservation. Near the ceiling, a call
waits until other reservations are settled. If no reservation is left to wait for, the budget is spent. A reservation
that is older than the time-out of its call (its process was killed) counts as spent: the endpoint may have charged it.

The ledger notes which run paid how many calls and tokens of which stage and model, on which day. Each call is added in
the transaction that books it in the budget. So a killed run keeps its calls, concurrent processes add up, and the sum
is what the budget counts. A run is a command, a run in Dagster's UI, or a process that uses the Python API.

Rate limits follow the generic cell rate algorithm (ITU-T I.371), without bursts. A call takes the next free moment,
moves the schedule forward by its own share, and sleeps until its moment.

Prices are those of the package `genai-prices` (data in the package, no download). A model is looked up at the provider
that the endpoint's address belongs to. At an unknown address (a proxy, a test server) it is looked up by name alone.
Prices in the settings come first, such as 0 for a local model. A model without a listed price costs nothing at an
address of this machine; elsewhere its cost is not counted, and the log warns once.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import socket
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from math import ceil, floor, log10
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, ScalarSelect, Table, bindparam, delete, func, insert, select, update

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.accounting import DONE, RUNNING, PaidRun, current_run
from graphrag_pipeline.models.database import LEDGER, RATES, RESERVATIONS, SPENDING, SharedDatabase
from graphrag_pipeline.settings.models import BudgetSettings
from graphrag_pipeline.settings.presets import is_loopback

_MARGIN = 1.1  # of the advised limit over the estimate
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

    @property
    def is_unlimited(self) -> bool:
        return self.requests_per_minute is None and self.tokens_per_minute is None


class _ReservationResult(Enum):
    RESERVED = 1
    WAIT = 2
    SPENT = 3


# --------------------------------------------------------------------------------------------------------------- ledger

EXPIRED_RUN = "expired"
"""Run of the calls whose process was killed before they were answered; the budget counts them as paid."""
_COUNTED = ("n_calls", "n_unpriced", "prompt_tokens", "completion_tokens", "cost")


@dataclass(frozen=True)
class LedgerEntry:
    """One call; `cost` in US dollars is None if the price of the model is not known.

    Attributes:
        is_answered: else the endpoint may have charged its prompt.
    """

    stage: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    is_answered: bool = True


class Ledger:
    """The ledger of a root's database."""

    def __init__(self, database: SharedDatabase) -> None:
        self._database = database
        upsert = database.insert(LEDGER)
        self._add = upsert.on_conflict_do_update(
            index_elements=["run", "day", "stage", "model"],
            set_={name: LEDGER.c[name] + upsert.excluded[name] for name in _COUNTED},
        )

    def add(self, connection: Connection, run: PaidRun, entry: LedgerEntry) -> None:
        """Add a call of a run."""
        if self not in run.ledgers:
            run.ledgers.append(self)
        self._insert(connection, run.id, run.command, run.about, run.begun, RUNNING, entry)

    def add_expired(self, connection: Connection, tokens: int, cost: float) -> None:
        """Add a call whose process was killed before it was answered."""
        entry = LedgerEntry("", "", tokens, 0, cost, is_answered=False)
        self._insert(connection, EXPIRED_RUN, "killed calls", "", time.time(), DONE, entry)

    def _insert(
        self, connection: Connection, run: str, command: str, about: str, begun: float, status: str, entry: LedgerEntry
    ) -> None:
        row = {
            "run": run,
            "day": time.strftime("%Y-%m-%d", time.gmtime()),
            "stage": entry.stage,
            "model": entry.model,
            "command": command,
            "about": about,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "begun": begun,
            "status": status,
            "n_calls": int(entry.is_answered),
            "n_unpriced": int(entry.cost is None),
            "prompt_tokens": entry.prompt_tokens,
            "completion_tokens": entry.completion_tokens,
            "cost": entry.cost or 0.0,
        }
        connection.execute(self._add, row)

    def end(self, run: PaidRun, status: str) -> None:
        """Note the end of a run, after its queued calls are written."""
        self._database.flush()
        statement = update(LEDGER).where(LEDGER.c.run == run.id).values(status=status, ended=time.time())
        self._database.write(lambda connection: connection.execute(statement))


# --------------------------------------------------------------------------------------------------------------- budget


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
        self._ledger = Ledger(database)
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

    def read_ledger(self) -> list[dict[str, Any]]:
        """Return the rows of the ledger (`database.LEDGER`): one per run, day, stage and model, oldest run first."""
        order = (LEDGER.c.begun, LEDGER.c.run, LEDGER.c.day, LEDGER.c.stage, LEDGER.c.model)
        return [dict(row._mapping) for row in self._database.read(select(LEDGER).order_by(*order))]

    def explain_excess(self, tokens: int, cost: float, most_tokens: int = 0, most_cost: float = 0.0) -> str:
        """Return why calls of this size do not fit into what is left, with the way out; "" if they fit or may try.

        Args:
            most_tokens, most_cost: the most that the calls may need. The advised limit allows it and a tenth more,
                because the length of replies is a guess, and a call reserves its longest reply.
        """
        spent_tokens, spent_cost = self.total()
        if not self.budget.check_estimate or self._allows(spent_tokens + tokens, spent_cost + cost):
            return ""
        reasons, limits = [], []
        if self.budget.max_tokens is not None and spent_tokens + tokens > self.budget.max_tokens:
            left = max(0, self.budget.max_tokens - spent_tokens)
            most_tokens = max(tokens, most_tokens)
            reasons.append(f"{_say_range(f'{tokens:,}', f'{most_tokens:,}')} tokens, and {left:,} are left")
            limits.append(f"budget.max_tokens to {round_up(spent_tokens + _MARGIN * most_tokens):,.0f}")
        if self.budget.max_cost is not None and spent_cost + cost > self.budget.max_cost:
            left_cost = max(0.0, self.budget.max_cost - spent_cost)
            most_cost = max(cost, most_cost)
            reasons.append(f"{_say_range(f'{cost:.4f}', f'{most_cost:.4f}')} US dollars, and {left_cost:.4f} are left")
            limits.append(f"budget.max_cost to {round_up(spent_cost + _MARGIN * most_cost):g}")
        return (
            f"the budget does not suffice: this run needs {' and '.join(reasons)}. No call was made. Raise "
            f"{' and '.join(limits)} or more in settings.yaml and run again, or set budget.check_estimate: false to "
            "run until the limit"
        )

    async def reserve(self, tokens: int, cost: float, timeout_s: float, name: str = "") -> str:
        """Reserve the most that a call may cost.

        Args:
            timeout_s: longest duration of the call; after it, the reservation counts as spent.
            name: of the call, if it may go on after its process was killed: it replaces its earlier reservation.

        Returns:
            The id of the reservation to settle; empty without a ceiling.

        Raises:
            BudgetExceededError: the ceiling does not allow the call.
        """
        if not self.has_ceiling:
            return ""
        reservation = name or uuid.uuid4().hex
        if name:
            await asyncio.wrap_future(self._database.submit(lambda to: to.execute(_FREE, {"reservation": name})))
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

    def settle(self, reservation: str, tokens: int, cost: float, entry: LedgerEntry | None = None) -> Future[None]:
        """Book the real cost of a call, also in the ledger, and remove its reservation."""
        row, run = {"scope": self._scope, "tokens": tokens, "cost": cost}, current_run()
        if not reservation and entry is None:
            return self._database.submit_rows(self._add, [row])

        def change(connection: Connection) -> None:
            # A reservation that expired was booked already.
            if not reservation or connection.execute(_FREE, {"reservation": reservation}).rowcount:
                connection.execute(self._add, row)
                if entry and (tokens or entry.is_answered):
                    self._ledger.add(connection, run, entry)

        return self._database.submit(change)

    async def take_turn(self, rates: Sequence[Rate], tokens: int) -> tuple[int, float]:
        """Take the next turn that one of some rate limits allows for `tokens` tokens, the first one of equals.

        Returns:
            The place of the rate limit in `rates`, and the seconds until the turn begins.
        """
        if rates[0].is_unlimited:
            return 0, 0.0
        change = self._database.submit(lambda connection: self._take_turn(connection, rates, tokens))
        return await asyncio.wrap_future(change)

    def _try_reserve(
        self, connection: Connection, reservation: str, tokens: int, cost: float, timeout_s: float
    ) -> _ReservationResult:
        now = self._database.now(connection)
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
            self._ledger.add_expired(connection, row[0], row[1])
        connection.execute(delete(RESERVATIONS).where(is_expired))

    def _take_turn(self, connection: Connection, rates: Sequence[Rate], tokens: int) -> tuple[int, float]:
        """Move the schedule of the chosen rate forward."""
        now = self._database.now(connection)
        starts = [self._next_start(connection, rate, now) for rate in rates]
        chosen = starts.index(min(starts))
        rate, start = rates[chosen], starts[chosen]
        if rate.is_unlimited:
            return chosen, 0.0
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
        return chosen, start - now

    def _next_start(self, connection: Connection, rate: Rate, now: float) -> float:
        row = None if rate.is_unlimited else connection.execute(select(RATES).where(RATES.c.name == rate.name)).first()
        requests_at = row.requests_free_at if row and rate.requests_per_minute else now
        tokens_at = row.tokens_free_at if row and rate.tokens_per_minute else now
        return max(now, float(requests_at), float(tokens_at))

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


def _say_range(least: str, most: str) -> str:
    return f"about {least}" if least == most else f"{least} to {most}"


def round_up(value: float) -> float:
    """Return the least number of two significant digits that is not below a positive value."""
    step = 10.0 ** (floor(log10(value)) - 1) if value > 0 else 1.0
    return round(ceil(value / step - 1e-9) * step, 12)


# -------------------------------------------------------------------------------------------------------------- prices

_LOG = logging.getLogger(__name__)
_MILLION = 1_000_000


@dataclass(frozen=True)
class Price:
    """Price of one model: from the settings (US dollars per million tokens), or from the list under a provider."""

    model: str
    prompt: float = 0.0
    completion: float = 0.0
    provider: str | None = None

    @property
    def is_free(self) -> bool:
        """Whether a call costs nothing."""
        return not self.cost(_MILLION, _MILLION)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the US dollars of one call."""
        if self.provider is None:
            return (prompt_tokens * self.prompt + completion_tokens * self.completion) / _MILLION
        listed = _listed_price(self.model, prompt_tokens, completion_tokens, self.provider)
        return listed[1] if listed else 0.0


@functools.cache
def find_price(model: str, base_url: str, prompt: float | None = None, completion: float | None = None) -> Price | None:
    """Return the price of a model at an endpoint, or None, with one warning in the log, if it is not known.

    Args:
        prompt, completion: US dollars per million tokens from the settings; if only one is set, the other is 0.
    """
    if prompt is not None or completion is not None:
        return Price(model, prompt or 0.0, completion or 0.0)
    for provider, url in ((None, base_url), (None, None), ("openai", None)):
        listed = _listed_price(model, 1, 0, provider, url)
        if listed:
            return Price(model, provider=listed[0])
    if is_loopback(base_url):
        return Price(model)
    _LOG.warning(
        "model %r at %s has no known price: its cost is not counted; set prompt_price and completion_price (0 if free)",
        model,
        urlsplit(base_url).hostname,
    )
    return None


def describe_price(model: str, base_url: str, prompt: float | None = None, completion: float | None = None) -> str:
    """Return what a model costs and why, as in "0.15 and 0.6 USD per million tokens in and out (price list)"."""
    price = find_price(model, base_url, prompt, completion)
    if price is None:
        return "not known"
    is_set = prompt is not None or completion is not None
    source = "settings" if is_set else "price list" if price.provider else "on this machine, in no price list"
    if price.is_free:
        return f"nothing ({source})"
    each_in, each_out = price.cost(_MILLION, 0), price.cost(0, _MILLION)
    return f"{each_in:.4g} and {each_out:.4g} USD per million tokens in and out ({source})"


def _listed_price(
    model: str, prompt_tokens: int, completion_tokens: int, provider: str | None, url: str | None = None
) -> tuple[str, float] | None:
    """Return provider and cost of a call by the price list; by name alone without provider and URL."""
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=prompt_tokens, output_tokens=completion_tokens)
    try:
        price = (
            calc_price(usage, model, provider_api_url=url) if url else calc_price(usage, model, provider_id=provider)
        )
    except LookupError:
        return None
    return price.provider.id, float(price.total_price)
