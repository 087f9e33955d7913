"""A root with two snapshots, for tests that keep, compare and remove them; the second lacks `three.md`."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline_tests.support.roots import build_tables, built_once, built_root

EVERYTHING = tuple(ALL_STAGES)
_YEAR_2001 = 1_000_000_000


@pytest.fixture(scope="module")
def _indexed_twice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_once(tmp_path_factory.mktemp("two_snapshots") / "root", "two snapshots", _build_twice).path


def _build_twice(folder: Path) -> None:
    root = built_root(folder, stages=EVERYTHING)
    (root.path / "input" / "three.md").unlink()
    build_tables(root, EVERYTHING)


@pytest.fixture
def root(_indexed_twice: Path, tmp_path: Path) -> Root:
    """A copy that a test may change; its first snapshot is from 2001, its second a day younger."""
    shutil.copytree(_indexed_twice, tmp_path / "root")
    copy = Root(tmp_path / "root")
    for days, snapshot_id in enumerate((first_of(copy), copy.snapshots.current() or "")):
        date_manifest(copy, snapshot_id, (_YEAR_2001 + days * 86_400) * 10**9)
    return copy


def date_manifest(root: Root, snapshot_id: str, created_ns: int | None) -> None:
    """Set the time of a manifest and its copy, or remove it and the copy, as in an earlier release."""
    path = root.snapshots.path_of(snapshot_id)
    values = json.loads(path.read_bytes())
    del values["created_ns"]
    if created_ns is not None:
        values["created_ns"] = created_ns
    path.write_text(json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False), encoding="utf-8")
    copy = root.snapshots.copy_path(snapshot_id)
    copy.unlink()
    if created_ns is not None:
        shutil.copy(path, copy)
        os.utime(copy, ns=(created_ns, created_ns))


def first_of(root: Root) -> str:
    """The snapshot that is not published."""
    [first] = set(root.snapshots.ids()) - {root.snapshots.current()}
    return first


def files_of(root: Root) -> set[Path]:
    """Every file that the product owns but locks, relative to the root."""
    folders = [root.path / name for name in ("tables", "heads", "snapshots")]
    return {path.relative_to(root.path) for folder in folders for path in folder.rglob("*") if path.is_file()}
