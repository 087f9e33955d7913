"""A diff names what changed between two snapshots, and the documents that caused it."""

from __future__ import annotations

from graphrag_pipeline.inspection.snapshot_diff import (
    DocumentChange,
    diff_snapshots,
    render_diff,
)
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.roots import CAROL, build_tables, put
from graphrag_pipeline_tests.support.two_snapshots import EVERYTHING, _indexed_twice, first_of, root

__all__ = ["_indexed_twice", "root"]


def test_a_deleted_document_is_listed_with_its_removed_records(root: Root) -> None:
    diff = diff_snapshots(root.snapshots.open(first_of(root)), root.snapshots.open())
    assert diff.documents == (DocumentChange("removed", "three.md", ""),)
    assert diff.rows["documents"] == (3, 2)
    removed = {entity.title: entity for entity in diff.entities if entity.change == "removed"}
    assert "BELLE" in removed
    assert removed["BELLE"].documents == ("three.md",)
    assert removed["BELLE"].number == numbers(root, first_of(root))["BELLE"]
    assert {report.documents for report in diff.reports if report.change == "removed"} == {("three.md",)}
    lost = [one for one in diff.relationships if "BELLE" in (one.source, one.target)]
    assert lost and {(one.change, one.documents) for one in lost} == {("removed", ("three.md",))}
    assert diff.stages == ()


def numbers(root: Root, snapshot_id: str) -> dict[str, int]:
    rows = root.snapshots.open(snapshot_id).table("entities")
    return dict(zip(rows["title"].to_pylist(), rows["human_readable_id"].to_pylist(), strict=True))


def test_equal_snapshots_have_no_difference(root: Root) -> None:
    diff = diff_snapshots(root.snapshots.open(), root.snapshots.open())
    assert (diff.documents, diff.entities, diff.relationships, diff.reports, diff.stages) == ((), (), (), (), ())
    assert render_diff(diff)[1:] == ["no differences"]


def test_an_edit_changes_descriptions_and_reports(root: Root) -> None:
    before = root.snapshots.open()
    put(root.path, "two.txt", CAROL["two.txt"] + " It was clear to Scrooge that Tiny Tim was a good child.")
    build_tables(root, EVERYTHING)
    diff = diff_snapshots(before, root.snapshots.open())
    assert diff.documents == (DocumentChange("edited", "two.txt", ""),)
    changed = {entity.title: entity.documents for entity in diff.entities if entity.change == "changed"}
    assert changed["TINY TIM"] == ("two.txt",)
    assert ("two.txt",) in {report.documents for report in diff.reports}


def test_relationships_are_named_the_heaviest_first_and_of_many_the_first(root: Root) -> None:
    before = root.snapshots.open()
    put(root.path, "two.txt", "Martha carried Tiny Tim home. Martha blessed Tiny Tim. Bob Cratchit saw Martha.")
    build_tables(root, EVERYTHING)
    after = root.snapshots.open()
    diff = diff_snapshots(before, after)
    kept = {*before.table("relationships")["id"].to_pylist()} & {*after.table("relationships")["id"].to_pylist()}
    for change, snapshot in (("added", after), ("removed", before)):
        rows = [row for row in snapshot.table("relationships").to_pylist() if row["id"] not in kept]
        changed = [one for one in diff.relationships if one.change == change]
        assert {one.number for one in changed} == {row["human_readable_id"] for row in rows}
        assert [one.weight for one in changed] == sorted((row["weight"] for row in rows), reverse=True)
    lines = [line for line in render_diff(diff, 1) if line.startswith("relationship ")]
    first, more = lines[:2]
    assert first.startswith("relationship added: ") and "MARTHA - TINY TIM (weight 2), by two.txt" in first
    n_added = sum(one.change == "added" for one in diff.relationships)
    assert more == f"relationship added: and {n_added - 1} more, see --json"


def test_a_merge_is_distinguished_from_a_removal(root: Root) -> None:
    before = root.snapshots.open()
    (root.path / "entity_overrides.csv").write_text("action,a,b\nmerge,TINY TIM,BOB CRATCHIT\n")
    build_tables(root, EVERYTHING)
    diff = diff_snapshots(before, root.snapshots.open())
    [merged] = [entity for entity in diff.entities if entity.change == "merged"]
    assert (merged.title, merged.into) == ("TINY TIM", "BOB CRATCHIT")
    assert merged.rule
    assert diff.documents == ()


def test_changed_settings_are_named_by_the_stages_that_they_changed(root: Root) -> None:
    before = root.snapshots.open()
    settings = root.path / "settings.yaml"
    settings.write_text(settings.read_text() + "descriptions:\n  max_sentences: 1\n")
    changed = Root(root.path)
    build_tables(changed, EVERYTHING)
    diff = diff_snapshots(before, changed.snapshots.open())
    [stage] = diff.stages
    assert (stage.stage, stage.changes) == ("summarized_descriptions", ("descriptions.max_sentences: 5 -> 1",))
    assert "stage changed: summarized_descriptions: descriptions.max_sentences: 5 -> 1" in render_diff(diff)
