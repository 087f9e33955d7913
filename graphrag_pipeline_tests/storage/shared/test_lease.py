"""A lease has one holder: others wait while it is renewed and take it over when it expires."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path

import pytest

from graphrag_pipeline.errors import LeaseLostError
from graphrag_pipeline.storage.shared.lease import LEASE, Lease, LeaseHolder, read_holder
from graphrag_pipeline.storage.shared.objects import open_object_store
from graphrag_pipeline_tests.support.machines import check_that_second_waits
from graphrag_pipeline_tests.support.thoroughness import usually

SHORT_S = 0.6
RENEWED_S = 2.0
"""A lease that is renewed in time even where each write is flushed to a busy disk."""


def lease(url: str, tmp_path: Path, name: str = "one", lasts_s: float = SHORT_S) -> Lease:
    return Lease(open_object_store(url), tmp_path / name, lasts_s)


def test_a_lease_is_taken_and_given_back(url: str, tmp_path: Path) -> None:
    taken = lease(url, tmp_path)
    taken.acquire()
    held = read_holder(open_object_store(url))
    assert held is not None and f"process {os.getpid()}" in held.name
    taken.check()
    taken.release()
    assert read_holder(open_object_store(url)) is None


@pytest.mark.parametrize("url", usually(["file", "memory", "s3"], "s3"), indirect=True)
def test_a_renewed_lease_is_waited_for(url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    first, second = (lease(url, tmp_path, name, lasts_s=RENEWED_S) for name in ("one", "two"))
    check_that_second_waits(first, second, RENEWED_S * 2)  # it would have expired long ago
    assert caplog.text.count("is writing the index; waiting for it") == 1
    assert "taking it over" not in caplog.text


def test_a_lease_without_renewals_is_taken_over_and_its_holder_gets_an_error(url: str, tmp_path: Path) -> None:
    stopped = lease(url, tmp_path, lasts_s=1000)
    stopped.acquire()
    objects = open_object_store(url)
    held = read_holder(objects)
    assert held is not None
    objects.write(LEASE, LeaseHolder(held.token, held.name, 0.3).to_json())  # as if it had been short
    second = lease(url, tmp_path, "two")
    second.acquire()
    second.check()
    with pytest.raises(LeaseLostError, match=r"another process took over the lease .* All work is kept here"):
        stopped.check()
    with pytest.raises(LeaseLostError):
        stopped.raise_if_lost()
    stopped.release()
    second.check()  # the lease of another holder stays
    second.release()


def test_a_working_copy_whose_process_was_killed_does_not_wait(url: str, tmp_path: Path) -> None:
    lease(url, tmp_path, lasts_s=1000).acquire()  # and is never released
    started = time.monotonic()
    next_one = lease(url, tmp_path, lasts_s=1000)
    next_one.acquire()
    assert time.monotonic() - started < 500  # of the 1000 that another machine would wait
    next_one.check()
    next_one.release()


def test_a_renewal_that_finds_another_holder_reports_it_without_a_request(url: str, tmp_path: Path) -> None:
    taken = lease(url, tmp_path)
    taken.acquire()
    open_object_store(url).write(LEASE, LeaseHolder("0" * 32, "other", 60.0).to_json())
    deadline = time.monotonic() + 30
    with pytest.raises(LeaseLostError):
        while time.monotonic() < deadline:
            taken.raise_if_lost()
            time.sleep(0.05)
    taken.release()
    assert read_holder(open_object_store(url)) == LeaseHolder("0" * 32, "other", 60.0)


@pytest.mark.parametrize("url", usually(["file", "memory", "s3"], "file", "s3"), indirect=True)
def test_of_many_at_once_one_at_a_time_holds_it(url: str, tmp_path: Path) -> None:
    inside: list[str] = []
    most: list[int] = []

    def work(name: str) -> None:
        taken = lease(url, tmp_path, name, lasts_s=5)
        taken.acquire()
        inside.append(name)
        most.append(len(inside))
        taken.check()
        time.sleep(0.02)
        inside.remove(name)
        taken.release()

    threads = [threading.Thread(target=work, args=(f"writer {number}",)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 5


def test_a_lease_that_cannot_be_read_is_taken_over(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_object_store(url).write(LEASE, b"nonsense")
    found = read_holder(open_object_store(url))
    assert found is not None and found.lasts_s == 60
    open_object_store(url).write(LEASE, LeaseHolder("", "an unknown process", 0.2).to_json())
    taken = lease(url, tmp_path)
    taken.acquire()
    taken.check()
    taken.release()
