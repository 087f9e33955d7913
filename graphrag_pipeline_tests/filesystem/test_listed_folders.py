"""A folder with a list of its files is checked by names and sizes."""

from __future__ import annotations

from pathlib import Path

from graphrag_pipeline.filesystem.listed_folders import LIST_FILE, find_damaged_files, write_file_list


def test_a_missing_or_damaged_file_list_is_found(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "a").write_bytes(b"abc")
    assert find_damaged_files(tmp_path) == [tmp_path / LIST_FILE]
    write_file_list(tmp_path)
    write_file_list(tmp_path)
    assert find_damaged_files(tmp_path) == []
    (tmp_path / LIST_FILE).write_bytes(b"[]")
    assert find_damaged_files(tmp_path) == [tmp_path / LIST_FILE]
    assert find_damaged_files(tmp_path / "other") == [tmp_path / "other"]
