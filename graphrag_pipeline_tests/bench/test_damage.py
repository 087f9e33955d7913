"""A short run of the bench of damage: no flipped bit and no cut changes an answer, and one `index` repairs them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline_tests.bench.damage import measure_damage
from graphrag_pipeline_tests.support.roots import build_tables, make_root


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    root = make_root(tmp_path / "root")
    build_tables(root, tuple(ALL_STAGES))
    return root


@pytest.mark.thorough
def test_random_damage_is_refused_or_harmless_and_repaired_by_one_index(root: Root) -> None:
    figures = measure_damage(root.path, n_flips=32, n_cuts=8, batch_size=40, seed=7)
    assert (figures.silent, figures.raw, figures.lasting) == ([], [], [])
    assert sum(figures.outcomes.values()) == 40 and min(figures.outcomes.values()) > 3
    assert figures.most_files_at_once > 20
