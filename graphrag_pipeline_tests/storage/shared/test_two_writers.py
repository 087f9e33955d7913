"""Faults between two machines that write: late requests, outdated copies, full disks."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graphrag_pipeline.errors import LeaseLostError, PipelineError, StoreError
from graphrag_pipeline.pipeline.forgetting import forget_document
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.storage.shared.lease import LEASE, Lease
from graphrag_pipeline.storage.shared.objects import open_object_store
from graphrag_pipeline.storage.shared.state import STATES, StoreState, archive_names, head_names, stage_file_names
from graphrag_pipeline.storage.shared.transfer import Transfer
from graphrag_pipeline_tests.support.machines import (
    again,
    build_ahead,
    check_that_second_waits,
    fail_to_push,
    index,
    machine,
    object_names,
    opened_snapshot,
    state_of,
)
from graphrag_pipeline_tests.support.object_server import ObjectServer
from graphrag_pipeline_tests.support.roots import CAROL, put
from graphrag_pipeline_tests.support.thoroughness import usually

MakeMachine = Callable[[Path, str], Root]
SECRET = "Zebulon Quark met Bob Cratchit. Zebulon Quark owed Scrooge a pound."


def tells_of_secret(place: Path) -> list[Path]:
    return [path for path in place.rglob("*") if path.is_file() and b"ZEBULON" in path.read_bytes().upper()]


def fetched(url: str, folder: Path) -> Path:
    assert open_object_store(url).download({name: folder / name for name in object_names(url)}) == []
    return folder


def forget_secret(root: Root) -> None:
    (root.path / "input" / "secret.txt").unlink()
    index(root)
    forget_document(again(root), "secret.txt")


# ---------------------------------------------------------------------------------------- documents forgotten elsewhere


@pytest.mark.parametrize("more", usually(["", " Topper was there."], ""))
def test_a_forgotten_document_does_not_come_back_from_a_failed_push(
    indexed: MakeMachine, s3: ObjectServer, s3_url: str, tmp_path: Path, more: str
) -> None:
    one, two = indexed(tmp_path / "one", s3_url), machine(tmp_path / "two", s3_url)
    assert index(two) == []
    before = opened_snapshot(two)
    build_ahead(two, "secret.txt", SECRET + more)
    fail_to_push(two, s3, STATES)
    build_ahead(one, "secret.txt", SECRET)
    index(one)
    forget_secret(one)
    (two.path / "input" / "secret.txt").unlink()
    index(two)
    assert opened_snapshot(one) == opened_snapshot(two)
    assert set(state_of(s3_url).snapshots) == {before, opened_snapshot(one)}
    assert tells_of_secret(fetched(s3_url, tmp_path / "fetched")) == []
    assert [path for path in tells_of_secret(two.path) if "cache" not in path.parts] == []


def test_a_forgotten_document_does_not_come_back_from_a_copy_without_notes(folder_url: str, tmp_path: Path) -> None:
    one = machine(tmp_path / "one", folder_url, {**CAROL, "secret.txt": SECRET}, n_buckets=8)
    index(one)
    shutil.copytree(one.path, tmp_path / "two", ignore=shutil.ignore_patterns("cache"))
    two = Root(tmp_path / "two")
    assert tells_of_secret(two.path / "snapshots")
    forget_secret(one)
    (two.path / "input" / "secret.txt").unlink()
    index(two)
    index(one)
    assert list(state_of(folder_url).snapshots) == [opened_snapshot(one)] == [opened_snapshot(two)]
    for place in (tmp_path / "store", one.path, two.path):
        assert tells_of_secret(place) == []


# ------------------------------------------------------------------------------------------------------------ the fence


def test_a_publication_that_was_under_way_too_long_is_refused(
    indexed: MakeMachine, s3: ObjectServer, s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lease, "_renew", lambda self, objects: None)  # a renewal on its way would write the lease again
    one, two = indexed(tmp_path / "one", s3_url), machine(tmp_path / "two", s3_url)
    opened_snapshot(two)
    is_first = True

    def let_the_other_publish(method: str, path: str) -> None:
        nonlocal is_first
        if is_first and method == "PUT" and STATES in path:
            is_first = False
            open_object_store(s3_url).remove([LEASE])  # as if it had expired
            with again(two).writing():
                two.snapshots.pin(two.snapshots.current() or "")

    s3.fault = let_the_other_publish
    build_ahead(one, "four.txt", "Bob Cratchit skated on Cornhill.")
    with pytest.raises(LeaseLostError, match="All work is kept here"):
        index(one)
    s3.fault = None
    assert not is_first
    published = state_of(s3_url)
    assert published.pinned == published.current == opened_snapshot(two)
    index(one)
    assert opened_snapshot(one) == opened_snapshot(two) == published.pinned
    assert len(state_of(s3_url).snapshots) == 2


def test_one_writer_if_the_store_overwrites_existing_objects(s3: ObjectServer, s3_url: str, tmp_path: Path) -> None:
    s3.ignores_conditions = True
    assert open_object_store(s3_url).create("x", b"1") and open_object_store(s3_url).create("x", b"2")
    first, second = (Lease(open_object_store(s3_url), tmp_path / name / "token", 0.9) for name in ("one", "two"))
    check_that_second_waits(first, second, 3)


def test_whether_a_store_refuses_is_found_out_once(s3: ObjectServer, s3_url: str, tmp_path: Path) -> None:
    methods = []
    for _ in range(2):
        s3.requests.clear()
        lease = Lease(open_object_store(s3_url), tmp_path / "token", 60)
        lease.acquire()
        methods.append([method for method, _ in s3.requests])
        lease.release()
    assert methods == [["GET", "PUT", "PUT"], ["PUT"]]


# ------------------------------------------------------------------------------------------------------- open snapshots


@pytest.mark.parametrize("number", usually([0, 1], 1))
def test_rewritten_vectors_stay_while_any_snapshot_with_them_is_read(
    indexed: MakeMachine, folder_url: str, tmp_path: Path, number: int
) -> None:
    one = indexed(tmp_path / "one", folder_url)
    build_ahead(one, "two.txt", CAROL["two.txt"] + " It was cold.")
    index(one)
    opened = again(one)
    ids = opened.snapshots.ids()
    first, second = (set(archive_names(opened.snapshots.manifest(i))) for i in ids)
    shared = min(first & second)
    assert opened.shared is not None
    copy = opened.shared._copy
    place = one.path / shared.removesuffix(".tar")
    with GraphIndex.open(one.path, snapshot=ids[number]):
        assert copy._drop_rewritten(StoreState(), StoreState(rewritten={shared: 1})) == {shared: 0}
        assert place.exists()
    assert copy._drop_rewritten(StoreState(), StoreState(rewritten={shared: 1})) == {shared: 1}
    assert not place.exists()


# ------------------------------------------------------------------------------------------------------------- messages


def test_a_snapshot_published_here_only_is_reported(
    indexed: MakeMachine, s3: ObjectServer, s3_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = indexed(tmp_path / "one", s3_url)
    before = opened_snapshot(one)
    build_ahead(one, "four.txt", "Bob Cratchit skated on Cornhill.")
    fail_to_push(one, s3, STATES)
    caplog.clear()
    here = opened_snapshot(one)
    assert f"snapshot {here} was published here only" in caplog.text and f"there {before} is published" in caplog.text
    index(one)
    caplog.clear()
    assert opened_snapshot(one) == here and caplog.text == ""


def test_an_old_stage_table_that_is_gone_keeps_no_snapshot_from_its_upload(
    indexed: MakeMachine, s3: ObjectServer, s3_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = indexed(tmp_path / "one", s3_url)
    build_ahead(one, "four.txt", "Bob Cratchit skated on Cornhill.")
    fail_to_push(one, s3, STATES)
    here = opened_snapshot(one)
    manifest = again(one).snapshots.manifest(here)
    put(one.path, "four.txt", "Bob Cratchit sang on Cornhill.")
    fail_to_push(one, s3, STATES, ["corpus_manifest", "documents"])
    heads = [again(one).tables.head(*key.split("/")) for key in manifest.heads]
    kept = {name for head in heads if head for name in head_names(head)}
    gone = min(set(stage_file_names(manifest)) - kept)
    (one.path / gone).unlink()
    with again(one).writing():
        pass
    assert here in state_of(s3_url).snapshots
    assert f"{gone} is missing or damaged" in caplog.text


def test_a_place_without_an_index_is_reported_if_the_root_has_a_copy(
    indexed: MakeMachine, folder_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = indexed(tmp_path / "one", folder_url)
    here = opened_snapshot(one)
    assert caplog.text == ""
    settings = one.path / "settings.yaml"
    settings.write_text(settings.read_text().replace("/store", "/stroe"))
    assert opened_snapshot(one) == here
    assert "/stroe: no index there, or the URL is wrong" in caplog.text


@pytest.fixture
def _small_files() -> Iterator[None]:
    """Limit files to a few bytes, like a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("kind", ["memory", "s3"])
def test_a_full_disk_is_not_blamed_on_the_store(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    objects = open_object_store(request.getfixturevalue("s3_url") if kind == "s3" else "memory://full")
    objects.write("big", b"x" * 100_000)
    request.getfixturevalue("_small_files")
    with pytest.raises(PipelineError, match=r"cannot be written .*free disk space") as caught:
        objects.download({"big": tmp_path / "big"})
    assert not isinstance(caught.value, StoreError)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_without_room_for_another_folder_is_said_at_an_upload(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way", encoding="utf-8")
    transfer = Transfer(tmp_path, open_object_store("memory://full"), tmp_path / "cache" / "store")
    with pytest.raises(PipelineError, match=r"cannot be written .*free disk space"):
        transfer.put(["snapshots/a.json"])
