"""Heartbeats of runs: a silent run is found dead by the observer's clock, whatever the clock of the run's machine."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from graphrag_pipeline.storage.shared import heartbeats as heartbeats_module
from graphrag_pipeline.storage.shared.heartbeats import DEAD_AFTER_S, HEARTBEAT_S, Heartbeats
from graphrag_pipeline.storage.shared.objects import open_object_store
from graphrag_pipeline_tests.support.object_server import ObjectServer

RUN = "0b5f4c52"


@pytest.fixture
def observer(folder_url: str, tmp_path: Path) -> Heartbeats:
    return Heartbeats(open_object_store(folder_url), tmp_path / "observer" / "seen.json")


@pytest.fixture
def worker(folder_url: str, tmp_path: Path) -> Heartbeats:
    return Heartbeats(open_object_store(folder_url), tmp_path / "worker" / "seen.json")


def beat(url: str, count: int) -> None:
    open_object_store(url).write(f"runs/{RUN}", str(count).encode())


def test_a_run_without_a_new_heartbeat_is_dead_after_two_of_them_and_a_minute(
    observer: Heartbeats, folder_url: str
) -> None:
    beat(folder_url, 1)
    assert observer.find_dead([RUN], now=1000.0) == []
    assert observer.find_dead([RUN], now=1000.0 + DEAD_AFTER_S) == []
    assert observer.find_dead([RUN], now=1001.0 + DEAD_AFTER_S) == [RUN]
    assert DEAD_AFTER_S <= 2 * HEARTBEAT_S + 60


def test_each_heartbeat_starts_the_wait_again(observer: Heartbeats, folder_url: str) -> None:
    for count in range(1, 5):
        beat(folder_url, count)
        assert observer.find_dead([RUN], now=1000.0 + 0.9 * DEAD_AFTER_S * count) == []


def test_an_observer_that_was_started_again_waits_anew(observer: Heartbeats, folder_url: str) -> None:
    beat(folder_url, 1)
    assert observer.find_dead([RUN], now=90_000.0) == []
    assert observer.find_dead([RUN], now=10.0) == []  # the clock of a machine begins at 0 when it starts
    assert observer.find_dead([RUN], now=11.0 + DEAD_AFTER_S) == [RUN]


def test_a_run_that_never_sent_one_is_unknown(observer: Heartbeats) -> None:
    assert observer.find_dead([RUN], now=0.0) == observer.find_dead([RUN], now=1e6) == []


def test_a_run_sends_heartbeats_until_it_ends(
    observer: Heartbeats, worker: Heartbeats, folder_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats_module, "HEARTBEAT_S", 0.02)
    objects = open_object_store(folder_url)
    with worker.beating(RUN):
        deadline = time.monotonic() + 20
        while int(objects.read(f"runs/{RUN}") or b"0") < 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert objects.names("runs") == []
    assert observer.find_dead([RUN], now=1e6) == []


def test_a_store_that_fails_ends_neither_a_run_nor_a_look(
    s3: ObjectServer, s3_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    beats = Heartbeats(open_object_store(s3_url), tmp_path / "seen.json")
    s3.fault = lambda method, path: 500
    with beats.beating(RUN):
        assert beats.find_dead([RUN], now=0.0) == []
    assert "heartbeats of runs:" in caplog.text


def test_damaged_notes_count_as_none(observer: Heartbeats, folder_url: str, tmp_path: Path) -> None:
    beat(folder_url, 1)
    observer.find_dead([RUN], now=0.0)
    (tmp_path / "observer" / "seen.json").write_text("[1")
    assert observer.find_dead([RUN], now=1e6) == []
