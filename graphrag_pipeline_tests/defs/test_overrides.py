"""A person's entity_overrides.csv: merged, kept apart and undone without extracting again."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.pipeline.open_work import list_unused_overrides
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.roots import build_tables, built_root, make_root


def titles(root: Root) -> set[str]:
    return set(root.tables.read("entities")["title"].to_pylist())


def test_overrides_change_the_graph_alone_and_are_undone_by_removing_them(tmp_path: Path) -> None:
    root = built_root(tmp_path)
    before = titles(root)
    assert {"TINY TIM", "BELLE"} <= before
    (tmp_path / "entity_overrides.csv").write_text("action,a,b\nmerge,Belle,Tiny Tim\n")
    ran = build_tables(root)
    assert "graph" in {stage for stage, _ in ran}
    assert not {"extracted_graph", "text_units", "documents"} & {stage for stage, _ in ran}
    assert titles(root) == before - {"BELLE"}
    merges = root.tables.read("entity_merges").to_pylist()
    assert [row["title"] for row in merges if row["rule"] == "override"] == ["TINY TIM"]
    (tmp_path / "entity_overrides.csv").unlink()
    build_tables(root)
    assert titles(root) == before


def test_an_override_without_a_matching_entity_is_reported(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    assert list_unused_overrides(root) == []
    (tmp_path / "entity_overrides.csv").write_text("action,a,b\nmerge,Nobody,NOWHERE\nmerge,Belle,Tiny Tim\n")
    assert list_unused_overrides(root) == [], "there is no graph yet"
    build_tables(root)
    [message] = list_unused_overrides(root)
    assert "merge,NOBODY,NOWHERE has no effect: no entity is named 'NOBODY' or 'NOWHERE'" in message
    (tmp_path / "entity_overrides.csv").write_text("action,a,b\njoin,a,b\nmerge,x\n")
    assert [line.split(":")[0][-1] for line in list_unused_overrides(root)] == ["2", "3"]


def test_another_spelling_of_a_title_is_not_a_merge(tmp_path: Path) -> None:
    text = "Old  Fezziwig\tdanced. Bob Cratchit met Bob\nCratchit, and Bob\u00a0 Cratchit saw Tiny Tim."
    root = built_root(tmp_path, {"a.txt": text})
    assert "BOB CRATCHIT" in titles(root)
    merges = root.tables.read("entity_merges").to_pylist()
    assert not [row for row in merges if normalize_title(row["name"]) == row["title"]]


def test_a_bad_override_names_its_line(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (tmp_path / "entity_overrides.csv").write_text("action,a,b\njoin,Belle,Tiny Tim\n")
    with pytest.raises(PipelineError, match=r"entity_overrides\.csv line 2"):
        build_tables(root)
