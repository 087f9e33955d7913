"""Snapshots are listed and found by a prefix of their id; after a rollback, publishing waits for unpin."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.pipeline.open_work import find_unpublished_candidate
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.publishing.candidates import publish
from graphrag_pipeline.storage.snapshot_store import describe_snapshot, find_snapshot, list_snapshots, roll_back
from graphrag_pipeline_tests.support.roots import build_tables, put
from graphrag_pipeline_tests.support.two_snapshots import EVERYTHING, _indexed_twice, date_manifest, first_of, root

__all__ = ["_indexed_twice", "root"]


def test_the_list_is_newest_first_and_marks_the_one_that_readers_get(root: Root) -> None:
    newest, oldest = list_snapshots(root.snapshots)
    assert (newest.is_published, oldest.is_published) == (True, False)
    assert (newest.created, oldest.created) == ("2001-09-10T01:46:40+00:00", "2001-09-09T01:46:40+00:00")
    assert (newest.rows["documents"], oldest.rows["documents"]) == (2, 3)
    assert not (newest.is_pinned or newest.is_imported or newest.is_read)


def test_a_copy_without_times_of_files_lists_the_same(root: Root, tmp_path: Path) -> None:
    copy = Root(shutil.copytree(root.path, tmp_path / "copy", copy_function=shutil.copyfile))
    for n, snapshot_id in enumerate(reversed(root.snapshots.ids())):
        os.utime(copy.snapshots.path_of(snapshot_id), (n, n))
    assert list_snapshots(copy.snapshots) == list_snapshots(root.snapshots)


def test_a_snapshot_is_later_than_those_of_the_folder_though_the_clock_is_not(root: Root) -> None:
    first, second = root.snapshots.ids()
    ahead = time.time_ns() + 3600 * 10**9
    date_manifest(root, second, ahead)
    third = root.snapshots.write_manifest(replace(root.snapshots.manifest(first), notes=("made behind",)))
    assert root.snapshots.ids() == [first, second, third]
    assert root.snapshots.created_ns(third) > ahead


def test_the_time_of_a_manifest_is_not_part_of_its_id_and_stays(root: Root) -> None:
    first = root.snapshots.ids()[0]
    known = root.snapshots.manifest(first)
    assert known.id == first
    before = root.snapshots.path_of(first).read_bytes()
    assert root.snapshots.write_manifest(replace(known, created_ns=0)) == first
    assert root.snapshots.path_of(first).read_bytes() == before


def test_an_open_snapshot_shows_until_it_is_closed(root: Root) -> None:
    snapshot = root.snapshots.open()
    assert describe_snapshot(root.snapshots, snapshot.id).is_read
    snapshot.close()
    assert not describe_snapshot(root.snapshots, snapshot.id).is_read


def test_a_snapshot_without_a_reference_is_not_open(root: Root) -> None:
    snapshot = root.snapshots.open()
    snapshot_id = snapshot.id
    del snapshot
    assert not describe_snapshot(root.snapshots, snapshot_id).is_read


def test_a_snapshot_is_found_by_the_start_of_its_id(root: Root) -> None:
    snapshot_id = root.snapshots.current() or ""
    assert find_snapshot(root.snapshots, snapshot_id[:8]) == snapshot_id
    for start in ("", "x", "../current"):
        with pytest.raises(NoSnapshotError, match="no such snapshot"):
            find_snapshot(root.snapshots, start)


def test_a_rollback_serves_the_old_index_and_publishing_waits_for_unpin(root: Root) -> None:
    first, second = first_of(root), root.snapshots.current()
    roll_back(root.snapshots, first)
    assert root.snapshots.open().n_rows("documents") == 3
    assert (root.snapshots.pinned(), find_unpublished_candidate(root)) == (first, second)

    put(root.path, "four.txt", "They say that Scrooge met Fezziwig.")
    build_tables(root, EVERYTHING)
    candidate = find_unpublished_candidate(root)
    assert candidate not in (None, first, second)
    assert root.snapshots.current() == first
    with pytest.raises(PipelineError, match=f"snapshot {first} is pinned; run `graphrag-pipeline snapshots unpin`"):
        publish(root.snapshots, str(candidate))

    root.snapshots.unpin()
    build_tables(root, EVERYTHING)
    assert (root.snapshots.current(), find_unpublished_candidate(root)) == (candidate, None)


def test_numbers_given_before_a_rollback_are_not_given_again(root: Root) -> None:
    # The first snapshot lacks the numbers that are given while it is pinned.
    roll_back(root.snapshots, first_of(root))
    put(root.path, "four.txt", "Here OSTRANDER-1 blocks WIMBLEFORD-2.")
    build_tables(root, EVERYTHING)
    ostrander = numbers_of(root)["OSTRANDER-1"]
    put(root.path, "four.txt", "Here QUILL-3 blocks BRAMBLE-4.")
    build_tables(root, EVERYTHING)
    numbers = numbers_of(root)
    assert "OSTRANDER-1" not in numbers
    assert {"QUILL-3", "BRAMBLE-4"} <= numbers.keys()
    assert ostrander not in numbers.values()


def numbers_of(root: Root) -> dict[str, int]:
    rows = root.snapshots.open(find_unpublished_candidate(root)).table("entities")
    return dict(zip(rows["title"].to_pylist(), rows["human_readable_id"].to_pylist(), strict=True))


def test_a_snapshot_that_never_passed_its_checks_cannot_be_rolled_back_to(root: Root) -> None:
    first = first_of(root)
    (root.snapshots.folder / f"{first}.checked").unlink()
    with pytest.raises(PipelineError, match="never checked"):
        roll_back(root.snapshots, first)
    assert root.snapshots.pinned() is None


def test_a_damaged_manifest_is_left_out_and_a_damaged_pin_is_an_error(root: Root) -> None:
    root.snapshots.path_of(first_of(root)).write_text("{")
    assert [facts.id for facts in list_snapshots(root.snapshots)] == [root.snapshots.current()]
    (root.snapshots.folder / "pinned.json").write_text("")
    with pytest.raises(NoSnapshotError, match=r"pinned\.json` is damaged; run `graphrag-pipeline snapshots unpin`"):
        list_snapshots(root.snapshots)
    root.snapshots.unpin()
    assert len(list_snapshots(root.snapshots)) == 1
