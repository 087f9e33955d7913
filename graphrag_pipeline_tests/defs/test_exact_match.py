"""`resolution.rules` in an index: the default merges forms of a name, `false` is exact match."""

from __future__ import annotations

from pathlib import Path

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.roots import build_tables, built_root

DOCUMENTS = {
    "one.txt": "Ebenezer Scrooge met Bob Cratchit. Ebenezer Scrooge paid Bob Cratchit. Ebenezer Scrooge sat down.",
    "two.txt": "That night Scrooge met Bob Cratchit in London. They say that Scrooge paid Bob Cratchit. "
    "That night Scrooge sighed.",
}
SETTINGS = "storage:\n  n_buckets: 2\n"
STAGES = ("corpus_manifest", "documents", "text_units", "extracted_graph", "graph")


def test_the_default_merges_forms_of_a_name_and_exact_match_does_not(tmp_path: Path) -> None:
    root = built_root(tmp_path, DOCUMENTS, SETTINGS, stages=STAGES)
    merged = titles(root)
    assert merged == {"BOB CRATCHIT", "EBENEZER SCROOGE", "LONDON"}
    assert weights(root)["BOB CRATCHIT", "EBENEZER SCROOGE"] == 4
    (tmp_path / "settings.yaml").write_text(f"{SETTINGS}resolution:\n  rules: false\n", encoding="utf-8")
    exact = Root(tmp_path)
    assert build_tables(exact, STAGES) == [("graph", "all")], "nothing is extracted again"
    assert titles(exact) == merged | {"SCROOGE"}
    found = weights(exact)
    assert (found["BOB CRATCHIT", "EBENEZER SCROOGE"], found["BOB CRATCHIT", "SCROOGE"]) == (2, 2)
    assert exact.tables.read("entity_merges").num_rows == 0


def titles(root: Root) -> set[str]:
    return set(root.tables.read("entities")["title"].to_pylist())


def weights(root: Root) -> dict[tuple[str, str], float]:
    rows = root.tables.read("relationships").to_pylist()
    return {(row["source"], row["target"]): row["weight"] for row in rows}
