"""A file or folder that cannot be read now keeps its documents of the last index, and a note says so."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inputs import files as input_files
from graphrag_pipeline.inputs import reading_process
from graphrag_pipeline.pipeline.detected_input import detect_input, list_notes, list_problems
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline_tests.support.command_line import ONE_BUCKET
from graphrag_pipeline_tests.support.roots import CAROL, build_tables, built_root, contract_bytes, make_root, put
from graphrag_pipeline_tests.support.thoroughness import usually

FIRST_STAGES = ("corpus_manifest", "documents")
ROWS = (
    '{"id": 1, "text": "Belle met Fezziwig."}\n{"id": 2, "text": "Fred met Belle."}\n{"id": 3, "text": "Dick sang."}\n'
)
NOTE = "not readable now, the text of the last index stays: "
NO_CONVERTER = "html files need a converter: run pip install 'graphrag-pipeline[documents]'"


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """An index of three files, and of two in a folder below, one of them with three records."""
    root = built_root(
        tmp_path / "root",
        CAROL | {"more/rows.jsonl": ROWS, "more/deep/last.txt": "Topper laughed."},
        stages=FIRST_STAGES,
    )
    return root


def _documents(root: Root) -> pa.Table:
    return pa.concat_tables([root.tables.read("documents", bucket) for bucket in ("000", "001")]).sort_by("id")


def _refuse(monkeypatch: pytest.MonkeyPatch, function: str, refused: Path) -> None:
    real = getattr(os, function)

    def fail(path: Any, *arguments: Any, **options: Any) -> Any:
        if os.fsencode(path).rstrip(b"/") == os.fsencode(refused):
            raise PermissionError(13, "Permission denied", os.fspath(refused))
        return real(path, *arguments, **options)

    monkeypatch.setattr(input_files.os, function, fail)


def test_a_folder_that_cannot_be_listed_keeps_all_documents_below_it(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _documents(root)
    _refuse(monkeypatch, "scandir", root.path / "input" / "more")
    put(root.path, "new.txt", "Scrooge changed.")
    build_tables(root, FIRST_STAGES)
    after = _documents(root)
    assert after.num_rows == before.num_rows + 1
    assert set(before["id"].to_pylist()) < set(after["id"].to_pylist())
    manifests = detect_input(root)
    problem = "this folder cannot be listed (Permission denied); fix its permissions"
    assert list_problems(manifests) == [("more/", problem)]
    assert list_notes(manifests) == [("more/deep/last.txt", NOTE + problem)] + 3 * [("more/rows.jsonl", NOTE + problem)]
    monkeypatch.undo()
    (root.path / "input" / "more" / "deep" / "last.txt").unlink()
    build_tables(root, FIRST_STAGES)
    assert _documents(root).num_rows == before.num_rows
    assert list_notes(detect_input(root)) == []


def test_an_entry_that_may_be_a_folder_keeps_all_documents_below_it(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system whose listing has no kinds of entries, while it cannot answer for one of them."""
    before = _documents(root)
    real = os.scandir

    class Unknown:
        def __init__(self, entry: os.DirEntry[bytes]) -> None:
            self.name, self.path = entry.name, entry.path

        def is_symlink(self) -> bool:
            return False

        def is_dir(self, follow_symlinks: bool = True) -> bool:
            raise OSError(5, "Input/output error", self.path)

        stat = is_dir

    class Scan(contextlib.ExitStack):
        def __init__(self, path: bytes) -> None:
            super().__init__()
            self._entries = self.enter_context(real(path))

        def __iter__(self) -> Iterator[Any]:
            return (Unknown(entry) if entry.name == b"more" else entry for entry in self._entries)

    monkeypatch.setattr(input_files.os, "scandir", Scan)
    build_tables(root, FIRST_STAGES)
    assert _documents(root) == before
    assert [path for path, _ in list_problems(detect_input(root))] == ["more", "more/"]


def test_a_structured_file_that_cannot_be_opened_keeps_its_records_in_all_buckets(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _documents(root)
    _refuse(monkeypatch, "stat", root.path / "input" / "more" / "rows.jsonl")
    build_tables(root, FIRST_STAGES)
    assert _documents(root) == before
    assert build_tables(root, FIRST_STAGES) == []


@pytest.mark.parametrize("damaged", [b"{broken", b"\x00\x01" * 200])
def test_a_damaged_file_keeps_its_documents_until_it_is_removed(root: Root, damaged: bytes) -> None:
    before = _documents(root)
    rows = root.path / "input" / "more" / "rows.jsonl"
    rows.write_bytes(damaged)
    build_tables(root, FIRST_STAGES)
    assert _documents(root) == before
    rows.unlink()
    build_tables(root, FIRST_STAGES)
    assert _documents(root).num_rows == before.num_rows - 3


def test_an_emptied_file_and_a_removed_one_lose_their_documents(root: Root) -> None:
    before = _documents(root)
    put(root.path, "one.txt", "")
    (root.path / "input" / "two.txt").unlink()
    build_tables(root, FIRST_STAGES)
    assert _documents(root).num_rows == before.num_rows - 2


def test_a_new_file_that_cannot_be_read_is_a_problem(root: Root) -> None:
    put(root.path, "new.json", "{broken")
    [(path, problem)] = list_problems(detect_input(root))
    assert path == "new.json" and problem.startswith("not valid JSON")


@pytest.fixture
def take_converter_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Return a function after which the extra for html and office files counts as not installed."""
    pytest.importorskip("markitdown")

    def take() -> None:
        (tmp_path / "without" / "markitdown").mkdir(parents=True)
        (tmp_path / "without" / "markitdown" / "__init__.py").write_text("raise ImportError('not installed')")
        monkeypatch.syspath_prepend(tmp_path / "without")
        _stop_readers()

    yield take
    _stop_readers()  # that of the tests after this one finds the converter again


def _stop_readers() -> None:
    for running in reading_process._running:
        running.stop()


def test_without_the_converter_only_the_files_that_need_it_stay_as_they_were(
    tmp_path: Path, take_converter_away: Callable[[], None]
) -> None:
    """Another machine may lack the extra: nothing is lost there, new files are listed, and all others are indexed."""
    root = built_root(tmp_path / "root", CAROL | {"page.html": "<p>Topper laughed.</p>"}, stages=FIRST_STAGES)
    before = _documents(root)
    take_converter_away()
    put(root.path, "new.txt", "Scrooge changed.")
    put(root.path, "second.html", "<p>Belle sang.</p>")
    shutil.rmtree(root.path / "cache")  # of files that were read with the converter
    build_tables(root, FIRST_STAGES)
    after = _documents(root)
    assert set(before["id"].to_pylist()) < set(after["id"].to_pylist())
    assert set(after["path"].to_pylist()) == {*before["path"].to_pylist(), "new.txt"}
    manifests = detect_input(root)
    assert list_problems(manifests) == [("second.html", NO_CONVERTER)]
    assert list_notes(manifests) == [("page.html", NOTE + NO_CONVERTER)]


@pytest.mark.parametrize("has_index", usually([False, True], True))
def test_if_all_files_need_the_missing_converter_nothing_is_lost(
    tmp_path: Path, take_converter_away: Callable[[], None], has_index: bool
) -> None:
    pages = {f"{name}.html": f"<p>{text}</p>" for name, text in CAROL.items()}
    root = make_root(tmp_path / "root", pages, ONE_BUCKET)
    before = contract_bytes(root) if has_index and build_tables(root, ALL_STAGES) else {}
    take_converter_away()
    shutil.rmtree(root.path / "cache", ignore_errors=True)
    if has_index:
        report = run_index(Root(root.path))
        assert (report.n_documents, report.problems) == (3, [])
        assert contract_bytes(Root(root.path)) == before
        assert report.notes == [(path, NOTE + NO_CONVERTER) for path in sorted(pages)]
        return
    with pytest.raises(PipelineError, match=r"no readable documents[^\n]*") as error:
        run_index(root)
    assert all(f"\n  {path}: {NO_CONVERTER}" in str(error.value) for path in pages)
    assert root.snapshots.current() is None
