"""Missing and cut files of a snapshot are found by names and sizes, and rebuilt by the stage that made them."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.damage import flip_bit, index_files, zero
from graphrag_pipeline_tests.support.thoroughness import IS_THOROUGH

PARTS = ("tables", "adjacency", "sentences", "vectors")


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return small_index.freeze(tmp_path_factory.mktemp("frozen"))


def files_of(folder: Path) -> list[Path]:
    """Files without which a snapshot is damaged; a table without the hash of its copy is of an older release."""
    found = sorted(path for part in PARTS for path in (folder / part).rglob("*") if path.is_file())
    return [path for path in found if path.suffix != ".sha256"]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_each_missing_or_cut_file_is_named(frozen: Snapshot) -> None:
    store = SnapshotStore(frozen.folder.parent)
    assert store.find_damage(frozen.id) == ""
    found = files_of(frozen.folder)
    one_of_each = {(path.parent.parent.name, path.suffix): path for path in found}
    for path in found if IS_THOROUGH else one_of_each.values():
        content = path.read_bytes()
        path.unlink()
        assert str(path) in store.find_damage(frozen.id)
        path.write_bytes(content[: len(content) // 2])
        assert str(path) in store.find_damage(frozen.id) or not content
        path.write_bytes(content)
    assert store.find_damage(frozen.id) == ""


def test_freezing_again_repairs_the_same_snapshot(frozen: Snapshot, tmp_path: Path) -> None:
    shutil.copytree(frozen.folder, tmp_path / "snapshots")
    for number, path in enumerate(files_of(tmp_path / "snapshots")):
        cut(path) if number % 2 else path.unlink()
    assert "more)" in SnapshotStore(tmp_path).find_damage(frozen.id)
    assert small_index.freeze(tmp_path).id == frozen.id
    assert SnapshotStore(tmp_path).find_damage(frozen.id) == ""


def test_without_the_copy_a_table_is_read_from_its_parquet_file(frozen: Snapshot, tmp_path: Path) -> None:
    shutil.copytree(frozen.folder, tmp_path / "snapshots")
    snapshot = SnapshotStore(tmp_path).open(frozen.id)
    cut(snapshot.mapped_path("entities"))
    assert snapshot.table("entities").equals(frozen.table("entities"))


def test_record_numbers_come_from_the_newest_snapshot_that_has_them(frozen: Snapshot, tmp_path: Path) -> None:
    shutil.copytree(frozen.folder, tmp_path / "snapshots")
    store = SnapshotStore(tmp_path)
    tables = small_index.contract_tables()
    other = small_index.freeze(tmp_path, tables | {"record_numbers": tables["record_numbers"].slice(1)})
    other.table_path("record_numbers").unlink()
    other.mapped_path("record_numbers").unlink()
    numbers = store.record_numbers(other.manifest)
    assert numbers is not None and numbers.equals(frozen.table("record_numbers"))
    shutil.rmtree(tmp_path / "snapshots" / "tables" / "record_numbers")
    assert store.record_numbers(other.manifest) is None


@pytest.mark.parametrize("part", PARTS)
def test_one_changed_bit_is_seen_in_every_file_when_it_is_opened(frozen: Snapshot, tmp_path: Path, part: str) -> None:
    shutil.copytree(frozen.folder, tmp_path / "snapshots")
    store = SnapshotStore(tmp_path)
    numbers = random.Random(part)
    paths = index_files(tmp_path, [f"snapshots/{part}"])
    assert paths
    for path in paths:
        bit = numbers.randrange(8 * path.stat().st_size)
        flip_bit(path, bit)
        if part == "tables" and path.suffix != ".parquet":
            assert store.open(frozen.id).table(path.parent.name).equals(frozen.table(path.parent.name))
        elif part == "tables":
            assert store.open(frozen.id).changed_parts() == [path]
        else:
            with pytest.raises(NoSnapshotError, match=re.escape(str(path))):
                store.open(frozen.id)
        flip_bit(path, bit)
        store.open(frozen.id)


def test_a_table_whose_both_files_changed_is_not_read(frozen: Snapshot, tmp_path: Path) -> None:
    shutil.copytree(frozen.folder, tmp_path / "snapshots")
    store = SnapshotStore(tmp_path)
    snapshot = store.open(frozen.id)
    for path in (snapshot.mapped_path("entities"), snapshot.table_path("entities")):
        flip_bit(path, 4_000)
    with pytest.raises(NoSnapshotError, match=re.escape(str(snapshot.table_path("entities")))):
        store.open(frozen.id)


def test_freezing_again_makes_zeroed_files_again(frozen: Snapshot, tmp_path: Path) -> None:
    shutil.copytree(frozen.folder, tmp_path / "snapshots")
    for path in index_files(tmp_path, [f"snapshots/{part}" for part in PARTS]):
        zero(path)
    assert small_index.freeze(tmp_path).id == frozen.id
    assert SnapshotStore(tmp_path).open(frozen.id).changed_parts() == []
