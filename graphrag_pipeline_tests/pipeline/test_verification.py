"""Every immutable file is compared with its hash; damaged ones are made again, or named with the way out."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphrag_pipeline.filesystem.listed_folders import LIST_FILE
from graphrag_pipeline.pipeline.file_repairs import list_parts
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.pipeline.verification import repair_before_index, verify_root
from graphrag_pipeline.publishing.candidates import publish
from graphrag_pipeline.storage.damage import CheckTimes
from graphrag_pipeline.storage.manifests import hash_path
from graphrag_pipeline_tests.support.command_line import Call
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.damage import flip_bit, index_files, zero
from graphrag_pipeline_tests.support.roots import build_tables, contract_bytes, make_root
from graphrag_pipeline_tests.support.thoroughness import sums

EVERYTHING = tuple(ALL_STAGES)
FOLDERS = [
    "heads",
    "tables",
    "snapshots/tables",
    "snapshots/adjacency",
    "snapshots/sentences",
    "snapshots/vectors/default-text_unit-text",
]


@pytest.fixture(scope="module")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_root(tmp_path_factory.mktemp("verified") / "root")
    root.tables.check_layout(root.settings.storage.n_buckets)
    build_tables(root, EVERYTHING)
    return root.path


@pytest.fixture
def root(_built: Path, tmp_path: Path) -> Root:
    """A copy of an index that a test may damage."""
    shutil.copytree(_built, tmp_path / "root")
    return Root(tmp_path / "root")


@pytest.fixture
def imported(tmp_path: Path) -> Root:
    """An index that no stage can make again."""
    root = make_root(tmp_path / "imported", {})
    manifest = replace(small_index.freeze(root.path).manifest, origin="import")
    publish(root.snapshots, root.snapshots.write_manifest(manifest))
    assert root.is_imported
    return root


def flip_middle_bit(path: Path) -> None:
    flip_bit(path, 8 * path.stat().st_size // 2)


def names(root: Root, is_repairing: bool = False) -> set[str]:
    return {finding.path for finding in verify_root(root, is_repairing).findings}


def test_a_whole_index_has_nothing_to_repair(root: Root) -> None:
    found = verify_root(root)
    assert found.findings == () and found.is_whole and found.n_bytes > 100_000
    assert found.n_parts == len(list_parts(root))


@pytest.mark.parametrize(("folder", "damage"), sums(FOLDERS, [zero, flip_middle_bit, Path.unlink]))
def test_damage_is_repaired_and_the_index_is_the_same(root: Root, folder: str, damage: Callable[[Path], None]) -> None:
    expected, snapshot = contract_bytes(root), root.snapshots.current()
    paths = random.Random(folder).sample(index_files(root.path, [folder]), 4)
    for path in paths:
        damage(path)
    found = verify_root(root, is_repairing=True)
    assert found.is_whole
    build_tables(root, EVERYTHING)
    assert verify_root(root).findings == ()
    assert contract_bytes(root) == expected and root.snapshots.current() == snapshot


@pytest.mark.parametrize("damage_table", [lambda path: None, zero])
@pytest.mark.parametrize("damage_copy", [lambda path: None, lambda path: flip_bit(path, 4 * path.stat().st_size), zero])
def test_a_damaged_table_is_repaired_although_its_copy_lost_its_hash(
    root: Root, damage_table: Callable[[Path], None], damage_copy: Callable[[Path], None]
) -> None:
    expected, snapshot = contract_bytes(root), root.snapshots.current()
    path = next((root.path / "snapshots" / "tables" / "communities").glob("*.parquet"))
    hash_path(path.with_suffix(".arrow")).unlink()
    damage_copy(path.with_suffix(".arrow"))
    damage_table(path)
    assert verify_root(root, is_repairing=True).is_whole
    build_tables(root, EVERYTHING)
    assert verify_root(root).findings == ()
    assert contract_bytes(root) == expected and root.snapshots.current() == snapshot


def test_each_damaged_file_is_named_with_what_is_done(root: Root) -> None:
    stage = index_files(root.path, ["tables/documents"])[0]
    vectors = index_files(root.path, ["snapshots/vectors/default-community-full_content"])[-1]
    for path in (stage, vectors):
        zero(path)
    paths = {path.relative_to(root.path).as_posix() for path in (stage, vectors)}
    assert names(root) == paths
    assert stage.exists(), "without --repair nothing changes"
    outcomes = {finding.path: finding.outcome for finding in verify_root(root, is_repairing=True).findings}
    assert outcomes.keys() == paths
    assert outcomes[stage.relative_to(root.path).as_posix()] == "removed; `index` makes it again"


@pytest.mark.parametrize("name", ["current.json", "pinned.json"])
@pytest.mark.parametrize("content", [b"", b'{"snapshot": "0123456789abcdef"}', b"\0" * 30])
def test_a_damaged_pointer_names_the_newest_checked_snapshot_again(root: Root, name: str, content: bytes) -> None:
    published = root.snapshots.current()
    (root.path / "snapshots" / name).write_bytes(content)
    assert names(root, is_repairing=True) == {f"snapshots/{name}"}
    assert (root.snapshots.current(), root.snapshots.pinned()) in ((published, None), (published, published))


def test_an_imported_index_is_made_whole_from_its_own_files(imported: Root) -> None:
    """Of a table one of two files; arrays from tables; vectors by the keys of their rows."""
    for folder in ("snapshots/tables", "snapshots/adjacency", "snapshots/sentences"):
        for path in index_files(imported.path, [folder]):
            if path.suffix in (".npy", ".parquet"):
                zero(path)
    for path in index_files(imported.path, ["snapshots/vectors"]):
        if "_indices" in path.parts or "_transactions" in path.parts:
            zero(path)
    damaged = verify_root(imported)
    assert len(damaged.findings) > 20 and not damaged.is_whole
    assert verify_root(imported, is_repairing=True).is_whole
    assert verify_root(imported).findings == ()


@pytest.mark.parametrize(
    ("wrong", "has_list"),
    [
        (2**31 - 1, True),
        pytest.param(-5, True, marks=pytest.mark.thorough),
        pytest.param(2**31 - 1, False, marks=pytest.mark.thorough),
    ],
)
def test_rows_with_wrong_places_in_memory_do_not_end_a_repair(imported: Root, wrong: int, has_list: bool) -> None:
    """The rows of LanceDB are lost, so those beside it are read; a changed offset leads out of the file."""
    folder = imported.snapshots.open().vectors("default-entity-description").path
    for path in index_files(folder, ["default-entity-description.lance/data"]):
        zero(path)
    for name in ("rows/000000/ids.arrow", "row_keys.arrow"):
        column = pa.ipc.open_file((folder / name).read_bytes()).read_all()["id"].chunk(0)
        offsets = column.buffers()[1].to_pybytes()
        changed = offsets[:4] + np.int32(wrong).tobytes() + offsets[8:]
        (folder / name).write_bytes((folder / name).read_bytes().replace(offsets, changed))
    if not has_list:
        (folder / LIST_FILE).unlink()
    found = verify_root(imported, is_repairing=True)
    assert not found.is_whole and all("cannot be made again" in finding.outcome for finding in found.findings)


def test_vectors_of_an_imported_index_come_from_an_older_snapshot(imported: Root) -> None:
    """All vectors of the new folder are lost; a document got another title, so that the folder has another name."""
    old = imported.snapshots.open()
    tables = small_index.contract_tables()
    titles = [f"{title} (second edition)" for title in tables["documents"]["title"].to_pylist()]
    place = tables["documents"].schema.get_field_index("title")
    tables["documents"] = tables["documents"].set_column(place, "title", [titles])
    manifest = replace(small_index.freeze(imported.path, tables).manifest, origin="import", notes=("second",))
    publish(imported.snapshots, imported.snapshots.write_manifest(manifest))
    snapshot, name = imported.snapshots.open(), "default-text_unit-text"
    ids = snapshot.vectors(name).ids()
    before = snapshot.vectors(name).vectors(ids)
    folder = manifest.vectors[name].path(imported.path / "snapshots" / "vectors")
    assert folder != old.manifest.vectors[name].path(imported.path / "snapshots" / "vectors")
    for path in index_files(folder, ["."]):
        path.unlink()
        path.write_bytes(b"lost")  # not in place: folders share files by links
    found = verify_root(Root(imported.path), is_repairing=True)
    assert found.findings and found.is_whole, found
    assert {f.outcome for f in found.findings} == {"made again from the other files of its snapshot"}
    assert (Root(imported.path).snapshots.open().vectors(name).vectors(ids) == before).all()
    assert verify_root(Root(imported.path)).findings == ()


def test_a_damaged_manifest_of_an_imported_index_is_restored(imported: Root) -> None:
    current = imported.snapshots.current() or ""
    imported.snapshots.path_of(current).write_bytes(b"{}")
    assert not verify_root(imported).is_whole
    assert verify_root(imported, is_repairing=True).is_whole
    assert imported.snapshots.open().id == current


@pytest.mark.parametrize("damage", [zero, lambda path: flip_bit(path, 400)])
def test_a_damaged_copy_of_a_manifest_is_named_and_written_again(
    imported: Root, damage: Callable[[Path], None]
) -> None:
    current = imported.snapshots.current()
    assert current
    copy = imported.snapshots.copy_path(current)
    damage(copy)
    assert names(imported) == {f"snapshots/{current}.manifest"}
    assert verify_root(imported, is_repairing=True).is_whole
    assert copy.read_bytes() == imported.snapshots.path_of(current).read_bytes() and names(imported) == set()


@pytest.mark.parametrize("damage", [zero, lambda path: flip_bit(path, 100), lambda path: path.write_bytes(b"")])
def test_a_damaged_list_of_passed_checks_is_named_and_the_checks_run_again(
    imported: Root, damage: Callable[[Path], None]
) -> None:
    path = imported.snapshots.folder / f"{imported.snapshots.current()}.checked"
    whole = path.read_bytes()
    damage(path)
    assert names(imported) == {f"snapshots/{path.name}"}
    assert verify_root(imported, is_repairing=True).is_whole
    assert path.read_bytes() == whole and names(imported) == set()


def test_what_cannot_be_made_again_is_kept_aside_and_named_with_the_way_out(imported: Root) -> None:
    snapshot = imported.snapshots.open()
    paths = [snapshot.table_path("entities"), snapshot.mapped_path("entities")]
    for path in paths:
        zero(path)
    found = verify_root(imported, is_repairing=True)
    assert not found.is_whole
    assert {finding.path for finding in found.findings} == {p.relative_to(imported.path).as_posix() for p in paths}
    assert all("cannot be made again" in f.outcome and "import` again" in f.outcome for f in found.findings)
    kept = imported.path / "cache" / "damaged" / paths[0].relative_to(imported.path)
    assert kept.stat().st_size and not paths[0].exists()


def test_an_index_run_checks_the_oldest_files_and_all_within_the_days_of_the_setting(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphrag_pipeline.storage.damage.SAMPLE_BYTES", 1)
    parts = list_parts(root)
    times = CheckTimes(root.path)
    assert len(times.find_due(parts, 1e9, 30)) == len(parts), "never checked"
    times.record(parts[1:], parts, 1e9)
    assert times.find_due(parts, 1e9 + 1, 30) == [parts[0]]
    times.record(parts[:1], parts, 1e9 + 100)
    assert CheckTimes(root.path).find_due(parts, 1e9 + 101, 30)[0] in parts[1:], "the oldest"
    assert len(times.find_due(parts, 1e9 + 50 + 30 * 86_400, 30)) == len(parts) - 1, "overdue"
    zero(parts[0].path)
    times.record(parts[:1], parts, 0)
    assert len(repair_before_index(root).findings) == 1


def test_the_command_reports_damage_as_lines_and_as_json(root: Root, call: Call) -> None:
    path = index_files(root.path, ["snapshots/adjacency"])[0]
    flip_bit(path, 0)
    done = call("verify", "--root", root.path)
    assert done.status == 1 and f"damaged arrays: {path.relative_to(root.path)}" in done.out
    repaired = call("verify", "--repair", "--json", "--root", root.path)
    assert repaired.status == 0 and '"is_whole": true' in repaired.out
    assert ": 0 damaged" in call("verify", "--root", root.path).out
