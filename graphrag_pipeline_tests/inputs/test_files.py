"""Input folders as users leave them: each file is read, or listed with a problem."""

import json
import os
import random
import shutil
from pathlib import Path

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import bucket_keys, bucket_of
from graphrag_pipeline.inputs import files as input_files
from graphrag_pipeline.inputs import source_records
from graphrag_pipeline.inputs.files import read_input
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline_tests.support.damage import flip_bit

PLAIN = InputSettings()
B = 8


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "input"
    folder.mkdir()
    return folder


def _write(folder: Path, *names: str, content: str = "Some text.") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def _problems(folder: Path, settings: InputSettings = PLAIN) -> dict[str, str | None]:
    records = list(read_input(folder, settings, B))
    problems = {record.path: record.problem for record in records}
    assert len(problems) == len(records)
    for record in records:
        record.path.encode("utf-8")
    return problems


@pytest.mark.parametrize("is_file", [False, True])
def test_a_missing_folder_is_an_error_that_names_the_fix(tmp_path, is_file):
    if is_file:
        (tmp_path / "input").write_text("not a folder")
    with pytest.raises(PipelineError, match=r"input`: no such input folder; create it .* input\.folder"):
        read_input(tmp_path / "input", PLAIN, B)


def test_files_come_sorted_by_path_from_all_folders(folder):
    _write(folder, "b.txt", "a/z.txt", "a.txt", "a/b/c.md", "B.txt", "é.txt")
    assert list(_problems(folder)) == ["B.txt", "a.txt", "a/b/c.md", "a/z.txt", "b.txt", "é.txt"]


def test_the_same_base_name_and_the_same_text_are_different_documents(folder):
    _write(folder, "x/a.txt", "y/a.txt")
    records = list(read_input(folder, PLAIN, B))
    assert len({record.document_id for record in records}) == 2
    assert len({record.content_hash for record in records}) == 1


def test_hidden_and_editors_files_are_left_out_and_other_types_are_named(folder):
    _write(folder, ".DS_Store", ".git/a.txt", "a.txt~", "#a.txt#", "~$a.docx", "Thumbs.db", "__MACOSX/a.txt", "a.txt")
    _write(folder, "film.mp4", "Makefile")
    problems = _problems(folder)
    assert list(problems) == ["Makefile", "a.txt", "film.mp4"]
    assert problems["film.mp4"].startswith("unsupported file type .mp4; supported: .txt")


@pytest.mark.parametrize(
    ("pattern", "left"),
    [("drafts", ["a.txt", "b.log.txt"]), ("drafts/", ["a.txt", "b.log.txt"]), ("drafts/*", ["a.txt", "b.log.txt"]),
     ("*.log.txt", ["a.txt", "drafts/a.txt"]), ("**/a.txt", ["b.log.txt"]), ("a.txt", ["b.log.txt", "drafts/a.txt"])],
)  # fmt: skip
def test_excluded_paths_are_left_out(folder, pattern, left):
    _write(folder, "a.txt", "b.log.txt", "drafts/a.txt")
    assert list(_problems(folder, InputSettings(exclude=(pattern,)))) == left


@pytest.mark.parametrize(
    "name", ["with space.txt", "it's \"quoted\".txt", "emoji 👩\u200d👧.txt", "..%2f..%2fetc.txt",
             "x') OR ('1'='1.txt", "-rf.txt", "a" * 250 + ".txt", "*?[x].txt"],
)  # fmt: skip
def test_any_name_is_kept_unchanged(folder, name):
    _write(folder, f"sub/{name}")
    if name.startswith(".."):
        assert _problems(folder) == {}  # a leading dot hides a file
    else:
        assert _problems(folder) == {f"sub/{name}": None}


def test_undecodable_names_have_valid_unique_paths(folder):
    names = [b"caf\xe9.txt", b"caf\\xe9.txt", "café.txt".encode(), b"caf\xe8.txt", b"\xff/a.txt"]
    names += [b"a\nb.txt", "a\u0085b.txt".encode(), b"a\x85b.txt", "a\u2028b.txt".encode()]
    for name in names:
        path = os.path.join(os.fsencode(folder), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"text")
    assert _problems(folder) == dict.fromkeys(
        [r"caf\xe9.txt", r"caf\\xe9.txt", "café.txt", r"caf\xe8.txt", r"\xff/a.txt",
         r"a\u000ab.txt", r"a\u0085b.txt", r"a\x85b.txt", r"a\u2028b.txt"]
    )  # fmt: skip


def test_unreadable_files_are_listed_and_stop_no_other(folder, tmp_path):
    _write(folder, "good.txt", "directory.txt/inside.txt")
    _write(tmp_path, "secret.txt")
    os.mkfifo(folder / "pipe.txt")
    for name, target in {
        "dangling.txt": "nowhere.txt", "loop.txt": "loop.txt", "out.txt": tmp_path / "secret.txt", "up": "..",
        "self": ".", "sub": "directory.txt", "in.txt": "good.txt", "dir.txt": "directory.txt",
        "in_pipe.txt": "pipe.txt",
    }.items():  # fmt: skip
        (folder / name).symlink_to(target)
    problems = {path: problem and problem.partition(";")[0] for path, problem in _problems(folder).items()}
    assert problems == {
        "dangling.txt": "symbolic link to nothing",
        "dir.txt": "symbolic link to a folder: not followed",
        "directory.txt/inside.txt": None,
        "good.txt": None,
        "in.txt": None,
        "in_pipe.txt": "not a regular file (a pipe, socket or device)",
        "loop.txt": "symbolic link loop",
        "out.txt": "symbolic link out of the input folder",
        "pipe.txt": "not a regular file (a pipe, socket or device)",
        "self": "symbolic link to a folder: not followed",
        "sub": "symbolic link to a folder: not followed",
        "up": "symbolic link out of the input folder",
    }


def test_an_unreadable_file_is_a_problem(folder, monkeypatch):
    _write(folder, "a.txt", "b.txt")

    def deny(path, mode):
        if path.endswith(b"a.txt"):
            raise PermissionError(13, "Permission denied")
        return open(path, mode)

    monkeypatch.setattr(input_files, "open", deny, raising=False)
    assert _problems(folder) == {"a.txt": "cannot be read (Permission denied); fix its permissions", "b.txt": None}


def test_an_unreadable_folder_is_a_problem(folder, monkeypatch):
    _write(folder, "a.txt", "closed/b.txt")
    scandir = os.scandir

    def deny(path):
        if path.endswith(b"closed/"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(input_files.os, "scandir", deny)
    assert _problems(folder) == {
        "a.txt": None,
        "closed/": "this folder cannot be listed (Permission denied); fix its permissions",
    }


def _write_mixed(folder: Path, names: list[str]) -> None:
    for name in names:
        _write(folder, f"{name}.txt", content=f"Text of {name}.")
    rows = [{"id": number, "text": f"Row {number}."} for number in range(50)]
    _write(folder, "rows.jsonl", content="\n".join(map(json.dumps, rows)) + "\nbroken\n")


def test_buckets_share_out_the_records_and_skip_files_of_other_buckets(folder, tmp_path, monkeypatch):
    _write_mixed(folder, [f"n{number}" for number in range(40)])
    everything = list(read_input(folder, PLAIN, B))
    opened: list[bytes] = []

    def count(path, mode):
        opened.append(path)
        return open(path, mode)

    monkeypatch.setattr(input_files, "open", count, raising=False)
    by_bucket = {key: list(read_input(folder, PLAIN, B, {key}, tmp_path / "cache")) for key in bucket_keys(B)}
    assert sum(len(records) for records in by_bucket.values()) == len(everything) == 91
    for key, records in by_bucket.items():
        assert records == [r for r in everything if bucket_of(r.document_id, B) == key]
    assert len(opened) == 40 + B  # each text file once; rows.jsonl for every bucket
    assert list(read_input(folder, PLAIN, B, [])) == []


def test_two_folders_made_in_another_order_read_alike(tmp_path):
    names = [f"d{number % 3}/n{number}" for number in range(20)]
    shuffled = random.Random(0).sample(names, len(names))
    _write_mixed(tmp_path / "one", names)
    _write_mixed(tmp_path / "two", shuffled)
    assert list(read_input(tmp_path / "one", PLAIN, B)) == list(read_input(tmp_path / "two", PLAIN, B))


def test_structured_files_are_parsed_once_until_content_or_columns_change(folder, tmp_path, monkeypatch):
    parsed: list[str] = []
    read_records = input_files.read_records

    def count(path, data, settings):
        parsed.append(path)
        return read_records(path, data, settings)

    monkeypatch.setattr(input_files, "read_records", count)
    cache = tmp_path / "cache"
    _write(folder, "rows.csv", content="id,text,body\n1,one,other\n")

    def read(settings: InputSettings = PLAIN) -> list:
        return list(read_input(folder, settings, B, None, cache))

    first = read()
    assert read() == first and len(parsed) == 1
    assert read(InputSettings(exclude=("x",))) == first and len(parsed) == 1
    assert [record.text for record in read(InputSettings(text_column="body"))] == ["other"] and len(parsed) == 2
    for damaged in cache.rglob("*.records"):
        damaged.write_bytes(damaged.read_bytes()[:-20])
    assert read() == first and len(parsed) == 3
    assert read() == first and len(parsed) == 3
    for damaged in cache.rglob("*.records"):
        damaged.write_bytes(b"")
    assert read() == first and len(parsed) == 4
    entry = max(cache.rglob("*.records"), key=lambda path: path.stat().st_mtime_ns)
    for n_flipped, bit in enumerate(random.Random(1).sample(range(8 * entry.stat().st_size), 40), 1):
        flip_bit(entry, bit)
        assert read() == first and len(parsed) == 4 + n_flipped, "a changed bit is seen, wherever it is"
    _write(folder, "rows.csv", content="id,text,body\n1,ONE,other\n")
    assert [record.text for record in read()] == ["ONE"]
    shutil.rmtree(cache)
    cache.write_text("no folder can be made here")
    assert [record.text for record in read()] == ["ONE"]


def test_an_office_file_is_read_again_once_the_converter_is_installed(folder, tmp_path, monkeypatch):
    _write(folder, "page.html", content="<p>text</p>")
    versions, real_version = {"markitdown": None}, source_records.importlib.metadata.version

    def version(name):
        if name not in versions:
            return real_version(name)
        if versions[name] is None:
            raise source_records.importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(source_records.importlib.metadata, "version", version)
    for installed, n_entries in ((None, 1), (None, 1), ("1.0", 2), ("1.1", 3)):
        versions["markitdown"] = installed
        list(read_input(folder, PLAIN, B, None, tmp_path / "cache"))
        assert len(list((tmp_path / "cache").rglob("*.records"))) == n_entries
