"""`index` repairs a published snapshot that lost a file, and its answers stay."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_pipeline.defs.index_runs import index_run
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.verification import Verification, verify_root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.support.damage import zero
from graphrag_pipeline_tests.support.roots import indexed_root, put

LAYOUT = "tables/layout.json"
QUESTION = "Who is Bob Cratchit?"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    root = indexed_root(tmp_path_factory.mktemp("repair") / "root")
    return root


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def ask(root: Root) -> str:
    with GraphIndex.open(root.path) as index:
        return index.search(QUESTION).answer


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("adjacency/*/entity_text_units_indices.npy", Path.unlink),
        pytest.param("sentences/*/sentence_ends.npy", cut, marks=pytest.mark.thorough),
        ("tables/entities/*", cut),
        pytest.param("tables/record_numbers/*", Path.unlink, marks=pytest.mark.thorough),
        ("vectors/default-entity-description/*/*.lance/data/*", Path.unlink),
        ("vectors/default-text_unit-text/*/*.lance/_indices/*/*_docs.lance", cut),
        pytest.param("vectors/default-text_unit-text/*", empty, marks=pytest.mark.thorough),
        pytest.param("vectors/default-text_unit-text/*/*.lance/_indices/*/*", zero, marks=pytest.mark.thorough),
    ],
)
def test_index_rebuilds_damaged_parts(root: Root, pattern: str, damage: Callable[[Path], None]) -> None:
    expected, snapshot = ask(root), root.snapshots.current()
    for path in list(root.snapshots.folder.glob(pattern)):
        damage(path)
    report = run_index(root)
    assert report.repairs or ("index_candidate", "all") in report.ran
    assert ask(root) == expected and root.snapshots.current() == snapshot
    assert run_index(root).ran == []


def test_a_damaged_index_is_repaired_after_the_input_changed(root: Root, tmp_path: Path) -> None:
    shutil.copytree(root.path, tmp_path / "root")
    changed = Root(tmp_path / "root")
    for path in (changed.path / "snapshots" / "tables" / "communities").iterdir():
        cut(path)
    put(changed.path, "four.txt", "Fred invited Scrooge. Fred and Scrooge dined.")
    assert run_index(changed).n_documents == 4
    assert ask(changed)


def test_a_zeroed_stage_table_and_layout_are_made_again(root: Root) -> None:
    expected = ask(root)
    for path in [*root.path.glob("tables/text_units/*/*"), *root.path.glob("tables/*/all/*"), root.path / LAYOUT]:
        zero(path)
    report = run_index(root)
    assert len(report.repairs) > 10 and ("text_units", "000") in report.ran
    assert ask(root) == expected
    assert run_index(root).repairs == ()


def test_checks_run_again_once_the_files_that_they_read_are_made(root: Root) -> None:
    damaged = [*root.path.glob("snapshots/*.checked")]
    damaged += root.path.glob("snapshots/vectors/default-entity-description/*/*.lance/data/*")
    damaged += root.path.glob("snapshots/vectors/default-entity-description/*/rows/*/ids.arrow")
    for path in damaged:
        zero(path)
    assert all(finding.is_repaired for finding in run_index(root).repairs)
    assert verify_root(root).findings == ()


def test_a_table_that_is_damaged_while_the_index_runs_is_made_again(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ask(root)
    first = index_run.repair_before_index

    def damage_afterwards(root: Root, is_all: bool = False) -> Verification:
        found = first(root, is_all)
        if not is_all:
            zero(next(root.path.glob("tables/entities/all/*")))
            next(root.path.glob("heads/community_reports/*")).unlink()
        return found

    monkeypatch.setattr(index_run, "repair_before_index", damage_afterwards)
    assert [finding.kind for finding in run_index(root).repairs] == ["stage table"]
    assert ask(root) == expected


def test_no_file_is_made_in_a_folder_that_is_not_a_root(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"settings\.yaml` does not exist; make a root with"):
        run_index(Root(tmp_path / "missing"))
    assert not list(tmp_path.iterdir())
