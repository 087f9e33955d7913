"""Folders that list their own files with sizes and hashes."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from graphrag_pipeline.filesystem.listed_folders import (
    LIST_FILE,
    find_changed_files,
    find_damaged_files,
    hash_file,
    write_file_list,
)
from graphrag_pipeline_tests.support.damage import flip_bit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").write_bytes(b"defg")
    write_file_list(tmp_path)
    return tmp_path


def test_a_folder_without_a_readable_list_counts_as_damaged(folder: Path) -> None:
    write_file_list(folder)
    assert find_damaged_files(folder) == [] == find_changed_files(folder)
    (folder / LIST_FILE).write_bytes(b"[]")
    assert find_damaged_files(folder) == [folder / LIST_FILE]
    (folder / LIST_FILE).unlink()
    assert find_changed_files(folder) == [folder / LIST_FILE]
    assert find_damaged_files(folder / "other") == [folder / "other"]


def test_one_changed_bit_is_seen_in_every_file_and_at_every_place_of_the_list(folder: Path) -> None:
    for path in (folder / "a", folder / "b" / "c"):
        flip_bit(path, 5)
        assert find_damaged_files(folder) == [], "the size is the same"
        assert find_changed_files(folder) == [path]
        flip_bit(path, 5)
    listed = folder / LIST_FILE
    for bit in range(8 * listed.stat().st_size):
        flip_bit(listed, bit)
        assert find_changed_files(folder) in ([listed], []), bit
        if find_changed_files(folder) == []:
            assert json.loads(listed.read_bytes())["files"], "only white space changed"
        flip_bit(listed, bit)


def test_a_remembered_hash_is_not_that_of_an_equally_old_file_of_the_same_size(tmp_path: Path) -> None:
    """Unpacked files all have the time 0, and a file may get the inode of one that was removed."""
    path = tmp_path / "unpacked.npy"
    for content in (b"first version", b"other version"):
        path.write_bytes(content)
        os.utime(path, ns=(0, 0))
        time.sleep(0.06)  # old enough to be remembered
        assert hash_file(path) == hash_file(path) == hashlib.sha256(content).hexdigest()
