"""Machines that share a store have one index: others follow a change, and nothing is built twice or lost."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_pipeline.errors import LeaseLostError, NoSnapshotError, PipelineError, StoreError
from graphrag_pipeline.pipeline.forgetting import forget_document
from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.storage.shared.lease import LEASE, LeaseHolder
from graphrag_pipeline.storage.shared.objects import open_object_store
from graphrag_pipeline.storage.shared.state import STATES, named_objects, state_name
from graphrag_pipeline.storage.snapshot_store import list_snapshots, roll_back
from graphrag_pipeline_tests.support.machines import (
    again,
    build_ahead,
    fail_to_push,
    index,
    machine,
    object_names,
    reader,
    state_of,
)
from graphrag_pipeline_tests.support.object_server import ObjectServer
from graphrag_pipeline_tests.support.paths import MICROSOFT_INDEX
from graphrag_pipeline_tests.support.roots import CAROL, built_root, contract_bytes, put, table_bytes
from graphrag_pipeline_tests.support.thoroughness import usually

MakeMachine = Callable[[Path, str], Root]
QUESTION = "Who is Bob Cratchit?"
LATE = float("inf")


def ask(root: Root) -> tuple[str, str]:
    """Return the snapshot that a reader gets, and its answer."""
    with GraphIndex.open(root.path) as opened:
        return opened.snapshot.id, opened.search(QUESTION, method="local").answer


# ------------------------------------------------------------------------------------------------------------ following


def test_a_root_with_settings_alone_answers_like_the_one_that_was_indexed(
    indexed: MakeMachine, folder_url: str, tmp_path: Path
) -> None:
    one = indexed(tmp_path / "one", folder_url)
    two = reader(tmp_path / "two", folder_url)
    assert ask(two) == ask(one)
    assert contract_bytes(again(two)) == contract_bytes(one)
    assert not (two.path / "tables").exists()  # readers download the published snapshot alone


def test_the_tables_are_those_of_an_index_without_a_store(folder_url: str, tmp_path: Path) -> None:
    shared, alone = machine(tmp_path / "shared", folder_url), built_root(tmp_path / "alone", stages=ALL_STAGES)
    index(shared)
    for root in (shared, alone):
        put(root.path, "four.txt", "Ebenezer Scrooge met the Ghost of Christmas Past.")
        index(root)
    assert contract_bytes(shared) == contract_bytes(alone)
    assert table_bytes(shared) == table_bytes(alone)


def test_indexing_elsewhere_runs_nothing(indexed: MakeMachine, folder_url: str, tmp_path: Path) -> None:
    one = indexed(tmp_path / "one", folder_url)
    two = machine(tmp_path / "two", folder_url)
    assert index(two) == []
    assert table_bytes(again(two)) == table_bytes(one)
    assert ask(two) == ask(one)


def test_an_edit_there_runs_its_stages_and_is_pulled_here(indexed: MakeMachine, s3_url: str, tmp_path: Path) -> None:
    one, two = indexed(tmp_path / "one", s3_url), machine(tmp_path / "two", s3_url)
    before = ask(one)
    put(two.path, "two.txt", CAROL["two.txt"] + " Bob Cratchit thanked Mr. Fezziwig.")
    ran = index(two)
    buckets = {partition for stage, partition in ran if STAGES.get(stage) and STAGES[stage].is_partitioned}
    assert len(buckets) == 1
    assert ask(one) == ask(two) != before
    put(one.path, "two.txt", CAROL["two.txt"] + " Bob Cratchit thanked Mr. Fezziwig.")
    assert index(one) == []


def test_nothing_changed_costs_five_requests_and_a_reader_two(
    indexed: MakeMachine, s3: ObjectServer, s3_url: str, tmp_path: Path
) -> None:
    root = indexed(tmp_path / "one", s3_url)
    index(root)  # imports modules while it holds the lease, and so may renew it
    s3.requests.clear()
    assert index(root) == []
    assert [method for method, _ in s3.requests] == ["PUT", "GET", "GET", "GET", "DELETE"]  # the lease, the state
    s3.requests.clear()
    with GraphIndex.open(root.path):
        pass
    assert [method for method, _ in s3.requests] == ["GET", "GET"]


def test_a_reader_needs_no_right_to_write(indexed: MakeMachine, s3: ObjectServer, s3_url: str, tmp_path: Path) -> None:
    one = indexed(tmp_path / "one", s3_url)
    s3.fault = lambda method, path: None if method in ("GET", "HEAD") else 403
    two = reader(tmp_path / "two", s3_url)
    assert ask(two) == ask(one)
    with pytest.raises(StoreError, match="PermissionError"):
        index(machine(tmp_path / "three", s3_url))


def test_an_older_snapshot_is_fetched_when_it_is_queried(indexed: MakeMachine, folder_url: str, tmp_path: Path) -> None:
    one = indexed(tmp_path / "one", folder_url)
    old, answer = ask(one)
    build_ahead(one, "four.txt", "Bob Cratchit skated on Cornhill.")
    index(one)
    two = reader(tmp_path / "two", folder_url)
    assert ask(two)[0] != old
    assert [facts.id for facts in list_snapshots(again(two).snapshots)] == [ask(two)[0], old]
    with GraphIndex.open(two.path, snapshot=old) as opened:
        assert opened.search(QUESTION, method="local").answer == answer
    opened_at = {facts.id: facts.created for facts in list_snapshots(again(two).snapshots)}
    assert opened_at == {facts.id: facts.created for facts in list_snapshots(again(one).snapshots)}


def test_rollback_and_unpin_reach_every_machine(indexed: MakeMachine, folder_url: str, tmp_path: Path) -> None:
    one, two = indexed(tmp_path / "one", folder_url), machine(tmp_path / "two", folder_url)
    old = ask(one)
    build_ahead(one, "four.txt", "Bob Cratchit skated on Cornhill.")
    index(one)
    new = ask(one)
    with two.writing():
        roll_back(two.snapshots, old[0])
    assert ask(one) == old
    assert again(one).snapshots.pinned() == old[0]
    put(one.path, "five.txt", "Topper met Bob Cratchit.")
    index(one)
    assert ask(reader(tmp_path / "three", folder_url)) == old
    opened = again(one)
    with opened.writing():
        opened.snapshots.unpin()
    assert again(two).snapshots.pinned() == old[0]
    ask(two)
    assert again(two).snapshots.pinned() is None
    assert new[0] in state_of(folder_url).snapshots


# --------------------------------------------------------------------------------------------- refusal of other indexes


def test_a_store_of_another_index_is_refused(indexed: MakeMachine, folder_url: str, tmp_path: Path) -> None:
    indexed(tmp_path / "one", folder_url)
    other = built_root(tmp_path / "other", {"x.txt": "Oliver Twist met Fagin."}, stages=ALL_STAGES)
    before = contract_bytes(other)
    settings = (tmp_path / "one" / "settings.yaml").read_text()
    (other.path / "settings.yaml").write_text(settings)
    with pytest.raises(PipelineError, match=r"has one index, and .* has another one; name an empty place"):
        index(other)
    assert contract_bytes_here(other) == before


def contract_bytes_here(root: Root) -> dict[str, bytes]:
    """Return the local contract tables, without the store."""
    snapshot = root.snapshots.open()
    return {name: snapshot.table_path(name).read_bytes() for name in snapshot.manifest.tables}


def test_another_number_of_buckets_is_refused(indexed: MakeMachine, folder_url: str, tmp_path: Path) -> None:
    indexed(tmp_path / "one", folder_url)
    other = machine(tmp_path / "other", folder_url, n_buckets=3)
    with pytest.raises(
        PipelineError, match=r"n_buckets is 3, but the index in file://.* was built with 2; set it back"
    ):
        index(other)
    assert not (other.path / "tables").exists()


def test_an_index_that_was_made_alone_goes_into_an_empty_store(folder_url: str, tmp_path: Path) -> None:
    alone = built_root(tmp_path / "alone", stages=ALL_STAGES)
    settings = machine(tmp_path / "unused", folder_url).path / "settings.yaml"
    shutil.copy(settings, alone.path / "settings.yaml")
    assert index(alone) == []
    assert ask(reader(tmp_path / "two", folder_url)) == ask(alone)


def test_a_copy_without_its_notes_continues(indexed: MakeMachine, folder_url: str, tmp_path: Path) -> None:
    one = indexed(tmp_path / "one", folder_url)
    shutil.rmtree(one.path / "cache")
    assert index(one) == []
    shutil.rmtree(one.path / "tables")
    assert index(one) == []  # downloaded, not built
    assert again(one).tables.head("entities") is not None


def test_a_damaged_state_is_reported(indexed: MakeMachine, folder_url: str, tmp_path: Path) -> None:
    one = indexed(tmp_path / "one", folder_url)
    objects = open_object_store(folder_url)
    objects.write(state_name(state_of(folder_url).number), b"nonsense")
    with pytest.raises(PipelineError, match=r"000000001\.json\.gz is damaged .*; remove it"):
        index(one)
    objects.remove(objects.names(STATES))
    for follow in (ask, index):  # an unmounted store looks the same
        with pytest.raises(StoreError, match="the index that this root used there is missing"):
            follow(one)
    shutil.rmtree(one.path / "cache" / "store")
    assert index(one) == []
    assert ask(reader(tmp_path / "two", folder_url)) == ask(one)


# ------------------------------------------------------------------------------------------------------ removal, repair


def test_pruning_leaves_named_objects_in_the_store(indexed: MakeMachine, s3_url: str, tmp_path: Path) -> None:
    one = indexed(tmp_path / "one", s3_url)
    old = ask(one)[0]
    build_ahead(one, "four.txt", "Bob Cratchit skated on Cornhill.")
    index(one)
    open_object_store(s3_url).write("tables/entities/all/left_by_a_killed_push.parquet", b"x")
    would = prune(again(one), 1, LATE, is_dry_run=True)
    swept = prune(again(one), 1, LATE)
    assert swept.snapshots == would.snapshots == (old,)
    assert swept.objects == would.objects and "tables/entities/all/left_by_a_killed_push.parquet" in swept.objects
    state = state_of(s3_url)
    opened = again(one)
    assert object_names(s3_url) == named_objects(state, {i: opened.snapshots.manifest(i) for i in state.snapshots})
    assert list(state.snapshots) == [ask(one)[0]]
    assert index(one) == []


def test_snapshots_pruned_in_the_store_are_removed_here(indexed: MakeMachine, folder_url: str, tmp_path: Path) -> None:
    one, two = indexed(tmp_path / "one", folder_url), machine(tmp_path / "two", folder_url)
    old = ask(two)[0]
    build_ahead(one, "four.txt", "Bob Cratchit skated on Cornhill.")
    index(one)
    prune(again(one), 1, LATE)
    held = GraphIndex.open(two.path, snapshot=old)
    ask(two)
    assert old in again(two).snapshots.ids()  # a reader has it open
    held.close()
    again(two).pull()
    assert again(two).snapshots.ids() == [ask(one)[0]]
    kept = {path.name for path in (two.path / "snapshots").rglob("*.parquet")}
    assert kept == {path.name for path in (one.path / "snapshots").rglob("*.parquet")}
    put(two.path, "four.txt", "Bob Cratchit skated on Cornhill.")
    index(two)
    assert list(state_of(folder_url).snapshots) == [ask(one)[0]]


def test_a_forgotten_document_is_in_no_object_and_in_no_other_copy(s3_url: str, tmp_path: Path) -> None:
    secret = "Zebulon Quark"
    one, two = machine(tmp_path / "one", s3_url), machine(tmp_path / "two", s3_url)
    for root in (one, two):
        put(root.path, "secret.txt", f"{secret} met Bob Cratchit. {secret} owed Scrooge a pound.")
    index(one)
    index(two)
    for root in (one, two):
        (root.path / "input" / "secret.txt").unlink()
    index(one)
    forgotten = forget_document(again(one), "secret.txt")
    assert forgotten.swept.objects
    store = tmp_path / "fetched"
    objects = open_object_store(s3_url)
    objects.download({name: store / name for name in object_names(s3_url)})
    assert index(two) == []
    for place in (store, one.path, two.path):
        for path in place.rglob("*"):
            if path.is_file():
                assert b"Zebulon" not in path.read_bytes(), path
                assert b"ZEBULON" not in path.read_bytes(), path
    assert ask(two) == ask(one)


@pytest.mark.parametrize(
    "part", usually(["tables/entities", "snapshots/adjacency", "snapshots/vectors", "snapshots/tables", ""], "")
)
def test_lost_objects_are_built_again(indexed: MakeMachine, folder_url: str, tmp_path: Path, part: str) -> None:
    one = indexed(tmp_path / "one", folder_url)
    objects, names = open_object_store(folder_url), object_names(folder_url)
    objects.remove([name for name in names if name.startswith(part)])
    two = machine(tmp_path / "two", folder_url)
    with pytest.raises(NoSnapshotError, match="is missing"):
        again(two).pull()
    assert index(two)
    assert object_names(folder_url) == names
    assert contract_bytes(again(two)) == contract_bytes(one)
    assert ask(reader(tmp_path / "three", folder_url)) == ask(one)


def test_pruning_uploads_lost_objects_again(indexed: MakeMachine, folder_url: str, tmp_path: Path) -> None:
    one = indexed(tmp_path / "one", folder_url)
    objects = open_object_store(folder_url)
    objects.remove(objects.names("snapshots/adjacency"))
    with pytest.raises(NoSnapshotError, match=r"adjacency/.* is missing .*run `graphrag-pipeline verify --store"):
        ask(reader(tmp_path / "two", folder_url))
    prune(again(one), 3, 0)
    assert ask(reader(tmp_path / "three", folder_url)) == ask(one)


# --------------------------------------------------------------------------------------------------- faults and writers


def test_a_store_that_cannot_be_reached(
    indexed: MakeMachine, s3: ObjectServer, s3_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = indexed(tmp_path / "one", s3_url)
    tolerant = reader(tmp_path / "tolerant", s3_url, allow_offline="true")
    before, files = ask(tolerant), sorted(one.path.rglob("*.parquet"))
    s3.fault = lambda method, path: 500
    with pytest.raises(StoreError, match=r"storage.url failed"):
        ask(one)
    with pytest.raises(StoreError, match=r"storage.url failed"):
        index(one)
    assert ask(tolerant) == before and "since storage.allow_offline is set" in caplog.text
    with pytest.raises(StoreError):
        ask(reader(tmp_path / "fresh", s3_url, allow_offline="true"))
    s3.fault = None
    assert sorted(one.path.rglob("*.parquet")) == files
    assert index(one) == []


@pytest.mark.parametrize("part", usually(["tables/", "snapshots/vectors", STATES], STATES))
def test_a_fault_while_pushing_leaves_the_old_index_and_the_next_push_completes(
    indexed: MakeMachine, s3: ObjectServer, s3_url: str, tmp_path: Path, part: str
) -> None:
    one = indexed(tmp_path / "one", s3_url)
    before = ask(one)
    build_ahead(one, "four.txt", "Bob Cratchit skated on Cornhill.")
    fail_to_push(one, s3, part)
    assert ask(reader(tmp_path / "two", s3_url)) == before
    assert index(one) == []  # all work was kept
    assert ask(reader(tmp_path / "three", s3_url)) == ask(one) != before


def test_a_fault_while_pulling_changes_nothing_here(
    indexed: MakeMachine, s3: ObjectServer, s3_url: str, tmp_path: Path
) -> None:
    one, two = indexed(tmp_path / "one", s3_url), machine(tmp_path / "two", s3_url, allow_offline="true")
    before = ask(two)
    build_ahead(one, "four.txt", "Bob Cratchit skated on Cornhill.")
    index(one)
    s3.fault = lambda method, path: 500 if method == "GET" and ".tar" in path else None
    assert ask(two) == before
    s3.fault = None
    assert ask(two) == ask(one) != before


def test_the_lease_of_another_machine_is_waited_for_and_taken_over(
    indexed: MakeMachine, folder_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    open_object_store(folder_url).write(LEASE, LeaseHolder("0" * 32, "other, process 7", lasts_s=0.5).to_json())
    indexed(tmp_path / "one", folder_url)
    assert "other, process 7 is writing the index; waiting for it" in caplog.text
    assert "other, process 7 stopped renewing its lease; taking it over" in caplog.text
    assert open_object_store(folder_url).read(LEASE) is None


def test_a_writer_without_its_lease_writes_nothing_and_keeps_the_work(
    indexed: MakeMachine, folder_url: str, tmp_path: Path
) -> None:
    one = indexed(tmp_path / "one", folder_url)
    before = ask(one)
    put(one.path, "four.txt", "Bob Cratchit skated on Cornhill.")
    opened = again(one)
    thief = LeaseHolder("0" * 32, "other, process 7", lasts_s=0.5)
    with pytest.raises(LeaseLostError, match="All work is kept here; run again"), opened.writing():
        from graphrag_pipeline_tests.support.roots import build_tables

        build_tables(opened)
        open_object_store(folder_url).write(LEASE, thief.to_json())
    assert ask(reader(tmp_path / "two", folder_url)) == before
    ran = index(one)
    assert {stage for stage, _ in ran} == {"index_candidate", "index_snapshot"}


@pytest.mark.thorough
def test_a_bucket_built_twice_is_taken_from_the_store(
    indexed: MakeMachine, folder_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = indexed(tmp_path / "one", folder_url), machine(tmp_path / "two", folder_url)
    again(two).pull()
    for root, text in ((one, "Scrooge met Topper."), (two, "Scrooge met Dick Wilkins.")):
        put(root.path, "two.txt", text)
    index(one)
    opened = again(two)
    with opened.adding(["000", "001"]):  # its notes are older than the write of `one`
        pass
    assert ask(two) == ask(one)
    assert index(two)  # its own document is extracted again
    assert ask(one) == ask(two)


def test_a_bucket_built_in_parallel_keeps_the_others(folder_url: str, tmp_path: Path) -> None:
    from graphrag_pipeline_tests.support.roots import build_tables

    one, two = machine(tmp_path / "one", folder_url), machine(tmp_path / "two", folder_url)
    bucket_stages = [name for name, stage in STAGES.items() if stage.is_partitioned]
    first, second = again(one), again(two)
    with first.adding(["000", "001"]):
        with second.adding(["000", "001"]):
            build_tables(second, bucket_stages[:2])
        build_tables(first, bucket_stages)
    heads = state_of(folder_url).heads
    assert {
        f"{table}/{key}" for name in bucket_stages for table in STAGES[name].tables for key in ("000", "001")
    } == set(heads)
    assert not {stage for stage, _ in index(two)} & set(bucket_stages)


def test_a_read_only_folder_can_be_queried(indexed: MakeMachine, folder_url: str, tmp_path: Path) -> None:
    indexed(tmp_path / "one", folder_url)
    two = reader(tmp_path / "two", folder_url)
    answer = ask(two)
    stamps = {path: path.stat().st_mtime_ns for path in two.path.rglob("*")}
    assert ask(two) == answer
    assert {path: path.stat().st_mtime_ns for path in two.path.rglob("*")} == stamps  # nothing was written
    assert os.listdir(two.path / "cache" / "store")


def test_forgotten_rows_are_erased_from_vectors_that_stay(folder_url: str, tmp_path: Path) -> None:
    # Enough text units for building the next folder of vectors by difference.
    names = [f"{first}{last}" for first in ("Bram", "Quill", "Ostr", "Wimble") for last in ("ton", "ford", "ander")]
    documents = {f"{name}.txt": f"They say that {name} met Scrooge in London." for name in names}
    documents["secret.txt"] = "They say that Zaphodine met Scrooge."
    one, two = (machine(tmp_path / name, folder_url, documents) for name in ("one", "two"))
    index(one)
    for root in (one, two):
        (root.path / "input" / "secret.txt").unlink()
    index(one)
    assert index(two) == []
    forgotten = forget_document(again(one), "secret.txt")
    assert forgotten.rewritten
    assert ask(two)[0] == ask(one)[0]
    again(two).pull()
    for place in (tmp_path / "store", one.path, two.path):
        assert [path for path in place.rglob("*") if path.is_file() and b"aphodine" in path.read_bytes()] == []


def test_an_imported_index_is_shared(folder_url: str, tmp_path: Path) -> None:
    from graphrag_pipeline.interchange.graphrag_import import import_graphrag

    one = machine(tmp_path / "one", folder_url, documents={})
    source = MICROSOFT_INDEX
    with one.writing():
        import_graphrag(source, one.path, one.embedder, one.settings)
    two = reader(tmp_path / "two", folder_url)
    assert ask(two) == ask(one)
    assert contract_bytes(again(two)) == contract_bytes(again(one))
    assert again(two).is_imported


def test_files_lost_here_are_downloaded_again(indexed: MakeMachine, folder_url: str, tmp_path: Path) -> None:
    indexed(tmp_path / "one", folder_url)
    two = reader(tmp_path / "two", folder_url)
    answer = ask(two)
    shutil.rmtree(two.path / "snapshots")
    assert ask(two) == answer
    [adjacency] = (two.path / "snapshots" / "adjacency").iterdir()
    shutil.rmtree(adjacency)
    assert ask(two) == answer


@pytest.mark.thorough
def test_a_reader_beside_a_writer_of_the_same_root_undoes_nothing(
    indexed: MakeMachine, folder_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = indexed(tmp_path / "one", folder_url)
    reading = again(one)
    assert reading.shared is not None
    read = reading.shared._objects.read
    is_first = True

    def read_slowly(name: str) -> bytes | None:
        nonlocal is_first
        data = read(name)
        if is_first:  # another process publishes during the answer
            is_first = False
            put(one.path, "four.txt", "Bob Cratchit skated on Cornhill.")
            shutil.rmtree(one.path / "cache" / "store")  # so that the reader has something to download
            index(one)
        return data

    monkeypatch.setattr(reading.shared._objects, "read", read_slowly)
    (one.path / "snapshots" / "current.json").unlink()
    reading.follow()
    published = state_of(folder_url)
    assert reading.snapshots.current() == published.current
    assert set(reading.snapshots.ids()) == set(published.snapshots)
    assert index(one) == []


@pytest.mark.thorough
def test_a_reader_elsewhere_gets_whole_snapshots_while_others_publish_and_prune(
    indexed: MakeMachine, folder_url: str, tmp_path: Path
) -> None:
    one, two = indexed(tmp_path / "one", folder_url), reader(tmp_path / "two", folder_url)
    true_answers, got, is_over = dict([ask(one)]), [], threading.Event()

    def keep_asking() -> None:
        while not is_over.is_set():
            got.append(ask(two))

    asking = threading.Thread(target=keep_asking)
    asking.start()
    try:
        for number in range(4):
            put(one.path, "two.txt", f"{CAROL['two.txt']} Bob Cratchit counted {number + 2} geese.")
            index(one)
            true_answers.update([ask(one)])
            prune(again(one), 1, LATE)
    finally:
        is_over.set()
        asking.join()
    assert got and all(true_answers[snapshot] == answer for snapshot, answer in got)
    assert ask(two) == ask(one)
