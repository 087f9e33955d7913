"""Prune beside readers of the same root: no listed snapshot lacks an object, and no other machine ever fails."""

from __future__ import annotations

import select
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.storage.locks import hold_for_reading
from graphrag_pipeline.storage.shared.objects import open_object_store
from graphrag_pipeline.storage.shared.shared_store import WriteSession
from graphrag_pipeline.storage.shared.state import manifest_name, named_objects
from graphrag_pipeline.storage.shared.working_copy import WorkingCopy
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline_tests.support.command_line import TIMEOUT_S, environment
from graphrag_pipeline_tests.support.machines import (
    again,
    build_ahead,
    fail_to_push,
    index,
    object_names,
    opened_snapshot,
    reader,
    state_of,
)
from graphrag_pipeline_tests.support.object_server import ObjectServer
from graphrag_pipeline_tests.support.roots import CAROL, put
from graphrag_pipeline_tests.support.thoroughness import usually

MakeMachine = Callable[[Path, str], Root]
LATE = float("inf")


def copy_of(root: Root) -> WorkingCopy:
    shared = again(root).shared
    assert shared
    return shared._copy


def check_that_listed_snapshots_are_whole(url: str, path: Path) -> None:
    """Assert that a new machine can open and index every snapshot that the store lists."""
    other = reader(path, url)
    opened_snapshot(other)
    for snapshot_id in state_of(url).snapshots:
        with GraphIndex.open(other.path, snapshot=snapshot_id) as opened:
            assert opened.search("Who is Bob Cratchit?", method="local").answer
    again(other).pull()


def edit(root: Root, number: int) -> None:
    text = f"{CAROL['two.txt']} Bob Cratchit counted {number + 2} geese."
    build_ahead(root, "two.txt", text) if number == 0 else put(root.path, "two.txt", text)


def publish_variant(root: Root, number: int) -> None:
    """Publish a snapshot that differs from the last one in a note, which takes no time."""
    opened = again(root)
    with opened.writing():
        manifest = opened.snapshots.current_manifest()
        assert manifest
        variant = opened.snapshots.write_manifest(replace(manifest, notes=(f"round {number}",)))
        opened.snapshots.point_at(variant)


FOLLOWER = """
import logging, sys
from pathlib import Path
from graphrag_pipeline.query.index.graph_index import GraphIndex

logging.basicConfig(level=logging.WARNING, stream=sys.stdout)
print("ready", flush=True)
for line in sys.stdin:
    with GraphIndex.open(Path(sys.argv[1])) as index:
        print(index.snapshot.id, flush=True)
"""


class Reader:
    """A process that opens the published index of a root each time that it is asked."""

    def __init__(self, root: Root) -> None:
        program = [sys.executable, "-c", FOLLOWER, str(root.path)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(program, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self._asking: threading.Thread | None = None
        self._is_over = threading.Event()
        assert self.process_out.readline() == "ready\n", self._process.communicate()
        self.begin()  # the first time is slow, since it loads packages
        self.process_out.readline()

    @property
    def process_out(self) -> IO[str]:
        assert self._process.stdout
        return self._process.stdout

    def begin(self) -> None:
        """Open the index once; return before it is open."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def keep_asking(self) -> None:
        """Open the index again and again until `close`."""

        def ask_until_over() -> None:
            while not self._is_over.is_set() and self._process.poll() is None:
                self.begin()
                self.process_out.readline()

        self._asking = threading.Thread(target=ask_until_over)
        self._asking.start()

    def close(self) -> str:
        """End the process and return all that it printed since it was asked last; it must have ended well."""
        self._is_over.set()
        if self._asking:
            self._asking.join()
        out, err = self._process.communicate(timeout=TIMEOUT_S)
        assert self._process.returncode == 0, err
        return out


@pytest.mark.thorough
def test_fourteen_rounds_of_prune_beside_two_loops_of_queries(
    indexed: MakeMachine, folder_url: str, tmp_path: Path
) -> None:
    one = indexed(tmp_path / "one", folder_url)
    elsewhere = reader(tmp_path / "elsewhere", folder_url)
    readers = [Reader(one), Reader(elsewhere)]
    for asking in readers:
        asking.keep_asking()
    for number in range(14):
        if number % 5:
            publish_variant(one, number)
        else:
            edit(one, number)
            index(one)
        prune(again(one), 1, LATE)
        state = state_of(folder_url)
        # A reader may have the last snapshot open; every listed one has all its objects.
        manifests = {i: again(one).snapshots.manifest(i) for i in state.snapshots}
        assert object_names(folder_url) == named_objects(state, manifests), f"round {number}"
    for asking in readers:
        assert "Traceback" not in asking.close()
    check_that_listed_snapshots_are_whole(folder_url, tmp_path / "two")
    prune(again(one), 1, LATE)
    state = state_of(folder_url)
    assert set(state.snapshots) == set(again(one).snapshots.ids()) == copy_of(one).in_use() - {None}


HOLDER = """
import sys
from pathlib import Path
from graphrag_pipeline.query.index.graph_index import GraphIndex

index = GraphIndex.open(Path(sys.argv[1]))
print(index.snapshot.id, flush=True)
sys.stdin.readline()
for method in ("local", "global", "basic", "drift", "lazy"):
    assert index.search("Who is Bob Cratchit?", method=method).answer, method
for name in index.snapshot.manifest.tables:
    index.snapshot.table(name).to_pylist()
print(index.snapshot.id, flush=True)
"""


def test_a_reader_elsewhere_that_opened_before_a_prune_needs_nothing_from_the_store(
    indexed: MakeMachine, folder_url: str, tmp_path: Path
) -> None:
    one = indexed(tmp_path / "one", folder_url)
    old, elsewhere = opened_snapshot(one), reader(tmp_path / "elsewhere", folder_url)
    program = [sys.executable, "-c", HOLDER, str(elsewhere.path)]
    pipe = subprocess.PIPE
    held = subprocess.Popen(program, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert held.stdout and held.stdout.readline() == f"{old}\n", held.communicate()
    edit(one, 0)
    index(one)
    assert prune(again(one), 1, LATE).snapshots == (old,)
    assert not object_names(folder_url) & {manifest_name(old)}
    newest = opened_snapshot(elsewhere)  # another process of that machine follows, and drops what it can
    assert newest == state_of(folder_url).current != old
    out, err = held.communicate("\n", timeout=TIMEOUT_S)  # it uses each part for the first time
    assert (held.returncode, out) == (0, f"{old}\n"), err
    assert old not in state_of(folder_url).snapshots
    again(elsewhere).pull()
    edit(one, 1)
    index(one)
    assert opened_snapshot(elsewhere) == state_of(folder_url).current
    assert not again(elsewhere).snapshots.path_of(old).exists(), "what nobody has open is removed"


@pytest.mark.parametrize(
    "moment", usually(["before it is locked", "while a damaged file is fetched"], "before it is locked")
)
def test_a_reader_whose_snapshot_is_pruned_while_it_opens_it_gets_the_newest(
    indexed: MakeMachine, folder_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    one, elsewhere = indexed(tmp_path / "one", folder_url), reader(tmp_path / "elsewhere", folder_url)
    old, hold, held = opened_snapshot(elsewhere), Snapshot.hold, []

    def hold_late(self: Snapshot) -> None:
        if held or self.folder.parent != elsewhere.path:
            return hold(self)
        held.append(self.id)
        edit(one, 0)
        index(one)
        prune(again(one), 1, LATE)
        if moment == "before it is locked":
            again(elsewhere).follow()
            return hold(self)
        self.table_path("entities").unlink()
        return hold(self)

    monkeypatch.setattr(Snapshot, "hold", hold_late)
    assert opened_snapshot(elsewhere) == state_of(folder_url).current != old
    assert held == [old]


@pytest.mark.thorough
def test_a_reader_that_follows_during_the_sweep_does_not_fetch_a_doomed_manifest_back(
    indexed: MakeMachine, folder_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = indexed(tmp_path / "one", folder_url)
    old = opened_snapshot(one)
    edit(one, 0)
    index(one)
    doomed = again(one).snapshots.path_of(old)
    unlink, asking = Path.unlink, Reader(one)

    def unlink_beside_a_reader(self: Path, missing_ok: bool = False) -> None:
        unlink(self, missing_ok)
        if self == doomed:  # the moment between the sweep of the root and that of the store
            asking.begin()
            select.select([asking.process_out], [], [], 10)  # it needs no lock that the sweep holds

    monkeypatch.setattr(Path, "unlink", unlink_beside_a_reader)
    prune(again(one), 1, LATE)
    monkeypatch.undo()
    assert asking.close().split() == [opened_snapshot(one)]
    assert old not in state_of(folder_url).snapshots
    assert not doomed.exists()
    check_that_listed_snapshots_are_whole(folder_url, tmp_path / "two")


def test_a_doomed_snapshot_that_a_reader_has_open_stays_listed_and_whole(
    indexed: MakeMachine, folder_url: str, tmp_path: Path
) -> None:
    one = indexed(tmp_path / "one", folder_url)
    old = opened_snapshot(one)
    edit(one, 0)
    index(one)
    with GraphIndex.open(one.path, snapshot=old):
        assert prune(again(one), 1, LATE).held == (old,)
    assert old in state_of(folder_url).snapshots
    check_that_listed_snapshots_are_whole(folder_url, tmp_path / "two")
    assert prune(again(one), 1, LATE).snapshots == (old,)


@pytest.mark.parametrize("moment", usually(["state published", "root swept"], "root swept"))
def test_a_prune_that_was_killed_leaves_no_listed_snapshot_without_its_objects(
    indexed: MakeMachine, folder_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    one = indexed(tmp_path / "one", folder_url)
    old = opened_snapshot(one)
    edit(one, 0)
    index(one)
    with monkeypatch.context() as patched:

        def kill(*_: object, **__: object) -> None:
            raise KeyboardInterrupt("as if killed")

        if moment == "root swept":
            patched.setattr(WriteSession, "remove_unnamed", kill)
        else:
            patched.setattr("graphrag_pipeline.storage.garbage._remove", kill)
        with pytest.raises(KeyboardInterrupt):
            prune(again(one), 1, LATE)
    assert old not in state_of(folder_url).snapshots
    check_that_listed_snapshots_are_whole(folder_url, tmp_path / "two")
    assert index(one) == []
    assert prune(again(one), 1, LATE).snapshots == ()
    assert again(one).snapshots.ids() == [state_of(folder_url).current]


@pytest.mark.parametrize("has_manifest_here", usually([True, False], False))
def test_index_repairs_a_listed_snapshot_whose_objects_are_gone(
    indexed: MakeMachine,
    folder_url: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    has_manifest_here: bool,
) -> None:
    """Earlier releases left this: the old snapshot is listed, and only its own objects were removed."""
    one = indexed(tmp_path / "one", folder_url)
    old = opened_snapshot(one)
    edit(one, 0)
    index(one)
    opened, state = again(one), state_of(folder_url)
    manifests = {i: opened.snapshots.manifest(i) for i in state.snapshots}
    gone = named_objects(state, manifests) - named_objects(state, {str(state.current): manifests[str(state.current)]})
    open_object_store(folder_url).remove(gone)
    for name in gone - {manifest_name(old)}:
        opened.shared._transfer.remove(name)  # type: ignore[union-attr]
    if not has_manifest_here:
        opened.snapshots.path_of(old).unlink()
    caplog.clear()
    index(one)
    assert old not in state_of(folder_url).snapshots
    assert old not in again(one).snapshots.ids()
    assert old in caplog.text
    check_that_listed_snapshots_are_whole(folder_url, tmp_path / "two")


def test_prune_of_the_store_stops_while_a_listed_manifest_cannot_be_read(
    indexed: MakeMachine, folder_url: str, tmp_path: Path
) -> None:
    one = indexed(tmp_path / "one", folder_url)
    edit(one, 0)
    index(one)
    state, objects = state_of(folder_url), open_object_store(folder_url)
    before = object_names(folder_url)
    path = again(one).snapshots.path_of(str(state.current))
    data = objects.read(manifest_name(str(state.current))) or b""
    for place in (path.write_bytes, lambda changed: objects.write(manifest_name(str(state.current)), changed)):
        place(data.replace(b'"file": "', b'"file": "0', 1))
    with pytest.raises(PipelineError, match=path.name):
        prune(again(one), 1, LATE)
    assert object_names(folder_url) == before


@pytest.mark.thorough
def test_index_uploads_a_listed_snapshot_again_that_is_whole_here(
    indexed: MakeMachine, folder_url: str, tmp_path: Path
) -> None:
    one = indexed(tmp_path / "one", folder_url)
    old = opened_snapshot(one)
    edit(one, 0)
    index(one)
    before, objects = object_names(folder_url), open_object_store(folder_url)
    objects.remove([manifest_name(old), *(name for name in before if "/adjacency/" in name)])
    with pytest.raises(NoSnapshotError):
        opened_snapshot(reader(tmp_path / "two", folder_url))  # the published one lacks its adjacency, too
    prune(again(one), 9, LATE)
    assert object_names(folder_url) == before
    objects.remove([manifest_name(old)])
    other = reader(tmp_path / "three", folder_url)
    assert (
        opened_snapshot(other) == state_of(folder_url).current
    )  # a machine that needs the published one alone goes on
    index(one)
    assert object_names(folder_url) == before
    check_that_listed_snapshots_are_whole(folder_url, tmp_path / "four")


def test_a_damaged_manifest_here_is_taken_from_the_store(indexed: MakeMachine, folder_url: str, tmp_path: Path) -> None:
    one = indexed(tmp_path / "one", folder_url)
    path = one.snapshots.path_of(opened_snapshot(one))
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"file": "', b'"file": "0', 1))
    prune(again(one), 1, LATE)
    assert path.read_bytes() == whole
    assert index(one) == []


# ------------------------------------------------------------------------------------------------------------- messages


@pytest.mark.thorough
def test_a_reader_during_a_normal_push_says_nothing(
    indexed: MakeMachine, s3: ObjectServer, s3_url: str, tmp_path: Path
) -> None:
    one = indexed(tmp_path / "one", s3_url)
    edit(one, 0)
    asking, begun = Reader(one), []

    def ask_during_the_push(method: str, path: str) -> None:
        if method == "PUT" and "/snapshots/" in path and not begun:
            begun.append(path)
            asking.begin()
            select.select([asking.process_out], [], [], 10)  # it needs no lock that the push holds

    s3.fault = ask_during_the_push
    index(one)
    s3.fault = None
    assert begun and asking.close().split() == [opened_snapshot(one)]


@pytest.mark.thorough
def test_a_failed_push_is_still_reported(
    indexed: MakeMachine, s3: ObjectServer, s3_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = indexed(tmp_path / "one", s3_url)
    edit(one, 0)
    fail_to_push(one, s3, "states")
    caplog.clear()
    opened_snapshot(one)
    assert "was published here only" in caplog.text


def test_a_removed_snapshot_cannot_be_locked_for_reading(indexed: MakeMachine, folder_url: str, tmp_path: Path) -> None:
    one = indexed(tmp_path / "one", folder_url)
    old = opened_snapshot(one)
    edit(one, 0)
    index(one)
    prune(again(one), 1, LATE)
    with pytest.raises(FileNotFoundError):
        hold_for_reading(one.snapshots.path_of(old))
    with pytest.raises(NoSnapshotError):
        GraphIndex.open(one.path, snapshot=old)
