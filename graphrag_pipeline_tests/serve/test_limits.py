"""Admission: how principals share the places and the queue of a server."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from graphrag_pipeline.serve.errors import BusyError
from graphrag_pipeline.serve.limits import Admission, Place, ServerLimits


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


def asking(admission: Admission, served: list[str], name: str, n: int) -> list[asyncio.Task]:
    """Tasks that ask for a place each, and note the name once they have it."""

    async def ask():
        place = await admission.take(name)
        served.append(name)
        return place

    return [asyncio.create_task(ask()) for _ in range(n)]


def test_a_flood_of_one_principal_delays_another_by_one_request() -> None:
    async def run() -> None:
        admission, served = Admission(ServerLimits(max_running=2, max_waiting=300)), []
        flood = asking(admission, served, "flood", 200)
        await settle()
        others = asking(admission, served, "one", 1) + asking(admission, served, "two", 1)
        await settle()
        assert served == ["flood", "flood"] and admission.n_waiting == 200
        for first in flood[:2]:
            first.result().give_back()
        await settle()
        assert served[2:] == ["one", "two"], "free places go to those who have none"
        others[0].result().give_back()
        await settle()
        assert served[4:] == ["flood"] and (admission.n_running, admission.n_waiting) == (2, 197)
        for task in flood:
            task.cancel()

    asyncio.run(run())


def test_principals_take_turns() -> None:
    async def run() -> None:
        admission, served = Admission(ServerLimits(max_running=3, max_waiting=300)), []
        places: list[Place] = []

        async def ask(name: str) -> None:
            places.append(await admission.take(name))
            served.append(name)

        tasks = [asyncio.create_task(ask(name)) for name in "a" * 30 + "b" * 30 + "c" * 30]
        for n in range(len(tasks)):  # the oldest place is given back first
            await settle()
            places[n].give_back()
        assert set(Counter(served[6:36]).values()) == {10} and admission.n_running == admission.n_waiting == 0

    asyncio.run(run())


def test_a_full_queue_drops_the_last_of_the_longest() -> None:
    async def run() -> None:
        admission, served = Admission(ServerLimits(max_running=1, max_waiting=4)), []
        flood = asking(admission, served, "flood", 5)
        await settle()
        with pytest.raises(BusyError):
            await admission.take("flood")
        asking(admission, served, "one", 1)
        await settle()
        assert isinstance(flood[-1].exception(), BusyError) and admission.n_waiting == 4
        flood[1].cancel()  # its client went away
        flood[0].result().give_back()
        await settle()
        assert served == ["flood", "one"] and admission.n_waiting == 2

    asyncio.run(run())


def test_a_request_whose_client_went_away_leaves_the_queue_at_once() -> None:
    async def run() -> None:
        admission, served = Admission(ServerLimits(max_running=1)), []
        place = await admission.take("a")
        waiting = asking(admission, served, "b", 3)
        await settle()
        for n_left, task in zip((2, 1, 0), waiting, strict=True):
            task.cancel()
            await settle()
            assert admission.n_waiting == n_left
        place.give_back()
        assert (served, admission.n_running) == ([], 0)

    asyncio.run(run())


def test_a_wait_that_is_too_long_ends() -> None:
    async def run() -> None:
        admission = Admission(ServerLimits(max_running=1, max_wait_s=0.01))
        place = await admission.take("a")
        with pytest.raises(BusyError, match="no place became free"):
            await admission.take("b")
        assert admission.n_waiting == 0, "it left the queue"
        place.give_back()
        assert (admission.n_running, admission.n_waiting) == (0, 0)
        (await admission.take("b")).give_back()

    asyncio.run(run())
