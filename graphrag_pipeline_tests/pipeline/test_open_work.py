"""What an index leaves open: documents without an entity, with their script; the dates of documents."""

from __future__ import annotations

from pathlib import Path

from graphrag_pipeline.pipeline.open_work import list_silent_documents, summarize_dates
from graphrag_pipeline_tests.support.roots import CAROL, built_root

ARABIC = {"ar.txt": "يعمل أحمد علي في شركة نوردفيرك في القاهرة. فاطمة حسن هي مديرة شركة نوردفيرك."}


def test_documents_without_an_entity_are_said_with_their_script_and_what_helps(tmp_path: Path) -> None:
    [line] = list_silent_documents(built_root(tmp_path / "both", {**CAROL, **ARABIC}))
    assert line.startswith(f"no entity in 1 of {len(CAROL) + 1} documents (1 in Arabic script), such as ar.txt")
    assert "extraction.engine: model" in line
    assert list_silent_documents(built_root(tmp_path / "carol", CAROL)) == []


def test_the_dates_of_the_documents_are_counted(tmp_path: Path) -> None:
    texts = {"a.md": "# A\n\n**Date:** 4 March 2025\n\nText.", "2023-01-02-b.md": "Text.", "c.md": "Text."}
    assert summarize_dates(built_root(tmp_path / "dated", texts)) == {
        "n_dated": 2, "n_documents": 3, "first": "2023-01-02", "last": "2025-03-04",
    }  # fmt: skip
