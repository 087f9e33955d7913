"""A run of several buckets, as a backfill starts it: one pool of calls, and an event with its own version for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.index_runs.missing_events import report_missing_events
from graphrag_pipeline.defs.runs.instance import dagster_home, open_instance
from graphrag_pipeline.defs.runs.naming import BUCKET_JOB, CORPUS_JOB
from graphrag_pipeline.pipeline.data_versions import stage_data_version
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, make_model_root
from graphrag_pipeline_tests.support.roots import make_root, put

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
BUCKETS = ("000", "001")
RANGE = {"dagster/asset_partition_range_start": "000", "dagster/asset_partition_range_end": "001"}
STAGES_OF_BUCKETS = [stage for stage in STAGES.values() if stage.is_partitioned]


def run(root: Root, job: str, tags: Mapping[str, str], assets: Iterable[str] = ()) -> dg.ExecuteInProcessResult:
    with open_instance(root) as instance:
        definition = build_definitions(root).resolve_job_def(job)
        chosen = [dg.AssetKey(name) for name in assets] or None
        return definition.execute_in_process(
            instance=instance, tags=dict(tags), run_config=QUIET, raise_on_error=False, asset_selection=chosen
        )


def events(root: Root, stage: str, bucket: str) -> list[dg.AssetMaterialization]:
    """The materializations of a bucket, newest first."""
    wanted = dg.AssetRecordsFilter(dg.AssetKey(stage), asset_partitions=[bucket])
    with open_instance(root) as instance:
        found = [record.asset_materialization for record in instance.fetch_materializations(wanted, limit=9).records]
    return [event for event in found if event]


@pytest.mark.thorough
def test_one_run_of_several_buckets_records_the_version_of_each(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root")
    assert run(root, BUCKET_JOB, RANGE).success
    together = {}
    for stage in STAGES_OF_BUCKETS:
        for bucket in BUCKETS:
            last = events(root, stage.name, bucket)[0]
            assert (last.tags or {})["dagster/data_version"] == stage_data_version(root, stage, bucket)
            assert "seconds to make it" in last.metadata
            together[stage.name, bucket] = last
    first = ("corpus_manifest", "documents")
    assert run(root, BUCKET_JOB, {"dagster/partition": "000"}, first).success
    for stage_name in first:
        alone, before = events(root, stage_name, "000")[0].tags or {}, together[stage_name, "000"].tags or {}
        same = [name for name in alone if not name.startswith("dagster/input_")]
        assert alone.keys() == before.keys() and [alone[n] for n in same] == [before[n] for n in same]
    assert run(root, CORPUS_JOB, {}).success and root.snapshots.current()
    (dagster_home(root) / "graphrag_reported.json").unlink(missing_ok=True)
    assert report_missing_events(root) == 0


def test_each_event_of_a_bucket_has_the_totals_of_all(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root")
    for number in range(6):
        put(root.path, f"more_{number}.txt", f"They say that Scrooge saw the fog of night {number}.")
    stages = ("corpus_manifest", "documents", "text_units", "extracted_graph")
    for bucket in BUCKETS:
        assert run(root, BUCKET_JOB, {"dagster/partition": bucket}, stages).success
    alone = [events(root, stage, "001")[0].metadata for stage in stages]
    assert run(root, BUCKET_JOB, RANGE, stages).success
    for stage, before in zip(stages, alone, strict=True):
        for shown in (before, *(events(root, stage, bucket)[0].metadata for bucket in BUCKETS)):
            heads = [root.tables.head(STAGES[stage].tables[0], bucket) for bucket in BUCKETS]
            name = "rows of entity_mentions in all buckets" if stage == "extracted_graph" else "dagster/row_count"
            assert shown[name].value == sum(head.n_rows for head in heads if head) > 0
    of_buckets = [events(root, "text_units", bucket)[0].metadata for bucket in BUCKETS]
    for own, total in (("dagster/partition_row_count", "dagster/row_count"),
                       ("tokens of text units", "tokens of text units in all buckets")):  # fmt: skip
        parts = [shown[own].value for shown in of_buckets]
        assert min(parts) > 0 and of_buckets[-1][total].value == sum(parts)


def test_the_buckets_that_were_done_before_a_failure_have_their_events(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root")
    stages = ("corpus_manifest", "documents", "text_units")
    assert run(root, BUCKET_JOB, {"dagster/partition": "000"}, stages).success
    result = run(root, BUCKET_JOB, RANGE, ["extracted_graph"])
    assert not result.success and root.tables.head("entity_mentions", "001") is None
    [event] = events(root, "extracted_graph", "000")
    assert (event.tags or {})["dagster/data_version"] == stage_data_version(root, STAGES["extracted_graph"], "000")
    assert events(root, "extracted_graph", "001") == []


def test_the_calls_of_several_buckets_go_through_one_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with running_model_server() as server:
        root = make_model_root(tmp_path / "root", server.base_url, n_articles=3)
        assert run(root, BUCKET_JOB, RANGE, ("corpus_manifest", "documents", "text_units")).success
        n_units = {bucket: root.tables.read("text_units", bucket).num_rows for bucket in BUCKETS}
        server.settings = replace(server.settings, n_together=sum(n_units.values()))
        assert run(root, BUCKET_JOB, RANGE).success
        assert server.log.most_in_flight == sum(n_units.values()) > max(n_units.values())
        for bucket in BUCKETS:
            shown = events(root, "extracted_graph", bucket)[0].metadata
            assert shown["model calls"].value == 2 * n_units[bucket], "extraction and one gleaning"
