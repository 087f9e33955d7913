"""Commands and Dagster's jobs on machines that share a store: processes, kills, two writers at once."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.storage.shared.state import STATES
from graphrag_pipeline_tests.support.command_line import ONE_BUCKET, TIMEOUT_S, Call
from graphrag_pipeline_tests.support.dagster.killed_runs import index_at_once, working_apart
from graphrag_pipeline_tests.support.machines import again, index, machine, reader
from graphrag_pipeline_tests.support.object_server import ObjectServer
from graphrag_pipeline_tests.support.roots import build_tables, built_root, contract_bytes, indexed_root, put
from graphrag_pipeline_tests.support.thoroughness import IS_THOROUGH

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
KILLED = -signal.SIGKILL


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


def run_by_dagster(root: Root) -> None:
    """Index as the command does."""
    run_index(root)


def published(path: Path, url: str) -> str:
    """Return the snapshot that a new reader gets, after reading all of it."""
    root = reader(path, url)
    with GraphIndex.open(root.path) as opened:
        assert opened.search("Who is Bob Cratchit?").answer
        for name in opened.snapshot.manifest.tables:
            opened.snapshot.table(name)
        return opened.snapshot.id


def write_index(root: Root) -> None:
    """Index without Dagster's records, for kills whose moments are requests to the store."""
    index(root)


def kill_at(
    server: ObjectServer, root: Root, method: str, part: str, n: int, work: Callable[[Root], None] = write_index
) -> int:
    """Index in a process that is killed at its n-th such request, before its effect; return the exit status."""
    seen = 0

    def kill(sent: str, path: str) -> int | None:
        nonlocal seen
        seen += sent == method and part in path
        if seen < n:
            return None
        process.kill()
        return 503

    with working_apart(root.path, server.environment, work) as process:
        server.fault = kill
        process.join(TIMEOUT_S)
        server.fault = None
        return process.exitcode


def test_killed_at_any_moment_of_a_push_readers_see_one_snapshot_and_the_next_completes(
    s3: ObjectServer, s3_url: str, tmp_path: Path
) -> None:
    one = machine(tmp_path / "one", s3_url, n_buckets=1)
    index(one)
    old = published(tmp_path / "before", s3_url)
    put(one.path, "four.txt", "Bob Cratchit skated on Cornhill with Topper.")
    moments = [("PUT", "lease", 1), ("PUT", "tables/", 2), ("PUT", "snapshots/vectors", 2), ("PUT", STATES, 1)]
    for number, moment in enumerate(moments if IS_THOROUGH else moments[1::2]):
        assert kill_at(s3, one, *moment) == KILLED, moment
        assert published(tmp_path / f"reader{number}", s3_url) == old
    assert kill_at(s3, one, "DELETE", "lease", 1, run_by_dagster) == KILLED
    new = published(tmp_path / "after", s3_url)
    assert new != old
    assert run_index(again(one)).ran == []
    alone = built_root(tmp_path / "alone", settings=ONE_BUCKET, stages=ALL_STAGES)
    put(alone.path, "four.txt", "Bob Cratchit skated on Cornhill with Topper.")
    build_tables(alone, ALL_STAGES)
    assert contract_bytes(again(one)) == contract_bytes(alone)


def test_the_second_of_two_index_runs_waits_and_finds_the_work_done(
    s3: ObjectServer, s3_url: str, tmp_path: Path
) -> None:
    one, two = (machine(tmp_path / name, s3_url, n_buckets=1) for name in ("one", "two"))
    ended = index_at_once(one.path, two.path, environment=s3.environment)
    assert [each.status for each in ended] == [0, 0], ended
    assert sum("nothing changed" in each.out for each in ended) == 1, ended
    assert sum("is writing the index; waiting for it" in each.err for each in ended) == 1, ended
    assert contract_bytes(again(one)) == contract_bytes(again(two))


@pytest.mark.thorough
def test_the_jobs_of_dagster_pull_and_push(s3_url: str, tmp_path: Path) -> None:
    one, two = (machine(tmp_path / name, s3_url) for name in ("one", "two"))
    for root in (one, two):
        with open_instance(root) as instance:
            job = build_definitions(root).resolve_job_def("reindex_stale")
            result = job.execute_in_process(instance=instance, run_config=QUIET)
        assert result.success
    shown = [event.step_output_data.metadata for event in result.all_events if event.is_successful_output]
    assert shown[-1]["partitions computed"].value == 0
    assert contract_bytes(again(two)) == contract_bytes(again(one))


@pytest.mark.thorough
def test_assets_that_are_materialized_alone_pull_and_push(s3: ObjectServer, s3_url: str, tmp_path: Path) -> None:
    """Run a backfill with one bucket on each of two machines, and the rest on a third."""
    three = [machine(tmp_path / name, s3_url) for name in ("one", "two", "three")]
    for root, job, key in zip(
        three, ("index_bucket", "index_bucket", "graph_and_later"), ("000", "001", None), strict=True
    ):
        with open_instance(root) as instance:
            result = (
                build_definitions(root)
                .resolve_job_def(job)
                .execute_in_process(instance=instance, partition_key=key, run_config=QUIET)
            )
        assert result.success
    alone = indexed_root(tmp_path / "alone")
    last = reader(tmp_path / "reader", s3_url)
    with GraphIndex.open(last.path) as opened:
        assert opened.snapshot.id == alone.snapshots.current()
    assert run_index(again(three[0])).ran == []


def test_a_query_job_reads_a_snapshot_published_elsewhere(
    indexed: Callable[[Path, str], Root], s3_url: str, tmp_path: Path
) -> None:
    one = indexed(tmp_path / "one", s3_url)
    other = reader(tmp_path / "other", s3_url)
    with open_instance(other) as instance:
        job = build_definitions(other).resolve_job_def("basic_search_job")
        config = {"question": "Who is Bob Cratchit?"}
        result = job.execute_in_process(instance=instance, run_config=config)
    assert result.success
    observations = [event for event in result.all_events if event.event_type == dg.DagsterEventType.ASSET_OBSERVATION]
    assert one.snapshots.current() in str(observations)


@pytest.mark.thorough
def test_every_reading_command_works_on_a_machine_without_an_index(
    indexed: Callable[[Path, str], Root], s3_url: str, tmp_path: Path, call: Call
) -> None:
    indexed(tmp_path / "one", s3_url)

    def run(*command: str | Path) -> str:
        root = machine(tmp_path / command[0], s3_url)
        outcome = call("--root", root.path, *command)
        assert outcome.status == 0, (command, outcome)
        return outcome.out

    assert "everything is fresh" in run("status")
    assert re.search(r"^ *3$", run("sql", "SELECT count(*) AS n FROM stage_documents"), re.MULTILINE)
    assert "published" in run("snapshots", "list")
    assert "extracted_graph" in run("trace", "Entities:0")
    assert "exported snapshot" in run("export", tmp_path / "out", "--format", "csv")
    assert "Scrooge" in run("merges") + run("query", "Who is Scrooge?")
    assert "0 partitions of stages would run" in run("index", "--dry-run")


def test_a_root_of_other_documents_is_refused(
    indexed: Callable[[Path, str], Root], s3_url: str, tmp_path: Path
) -> None:
    one = indexed(tmp_path / "one", s3_url)
    before = published(tmp_path / "before", s3_url)
    other = machine(tmp_path / "other", s3_url, documents={"twist.txt": "Oliver Twist met Fagin in London."})
    again(other).pull()
    for _ in range(2):
        with pytest.raises(PipelineError, match=r"an index of 3 documents, none of which is in .*other/input"):
            run_index(again(other))
    assert published(tmp_path / "after", s3_url) == before
    put(other.path, "one.txt", (one.path / "input" / "one.txt").read_text())
    with pytest.raises(
        PipelineError, match=r"has 3 documents, and 2 of them are not in .*other/input; .*--allow-removal"
    ):
        run_index(again(other))
    assert published(tmp_path / "later", s3_url) == before
    assert run_index(again(other), allow_removal=True).n_documents == 2
    (other.path / "input" / "one.txt").unlink()
    assert run_index(again(other)).n_documents == 1  # the root is joined, so a deletion is meant
