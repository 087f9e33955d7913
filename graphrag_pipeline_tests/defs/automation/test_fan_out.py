"""Buckets spread over machines by Dagster's run queue: level by level, by heads, with equal bytes at the end."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest

from graphrag_pipeline.defs.automation import fan_out
from graphrag_pipeline.defs.automation.fan_out import MAX_ATTEMPTS, look
from graphrag_pipeline.defs.automation.sensors import Watch
from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.naming import BUCKET_JOB, CORPUS_JOB, LISTED_TAG
from graphrag_pipeline.identity import bucket_keys
from graphrag_pipeline.inputs import files as input_files
from graphrag_pipeline.inputs.listings import pack_listing
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.command_line import Call
from graphrag_pipeline_tests.support.machines import again, index, reader, run_job, state_of
from graphrag_pipeline_tests.support.object_server import ObjectServer
from graphrag_pipeline_tests.support.roots import CAROL, contract_bytes, make_root

N_BUCKETS = 2


class Fleet:
    """A machine with the daemon's sensor, and workers with roots of their own; all have one Dagster home."""

    def __init__(self, folder: Path, url: str, monkeypatch: pytest.MonkeyPatch, **settings: object) -> None:
        documents = folder / "documents"
        documents.mkdir(parents=True)
        for name, text in CAROL.items():
            (documents / name).write_text(text, encoding="utf-8")
        self.documents = documents
        self.url, self._settings, self._folder = url, settings, folder
        monkeypatch.setenv("DAGSTER_HOME", str(folder / "home"))
        (folder / "home").mkdir()
        self.daemon = self.join("daemon")
        self.watch = Watch()
        self.n_runs = 0

    def join(self, name: str) -> Root:
        """Add a machine with settings only, whose input folder is the common one."""
        root = reader(self._folder / name, self.url, **{"n_buckets": N_BUCKETS, **self._settings})
        path = root.path / "settings.yaml"
        path.write_text(path.read_text() + f"input:\n  folder: {self.documents}\n", encoding="utf-8")
        return again(root)

    def look(self) -> tuple[list[dg.RunRequest], str]:
        """Look twice, since a change counts once two looks agree."""
        with open_instance(self.daemon) as instance:
            for _ in range(2):
                self.watch, requests, reason = look(instance, again(self.daemon), self.watch)
                if requests:
                    break
        return requests, reason

    def run(self, root: Root, request: dg.RunRequest) -> bool:
        """Run a request on a machine; return whether Dagster calls it a success."""
        partition = {"dagster/partition": request.partition_key} if request.partition_key else {}
        self.n_runs += 1
        return run_job(root, str(request.job_name), {**request.tags, **partition})

    def read(self) -> dict[str, bytes]:
        """Return the tables that a reader gets."""
        opened = again(self.daemon)
        opened.follow()
        return contract_bytes(opened)

    def finish(self, machines: Sequence[Root]) -> str:
        """Run what is requested, in turn on the machines, until nothing is; return the last reason."""
        for _ in range(12):
            requests, reason = self.look()
            if not requests:
                return reason
            for number, request in enumerate(requests):
                self.run(machines[number % len(machines)], request)
        raise AssertionError(f"still at work: {reason}")


@pytest.fixture
def fleet(tmp_path: Path, folder_url: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    # After `call`, which takes Dagster's home away.
    return Fleet(tmp_path / "fleet", folder_url, monkeypatch)


@pytest.fixture
def folder_url(tmp_path: Path) -> str:
    return f"file://{tmp_path}/store"


def alone(folder: Path, fleet: Fleet) -> Root:
    """Return an index of the same documents by one machine without a store."""
    root = make_root(folder, {}, f"storage:\n  n_buckets: {N_BUCKETS}\ninput:\n  folder: {fleet.documents}\n")
    index(root)
    return root


def test_machines_that_start_with_settings_only_make_the_index_of_one(fleet: Fleet, tmp_path: Path) -> None:
    requests, reason = fleet.look()
    assert [request.partition_key for request in requests] == bucket_keys(N_BUCKETS), reason
    assert {request.job_name for request in requests} == {BUCKET_JOB}
    workers = [fleet.join("one"), fleet.join("two")]
    assert fleet.finish(workers) == "the index in the shared store is up to date"
    assert fleet.n_runs == N_BUCKETS + 1
    one_machine = alone(tmp_path / "alone", fleet)
    assert fleet.read() == contract_bytes(one_machine)
    (fleet.documents / "four.txt").write_text("Bob Cratchit skated on Cornhill.", encoding="utf-8")
    requests, _ = fleet.look()
    assert len(requests) == 1
    fleet.finish(workers)
    assert fleet.n_runs == N_BUCKETS + 3
    index(one_machine)
    assert fleet.read() == contract_bytes(again(one_machine))


def test_a_worker_gets_only_its_bucket_and_lists_no_folder(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    requests, _ = fleet.look()
    worker = fleet.join("one")

    def refuse(*arguments: object) -> None:
        raise AssertionError("the folder was listed")

    monkeypatch.setattr(input_files, "_walk", refuse)
    assert LISTED_TAG in requests[0].tags and fleet.run(worker, requests[0])
    monkeypatch.undo()
    monkeypatch.setenv("DAGSTER_HOME", str(fleet.documents.parent / "home"))
    second = fleet.join("two")
    assert fleet.run(second, requests[1])
    assert {path.name for path in (second.path / "tables").glob("*/*") if path.is_dir()} == {"001"}


def test_a_listing_that_was_replaced_is_not_used(fleet: Fleet) -> None:
    requests, _ = fleet.look()
    shared, worker = fleet.daemon.shared, fleet.join("one")
    assert shared is not None
    for bucket in bucket_keys(N_BUCKETS):
        shared.write_listing(bucket, pack_listing([], fleet.documents))
    for request in requests:
        assert fleet.run(worker, request)
    assert sum(head.n_rows for key, head in state_of(fleet.url).heads.items() if "documents/" in key) == len(CAROL)


def test_a_run_that_dagster_calls_a_failure_counts_by_its_heads(fleet: Fleet) -> None:
    requests, _ = fleet.look()
    worker = fleet.join("one")
    for request in requests:
        assert fleet.run(worker, request)
    with open_instance(fleet.daemon) as instance:
        for run in instance.get_runs():
            instance.report_run_failed(run, "a false failure")
    requests, reason = fleet.look()
    assert [request.job_name for request in requests] == [CORPUS_JOB], reason


def test_a_bucket_that_fails_is_tried_three_times_and_waits_for_the_user(
    fleet: Fleet, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphrag_pipeline.defs.assets.definitions import BODIES

    worker, body = fleet.join("one"), BODIES["text_units"]

    def fail_in_one_bucket(run: object) -> None:
        if run.partition == "001":
            raise ValueError("made up")
        body(run)

    monkeypatch.setitem(BODIES, "text_units", fail_in_one_bucket)
    reason = fleet.finish([worker])
    assert fleet.n_runs == N_BUCKETS - 1 + MAX_ATTEMPTS
    assert f"still stale after {MAX_ATTEMPTS} runs: 001 (last run " in reason and "repair the cause" in reason
    assert state_of(fleet.url).current is None
    monkeypatch.setitem(BODIES, "text_units", body)
    assert fleet.look()[0] == []
    assert call("--root", fleet.daemon.path, "index", "--fan-out").status == 0
    assert [request.partition_key for request in fleet.look()[0]] == ["001"]
    fleet.finish([worker])
    assert state_of(fleet.url).current


def test_a_machine_that_fails_at_everything_does_not_use_up_the_attempts(
    tmp_path: Path, folder_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphrag_pipeline.defs.assets.definitions import BODIES

    fleet = Fleet(tmp_path / "fleet", folder_url, monkeypatch, n_buckets=3)  # it has to fail at two of them
    sick, healthy = fleet.join("sick"), fleet.join("healthy")
    body = BODIES["text_units"]

    def fail_on_one_machine(run: object) -> None:
        if run.root.path == sick.path:
            raise OSError("no space left on device")
        body(run)

    monkeypatch.setitem(BODIES, "text_units", fail_on_one_machine)
    monkeypatch.setattr(fan_out, "MAX_ATTEMPTS", 2)  # fewer runs show the same law

    def run_on(machine: Root, request: dg.RunRequest) -> None:
        monkeypatch.setattr(socket, "gethostname", lambda: machine.path.name)
        assert fleet.run(machine, request) == (machine is healthy)

    requests, _ = fleet.look()
    run_on(healthy, requests.pop())
    for _ in range(fan_out.MAX_ATTEMPTS + 1):  # it fails so quickly that it takes all the others
        for request in requests:
            run_on(sick, request)
        requests, reason = fleet.look()
        assert len(requests) == 2
        assert "machine sick failed at its last buckets" in reason
    for request in requests:
        run_on(healthy, request)
    monkeypatch.setattr(socket, "gethostname", lambda: "healthy")
    assert fleet.finish([healthy]) == "the index in the shared store is up to date"


def test_what_is_under_way_is_not_requested_again(fleet: Fleet) -> None:
    requests, _ = fleet.look()
    with open_instance(fleet.daemon) as instance:
        job = build_definitions(fleet.daemon).resolve_job_def(BUCKET_JOB)
        instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=requests[0].tags)
    left, _ = fleet.look()
    assert [request.partition_key for request in left] == ["001"]


def test_a_changed_prompt_or_setting_waits_for_the_user(fleet: Fleet, call: Call) -> None:
    worker = fleet.join("one")
    index(worker)
    for root in (fleet.daemon, worker):
        path = root.path / "settings.yaml"
        path.write_text(path.read_text() + "text_units:\n  size: 250\n", encoding="utf-8")
    requests, reason = fleet.look()
    assert not requests and "prompts, models or settings changed" in reason and "`index --fan-out` allows it" in reason
    outcome = call("--root", fleet.daemon.path, "index", "--fan-out")
    assert outcome.status == 0 and f"next: {N_BUCKETS} buckets (text_units 000: " in outcome.out, outcome
    assert "fan_out_sensor requests the runs at its next look, within 60 s" in outcome.out
    assert len(fleet.look()[0]) == N_BUCKETS
    index(worker)
    outcome = call("--root", fleet.daemon.path, "index", "--fan-out")
    assert "the index in the shared store is up to date: nothing to run" in outcome.out


def test_fan_out_without_a_shared_store_says_what_it_needs(tmp_path: Path, call: Call) -> None:
    outcome = call("--root", make_root(tmp_path / "root").path, "index", "--fan-out")
    assert outcome.status == 1 and "set storage.url in settings.yaml" in outcome.err


def test_the_sensor_is_there_with_a_shared_store_and_on_by_its_setting(fleet: Fleet) -> None:
    def sensors(root: Root) -> dict[str, dg.DefaultSensorStatus]:
        return {sensor.name: sensor.default_status for sensor in build_definitions(root).sensors or []}

    assert sensors(fleet.daemon)["fan_out_sensor"] == dg.DefaultSensorStatus.STOPPED
    path = fleet.daemon.path / "settings.yaml"
    path.write_text(path.read_text() + "schedule:\n  fan_out: true\n", encoding="utf-8")
    assert sensors(again(fleet.daemon))["fan_out_sensor"] == dg.DefaultSensorStatus.RUNNING
    with open_instance(fleet.daemon) as instance:
        repository = build_definitions(again(fleet.daemon)).get_repository_def()
        sensor = repository.get_sensor_def("fan_out_sensor")
        first = sensor.evaluate_tick(dg.build_sensor_context(instance, repository_def=repository))
        assert "first look" in str(first.skip_message)
        context = dg.build_sensor_context(instance, cursor=first.cursor, repository_def=repository)
        second = sensor.evaluate_tick(context)
        assert len(second.run_requests or []) == N_BUCKETS


def test_a_store_that_cannot_be_reached_is_a_skipped_tick(
    tmp_path: Path, s3: ObjectServer, s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(tmp_path / "fleet", s3_url, monkeypatch)
    s3.fault = lambda method, path: 500
    with open_instance(fleet.daemon) as instance:
        sensor = build_definitions(fleet.daemon).get_repository_def().get_sensor_def("fan_out_sensor")
        cursor = None
        for _ in range(2):
            tick = sensor.evaluate_tick(dg.build_sensor_context(instance, cursor=cursor))
            cursor = tick.cursor
    assert "storage.url failed" in str(tick.skip_message)
