"""Detecting changes opens only files that changed, and gives what reading every file gives."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.inputs import files as input_files
from graphrag_pipeline.inputs.detected_files import DETECTED_FILE
from graphrag_pipeline.pipeline.detected_input import detect_input, list_notes
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.roots import build_tables, make_root, put

FILES = {
    "one.md": "# One\n\nMarley was dead.",
    "two.txt": "Scrooge signed.",
    "rows.jsonl": '{"id": 1, "text": "First."}\n{"id": 2, "text": "Second."}\n',
    "film.mp4": "frames",
}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the files that were opened."""
    paths: list[str] = []
    read = input_files._read_file

    def read_file(file, *rest):
        paths.append(file.path)
        return read(file, *rest)

    monkeypatch.setattr(input_files, "_read_file", read_file)
    return paths


@pytest.fixture
def later() -> Iterator[None]:
    """The clock is far enough ahead that files written now are no longer young."""
    with pytest.MonkeyPatch.context() as patch:
        _be_later(patch)
        yield


def _be_later(patch: pytest.MonkeyPatch) -> None:
    now = time.time_ns
    patch.setattr(time, "time_ns", lambda: now() + 10_000_000_000)


def _detect(root: Root) -> dict[str, list[dict]]:
    return {bucket: rows.to_pylist() for bucket, rows in detect_input(Root(root.path)).items()}


@pytest.mark.usefixtures("later")
def test_only_changed_files_are_opened(tmp_path, opened):
    root = make_root(tmp_path, FILES)
    first = _detect(root)
    opened.clear()
    assert _detect(root) == first
    assert opened == []
    put(root.path, "two.txt", "Scrooge sighed.")  # of the same size
    (root.path / "input/one.md").unlink()
    put(root.path, "new.txt", "A tram runs.")
    second = _detect(root)
    assert sorted(opened) == ["new.txt", "two.txt"]
    (root.path / "cache" / DETECTED_FILE).unlink()
    assert _detect(root) == second != first


def test_a_file_written_just_now_is_read_again(tmp_path, opened):
    root = make_root(tmp_path, FILES)
    _detect(root)
    opened.clear()
    _detect(root)
    assert len(opened) == len(FILES)


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("damage", [b"", b"\x1f\x8b no gzip", None])
def test_what_was_kept_by_other_settings_or_is_damaged_is_not_used(tmp_path, opened, damage):
    root = make_root(tmp_path, FILES)
    first = _detect(root)
    opened.clear()
    if damage is None:
        with (root.path / "settings.yaml").open("a") as settings_file:
            settings_file.write("input:\n  filters: [path=one.md]\n")
    else:
        (root.path / "cache" / DETECTED_FILE).write_bytes(damage)
    assert (_detect(root) == first) == (damage is not None)
    assert len(opened) == len(FILES)


@pytest.mark.usefixtures("later")
def test_a_file_that_cannot_be_read_is_tried_each_time_and_keeps_its_text(tmp_path, opened):
    root = make_root(tmp_path, FILES)
    build_tables(root, ("corpus_manifest", "documents"))
    (root.path / "input/two.txt").unlink()
    (root.path / "input/two.txt").symlink_to("missing.txt")
    for _ in range(2):
        manifests = detect_input(Root(root.path))
        assert [path for path, _ in list_notes(manifests)] == ["two.txt"]
    assert opened.count("two.txt") > 2


@pytest.mark.usefixtures("later")
def test_an_index_run_makes_the_same_tables_from_what_was_kept(tmp_path, opened):
    root = make_root(tmp_path, FILES)
    _detect(root)
    opened.clear()
    report = run_index(Root(root.path))
    assert report.n_documents == 4
    assert [path for path, _ in report.problems] == ["film.mp4"]
    assert len(opened) <= 4 + 2, "only the documents are read: rows in each of two buckets"


_EDITS = st.sampled_from(["write", "same size", "touch", "delete", "rename", "copy with its times", "settings"])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(_EDITS, st.sampled_from(sorted(FILES))), max_size=6))
def test_any_edits_are_detected_as_without_anything_kept(tmp_path_factory, edits):
    root = make_root(tmp_path_factory.mktemp("root"), FILES)
    with pytest.MonkeyPatch.context() as patch:
        _be_later(patch)
        for number, (edit, name) in enumerate(edits):
            _detect(root)
            _edit(root.path, edit, root.path / "input" / name, number)
        kept = _detect(root)
        (root.path / "cache" / DETECTED_FILE).unlink(missing_ok=True)
        assert _detect(root) == kept
    assert any(kept.values()) or not any((root.path / "input").iterdir())


def _edit(root: Path, edit: str, path: Path, number: int) -> None:
    if edit == "settings":
        (root / "settings.yaml").write_text(f"storage:\n  n_buckets: 2\ninput:\n  max_file_mb: {number + 1}\n")
    elif edit == "write" or not path.exists():
        path.write_text(f"Version {number} of it.")
    elif edit == "same size":
        path.write_bytes(path.read_bytes()[::-1])
    elif edit == "touch":
        os.utime(path, (1, number))
    elif edit == "delete":
        path.unlink()
    elif edit == "rename":
        path.rename(path.with_name(f"renamed{number}.txt"))
    else:  # as `rsync --times` or `cp --preserve` replace a file
        other = path.with_name("other.txt")
        other.write_bytes(path.read_bytes()[::-1])
        shutil.copystat(path, other)
        other.rename(path)
