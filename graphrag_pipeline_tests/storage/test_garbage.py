"""A sweep removes expired snapshots and unnamed files, and nothing else."""

from __future__ import annotations

import math
import os
import shutil
import time
from pathlib import Path

import pytest

from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.storage.garbage import find_old_snapshots, sweep
from graphrag_pipeline.storage.snapshot_store import roll_back
from graphrag_pipeline_tests.support.roots import GOING_ON, build_tables, contract_bytes, make_root, table_bytes
from graphrag_pipeline_tests.support.two_snapshots import EVERYTHING, _indexed_twice, files_of, first_of, root

__all__ = ["_indexed_twice", "root"]


def old(root: Root, n_kept: int = 1, before: float = math.inf) -> list[str]:
    return find_old_snapshots(root.tables, root.snapshots, n_kept, before)


def independent_files(root: Root) -> set[Path]:
    """Return the files of stage tables that do not depend on an earlier publication."""
    return {path for path in files_of(root) if path.parts[0] == "tables" and path.parts[1] not in GOING_ON}


@pytest.mark.thorough
def test_after_a_sweep_the_root_is_one_that_never_had_more(root: Root, tmp_path: Path) -> None:
    contents = contract_bytes(root), table_bytes(root)
    swept = sweep(root.tables, root.snapshots, old(root), math.inf)
    assert swept.snapshots == (*set(swept.snapshots),) != ()
    assert (contract_bytes(root), table_bytes(root)) == contents
    assert build_tables(root, EVERYTHING) == []
    fresh = make_root(tmp_path / "fresh", {})
    shutil.copytree(root.path / "input", fresh.path / "input", dirs_exist_ok=True)
    build_tables(fresh, EVERYTHING)
    assert independent_files(root) == independent_files(fresh)


def test_a_dry_run_reports_the_same_and_removes_nothing(root: Root) -> None:
    before = files_of(root)
    planned = sweep(root.tables, root.snapshots, old(root), math.inf, is_dry_run=True)
    assert files_of(root) == before
    assert sweep(root.tables, root.snapshots, old(root), math.inf) == planned
    assert planned.n_bytes > 0
    again = sweep(root.tables, root.snapshots, old(root), math.inf)
    assert (again.snapshots, again.paths, again.collections) == ((), (), ())


def test_no_snapshot_that_stays_loses_a_file(root: Root) -> None:
    first = first_of(root)
    sweep(root.tables, root.snapshots, [], math.inf)
    for snapshot_id in (first, None):
        snapshot = root.snapshots.open(snapshot_id)
        assert snapshot.missing_parts() == []
        assert snapshot.manifest.heads
        for head in snapshot.manifest.heads.items():
            paths = [root.path / "tables" / head[0] / file["name"] for file in head[1]["files"]]
            assert all(path.exists() for path in paths), "`sql` reads the stage tables of a snapshot"


def test_published_pinned_candidate_and_the_newest_stay(root: Root) -> None:
    first, second = first_of(root), root.snapshots.current()
    assert old(root) == [first]
    assert old(root, n_kept=2) == []
    roll_back(root.snapshots, first)
    assert old(root) == [], "the first is published and pinned, the second is the candidate"
    root.snapshots.unpin()
    root.snapshots.point_at(str(second))
    assert old(root) == [first]


def test_a_snapshot_is_as_old_as_its_successor(root: Root) -> None:
    first = first_of(root)
    followed_at = root.snapshots.created_ns(str(root.snapshots.current())) / 1e9
    assert old(root, before=followed_at) == []
    assert old(root, before=followed_at + 1) == [first]


def test_pruning_does_not_depend_on_file_times(root: Root) -> None:
    first, second = first_of(root), str(root.snapshots.current())
    os.utime(root.snapshots.path_of(first))
    os.utime(root.snapshots.path_of(second), (0, 0))
    root.snapshots.point_at(first)
    roll_back(root.snapshots, first)
    root.snapshots.unpin()
    assert old(root) == [], "the second is the newest, the first is published"
    root.snapshots.point_at(second)
    assert old(root) == [first]
    assert sweep(root.tables, root.snapshots, old(root), math.inf).snapshots == (first,)


def test_young_files_stay_without_a_reference(root: Root) -> None:
    orphan = root.path / "tables" / "documents" / "000" / "orphan.parquet"
    orphan.write_bytes(b"x")
    sweep(root.tables, root.snapshots, [], time.time() - 3600)
    assert orphan.exists()
    swept = sweep(root.tables, root.snapshots, [], math.inf)
    assert orphan in swept.paths
    assert not orphan.exists()


def test_half_written_files_of_a_killed_process_are_removed(root: Root) -> None:
    left = [
        root.path / "heads" / "documents" / ".tmp-0123",
        root.path / "snapshots" / ".tmp-0123",
        root.path / "snapshots" / "vectors" / "default-text_unit-text" / ".tmp-0123",
    ]
    left[0].write_bytes(b"")
    left[1].write_bytes(b"")
    left[2].mkdir()
    sweep(root.tables, root.snapshots, [], math.inf)
    assert not any(path.exists() for path in left)


def test_an_open_snapshot_stays_with_its_files_until_its_reader_is_done(root: Root) -> None:
    first = first_of(root)
    reader = root.snapshots.open(first)
    swept = sweep(root.tables, root.snapshots, old(root), math.inf)
    assert (swept.snapshots, swept.held) == ((), (first,))
    assert reader.missing_parts() == []
    assert reader.vectors("default-text_unit-text").count() == 3
    reader.close()
    assert sweep(root.tables, root.snapshots, old(root), math.inf).snapshots == (first,)
    with pytest.raises(NoSnapshotError, match="is missing"):
        root.snapshots.open(first)
