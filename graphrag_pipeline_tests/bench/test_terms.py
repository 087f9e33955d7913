from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline_tests.bench.terms import (
    MAX_JUNK,
    MIN_TYPED,
    ListedEntity,
    judge,
    judge_kinds,
    list_entities,
    main,
)


@pytest.mark.parametrize("kind", ["guideline", "manual", "minutes", "story"])
def test_little_junk_and_right_types_in_four_kinds_of_text(kind: str) -> None:
    verdict = judge_kinds()[kind]
    assert not verdict.unjudged
    assert verdict.junk_share <= MAX_JUNK, verdict.junk
    assert verdict.typed_share >= MIN_TYPED, verdict.wrong_types


def test_a_title_that_nobody_judged_counts_as_junk() -> None:
    entities = [ListedEntity(title, "GEO", 1) for title in ("OSLO", "NORTH OF", "ANNA HILL", "NEW ONE")]
    verdict = judge(entities, {"junk": ["NORTH OF"], "types": {"GEO": ["OSLO"], "PERSON": ["ANNA HILL"]}})
    assert (verdict.junk, verdict.unjudged, verdict.wrong_types) == (("NORTH OF",), ("NEW ONE",), ("ANNA HILL",))
    assert (verdict.junk_share, verdict.typed_share) == (0.5, 0.5)


def test_entities_are_counted_by_sentences_and_merged() -> None:
    text = "Mr. Hill met Anna Hill in Oslo. Anna Hill left Oslo and Oslo missed Anna Hill."
    found = {entity.title: entity.n_sentences for entity in list_entities([("letter", text)])}
    assert found["OSLO"] == 2 and found["ANNA HILL"] == 2


def test_a_folder_without_text_is_skipped_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 0
    assert "no .txt or .md file; skipped" in capsys.readouterr().out
