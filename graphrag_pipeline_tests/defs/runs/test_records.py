"""Old run records are deleted, except those behind the present index."""

from __future__ import annotations

import time
from pathlib import Path

import dagster as dg

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.records import prune_runs
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES

DAY_S = 86_400
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def runs_and_files(root: Root) -> tuple[set[str], set[str]]:
    with open_instance(root) as instance:
        ids = {run.run_id for run in instance.get_runs()}
    # Events without a run are in a file without a name.
    return ids, {path.stem for path in (root.path / "dagster" / "history" / "runs").glob("[0-9a-f]*-*.db")}


def test_old_runs_are_deleted_with_their_files_and_runs_behind_the_index_stay(indexed_root: Root) -> None:
    settings = "storage: {n_buckets: 2}\nschedule: {keep_runs_days: 30}\n"
    Path(indexed_root.path / "settings.yaml").write_text(settings)
    root = Root(indexed_root.path)
    with open_instance(root) as instance:
        job = build_definitions(root).resolve_job_def("index_bucket")
        for bucket in ("000", "001"):
            assert job.execute_in_process(instance=instance, partition_key=bucket, run_config=QUIET).success
    storage = root.path / "dagster" / "storage"
    before, _ = runs_and_files(root)
    for run_id in before:
        (storage / run_id / "op").mkdir(parents=True)
    assert len(before) == 4
    assert prune_runs(root, now=time.time() + 29 * DAY_S) == 0
    assert prune_runs(root, now=time.time() + 31 * DAY_S) == 1, "the buckets were rebuilt"
    after, files = runs_and_files(root)
    assert after == files and after < before
    assert {path.name for path in storage.iterdir()} & before == after
    with open_instance(root) as instance:
        for stage in ALL_STAGES.values():
            for partition in stage.partitions(root.settings):
                key = partition if stage.is_partitioned else None
                assert instance.get_latest_data_version_record(dg.AssetKey(stage.name), partition_key=key), stage.name


def test_without_a_limit_no_run_is_deleted(indexed_root: Root) -> None:
    assert prune_runs(indexed_root, now=time.time() + 10_000 * DAY_S) == 0
