"""Buckets that machines build side by side: their bytes only, one state a run, and nothing lost beside a prune."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphrag_pipeline.defs.runs.naming import BUCKET_JOB
from graphrag_pipeline.errors import LeaseLostError, PipelineError, StoreError
from graphrag_pipeline.identity import bucket_keys
from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES
from graphrag_pipeline.storage.shared.lease import LEASE, LeaseHolder
from graphrag_pipeline.storage.shared.objects import open_object_store
from graphrag_pipeline.storage.shared.state import StoreState, head_names, is_swept_since
from graphrag_pipeline_tests.support.machines import again, index, machine, object_names, run_job, state_of
from graphrag_pipeline_tests.support.object_server import ObjectServer
from graphrag_pipeline_tests.support.roots import build_tables, built_root, contract_bytes, put
from graphrag_pipeline_tests.support.thoroughness import usually

MakeMachine = Callable[[Path, str], Root]
BUCKET_STAGES = [name for name, stage in STAGES.items() if stage.is_partitioned]
TABLES = {table for name in BUCKET_STAGES for table in STAGES[name].tables}
N_BUCKETS = 4


@contextmanager
def adding(root: Root, *buckets: str) -> Iterator[None]:
    """Build all stages of some buckets as one session."""
    opened = again(root)
    with opened.adding(buckets):
        build_tables(opened, BUCKET_STAGES, buckets)
        yield


def add(root: Root, *buckets: str) -> None:
    with adding(root, *buckets):
        pass


def run_bucket(root: Root, bucket: str) -> None:
    assert run_job(root, BUCKET_JOB, {"dagster/partition": bucket})


@pytest.mark.parametrize("is_first_done_first", usually([True, False], False))
def test_two_machines_that_start_on_an_empty_store_have_one_index(
    folder_url: str, tmp_path: Path, is_first_done_first: bool
) -> None:
    one, two = (machine(tmp_path / name, folder_url, n_buckets=N_BUCKETS) for name in ("one", "two"))
    halves = (bucket_keys(N_BUCKETS)[:2], bucket_keys(N_BUCKETS)[2:])
    first, second = halves if is_first_done_first else halves[::-1]
    with adding(one, *first):
        add(two, *second)
    index(one)
    assert index(two) == []
    alone = built_root(tmp_path / "alone", settings=f"storage:\n  n_buckets: {N_BUCKETS}\n", stages=ALL_STAGES)
    assert contract_bytes(again(two)) == contract_bytes(again(one)) == contract_bytes(alone)


def test_a_run_of_a_bucket_costs_one_state_and_at_most_25_requests(
    s3: ObjectServer, s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    one, two = (machine(tmp_path / name, s3_url) for name in ("one", "two"))
    run_bucket(one, "000")
    before = state_of(s3_url).number
    s3.requests.clear()
    run_bucket(two, "001")
    sent = Counter(method for method, _ in s3.requests)
    assert sum(sent.values()) <= 25, sent
    assert [path for method, path in s3.requests if "/tables/" in path and "/000/" in path] == []
    state = state_of(s3_url)
    assert state.number == before + 1
    assert set(state.heads) == {f"{table}/{bucket}" for table in TABLES for bucket in ("000", "001")}
    s3.requests.clear()
    run_bucket(two, "001")
    changing = [path for method, path in s3.requests if method != "GET" and "/runs/" not in path]
    assert changing == [] and state_of(s3_url) == state


def test_a_bucket_that_was_built_elsewhere_is_taken_and_not_built_again(
    indexed: MakeMachine, s3: ObjectServer, s3_url: str, tmp_path: Path
) -> None:
    indexed(tmp_path / "one", s3_url)
    state, two = state_of(s3_url), machine(tmp_path / "two", s3_url)
    s3.requests.clear()
    opened = again(two)
    with opened.adding(["001"]):
        assert build_tables(opened, BUCKET_STAGES, ["001"]) == []
    assert set(again(two).shared._copy.heads()) == {f"{table}/001" for table in TABLES}
    assert not (two.path / "snapshots").exists()
    assert state_of(s3_url) == state and state_of(s3_url).number == state.number


def test_the_lease_is_held_only_for_the_new_state(s3: ObjectServer, s3_url: str, tmp_path: Path) -> None:
    one = machine(tmp_path / "one", s3_url)
    with adding(one, "000"):
        assert open_object_store(s3_url).read(LEASE) is None
        s3.requests.clear()
    paths = [path.rpartition("/")[2] if "lease" in path else path for method, path in s3.requests if method == "PUT"]
    assert all("/tables/" in path for path in paths[: paths.index(LEASE)])
    assert not any("/tables/" in path for path in paths[paths.index(LEASE) :])


def test_objects_that_a_prune_removes_during_an_upload_are_uploaded_again(
    indexed: MakeMachine, s3: ObjectServer, s3_url: str, tmp_path: Path
) -> None:
    one, two = indexed(tmp_path / "one", s3_url), machine(tmp_path / "two", s3_url)
    put(two.path, "two.txt", "Bob Cratchit met Topper at the corner of Cornhill.")
    swept: list[str] = []

    def prune_before_the_lease(method: str, path: str) -> None:
        if method == "PUT" and path.endswith(LEASE) and not swept:
            swept.append("")  # the lease of the prune itself
            swept.extend(prune(again(one), 1, float("inf")).objects)

    with adding(two, "000", "001"):
        s3.fault = prune_before_the_lease
    s3.fault = None
    assert len(swept) > 1
    assert {name for head in state_of(s3_url).heads.values() for name in head_names(head)} <= object_names(s3_url)
    put(one.path, "two.txt", "Bob Cratchit met Topper at the corner of Cornhill.")
    assert {stage for stage, _ in index(one)}.isdisjoint(BUCKET_STAGES)


def test_a_prune_that_was_killed_counts_as_a_sweep_until_the_next_one(
    indexed: MakeMachine, folder_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = indexed(tmp_path / "one", folder_url)
    assert not is_swept_since(state_of(folder_url), state_of(folder_url))
    unnamed = "tables/entities/all/left_by_a_killed_push.parquet"
    open_object_store(folder_url).write(unnamed, b"x")
    opened = again(one)
    with pytest.raises(KeyboardInterrupt), opened.writing():
        monkeypatch.setattr(opened.shared._objects, "remove", _be_killed)
        opened.shared.remove_unnamed()
    monkeypatch.undo()
    cut = state_of(folder_url)
    assert is_swept_since(cut, cut)
    prune(again(one), 1, float("inf"))
    after = state_of(folder_url)
    assert unnamed not in object_names(folder_url)
    assert not is_swept_since(after, after) and is_swept_since(cut, after)


def _be_killed(names: Iterable[str]) -> None:
    if any(name.startswith("tables/") for name in names):
        raise KeyboardInterrupt


def test_of_two_builds_of_a_bucket_the_first_published_stays(
    indexed: MakeMachine, folder_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = indexed(tmp_path / "one", folder_url), machine(tmp_path / "two", folder_url)
    put(one.path, "two.txt", "Scrooge met Topper.")
    put(two.path, "two.txt", "Scrooge met Dick Wilkins.")
    with adding(one, "000", "001"):
        add(two, "000", "001")
        theirs = state_of(folder_url)
    assert state_of(folder_url) == theirs
    assert "were built both here and elsewhere; using the store's" in caplog.text
    again(one).pull()
    assert again(one).tables.head("documents", "000") == theirs.heads["documents/000"]


def test_stages_that_ended_before_an_error_are_published(folder_url: str, tmp_path: Path) -> None:
    one = machine(tmp_path / "one", folder_url)
    opened = again(one)
    with pytest.raises(ValueError, match="made up"), opened.collecting():
        with opened.adding(["000"]):
            build_tables(opened, ["corpus_manifest", "documents"], ["000"])
        with opened.adding(["000"]):
            raise ValueError("made up")
    assert set(state_of(folder_url).heads) == {"corpus_manifest/000", "documents/000"}


def test_a_lost_lease_publishes_nothing_and_keeps_the_work(
    indexed: MakeMachine, s3: ObjectServer, s3_url: str, tmp_path: Path
) -> None:
    indexed(tmp_path / "one", s3_url)
    two, before = machine(tmp_path / "two", s3_url), state_of(s3_url)
    put(two.path, "two.txt", "Scrooge met Dick Wilkins.")

    def publish_in_between(method: str, path: str) -> None:
        if method == "PUT" and "/states/" in path:
            s3.fault = None
            objects = open_object_store(s3_url)
            objects.write(LEASE, LeaseHolder("0" * 32, "other, process 7", lasts_s=0.5).to_json())
            from dataclasses import replace

            from graphrag_pipeline.storage.shared.state import NumberedStates

            assert NumberedStates(objects).publish(replace(before, number=before.number + 1))

    with pytest.raises(LeaseLostError, match="All work is kept here"), adding(two, "000", "001"):
        s3.fault = publish_in_between
    assert state_of(s3_url) == before
    add(two, "000", "001")
    assert state_of(s3_url) != before


def test_another_index_and_another_number_of_buckets_are_refused_before_any_work(
    indexed: MakeMachine, folder_url: str, tmp_path: Path
) -> None:
    indexed(tmp_path / "one", folder_url)
    with pytest.raises(PipelineError, match="n_buckets is 3, but"):
        add(machine(tmp_path / "two", folder_url, n_buckets=3), "000")
    other = built_root(tmp_path / "other", {"x.txt": "Oliver Twist met Fagin."}, stages=ALL_STAGES)
    (other.path / "settings.yaml").write_text((tmp_path / "one" / "settings.yaml").read_text())
    with pytest.raises(PipelineError, match="has another one; name an empty place"):
        add(other, "000")


def test_a_store_that_fails_is_an_error_before_any_work(s3: ObjectServer, s3_url: str, tmp_path: Path) -> None:
    one = machine(tmp_path / "one", s3_url, allow_offline="true")
    s3.fault = lambda method, path: 500
    with pytest.raises(StoreError, match=r"storage.url failed"):
        add(one, "000")
    assert not (one.path / "heads").exists()


def test_a_state_without_a_count_of_sweeps_is_that_of_an_earlier_release() -> None:
    values = json.loads(gzip.decompress(StoreState(n_sweeps=3).to_bytes()))
    del values["n_sweeps"]
    assert StoreState.from_bytes(gzip.compress(json.dumps(values).encode()), "here").n_sweeps == 0
