"""The published snapshot in the UI, and the moments when its freshness policy counts it as confirmed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.naming import ONLY_STALE_TAG
from graphrag_pipeline.evaluation.index_quality.figures import FIGURES
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.storage.snapshot_store import roll_back
from graphrag_pipeline_tests.support.models.model_roots import ModelIndex
from graphrag_pipeline_tests.support.roots import built_once, indexed_root, put

SNAPSHOT = dg.AssetKey("index_snapshot")
FRESH_WITHIN = "storage: {n_buckets: 2}\nschedule: {fresh_within_hours: 12}\n"


def materializations(root: Root) -> list[dg.AssetMaterialization]:
    """Return the materializations of `index_snapshot`, the newest first."""
    with open_instance(root) as instance:
        records = instance.fetch_materializations(SNAPSHOT, limit=20).records
    return [record.asset_materialization for record in records if record.asset_materialization]


def shown(event: dg.AssetMaterialization) -> dict[str, Any]:
    return {name: value.value for name, value in event.metadata.items()}


def check_results(root: Root) -> dict[str, tuple[bool, str | None, bool]]:
    """Whether each check passed, its words, and whether it is about the last materialization."""
    found = {}
    with open_instance(root) as instance:
        [last] = instance.fetch_materializations(SNAPSHOT, limit=1).records
        for name in ("up_to_date", *FIGURES):
            record = instance.get_latest_asset_check_evaluation_record(dg.AssetCheckKey(SNAPSHOT, name))
            if record and record.event and record.event.dagster_event:
                check = record.event.dagster_event.asset_check_evaluation_data
                target = check.target_materialization_data
                is_current = bool(target and target.storage_id == last.storage_id)
                found[name] = (check.passed, check.description, is_current)
    return found


@pytest.fixture
def root(indexed_root: Root) -> Root:
    (indexed_root.path / "settings.yaml").write_text(FRESH_WITHIN)
    return Root(indexed_root.path)


@pytest.fixture
def updated(tmp_path: Path) -> Root:
    """A root that was indexed through Dagster, and again after a document was edited, added and removed."""

    def build(folder: Path) -> None:
        indexed_root(folder)
        (folder / "settings.yaml").write_text(FRESH_WITHIN)
        put(folder, "one.txt", "They say that Scrooge slept, and Marley with him.")
        put(folder, "four.txt", "They say that Scrooge saw the fog.")
        (folder / "input" / "two.txt").unlink()
        run_index(Root(folder))

    return built_once(tmp_path / "updated", "updated through Dagster", build)


def test_a_publication_lists_its_documents_and_the_changed_ones(updated: Root) -> None:
    root = updated
    now, first = materializations(root)
    metadata, before = shown(now), shown(first)["snapshot"]
    assert (metadata["snapshot"], metadata["published before"], metadata["documents"]) == (
        root.snapshots.current(),
        before,
        3,
    )
    assert metadata["entities"] == root.snapshots.open().n_rows("entities")
    assert [metadata[f"documents {change}"] for change in ("added", "edited", "removed")] == [1, 1, 1]
    assert (
        "| edited | one.txt |" in metadata["documents changed"]
        and "| added | four.txt |" in metadata["documents changed"]
    )
    assert (
        "| three.md |  | The Ball | 1 |" in metadata["documents in it"] and "two.txt" not in metadata["documents in it"]
    )
    lines = metadata["difference to the snapshot before"].splitlines()
    assert {"- document added: four.txt", "- document edited: one.txt", "- document removed: two.txt"} <= set(lines)
    assert any(line.startswith("- entity ") for line in lines)


def test_a_confirmation_keeps_what_the_publication_showed_and_the_results_of_its_checks(updated: Root) -> None:
    root = updated
    before = check_results(root)
    assert {"up_to_date", "placeholders"} <= before.keys() and all(is_current for *_, is_current in before.values())
    run_index(root)
    confirmed, published = materializations(root)[:2]
    assert confirmed.description and confirmed.description.startswith("Confirmed")
    assert shown(confirmed) == shown(published) and confirmed.tags == published.tags
    assert check_results(root) == before


def test_a_publication_shows_the_cost_of_the_run(model_index: ModelIndex) -> None:
    put(model_index.root.path, "four.txt", "They say that Ada Lovelace met Charles Babbage in the fog.")
    run_index(model_index.root)
    metadata = shown(materializations(model_index.root)[0])
    n_answered = sum(call.status == 200 for call in model_index.server.calls)
    assert metadata["model calls"] == n_answered > 0
    assert metadata["model cost (USD)"] > 0 and not metadata.get("model calls without a price"), (
        "the model of embeddings has no listed price, and costs nothing on this machine"
    )


def test_an_index_run_without_changes_confirms_the_snapshot_and_shows_it(root: Root) -> None:
    first = materializations(root)
    run_index(root)
    last, *others = materializations(root)
    assert [event.tags for event in others] == [event.tags for event in first]
    assert "Confirmed" in (last.description or "")
    assert (last.tags or {})["dagster/data_version"] == root.snapshots.current() == shown(last)["snapshot"]
    assert "one.txt" in shown(last)["documents in it"]


def test_without_a_freshness_policy_nothing_is_confirmed(indexed_root: Root) -> None:
    before = len(materializations(indexed_root))
    run_index(indexed_root)
    assert len(materializations(indexed_root)) == before


@pytest.mark.thorough
def test_nothing_counts_as_fresh_while_a_candidate_waits_for_unpin(root: Root) -> None:
    first = str(root.snapshots.current())
    put(root.path, "four.txt", "They say that Scrooge saw the fog.")
    run_index(root)
    roll_back(root.snapshots, first)
    run_index(root)
    pinned = materializations(root)
    assert "outside of a run" in (pinned[0].description or "") and shown(pinned[0])["snapshot"] == first
    run_index(root)
    with open_instance(root) as instance:
        job = build_definitions(root).resolve_job_def("graph_and_later")
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        assert job.execute_in_process(instance=instance, run_config=quiet).success
    assert len(materializations(root)) == len(pinned)
    root.snapshots.unpin()
    run_index(root)
    assert shown(materializations(root)[0])["snapshot"] == root.snapshots.current() != first


def test_a_damaged_published_snapshot_is_reported_as_damaged(root: Root) -> None:
    from graphrag_pipeline.defs.assets.published import published_event

    current = str(root.snapshots.current())
    with open_instance(root) as instance:
        root.snapshots.path_of(current).unlink()
        assert "is missing" in shown(published_event(instance, root, current, "Published."))["problem"]


FACTS = {
    "snapshot", "published by", "run that published the snapshot", "model calls", "model cost (USD)", "entities",
    "documents in it", "difference to the snapshot before",
}  # fmt: skip
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def test_a_run_that_finds_the_snapshot_published_shows_what_its_publication_showed(updated: Root) -> None:
    root = updated
    published, first = map(shown, materializations(root))
    assert first.keys() >= FACTS and first["difference to the snapshot before"] == "nothing was published before"
    assert published.keys() >= FACTS | {"published before"} and "graphrag-pipeline" in published["published by"]
    with open_instance(root) as instance:
        job = build_definitions(root).resolve_job_def("graph_and_later")
        assert job.execute_in_process(instance=instance, run_config=QUIET).success
        assert job.execute_in_process(instance=instance, run_config=QUIET, tags={ONLY_STALE_TAG: "true"}).success
    reused, again, *_ = (shown(event) for event in materializations(root))
    assert reused.pop("reused") and again.keys() == reused.keys() == published.keys()
    for event in (reused, again):
        assert {name for name in published if event[name] != published[name]} <= {"seconds to make it"}


def test_a_sensor_is_named_as_the_publisher(root: Root) -> None:
    put(root.path, "four.txt", "They say that Scrooge saw the fog.")
    with open_instance(root) as instance:
        job = build_definitions(root).resolve_job_def("reindex_stale")
        tags = {"dagster/sensor_name": "input_folder_sensor"}
        assert job.execute_in_process(instance=instance, run_config=QUIET, tags=tags).success
    assert shown(materializations(root)[0])["published by"] == "sensor input_folder_sensor"


def test_without_dagsters_records_a_rollback_shows_the_difference_to_the_checked_snapshot_before(updated: Root) -> None:
    root = updated
    shutil.rmtree(root.path / "dagster")
    run_index(root)
    assert "- document added: four.txt" in shown(materializations(root)[0])["difference to the snapshot before"]
