"""Refusals and warnings before a paid call."""

from __future__ import annotations

from pathlib import Path

from graphrag_pipeline.inspection.costs import explain_mixture
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline_tests.support.roots import built_root

EXTRACTION = STAGES["extracted_graph"]
CHANGED = "storage: {n_buckets: 2}\nextraction: {max_entities_per_sentence: 2}\n"


def test_a_run_of_one_bucket_warns_if_the_others_come_from_other_settings(tmp_path: Path) -> None:
    root = built_root(tmp_path, stages=("corpus_manifest", "documents", "text_units", "extracted_graph"))
    first, second = EXTRACTION.partitions(root.settings)
    assert explain_mixture(root, EXTRACTION, [first]) == ""
    (tmp_path / "settings.yaml").write_text(CHANGED)
    warning = explain_mixture(Root(tmp_path), EXTRACTION, [first])
    assert f"1 other buckets ({second}) come from other prompts" in warning and "`reindex_stale`" in warning
    assert explain_mixture(Root(tmp_path), EXTRACTION, [first, second]) == ""
    (tmp_path / "settings.yaml").write_text(f"{CHANGED}publishing: {{allow_mixed_prompts: true}}\n")
    assert explain_mixture(Root(tmp_path), EXTRACTION, [first]) == ""
