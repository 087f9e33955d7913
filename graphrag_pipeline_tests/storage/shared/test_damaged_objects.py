"""Damaged objects of a shared store are never used, and a damaged copy is downloaded again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.verification import verify_root
from graphrag_pipeline.storage.shared.objects import open_object_store
from graphrag_pipeline_tests.support.damage import flip_bit, index_files, zero
from graphrag_pipeline_tests.support.machines import again, index, machine, reader
from graphrag_pipeline_tests.support.thoroughness import usually

OBJECTS = (
    "snapshots/tables/entities/*",
    "snapshots/adjacency/*.tar",
    "snapshots/vectors/*/*.tar",
    "tables/documents/*/*",
    "snapshots/*.json",
)


@pytest.fixture(scope="module")
def _indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged_objects")
    index(machine(folder / "one", f"file://{folder / 'store'}"))
    return folder


@pytest.mark.parametrize("pattern", ["snapshots/tables/entities/*", "snapshots/*/*.tar", "snapshots/vectors/*/*.tar"])
def test_a_changed_object_is_refused_and_not_kept(_indexed: Path, tmp_path: Path, pattern: str) -> None:
    shutil.copytree(_indexed / "store", tmp_path / "store")
    path = sorted((tmp_path / "store").glob(pattern))[0]
    flip_bit(path, 8 * path.stat().st_size // 3)
    second = reader(tmp_path / "two", f"file://{tmp_path / 'store'}")
    with pytest.raises(NoSnapshotError, match=r"damaged|not what its name promises"):
        second.follow()
    assert second.snapshots.current() is None, "nothing is published from a damaged object"


def test_a_changed_object_of_an_object_server_is_refused_and_not_kept(
    _indexed: Path, tmp_path: Path, s3_url: str
) -> None:
    """The same bytes over HTTP: one object of each kind is damaged, then whole again."""
    objects, base = open_object_store(s3_url), _indexed / "store"
    objects.upload({path.relative_to(base).as_posix(): path for path in base.rglob("*") if path.is_file()})
    for number, pattern in enumerate(("snapshots/tables/entities/*", "snapshots/*/*.tar", "snapshots/vectors/*/*.tar")):
        name = sorted(base.glob(pattern))[0].relative_to(base).as_posix()
        whole = objects.read(name)
        assert whole
        place = len(whole) // 3
        objects.write(name, whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        second = reader(tmp_path / str(number), s3_url)
        with pytest.raises(NoSnapshotError, match=r"damaged|not what its name promises"):
            second.follow()
        assert second.snapshots.current() is None
        objects.write(name, whole)
        Root(second.path).follow()
        assert verify_root(Root(second.path)).findings == ()


def test_a_damaged_copy_is_downloaded_again(_indexed: Path, tmp_path: Path) -> None:
    second = reader(tmp_path / "two", f"file://{_indexed / 'store'}")
    second.pull()
    for folder in ("tables/documents", "snapshots/tables/entities", "snapshots/vectors/default-text_unit-text"):
        zero(index_files(second.path, [folder])[-1])
    found = verify_root(Root(second.path), is_repairing=True)
    assert {finding.outcome for finding in found.findings} == {"downloaded from the shared store"}
    assert len(found.findings) == 3 and found.is_whole
    assert verify_root(Root(second.path)).findings == ()


@pytest.mark.parametrize(
    "pattern", usually(["tables/entity_embeddings/*/*", "snapshots/tables/entities/*"], "snapshots/tables/entities/*")
)
def test_writers_other_than_index_go_on_beside_an_object_that_no_copy_has(
    _indexed: Path, tmp_path: Path, pattern: str
) -> None:
    shutil.copytree(_indexed / "store", tmp_path / "store")
    lost = sorted((tmp_path / "store").glob(pattern))[0]
    lost.unlink()
    second = machine(tmp_path / "two", f"file://{tmp_path / 'store'}")
    with second.writing():
        second.snapshots.unpin()
    prune(again(second), n_kept=1, before=0)
    assert not lost.exists(), "nothing can make it again but an index"
    index(second)
    assert lost.exists()
    third = reader(tmp_path / "three", f"file://{tmp_path / 'store'}")
    third.pull()
    assert verify_root(third).findings == ()


@pytest.mark.parametrize("pattern", usually(OBJECTS, *OBJECTS[:2]))
@pytest.mark.parametrize("is_lost", usually([False, True], False))
def test_verify_names_damaged_objects_and_uploads_them_again(
    _indexed: Path, tmp_path: Path, pattern: str, is_lost: bool
) -> None:
    shutil.copytree(_indexed / "store", tmp_path / "store")
    url = f"file://{tmp_path / 'store'}"
    one = machine(tmp_path / "one", url)
    one.pull()
    assert verify_root(one, has_store=True).is_whole
    path = sorted((tmp_path / "store").glob(pattern))[0]
    whole, name = path.read_bytes(), path.relative_to(tmp_path / "store").as_posix()
    path.unlink() if is_lost else flip_bit(path, 8 * path.stat().st_size // 3)
    named = [finding.path for finding in verify_root(again(one), has_store=True).findings]
    assert named == [f"{url}/{name}"]
    assert verify_root(again(one)).findings == (), "the copy is whole"
    empty = verify_root(reader(tmp_path / "two", url), has_store=True)
    assert not empty.is_whole and named[0] in {finding.path for finding in empty.findings}
    repaired = verify_root(again(one), is_repairing=True, has_store=True)
    assert repaired.is_whole and [finding.outcome for finding in repaired.findings] == ["uploaded again"]
    assert path.read_bytes() == whole
    assert verify_root(reader(tmp_path / "three", url), has_store=True).findings == ()


def test_verify_store_needs_a_store(_indexed: Path, tmp_path: Path) -> None:
    shutil.copytree(_indexed / "one", tmp_path / "one")
    (tmp_path / "one" / "settings.yaml").write_text("storage:\n  n_buckets: 2\n")
    with pytest.raises(PipelineError, match="has none"):
        verify_root(Root(tmp_path / "one"), has_store=True)


@pytest.mark.parametrize("is_pinned", usually([True, False], True))
@pytest.mark.parametrize("has_note", [True, False])
def test_a_damaged_pin_is_restored_as_the_store_has_it(
    _indexed: Path, tmp_path: Path, is_pinned: bool, has_note: bool
) -> None:
    shutil.copytree(_indexed / "store", tmp_path / "store")
    second = machine(tmp_path / "two", f"file://{tmp_path / 'store'}")
    index(second)
    if is_pinned:
        with again(second).writing():
            second.snapshots.pin(str(second.snapshots.current()))
    expected = second.snapshots.pinned()
    (second.path / "snapshots" / "pinned.json").write_bytes(bytes(30))
    if not has_note:
        shutil.rmtree(second.path / "cache" / "store")
    with again(second).writing():
        pass
    assert second.snapshots.pinned() == expected
    with again(second).writing():
        second.snapshots.unpin()
    assert second.snapshots.pinned() is None
