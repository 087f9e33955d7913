"""The record of a stage's last run: all that it read and wrote, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.engines.embedded import extractor
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline_tests.support.roots import CAROL, build_tables, built_root, put

ONE_BUCKET = "storage:\n  n_buckets: 1\n"
MENTIONS = STAGES["extracted_graph"]


@pytest.fixture
def root(tmp_path: Path) -> Root:
    root = built_root(
        tmp_path, settings=ONE_BUCKET, stages=("corpus_manifest", "documents", "text_units", MENTIONS.name)
    )
    return root


def earlier_of(root: Root) -> dict | None:
    return StageRun(root, MENTIONS, "000").earlier()


def test_the_inputs_and_outputs_of_the_last_run_are_found_after_an_edit(root: Root) -> None:
    put(root.path, "one.txt", "Scrooge frowned at Fezziwig.")
    build_tables(root, ("corpus_manifest", "documents", "text_units"))
    earlier = earlier_of(root)
    assert earlier is not None and earlier.keys() == {*MENTIONS.reads, *MENTIONS.tables}
    assert "Scrooge frowned at Fezziwig." not in earlier["documents"]["text"].to_pylist()
    assert earlier["entity_mentions"] == root.tables.read("entity_mentions", "000")


def test_nothing_is_taken_from_other_code_half_a_run_or_lost_files(root: Root) -> None:
    (root.path / "settings.yaml").write_text(f"{ONE_BUCKET}extraction:\n  max_entities_per_sentence: 3\n")
    assert earlier_of(Root(root.path)) is None
    (root.path / "settings.yaml").write_text(ONE_BUCKET)
    head_file = root.path / "heads" / "relationship_mentions" / "000.json"
    whole = head_file.read_bytes()
    version = root.tables.need("documents", "000").data_version
    head_file.write_bytes(whole.replace(version.encode(), b"0" * len(version)))
    assert earlier_of(root) is None, "killed between two tables"
    head_file.write_bytes(whole)
    assert earlier_of(root) is not None
    for path in root.tables.paths(root.tables.need("text_units", "000")):
        path.unlink()
    assert earlier_of(root) is None


def test_only_documents_that_changed_are_extracted_again(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    extracted: list[str] = []
    extract = extractor.extract_graph

    def count(documents, *arguments):
        extracted.extend(documents["path"].to_pylist())
        return extract(documents, *arguments)

    monkeypatch.setattr(extractor, "extract_graph", count)
    put(root.path, "two.txt", f"{CAROL['two.txt']} Scrooge frowned at Fezziwig.")
    build_tables(root, ("corpus_manifest", "documents", "text_units", MENTIONS.name))
    assert extracted == ["two.txt"]


def test_a_reused_partition_still_shows_its_rows_preview_and_reports(indexed_root: Root) -> None:
    import dagster as dg

    from graphrag_pipeline.defs.build import build_definitions
    from graphrag_pipeline.defs.runs.instance import open_instance
    from graphrag_pipeline.defs.runs.naming import ONLY_STALE_TAG

    job = build_definitions(indexed_root).resolve_job_def("reports_only")
    with open_instance(indexed_root) as instance:
        result = job.execute_in_process(instance=instance, tags={ONLY_STALE_TAG: "true"})
        assert result.success
        (made,) = result.asset_materializations_for_node("community_reports")
    assert made.asset_key == dg.AssetKey("community_reports") and made.metadata["reused"].value
    rows = indexed_root.tables.read("community_reports", "all").num_rows
    assert made.metadata["dagster/row_count"].value == rows > 0 and "model calls" not in made.metadata
    with open_instance(indexed_root) as instance:
        first, *_ = reversed(instance.fetch_materializations(made.asset_key, limit=9).records)
    of_tables = {"preview of community_reports", "reports of the highest rank, in full"}
    assert all(made.metadata[name] == first.asset_materialization.metadata[name] for name in of_tables)
