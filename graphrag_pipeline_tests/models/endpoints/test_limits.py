"""Adaptive concurrency, requested and exponential delays, and a budget and rates that processes share."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from graphrag_pipeline.models.database import SharedDatabase
from graphrag_pipeline.models.endpoints.limits import AdaptiveLimit, backoff_s, retry_after_s
from graphrag_pipeline.models.spending import BudgetExceededError, Rate, Spending
from graphrag_pipeline.settings.models import BudgetSettings
from graphrag_pipeline_tests.support.models.model_clients import open_cache

T = TypeVar("T")


async def hold(limit: AdaptiveLimit, held: list[int], number: int, release: asyncio.Event) -> None:
    async with limit.slot():
        held.append(number)
        await release.wait()


async def settle_down() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_no_more_than_the_limit_at_once_first_come_first_served() -> None:
    async def scene() -> None:
        limit, held, release = AdaptiveLimit(2), [], asyncio.Event()
        tasks = [asyncio.create_task(hold(limit, held, number, release)) for number in range(5)]
        await settle_down()
        assert held == [0, 1]
        tasks[2].cancel()
        release.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert held == [0, 1, 3, 4]
        assert limit.n_active == 0

    asyncio.run(scene())


def test_one_burst_of_refusals_shrinks_once_and_a_round_of_successes_adds_one() -> None:
    async def scene() -> None:
        limit = AdaptiveLimit(10)
        limit.current = 10.0
        async with limit.slot() as first, limit.slot() as second:
            await asyncio.sleep(0.01)
            limit.refuse(first)
            limit.refuse(second)
        assert limit.current == 7.0
        await Queue(limit, [0.001] * 100).serve()
        assert limit.current == 10.0

    run_in_virtual_time(scene())


def test_it_never_shrinks_below_one() -> None:
    async def scene() -> None:
        limit = AdaptiveLimit(2)
        for _ in range(20):
            async with limit.slot() as started:
                await asyncio.sleep(0.001)
                limit.time_out(started)
        assert limit.current == 1.0

    run_in_virtual_time(scene())


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer, so that seconds of requests are exact and cost nothing."""

    def __init__(self) -> None:
        super().__init__(_JumpingSelector(self))
        self.now = 0.0

    def time(self) -> float:
        return self.now


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list:
        self._loop.now += timeout or 0.0
        return super().select(0)


def run_in_virtual_time(scene: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scene)


class Queue:
    """Requests, each for some seconds, at a server that works on `n_slots` at once; keeps the highest limit."""

    def __init__(self, limit: AdaptiveLimit, seconds: list[float], n_slots: int = 1000) -> None:
        self.most = 0
        self._limit, self._seconds, self._slots = limit, seconds, asyncio.Semaphore(n_slots)

    async def serve(self) -> None:
        await asyncio.gather(*(self._request(seconds) for seconds in self._seconds))

    async def _request(self, seconds: float) -> None:
        async with self._limit.slot() as started:
            async with self._slots:
                await asyncio.sleep(seconds)
            self._limit.succeed(started)
            self.most = max(self.most, int(self._limit.current))


def test_it_starts_low_and_grows_to_the_maximum_while_latency_holds() -> None:
    async def scene() -> None:
        limit = AdaptiveLimit(50)
        assert limit.current == 4.0
        await Queue(limit, [0.02] * 400).serve()
        assert limit.current == 50.0

    run_in_virtual_time(scene())


def test_it_stays_low_at_a_server_that_queues_requests() -> None:
    async def scene() -> int:
        limit = AdaptiveLimit(50)
        queue = Queue(limit, [0.01] * 150, n_slots=2)
        await queue.serve()
        assert limit.current <= 8.0
        return queue.most

    assert run_in_virtual_time(scene()) <= 16


def test_it_does_not_grow_where_a_doubled_latency_would_exceed_the_time_out() -> None:
    async def scene() -> None:
        limit = AdaptiveLimit(50, timeout_s=0.02)
        await Queue(limit, [0.01] * 40).serve()
        assert limit.current == 4.0

    run_in_virtual_time(scene())


def test_the_first_requests_of_a_stage_do_not_hide_that_the_queue_reaches_the_time_out() -> None:
    async def scene() -> int:
        limit = AdaptiveLimit(50, timeout_s=8.0)
        queue = Queue(limit, [1.2] * 60, n_slots=1)
        await queue.serve()
        return queue.most

    assert run_in_virtual_time(scene()) == 4, "their latencies are 1.2, 2.4, 3.6 and 4.8 s; twice as many time out"


class TimedQueue:
    """A server with one slot that needs `seconds` for a request and finishes those that were abandoned, too."""

    def __init__(self, seconds: float, timeout_s: float) -> None:
        self.n_abandoned = 0
        self.seconds, self._timeout_s, self._free_at = seconds, timeout_s, 0.0

    async def serve(self, limit: AdaptiveLimit, n_requests: int) -> None:
        await asyncio.gather(*(self._request(limit) for _ in range(n_requests)))

    async def _request(self, limit: AdaptiveLimit) -> None:
        while True:
            async with limit.slot() as started:
                answered_at = self._free_at = max(self._free_at, started) + self.seconds
                await asyncio.sleep(min(answered_at - started, self._timeout_s))
                if answered_at - started <= self._timeout_s:
                    return limit.succeed(started)
                self.n_abandoned += 1
                limit.time_out(started)


def test_a_limit_that_timed_out_is_tried_again_only_if_the_server_became_faster() -> None:
    async def scene() -> None:
        server, limit = TimedQueue(2.5, timeout_s=8.0), AdaptiveLimit(50, timeout_s=8.0)
        await server.serve(limit, 20)
        first = server.n_abandoned
        assert first > 0
        await server.serve(limit, 300)
        assert server.n_abandoned == first and limit.current <= 2.0
        server.seconds = 0.01
        queue = Queue(limit, [0.01] * 60)
        await queue.serve()
        assert queue.most > 4

    run_in_virtual_time(scene())


def test_few_requests_say_nothing_about_the_limit() -> None:
    async def scene() -> None:
        limit = AdaptiveLimit(50)
        for _ in range(40):
            await Queue(limit, [0.0]).serve()
        assert limit.current == 4.0

    run_in_virtual_time(scene())


def test_a_pause_holds_new_requests_back() -> None:
    async def scene() -> float:
        limit, loop = AdaptiveLimit(2), asyncio.get_running_loop()
        limit.pause(0.1)
        start = loop.time()
        async with limit.slot():
            return loop.time() - start

    assert asyncio.run(scene()) >= 0.1


def test_backoff_doubles_up_to_a_minute_with_a_jitter_of_the_request() -> None:
    waits = [backoff_s(attempt, 1.0, "key") for attempt in range(12)]
    assert all(2**attempt / 2 <= wait <= 2**attempt for attempt, wait in enumerate(waits[:6]))
    assert max(waits) <= 60.0
    assert waits == [backoff_s(attempt, 1.0, "key") for attempt in range(12)]
    assert waits[0] != backoff_s(0, 1.0, "other key")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-4"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after_s(headers) == expected


def test_retry_after_as_a_date_is_the_time_until_then() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    wait = retry_after_s({"retry-after": soon})
    assert wait is not None and 25 < wait <= 30


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SharedDatabase]:
    if request.param == "sqlite":
        database = open_cache(tmp_path)
    else:
        database = SharedDatabase(request.getfixturevalue("postgres_url"))
    yield database
    database.close()


def test_a_budget_is_shared_and_hard(database: SharedDatabase) -> None:
    async def scene() -> None:
        budget = BudgetSettings(max_tokens=100)
        mine, others = Spending(database, budget), Spending(database, budget)
        first = await mine.reserve(60, 0.0, timeout_s=60)
        waiting = asyncio.create_task(others.reserve(60, 0.0, timeout_s=60))
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done  # 120 reserved would be too much, 60 may turn out to be less
        mine.settle(first, 30, 0.0)
        others.settle(await asyncio.wait_for(waiting, 10), 55, 0.0)
        with pytest.raises(BudgetExceededError, match=r"85 of budget.max_tokens = 100 .* Raise the limit"):
            await mine.reserve(16, 0.0, timeout_s=60)
        await others.reserve(15, 0.0, timeout_s=60)
        assert mine.total() == (85, 0.0)

    asyncio.run(scene())


def test_money_is_a_budget_too(database: SharedDatabase) -> None:
    async def scene() -> None:
        spending = Spending(database, BudgetSettings(max_cost=1.0))
        spending.settle(await spending.reserve(10, 0.9, timeout_s=60), 10, 0.8).result()
        with pytest.raises(BudgetExceededError, match=r"0\.8000 of budget\.max_cost = 1 US dollars"):
            await spending.reserve(10, 0.3, timeout_s=60)

    asyncio.run(scene())


def test_without_a_ceiling_spending_is_only_counted(database: SharedDatabase) -> None:
    spending = Spending(database, BudgetSettings())
    assert asyncio.run(spending.reserve(10, 1.0, timeout_s=60)) == ""
    spending.settle("", 10, 1.0)
    spending.settle("", 5, 0.5).result()
    assert spending.total() == (15, 1.5)


def test_the_reservation_of_a_killed_process_counts_as_spent(database: SharedDatabase) -> None:
    async def scene() -> None:
        spending = Spending(database, BudgetSettings(max_tokens=100))
        abandoned = await spending.reserve(70, 0.0, timeout_s=-1)
        with pytest.raises(BudgetExceededError, match=r"70 of budget\.max_tokens = 100"):
            await spending.reserve(31, 0.0, timeout_s=60)
        spending.settle(abandoned, 1, 0.0).result()  # too late: it is booked already
        assert spending.total() == (70, 0.0)

    asyncio.run(scene())


def test_a_call_that_goes_on_after_a_kill_is_reserved_once(database: SharedDatabase) -> None:
    spending = Spending(database, BudgetSettings(max_tokens=100))

    async def scene() -> None:
        for _ in range(2):
            assert await spending.reserve(70, 0.0, timeout_s=60, name="of a batch") == "of a batch"
        assert await spending.reserve(30, 0.0, timeout_s=60)

    asyncio.run(asyncio.wait_for(scene(), 10))


def test_rates_space_requests_over_all_processes(database: SharedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def scene() -> None:
        mine, others = Spending(database, BudgetSettings()), Spending(database, BudgetSettings())
        by_requests = Rate("host chat", requests_per_minute=60, tokens_per_minute=None)
        by_tokens = Rate("host embedding", requests_per_minute=None, tokens_per_minute=6000)
        for spending in (mine, others, mine):
            waits.append((await spending.take_turn([by_requests], 1000))[1])
        for spending in (mine, others, mine):
            waits.append((await spending.take_turn([by_tokens], 200))[1])
        waits.append((await mine.take_turn([Rate("host", None, None)], 10**9))[1])

    monkeypatch.setattr(SharedDatabase, "now", lambda self, connection: 1000.0)
    asyncio.run(scene())
    assert waits == pytest.approx([0, 1, 2, 0, 2, 4, 0])


def test_machines_whose_clocks_differ_share_rates_and_reservations(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, true_time = SharedDatabase(postgres_url), time.time
    rate = Rate("host chat", requests_per_minute=600, tokens_per_minute=None)

    def be_on_a_machine(ahead_s: float) -> None:
        monkeypatch.setattr(time, "time", lambda: true_time() + ahead_s)

    async def scene() -> list[float]:
        waits, spending = [], Spending(database, BudgetSettings(max_tokens=100))
        for ahead_s in (600.0, 0.0, -600.0):
            be_on_a_machine(ahead_s)
            waits.append((await spending.take_turn([rate], 1))[1])
        held = await spending.reserve(70, 0.0, timeout_s=60)
        be_on_a_machine(600.0)
        waiting = asyncio.create_task(spending.reserve(70, 0.0, timeout_s=60))
        assert not (await asyncio.wait([waiting], timeout=0.3))[0]  # the call of the other machine still counts
        spending.settle(held, 10, 0.0).result()
        assert await asyncio.wait_for(waiting, 10)
        return waits

    assert max(asyncio.run(scene())) < 1
    database.close()
