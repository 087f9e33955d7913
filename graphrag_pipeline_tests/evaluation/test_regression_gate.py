"""Golden questions before publishing: a candidate that finds less waits, and what is published stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.retention import prune
from graphrag_pipeline.root import Root
from graphrag_pipeline.stages import ALL_STAGES
from graphrag_pipeline_tests.roots import build_tables, make_root

EVERYTHING = tuple(ALL_STAGES)
GOLD = [
    {"question": "Who carried Tiny Tim home?", "evidence": ["two.txt"]},
    {"question": "With whom did Fezziwig dance?", "evidence": ["three.md"]},
]


def set_gate(path: Path, **options: object) -> Root:
    settings = {"storage": {"n_buckets": 2}, "publishing": {"golden_questions": "gold.jsonl", **options}}
    (path / "settings.yaml").write_text(json.dumps(settings), encoding="utf-8")
    return Root(path)


def test_a_candidate_that_finds_less_is_not_published_until_somebody_allows_it(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (tmp_path / "gold.jsonl").write_text("\n".join(map(json.dumps, GOLD)), encoding="utf-8")
    root = set_gate(tmp_path)
    build_tables(root, EVERYTHING)
    first = root.snapshots.current()
    assert first is not None, "the first snapshot has nothing to be compared with"

    (tmp_path / "input" / "three.md").unlink()
    with pytest.raises(PipelineError) as refused:
        build_tables(root, EVERYTHING)
    message = str(refused.value)
    assert "recall@5 of gold.jsonl is 0.500, that of the published snapshot" in message
    assert "1.000" in message and "'With whom did Fezziwig dance?'" in message and "max_recall_drop = 0.02" in message
    assert root.snapshots.current() == first and len(root.snapshots.ids()) == 2

    with pytest.raises(PipelineError, match=r"recall@5 of gold.jsonl is 0\.500"):
        build_tables(root, EVERYTHING)  # it waits as long as nothing changes

    kept = sorted(path.parent.name for path in (tmp_path / "evaluations").glob("*/*.json"))
    assert kept == sorted(root.snapshots.ids()), "figures are kept beside each snapshot"

    root = set_gate(tmp_path, max_recall_drop=0.5)
    build_tables(root, EVERYTHING)
    assert root.snapshots.current() not in (None, first)

    prune(root, 1, before=2**40)
    assert [path.name for path in (tmp_path / "evaluations").iterdir()] == [root.snapshots.current()]


def test_a_gold_file_that_is_not_there_publishes_nothing(tmp_path: Path) -> None:
    make_root(tmp_path, {"one.txt": "Marley was dead. Scrooge signed."})
    root = set_gate(tmp_path)
    with pytest.raises(PipelineError, match=r"gold.jsonl: cannot be read"):
        build_tables(root, EVERYTHING)
    assert root.snapshots.current() is None
