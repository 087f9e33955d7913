"""An input folder behind a URL: it gives the same records as on disk, and fetches each version of a file once."""

from __future__ import annotations

import shutil
import sys
import traceback
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from graphrag_pipeline.defs.automation.sensors import Watch, look_at_input
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.inputs.files import fingerprint_input, list_remote, list_unused_records, read_input
from graphrag_pipeline.pipeline.detected_input import detect_input, list_notes
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.settings.file import load_settings
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline_tests.support.roots import (
    CAROL,
    build_tables,
    built_root,
    contract_bytes,
    make_root,
    put,
    table_bytes,
)

PLAIN = InputSettings()
B = 4
FILES = {
    "one.txt": b"Marley was dead.",
    "a/b/two.md": b"# Two\n\nScrooge signed.",
    "a/rows.jsonl": b'{"id": 1, "text": "First."}\n{"id": 2, "text": "Second."}\n',
    "page.html": b"<p>Tiny Tim</p>",
    "odd [1] *?.txt": b"Any name.",
    "back\\slash.txt": b"Another.",
    "film.mp4": b"frames",
    ".hidden/x.txt": b"no",
    "drafts/x.txt": b"no",
    "a/x.txt~": b"no",
}


class Store(MemoryFileSystem):
    """An object store that counts fetched files, can fail, and can report only the sizes of files."""

    protocol = "store"
    fetched: ClassVar[list[str]] = []
    failures: ClassVar[dict[str, Exception]] = {}
    cuts: ClassVar[dict[str, int]] = {}
    vanishing: ClassVar[set[str]] = set()
    is_versioned = True

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        if error := self.failures.get(f"{path.rpartition('/')[2]}/"):
            raise error
        found = super().ls(path, detail=True, **options)
        if not self.is_versioned:
            found = [{key: info[key] for key in ("name", "size", "type")} for info in found]
        return found if detail else [info["name"] for info in found]

    def cat_file(self, path: str, *arguments: Any, **options: Any) -> bytes:
        self.fetched.append(path.rpartition("/")[2])
        if error := self.failures.get(path.rpartition("/")[2]):
            raise error
        if path.rpartition("/")[2] in self.vanishing:
            self.rm_file(path)
        return super().cat_file(path, *arguments, **options)[: self.cuts.get(path.rpartition("/")[2])]


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return a new folder in a store that starts empty and without failures."""
    fsspec.register_implementation("store", Store, clobber=True)
    monkeypatch.setattr(Store, "store", {})
    monkeypatch.setattr(Store, "pseudo_dirs", [""])
    monkeypatch.setattr(Store, "fetched", [])
    monkeypatch.setattr(Store, "failures", {})
    monkeypatch.setattr(Store, "cuts", {})
    monkeypatch.setattr(Store, "vanishing", set())
    monkeypatch.setattr(Store, "is_versioned", True)
    yield "store://bucket/docs"


def _fill(url: str, files: dict[str, bytes] = FILES) -> None:
    store, folder = fsspec.core.url_to_fs(url)
    store.pipe({f"{folder}/{name}": content for name, content in files.items()})


def test_the_records_are_those_of_the_same_files_on_disk(url: str, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / "input" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "input" / name).write_bytes(content)
    _fill(url)
    settings = InputSettings(exclude=("drafts",))
    local = list(read_input(tmp_path / "input", settings, B))
    assert len(local) == 8
    assert list(read_input(url, settings, B)) == local
    for bucket in ("000", "003"):
        expected = list(read_input(tmp_path / "input", settings, B, [bucket]))
        assert list(read_input(url, settings, B, [bucket], tmp_path / "cache")) == expected
    assert "film.mp4" not in Store.fetched and "x.txt" not in Store.fetched


def test_changes_are_detected_without_the_copy_of_an_unchanged_version(url: str, tmp_path: Path) -> None:
    _fill(url, {"one.txt": b"One.", "two.txt": b"Two."})
    root = make_root(tmp_path / "root", {}, f"storage:\n  n_buckets: 2\ninput:\n  folder: {url}\n")
    first = detect_input(root)
    shutil.rmtree(root.path / "cache/input")
    Store.fetched.clear()
    assert detect_input(Root(root.path)) == first and Store.fetched == []
    _fill(url, {"two.txt": b"2.00"})
    assert detect_input(Root(root.path)) != first and Store.fetched == ["two.txt"]
    Store.is_versioned = False
    Store.fetched.clear()
    assert detect_input(Root(root.path)) != first and Store.fetched == ["one.txt", "two.txt"]


def test_a_version_of_a_file_is_fetched_once(url: str, tmp_path: Path) -> None:
    _fill(url, {"one.txt": b"One.", "two.txt": b"Two."})

    def texts() -> list[str]:
        Store.fetched.clear()
        return [record.text for record in read_input(url, PLAIN, B, None, tmp_path)]

    assert texts() == ["One.", "Two."] and Store.fetched == ["one.txt", "two.txt"]
    assert texts() == ["One.", "Two."] and Store.fetched == []
    _fill(url, {"two.txt": b"2wo."})
    assert texts() == ["One.", "2wo."] and Store.fetched == ["two.txt"]
    _fill(url, {"two.txt": b"Two."})  # put back: its time of change differs
    assert texts() == ["One.", "Two."] and Store.fetched == ["two.txt"]
    [cut_short] = [path for path in tmp_path.rglob("input/*") if path.read_bytes() == b"One."]
    cut_short.write_bytes(b"On")
    assert texts() == ["One.", "Two."] and Store.fetched == ["one.txt"]


def test_a_store_that_lists_only_sizes_is_fetched_each_time(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "is_versioned", False)
    for content in (b"One.", b"1ne."):
        _fill(url, {"one.txt": content})
        assert [record.text.encode() for record in read_input(url, PLAIN, B, None, tmp_path)] == [content]


def test_the_fingerprint_follows_the_listing_and_fetches_nothing(url: str) -> None:
    _fill(url)
    first = fingerprint_input(url, PLAIN)
    assert fingerprint_input(url, PLAIN) == first
    _fill(url, {"one.txt": FILES["one.txt"]})
    second = fingerprint_input(url, PLAIN)
    _fill(url, {"new.txt": b""})
    assert len({first, second, fingerprint_input(url, PLAIN)}) == 3
    assert Store.fetched == []


def test_copies_of_removed_files_are_unused(url: str, tmp_path: Path) -> None:
    _fill(url, {"one.txt": b"One.", "rows.csv": b"id,text\n1,Row.\n"})
    list(read_input(url, PLAIN, B, None, tmp_path))
    assert list_unused_records(url, PLAIN, tmp_path) == []
    _fill(url, {"one.txt": b"Other."})
    [unused] = list_unused_records(url, PLAIN, tmp_path)
    assert unused.read_bytes() == b"One."
    (tmp_path / "local").mkdir()
    assert len(list_unused_records(tmp_path / "local", PLAIN, tmp_path)) == 3


def test_a_file_removed_while_read_is_a_problem_and_stops_no_other(url: str) -> None:
    _fill(url, {"one.txt": b"One.", "two.txt": b"Two."})
    Store.vanishing.add("one.txt")
    removed, read = read_input(url, PLAIN, B)
    assert (removed.problem, removed.is_unknown) == ("was removed while the folder was read", False)
    assert (read.path, read.problem) == ("two.txt", None)


def test_a_file_that_is_not_found_but_still_listed_was_not_removed(url: str) -> None:
    """As behind a proxy that answers 404 for a while."""
    _fill(url, {f"{number}.txt": b"Text." for number in range(4)})
    Store.vanishing.add("3.txt")
    for number in range(3):
        Store.failures[f"{number}.txt"] = FileNotFoundError(number)
    *listed, removed = read_input(url, PLAIN, B)
    assert {(one.problem, one.is_unknown) for one in listed} == {
        ("cannot be read (it is listed, but not found); run again, or exclude it", True)
    }
    assert not removed.is_unknown


def test_the_run_stops_if_it_cannot_be_seen_whether_a_file_was_removed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(url, {"one.txt": b"One.", "two.txt": b"Two."})
    Store.vanishing.add("one.txt")
    records = read_input(url, PLAIN, B)
    listings = iter([None, ConnectionResetError("reset")])
    monkeypatch.setattr(Store, "invalidate_cache", lambda *_: Store.failures.update({"docs/": next(listings)}))
    with pytest.raises(PipelineError, match="the input folder cannot be listed"):
        list(records)


FAULTS = [PermissionError("denied"), TimeoutError("no answer"), ConnectionResetError("reset"), RuntimeError("odd")]


@pytest.mark.parametrize("error", FAULTS)
@pytest.mark.parametrize("folder", ["docs", "a", "b"])
def test_a_folder_that_cannot_be_listed_is_never_taken_for_deleted_documents(
    url: str, error: Exception, folder: str
) -> None:
    _fill(url)
    Store.failures[f"{folder}/"] = error
    for read in (lambda: fingerprint_input(url, PLAIN), lambda: list(read_input(url, PLAIN, B))):
        with pytest.raises(
            PipelineError, match=r"store://bucket/docs`: the input folder cannot be listed .* nothing was changed"
        ):
            read()


def test_a_folder_that_is_removed_while_the_store_is_listed_has_no_files(url: str) -> None:
    _fill(url, {"one.txt": b"One.", "a/two.txt": b"Two."})
    Store.failures["a/"] = FileNotFoundError("a")
    assert [record.path for record in read_input(url, PLAIN, B)] == ["one.txt"]


@pytest.mark.parametrize("error", FAULTS)
def test_a_file_that_cannot_be_fetched_stops_no_other(url: str, error: Exception) -> None:
    _fill(url, {"one.txt": b"One.", "two.txt": b"Two."})
    Store.failures["one.txt"] = error
    failed, read = read_input(url, PLAIN, B)
    assert failed.problem is not None and failed.is_unknown and read.text == "Two."
    reason = f"cannot be read ({type(error).__name__}: {error}); run again, "
    assert failed.problem.startswith(reason)


def test_a_file_of_which_only_a_part_arrives_is_not_known(url: str, tmp_path: Path) -> None:
    """As when a connection ends early and the package of the store does not notice."""
    _fill(url, {"one.txt": b"Marley was dead.", "two.txt": b"Two."})
    Store.cuts["one.txt"] = 6
    failed, read = read_input(url, PLAIN, B, cache_folder=tmp_path)
    assert failed.is_unknown and read.text == "Two."
    assert failed.problem == "cannot be read (only 6 of its 16 bytes arrived); run again"
    Store.cuts.clear()
    assert [record.text for record in read_input(url, PLAIN, B, cache_folder=tmp_path)] == ["Marley was dead.", "Two."]


def test_a_store_from_which_nothing_can_be_fetched_stops_the_run(url: str) -> None:
    _fill(url, {f"{number}.txt": b"Text." for number in range(3)})
    Store.failures.update({f"{number}.txt": ConnectionResetError("reset") for number in range(3)})
    with pytest.raises(PipelineError, match=r"store://bucket/docs`: the input folder cannot be read .*nothing was"):
        list(read_input(url, PLAIN, B))


def test_a_url_without_a_folder_or_package_is_explained(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _fill(url, {"one.txt": b"One."})
    monkeypatch.setitem(sys.modules, "adlfs", None)
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    Store.failures = {}
    for folder, message in {
        "abfs://container/docs": "abfs://container/docs: no installed package reads abfs:// .*; pip install adlfs",
        "gs://bucket": "pip install gcsfs",
        "nothing://bucket": r"cannot be listed \(ValueError: Protocol not known: nothing\)",
        f"{url}/one.txt": "is a file",
    }.items():
        with pytest.raises(PipelineError, match=message):
            fingerprint_input(folder, PLAIN)
    Store.failures = {"docs/": FileNotFoundError("no such bucket")}
    with pytest.raises(PipelineError, match="no such input folder"):
        fingerprint_input(url, PLAIN)


def test_a_password_in_the_url_is_refused_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("input: {folder: 'ftp://me:secret@host/docs'}")
    with pytest.raises(SettingsError, match=r"FSSPEC_FTP_PASSWORD \(found 'ftp://\*\*\*@host/docs'") as caught:
        load_settings(tmp_path)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("folder", "place"),
    [("input", Path("/root/input")), ("/srv/docs", Path("/srv/docs")), ("file:///srv/docs", Path("/srv/docs")),
     ("file://docs", Path("/root/docs")), ("memory://docs", "memory://docs"), ("s3://b/docs", "s3://b/docs")],
)  # fmt: skip
def test_a_folder_is_a_path_unless_it_is_on_another_machine(folder: str, place: Path | str) -> None:
    assert InputSettings(folder=folder).place(Path("/root")) == place


@pytest.fixture(scope="module")
def local_and_remote(tmp_path_factory: pytest.TempPathFactory) -> tuple[Root, Root]:
    """Index the same three documents on disk and in a store in memory."""
    folder = tmp_path_factory.mktemp("remote")
    url = f"memory://{uuid.uuid4().hex}/docs"
    _fill(url, {name: text.encode() for name, text in CAROL.items()})
    local = built_root(folder / "local", stages=ALL_STAGES)
    remote = make_root(folder / "remote", {}, f"storage:\n  n_buckets: 2\ninput:\n  folder: {url}\n")
    build_tables(remote, ALL_STAGES)
    return local, remote


def test_the_tables_do_not_depend_on_the_place_of_the_folder(local_and_remote: tuple[Root, Root]) -> None:
    local, remote = local_and_remote
    assert not (remote.path / "input").exists()
    assert table_bytes(remote) == table_bytes(local)
    assert contract_bytes(remote) == contract_bytes(local)
    assert run_index(remote).ran == []


@pytest.mark.parametrize("error", [ConnectionResetError("reset"), FileNotFoundError("one.txt")])
def test_a_remote_file_that_cannot_be_fetched_keeps_its_document(url: str, tmp_path: Path, error: Exception) -> None:
    _fill(url, {name: text.encode() for name, text in CAROL.items()})
    root = make_root(tmp_path / "root", {}, f"storage:\n  n_buckets: 2\ninput:\n  folder: {url}\n")
    build_tables(root, ("corpus_manifest", "documents"))
    before = {bucket: root.tables.read("documents", bucket) for bucket in ("000", "001")}
    _fill(url, {"one.txt": b"Edited."})
    Store.failures["one.txt"] = error
    build_tables(root, ("corpus_manifest", "documents"))
    assert {bucket: root.tables.read("documents", bucket) for bucket in before} == before
    [(path, note)] = list_notes(detect_input(root))
    assert path == "one.txt" and note.startswith("not readable now, the text of the last index stays: cannot be read (")


def test_the_sensor_sees_an_upload(local_and_remote: tuple[Root, Root]) -> None:
    local, remote = local_and_remote
    put(local.path, "four.txt", "Belle met Fezziwig.")
    _fill(str(remote.input_folder), {"four.txt": b"Belle met Fezziwig."})
    look = look_at_input(remote, look_at_input(remote, Watch(), 0).watch, 1)
    assert look.run_key and "1 partitions" not in look.reason
    assert detect_input(remote) == detect_input(local)


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1:1/docs?sig=s3cret", "nosuch://s3cret@host/docs?s3cret", "s3://KEY:s3cret@b/docs"]
)
def test_no_error_shows_the_secrets_of_a_url(url: str, tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as error:
        list_remote(url, (), tmp_path)
    assert "s3cret" not in "".join(traceback.format_exception(error.value)) and "***" in str(error.value)
