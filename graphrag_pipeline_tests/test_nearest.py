"""The nearest known name in messages about unknown ones."""

from __future__ import annotations

from graphrag_pipeline.nearest import nearest_name, suggest


def test_a_misspelt_name_has_its_nearest_and_a_foreign_one_has_none() -> None:
    assert nearest_name("sise", ["overlap", "size"]) == "size"
    assert nearest_name("colour", ["overlap", "size"]) is None
    assert nearest_name(3, []) is None


def test_advice_names_the_nearest_name_or_all() -> None:
    assert suggest("sise", iter(["overlap", "size"])) == "; did you mean 'size'?"
    assert suggest("colour", iter(["overlap", "size"])) == "; valid: overlap, size"
