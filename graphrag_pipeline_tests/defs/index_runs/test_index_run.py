"""`index` through a real Dagster instance: the stages that run, their events, and the state after failures."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.tags import HIDDEN_TAG_PREFIX, SYSTEM_TAG_PREFIX

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.naming import CHANGED_TAG, KIND_TAG
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.data_versions import stage_data_version
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.open_work import find_unpublished_candidate
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline.storage.snapshot_store import roll_back
from graphrag_pipeline_tests.support.roots import CAROL, build_tables, indexed_root, make_root, put, table_bytes

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@pytest.fixture(autouse=True)
def _own_dagster_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


@pytest.fixture
def root(indexed_root: Root) -> Root:
    return indexed_root


def n_runs(root: Root) -> int:
    with open_instance(root) as instance:
        return len(instance.get_runs())


def test_a_run_that_finds_nothing_to_do_never_imports_dagster(root: Root) -> None:
    code = (
        "import sys; from graphrag_pipeline.cli import main\n"
        "try: main()\n"
        "finally: print(sorted({'dagster', 'lancedb', 'openai', 'sqlalchemy', 'duckdb'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, "index", "--root", str(root.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "3 documents: nothing changed" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_index_publishes_and_a_second_run_does_nothing(root: Root) -> None:
    before = n_runs(root)
    report = run_index(root)
    assert (report.ran, report.reused, report.n_documents) == ([], [], 3)
    assert n_runs(root) == before == 2
    assert root.snapshots.open().n_rows("documents") == 3


def test_events_carry_the_versions_of_the_heads(root: Root) -> None:
    with open_instance(root) as instance:
        for stage in ALL_STAGES.values():
            for partition in stage.partitions(root.settings):
                key = partition if stage.is_partitioned else None
                record = instance.get_latest_data_version_record(dg.AssetKey(stage.name), partition_key=key)
                assert record is not None, stage.name
                event = record.asset_materialization
                assert event is not None
                assert (event.tags or {})["dagster/data_version"] == stage_data_version(root, stage, partition)


def test_every_materialization_shows_rows_seconds_and_a_preview(root: Root) -> None:
    with open_instance(root) as instance:
        for name in ("text_units", "graph", "communities", "community_reports"):
            event = instance.get_latest_materialization_event(dg.AssetKey(name))
            assert event is not None
            materialization = event.asset_materialization
            assert materialization is not None
            shown = materialization.metadata
            rows = "rows of entities" if name == "graph" else "dagster/row_count"  # graph owns several tables
            assert {rows, "seconds to make it"} <= shown.keys(), name
            assert any(key.startswith("preview of") for key in shown)
            plots = {
                "graph": "plot of entities by relationships",
                "communities": "plot of community sizes at level 0",
            }
            assert name not in plots or "data:image/svg+xml" in str(shown[plots[name]].value)


def test_without_the_dagster_home_nothing_runs_again_and_events_are_reported(root: Root) -> None:
    shutil.rmtree(root.path / "dagster")
    report = run_index(root)
    assert report.ran == []
    assert n_runs(root) == 0
    with open_instance(root) as instance:
        record = instance.get_latest_data_version_record(dg.AssetKey("documents"), partition_key="001")
        assert record is not None
        snapshot = instance.get_latest_data_version_record(dg.AssetKey("index_snapshot"))
        assert snapshot is not None


def test_a_recluster_runs_fresh_communities_and_stops_where_they_come_out_equal(root: Root) -> None:
    report = run_index(root, is_reclustering=True)
    assert report.ran == [("communities", "all"), ("community_reports", "all")]
    assert ("report_embeddings", "all") in report.reused
    assert run_index(root).ran == []


def test_work_stops_where_content_comes_out_equal(root: Root) -> None:
    # A record's metadata is in its document only.
    put(root.path, "rows.jsonl", '{"id": 1, "title": "t", "text": "They say that Scrooge slept.", "year": 1}')
    build_tables(root, ALL_STAGES)
    put(root.path, "rows.jsonl", '{"id": 1, "title": "t", "text": "They say that Scrooge slept.", "year": 2}')
    report = run_index(root)
    assert {stage for stage, _ in report.ran} == {
        "corpus_manifest",
        "documents",
        "index_candidate",
        "index_snapshot",
        "text_units",
        "extracted_graph",
    }
    assert {"graph", "communities", "community_reports"} <= {stage for stage, _ in report.reused}


def test_an_empty_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="no readable documents; put txt"):
        indexed_root(tmp_path, {})


def test_the_assets_in_the_ui_name_a_missing_bucket_and_make_the_same_index(root: Root, tmp_path: Path) -> None:
    other = make_root(tmp_path / "other")
    definitions = build_definitions(other)
    buckets, corpus = definitions.resolve_job_def("index_bucket"), definitions.resolve_job_def("graph_and_later")
    with open_instance(other) as instance:
        assert buckets.execute_in_process(instance=instance, partition_key="001", run_config=QUIET).success
        with pytest.raises(PipelineError, match="`text_units`, partition 000, is not materialized"):
            corpus.execute_in_process(instance=instance, run_config=QUIET)
        assert buckets.execute_in_process(instance=instance, partition_key="000", run_config=QUIET).success
        assert corpus.execute_in_process(instance=instance, run_config=QUIET).success
    assert table_bytes(other) == table_bytes(root)
    assert other.snapshots.current() == root.snapshots.current()


def test_definitions_loaded_before_a_change_ask_for_a_reload(root: Root) -> None:
    job = build_definitions(root).resolve_job_def("index_bucket")
    (root.path / "settings.yaml").write_text("storage:\n  n_buckets: 2\ntext_units:\n  size: 200\n")
    with open_instance(root) as instance, pytest.raises(PipelineError, match="Reload definitions"):
        job.execute_in_process(instance=instance, partition_key="000", run_config=QUIET)


def test_below_a_changed_stage_older_definitions_ask_for_a_reload_too(root: Root) -> None:
    definitions = build_definitions(root)
    (root.path / "settings.yaml").write_text("storage:\n  n_buckets: 2\ntext_units:\n  size: 200\n")
    job = definitions.resolve_job_def("reports_only")
    with (
        open_instance(root) as instance,
        pytest.raises(PipelineError, match=r"community_reports: settings\.yaml .*Reload definitions"),
    ):
        job.execute_in_process(instance=instance, run_config=QUIET)


def test_while_a_snapshot_is_pinned_an_asset_job_succeeds_and_its_candidate_waits(root: Root) -> None:
    first = str(root.snapshots.current())
    roll_back(root.snapshots, first)
    (root.path / "settings.yaml").write_text("storage: {n_buckets: 2}\nreports: {max_input_tokens: 5000}\n")
    root = Root(root.path)
    with open_instance(root) as instance:
        job = build_definitions(root).resolve_job_def("reports_only")
        result = job.execute_in_process(instance=instance, run_config=QUIET)
        [observed] = instance.fetch_observations(dg.AssetKey("index_snapshot"), limit=5).records
    assert result.success and not result.asset_materializations_for_node("index_snapshot")
    shown = observed.asset_observation.metadata if observed.asset_observation else {}
    assert root.snapshots.current() == shown["snapshot"].value == first
    assert shown["waiting for unpin"].value == find_unpublished_candidate(root) != first
    assert not find_stale(root, detect_input(root))


def test_a_failing_check_leaves_the_published_snapshot_and_the_next_run_publishes_every_change(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphrag_pipeline.publishing import checks

    before = root.snapshots.open()
    monkeypatch.setitem(checks.CHECKS, "references", lambda snapshot: ["a dangling reference"])
    put(root.path, "one.txt", CAROL["one.txt"] + " They say that Scrooge pitied Belle.")
    put(root.path, "four.txt", "They say that Scrooge saw the fog.")
    put(root.path, "five.txt", "They say that Scrooge saw the bells.")
    (root.path / "input" / "three.md").unlink()
    (root.path / "input" / "broken.json").write_text("{")
    (root.path / "input" / "empty.txt").write_text("")
    with pytest.raises(PipelineError):
        run_index(root)
    assert root.snapshots.current() == before.id
    monkeypatch.undo()
    report = run_index(root)
    assert report.n_documents == 4, "bad documents are listed and stop no other"
    assert {path for path, _ in report.problems} == {"broken.json", "empty.txt"}
    after = root.snapshots.open()
    assert after.id != before.id and after.n_rows("documents") == 4
    numbers = dict(zip(before.table("entities")["id"].to_pylist(), range(10**6), strict=False))
    for row in after.table("entities").to_pylist():
        assert numbers.get(row["id"], row["human_readable_id"]) == row["human_readable_id"]
    for table in after.manifest.tables:
        assert "ezziwig" not in str(after.table(table).to_pylist()).lower(), table
    assert before.table("documents").num_rows == 3, "the old snapshot is still readable"


@pytest.mark.thorough
def test_indexing_in_another_process_reports_into_a_dagster_home_of_the_user(root: Root, tmp_path: Path) -> None:
    home = tmp_path / "home"
    environment = {**os.environ, "DAGSTER_HOME": str(home)}
    program = [sys.executable, "-m", "graphrag_pipeline", "index", "--root", str(root.path)]
    result = subprocess.run(program, check=True, capture_output=True, text=True, env=environment, timeout=120)
    assert "nothing changed" in result.stdout
    assert (home / "dagster.yaml").exists()


def test_every_pipeline_error_keeps_its_message(root: Root) -> None:
    from dagster._utils.error import serializable_error_info_from_exc_info

    from graphrag_pipeline.defs.runs.errors import explain_error
    from graphrag_pipeline.defs.runs.loaded_code import OldDefinitionsError
    from graphrag_pipeline.models.ports import CallFailedError
    from graphrag_pipeline.models.spending import BudgetExceededError

    words = "graph: it did not work; do this"
    raised = [kind(words) for kind in (OldDefinitionsError, BudgetExceededError, PipelineError)]
    for error in [*raised, CallFailedError(words, "key")]:
        try:
            raise RuntimeError("Error occurred while executing op") from error
        except RuntimeError:
            explained = explain_error("graph", serializable_error_info_from_exc_info(sys.exc_info()))
        assert isinstance(explained, PipelineError) and str(explained) == f"graph failed: {words}"


def test_a_run_with_options_shows_two_tags_of_ours_and_one_of_buckets_one(root: Root) -> None:
    for number in range(8):
        put(root.path, f"more_{number}.txt", f"They say that Topper sang {number} songs.")
    report = run_index(root, is_reclustering=True, allow_removal=True, is_reviewed=True)
    assert report.waiting and len({partition for stage, partition in report.ran if stage == "documents"}) == 2
    unseen = (SYSTEM_TAG_PREFIX, HIDDEN_TAG_PREFIX)
    with open_instance(root) as instance:
        runs = instance.get_runs(limit=2)
    assert any("dagster/asset_partition_range_start" in run.tags for run in runs)
    visible = [{name for name in run.tags if not name.startswith(unseen)} for run in runs]
    assert visible == [{KIND_TAG, CHANGED_TAG}, {KIND_TAG}], "beside Dagster's two of the range"
