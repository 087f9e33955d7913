"""A run with a killed process is found dead at once, reported as failed, and blocks no other run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from graphrag_pipeline.defs.automation.sensors import why_busy
from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.defs.runs import live as live_runs
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.live import end_dead_runs, host_tags, working
from graphrag_pipeline.defs.runs.naming import HOST_TAG, REINDEX_STALE, STARTED_BY_TAG
from graphrag_pipeline.defs.runs.records import prune_runs
from graphrag_pipeline.pipeline.root import ROOT_VARIABLE, Root
from graphrag_pipeline.storage.shared import heartbeats
from graphrag_pipeline_tests.support.machines import machine
from graphrag_pipeline_tests.support.roots import put

LATER_S = 60.0
CHANGED = "storage: {n_buckets: 2}\nreports: {max_input_tokens: 5000}\n"
"""Settings that make the reports and the stages after them stale."""
STARTED, CANCELING = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING

KILLED = """
import os, signal, sys
import dagster as dg
from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.assets.definitions import BODIES
from graphrag_pipeline.pipeline.root import Root, find_root

def job():
    return build_definitions(Root(find_root())).resolve_job_def("reindex_stale")

if __name__ == "__main__":
    if sys.argv[1] == "kill":
        BODIES["documents"] = lambda run: os.kill(os.getpid(), signal.SIGKILL)
    with open_instance(Root(find_root())) as instance:
        assert dg.execute_job(dg.reconstructable(job), instance).success
"""


def launch(root: Root, how: str) -> int:
    """Run `reindex_stale` in a separate process, by the executor that Dagster launches runs with."""
    program = root.path.parent / "launched.py"
    program.write_text(KILLED)
    environment = {**os.environ, ROOT_VARIABLE: str(root.path)}
    return subprocess.run([sys.executable, str(program), how], env=environment, capture_output=True).returncode


def locks(root: Root) -> set[str]:
    return {path.stem for path in (root.path / "cache" / "runs").glob("*.lock")}


def start(root: Root, instance: dg.DagsterInstance, status: dg.DagsterRunStatus, host: str | None = None) -> str:
    """A run that Dagster takes to be under way; without a tag for the host if that is None."""
    job = build_definitions(root).resolve_job_def(REINDEX_STALE)
    tags = {} if host is None else {HOST_TAG: host}
    return instance.create_run_for_job(job, status=status, tags=tags).run_id


def status_of(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


def here() -> str:
    return host_tags()[HOST_TAG]


def test_a_killed_run_and_the_runs_it_started_fail_at_the_next_tick(
    indexed_root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(indexed_root.path, "four.txt", "They say that Scrooge saw the fog.")
    assert launch(indexed_root, "kill") == -signal.SIGKILL
    with open_instance(indexed_root) as instance:
        dead = {run.run_id: run for run in instance.get_runs(dg.RunsFilter(statuses=[STARTED]))}
        (parent,) = (run for run in dead.values() if run.job_name == REINDEX_STALE)
        (child,) = (run for run in dead.values() if run.job_name != REINDEX_STALE)
        assert child.tags[STARTED_BY_TAG] == parent.run_id and locks(indexed_root) == set(dead)
        assert parent.run_id in str(why_busy(instance, indexed_root)), "it may still be ending"
        monkeypatch.setattr(live_runs, "_SETTLES_S", -1.0)
        assert why_busy(instance, indexed_root) is None
        assert {status_of(instance, run_id) for run_id in dead} == {dg.DagsterRunStatus.FAILURE}
        events = [entry.dagster_event for entry in instance.all_logs(parent.run_id) if entry.dagster_event]
        assert events[-1].is_failure and "died" in str(events[-1].message)
        assert locks(indexed_root) == set()


def test_a_successful_run_is_never_taken_for_dead(indexed_root: Root) -> None:
    (indexed_root.path / "settings.yaml").write_text(CHANGED)
    assert launch(indexed_root, "well") == 0
    with open_instance(indexed_root) as instance:
        assert end_dead_runs(instance, indexed_root, time.time() + LATER_S) == []
        assert not instance.get_runs(dg.RunsFilter(statuses=[STARTED, dg.DagsterRunStatus.FAILURE]))
        (run,) = instance.get_runs(dg.RunsFilter(job_name=REINDEX_STALE))
        assert run.tags[HOST_TAG] == here() and locks(indexed_root) == set()


def test_a_run_that_holds_its_lock_lives_however_long_it_takes(indexed_root: Root) -> None:
    with open_instance(indexed_root) as instance:
        run_id = start(indexed_root, instance, STARTED, here())
        with working(indexed_root, run_id):
            assert end_dead_runs(instance, indexed_root, time.time() + 10 * LATER_S) == []
            assert run_id in str(why_busy(instance, indexed_root))
        assert end_dead_runs(instance, indexed_root) == [], "its end reaches Dagster in a moment"
        assert end_dead_runs(instance, indexed_root, time.time() + LATER_S) == [run_id]


def test_a_run_that_died_while_it_was_terminated_is_canceled(indexed_root: Root) -> None:
    with open_instance(indexed_root) as instance:
        run_id = start(indexed_root, instance, CANCELING, here())
        with working(indexed_root, run_id):
            pass
        assert end_dead_runs(instance, indexed_root, time.time() + LATER_S) == [run_id]
        assert status_of(instance, run_id) == dg.DagsterRunStatus.CANCELED


@pytest.mark.parametrize("host", [None, "another-machine 1b4e28ba"])
def test_the_state_of_a_run_on_another_machine_is_unknown(indexed_root: Root, host: str | None) -> None:
    with open_instance(indexed_root) as instance:
        run_id = start(indexed_root, instance, STARTED, host)
        with working(indexed_root, run_id):
            pass
        assert end_dead_runs(instance, indexed_root, time.time() + LATER_S) == []
        assert run_id in str(why_busy(instance, indexed_root)), "for an hour"


def test_a_run_killed_on_another_machine_fails_once_its_heartbeats_stay_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file://{tmp_path}/store"
    observer, worker = machine(tmp_path / "observer" / "root", url), machine(tmp_path / "worker" / "root", url)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)
    assert launch(worker, "kill") == -signal.SIGKILL
    monkeypatch.setattr(live_runs, "host_tags", lambda: {HOST_TAG: "another-machine 1b4e28ba"})
    with open_instance(observer) as instance:
        started = {run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=[STARTED]))}
        assert len(started) == 2 and end_dead_runs(instance, observer) == []
        monkeypatch.setattr(heartbeats, "DEAD_AFTER_S", -1.0)
        assert set(end_dead_runs(instance, observer)) == started
        assert {status_of(instance, run_id) for run_id in started} == {dg.DagsterRunStatus.FAILURE}
        assert not list((tmp_path / "store" / "runs").iterdir())


def test_a_run_of_another_root_has_no_lock_here(indexed_root: Root) -> None:
    with open_instance(indexed_root) as instance:
        start(indexed_root, instance, STARTED, here())
        assert end_dead_runs(instance, indexed_root, time.time() + LATER_S) == []


def test_a_restarted_container_sees_the_runs_of_the_one_before(indexed_root: Root) -> None:
    name, *boot = here().split()
    with open_instance(indexed_root) as instance:
        run_id = start(indexed_root, instance, STARTED, " ".join(["earlier-container", *boot]) if boot else name)
        with working(indexed_root, run_id):
            pass
        assert end_dead_runs(instance, indexed_root, time.time() + LATER_S) == [run_id]


def test_the_command_line_ends_dead_runs_too(indexed_root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_runs, "_SETTLES_S", -1.0)
    (indexed_root.path / "settings.yaml").write_text(CHANGED)
    with open_instance(indexed_root) as instance:
        dead = start(indexed_root, instance, STARTED, here())
        with working(indexed_root, dead):
            pass
        assert run_index(Root(indexed_root.path)).ran
        assert status_of(instance, dead) == dg.DagsterRunStatus.FAILURE
        late = start(indexed_root, instance, STARTED, here())
        with working(indexed_root, late):
            pass
    (indexed_root.path / "settings.yaml").write_text("storage: {n_buckets: 2}\nschedule: {keep_runs_days: 30}\n")
    prune_runs(Root(indexed_root.path))
    with open_instance(indexed_root) as instance:
        assert status_of(instance, late) == dg.DagsterRunStatus.FAILURE


def test_a_read_only_root_is_used_without_a_lock(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "settings.yaml").write_text("{}\n")
    (tmp_path / "root" / "cache").write_text("no folder")
    root = Root(tmp_path / "root")
    with working(root, "run"):
        assert locks(root) == set()
