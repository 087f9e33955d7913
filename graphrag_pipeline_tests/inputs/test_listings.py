"""The files of a bucket as a message: the same records as from the folder itself, and no file outside of it."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import bucket_keys
from graphrag_pipeline.inputs.files import choose_files, list_input, read_input
from graphrag_pipeline.inputs.listings import listing_version, pack_listing, unpack_listing
from graphrag_pipeline.settings.input import InputSettings

B = 4
PLAIN = InputSettings()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "input"
    (folder / "deep").mkdir(parents=True)
    for number in range(12):
        (folder / f"n{number}.txt").write_text(f"Document {number} of the archive.", encoding="utf-8")
    (folder / "deep" / "back\\slash.md").write_text("# A title\n\nA text.", encoding="utf-8")
    (folder / os.fsdecode(b"caf\xe9.txt")).write_text("Not UTF-8 in its name.", encoding="utf-8")
    (folder / "rows.csv").write_text("id,text\n1,First row.\n2,Second row.\n", encoding="utf-8")
    (folder / "out.txt").symlink_to(tmp_path)
    (folder / "nothing.txt").symlink_to(folder / "missing")
    (folder / "alias.txt").symlink_to(folder / "n1.txt")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    return folder


def test_a_bucket_by_its_listing_has_the_records_of_the_folder(folder: Path, tmp_path: Path) -> None:
    listed = list_input(folder, PLAIN)
    for bucket in bucket_keys(B):
        data = pack_listing(choose_files(listed, B, {bucket}), folder)
        assert listing_version(data) == listing_version(pack_listing(choose_files(listed, B, {bucket}), folder))
        files = unpack_listing(data, folder, tmp_path)
        expected = list(read_input(folder, PLAIN, B, {bucket}))
        assert expected and list(read_input(folder, PLAIN, B, {bucket}, listed=files)) == expected


def test_a_bucket_behind_a_url_by_its_listing_is_not_listed_again(folder: Path, tmp_path: Path) -> None:
    url, cache = f"file://{folder}", tmp_path / "cache"
    data = pack_listing(choose_files(list_input(url, PLAIN, cache), B, {"001"}), url)
    (folder / "later.txt").write_text("Written after the listing.", encoding="utf-8")
    files = unpack_listing(data, url, cache)
    assert files == [file for file in list_input(url, PLAIN, cache) if file in files] and files
    found = list(read_input(url, PLAIN, B, None, cache, listed=files))
    assert {record.path for record in found} <= {file.path for file in files}


def test_a_file_that_changed_since_the_listing_is_read_as_it_is_now(folder: Path, tmp_path: Path) -> None:
    data = pack_listing(list_input(folder, PLAIN), folder)
    (folder / "n1.txt").write_text("Another text.", encoding="utf-8")
    (folder / "n2.txt").unlink()
    records = {r.path: r for r in read_input(folder, PLAIN, B, listed=unpack_listing(data, folder, tmp_path))}
    assert records["n1.txt"].text == "Another text."
    assert "was removed while the folder was read" in str(records["n2.txt"].problem)


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/hostname", "deep/../../secret.txt"])
def test_a_name_outside_the_folder_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    for place in (folder, f"file://{folder}"):
        row = {"name": name, "path": name, "problem": None, "is_fault": False, "n_bytes": 6, "version": "1"}
        data = gzip.compress(json.dumps([row]).encode())
        with pytest.raises(PipelineError, match=r"is damaged .*it names"):
            unpack_listing(data, place, tmp_path)


def test_a_link_out_of_the_folder_is_not_followed_whatever_the_listing_says(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.txt").write_text("secret", encoding="utf-8")
    (folder / "link").symlink_to(tmp_path / "secret")
    row = {"name": "link/a.txt", "path": "link/a.txt", "problem": None, "is_fault": False, "n_bytes": 6, "version": ""}
    (file,) = unpack_listing(gzip.compress(json.dumps([row]).encode()), folder, tmp_path)
    assert "symbolic link out of the input folder" in str(file.problem)


@pytest.mark.parametrize("text", [None, "", "{", "[1]", "[{}]"])
def test_a_damaged_listing_is_an_error_with_a_way_out(folder: Path, tmp_path: Path, text: str | None) -> None:
    data = b"no gzip" if text is None else gzip.compress(text.encode())
    with pytest.raises(PipelineError, match=r"is damaged .*index this bucket again"):
        unpack_listing(data, folder, tmp_path)
