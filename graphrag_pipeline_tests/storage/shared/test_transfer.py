"""A folder is unpacked from an archive unchanged, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.filesystem.listed_folders import write_file_list
from graphrag_pipeline.storage.shared.transfer import pack, unpack


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    for name in ("a.npy", "deep/er/b.lance", "_versions/1.manifest"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes(name.encode() * 50)
    write_file_list(made)
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_packed_folder_is_unpacked_and_replaces_the_old_one(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "x.tar")
    target = tmp_path / "there" / "folder"
    target.mkdir(parents=True)
    (target / "left over").write_bytes(b"")
    unpack(tmp_path / "x.tar", target)
    assert contents(target) == contents(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "there", "x.tar"]


def test_equal_files_make_equal_archives(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "x.tar")
    for path in folder.rglob("*"):
        path.touch()
    pack(folder, tmp_path / "y.tar")
    assert (tmp_path / "x.tar").read_bytes() == (tmp_path / "y.tar").read_bytes()


@pytest.mark.parametrize("keep", [0, 100, 2500])
def test_a_cut_archive_leaves_the_old_folder(folder: Path, tmp_path: Path, keep: int) -> None:
    pack(folder, tmp_path / "x.tar")
    (tmp_path / "x.tar").write_bytes((tmp_path / "x.tar").read_bytes()[:keep])
    before = contents(folder)
    with pytest.raises(NoSnapshotError, match="folder` is damaged in the shared store"):
        unpack(tmp_path / "x.tar", folder)
    assert contents(folder) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "x.tar"]
