"""No flipped bit and no cut of a file changes an answer, and one `index` repairs them all."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.pipeline.verification import verify_root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.support.damage import cut, flip_bit, index_files
from graphrag_pipeline_tests.support.roots import build_tables, make_root

KINDS = ("heads", "tables", "snapshots/tables", "snapshots/adjacency", "snapshots/sentences", "snapshots/vectors")


def answer_all(root: Path) -> dict[str, str]:
    """Return answer and context of each method."""
    with GraphIndex.open(root) as index:
        found = {
            method: index.search("Who is Bob Cratchit, and whom does Scrooge love?", method)
            for method in ("basic", "local", "global", "drift", "lazy")
        }
        return {method: f"{result.answer}\n{result.context}" for method, result in found.items()}


@pytest.mark.thorough
def test_random_damage_is_refused_or_harmless_and_repaired_by_one_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    root = make_root(tmp_path / "root")
    build_tables(root, tuple(ALL_STAGES))
    numbers, whole, outcomes, damaged = random.Random(7), answer_all(root.path), Counter[str](), {}
    for number in range(40):
        path = numbers.choice(index_files(root.path, [numbers.choice(KINDS)]))
        content, place = path.read_bytes(), numbers.random()
        if number % 5:
            flip_bit(path, int(place * 8 * len(content)))
        else:
            cut(path, int(place * len(content)))
        damaged[path] = path.read_bytes()
        try:
            assert answer_all(root.path) == whole, f"{path}, {place}"
            outcomes["same answers"] += 1
        except PipelineError:
            outcomes["refused by name"] += 1
        path.write_bytes(content)
    assert min(outcomes.values()) > 3 and len(outcomes) == 2 and len(damaged) > 20
    for path, content in damaged.items():
        path.write_bytes(content)
    run_index(Root(root.path))
    assert answer_all(root.path) == whole and not verify_root(Root(root.path)).findings
