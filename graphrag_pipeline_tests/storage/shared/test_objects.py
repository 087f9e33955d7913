"""Objects behind a folder, a store in memory and an S3 server are read, written, moved, listed and removed alike."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from graphrag_pipeline.errors import StoreError
from graphrag_pipeline.storage.shared.objects import open_object_store
from graphrag_pipeline.storage.shared.state import NumberedStates
from graphrag_pipeline_tests.support.object_server import ObjectServer


def test_an_object_is_read_until_it_is_removed(url: str) -> None:
    objects = open_object_store(url)
    assert objects.read("a/b.json") is None
    objects.write("a/b.json", b"one")
    objects.write("a/b.json", b"two")
    assert open_object_store(url).read("a/b.json") == b"two"
    objects.remove(["a/b.json", "a/never.json"])
    objects.remove(["a/b.json"])
    assert objects.read("a/b.json") is None


def test_an_object_is_created_once(url: str) -> None:
    objects = open_object_store(url)
    assert objects.create("lease.json", b"mine")
    assert not open_object_store(url).create("lease.json", b"yours")
    assert objects.read("lease.json") == b"mine"


def test_files_go_up_and_come_down_many_at_once(url: str, tmp_path: Path) -> None:
    sources = {f"t/{number}/x.bin": tmp_path / f"{number}.bin" for number in range(20)}
    for number, path in enumerate(sources.values()):
        path.write_bytes(b"x" * number)
    objects = open_object_store(url)
    objects.upload(sources)
    assert objects.names("t") == sorted(sources)
    assert objects.names("elsewhere") == []
    targets = {name: tmp_path / "here" / name for name in sources}
    assert objects.download(targets) == []
    assert all(targets[name].read_bytes() == sources[name].read_bytes() for name in sources)
    assert not list((tmp_path / "here").rglob(".tmp-*"))


def test_missing_objects_are_named_and_the_others_downloaded(url: str, tmp_path: Path) -> None:
    objects = open_object_store(url)
    objects.write("there", b"1")
    targets = {name: tmp_path / name for name in ("gone", "there")}
    assert objects.download(targets) == ["gone"]
    assert targets["there"].read_bytes() == b"1" and not targets["gone"].exists()
    assert sorted(path.name for path in tmp_path.glob(".tmp-*")) == []


@pytest.mark.parametrize("status", [403, 500])
def test_a_fault_is_one_line_with_the_remedy(s3: ObjectServer, s3_url: str, tmp_path: Path, status: int) -> None:
    objects = open_object_store(s3_url)
    objects.write("a", b"1")
    s3.fault = lambda method, path: status
    for ask in (
        lambda: objects.read("a"),
        lambda: objects.write("a", b"2"),
        lambda: objects.download({"a": tmp_path / "a"}),
        lambda: objects.names("x"),
    ):
        with pytest.raises(StoreError, match=r"storage.url failed \(.*check the URL, the network and the credentials"):
            ask()
    assert list(tmp_path.iterdir()) == []
    s3.fault = None
    assert objects.read("a") == b"1"


def test_a_missing_package_and_a_missing_bucket_are_reported(s3_url: str) -> None:
    with pytest.raises(StoreError, match="pip install gcsfs"):
        open_object_store("gs://bucket/x").read("a")
    with pytest.raises(StoreError, match="bucket does not exist"):
        open_object_store("s3://unknown-bucket/x").write("a", b"1")
    for url in ("s3://", "file:///"):
        with pytest.raises(StoreError, match=r"storage\.url has no bucket or folder"):
            open_object_store(url)


def test_an_unchanged_object_costs_one_request(s3: ObjectServer, s3_url: str) -> None:
    objects = open_object_store(s3_url)
    objects.write("a", b"1")
    s3.requests.clear()
    objects.read("a")
    assert [method for method, _ in s3.requests] == ["GET"]


@pytest.mark.parametrize("url", ["https://127.0.0.1:1/index", "http://no-such-host.invalid/index"])
def test_a_store_that_cannot_be_reached_is_never_empty(url: str) -> None:
    objects = open_object_store(url)
    with pytest.raises(StoreError, match=r"storage\.url failed"):
        objects.names("states")
    with pytest.raises(StoreError, match=r"storage\.url failed"):
        NumberedStates(objects).latest()


def test_a_folder_below_that_cannot_be_listed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = open_object_store("memory://test-broken-below")
    for name in ("states/1", "states/below/2"):
        objects.write(name, b"1")
    assert objects.names("states") == ["states/1", "states/below/2"]
    listed = MemoryFileSystem.ls

    def reset_below(self: MemoryFileSystem, path: str, detail: bool = True, **options: object) -> list[object]:
        if path.rstrip("/").endswith("below"):
            raise ConnectionResetError("reset by peer")
        return list(listed(self, path, detail, **options))

    monkeypatch.setattr(MemoryFileSystem, "ls", reset_below)
    with pytest.raises(StoreError, match="reset by peer"):
        objects.names("states")


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:1/index?sig=s3cret",
        "https://us3cret:a/s3cret@127.0.0.1:1/x",
        "nosuch://s3cret@h/x?s3cret",
        "s3://KEY:s3cret@b/x",
    ],
)
def test_no_error_shows_the_secrets_of_a_url(url: str) -> None:
    for ask in (lambda: open_object_store(url).names("states"), lambda: open_object_store(url).read("a")):
        with pytest.raises(StoreError) as error:
            ask()
        assert "s3cret" not in "".join(traceback.format_exception(error.value)) and "***" in str(error.value)
