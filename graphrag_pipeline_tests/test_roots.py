"""The builder of test roots fails instead of running forever."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.defs.assets.definitions import BODIES
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline_tests.support.roots import build_tables, make_root


def test_a_partition_that_stays_stale_after_its_run_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, ran = make_root(tmp_path), []

    def write_nothing(run: StageRun) -> None:
        ran.append(run.partition)

    monkeypatch.setitem(BODIES, "sentence_embeddings", write_nothing)
    with pytest.raises(RuntimeError, match="sentence_embeddings, 000: ran 3 times and is stale"):
        build_tables(root, ("corpus_manifest", "documents", "text_units", "sentence_embeddings"))
    assert ran.count("000") == 3
