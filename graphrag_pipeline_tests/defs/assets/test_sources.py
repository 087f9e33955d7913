"""Sources that a person edits are in the lineage, and Dagster's own staleness is correct for each bucket."""

from __future__ import annotations

import shutil

import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.definitions.observe import observe

from graphrag_pipeline.defs.assets.sources import MARKED, build_sources
from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.defs.index_runs.missing_events import report_missing_events
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline_tests.support.roots import put


def unsynced(root: Root) -> set[tuple[str, str]]:
    """(asset, partition) that Dagster itself marks as not up to date."""
    graph = build_definitions(root).resolve_asset_graph()
    with open_instance(root) as instance:
        resolver = CachingStaleStatusResolver(instance, graph, _loading(instance))
        return {
            (stage.name, partition)
            for stage in ALL_STAGES.values()
            for partition in stage.partitions(root.settings)
            if resolver.get_status(dg.AssetKey(stage.name), partition if stage.is_partitioned else None)
            is not StaleStatus.FRESH
        }


def _loading(instance: dg.DagsterInstance) -> object:
    from dagster._core.loader import LoadingContextForTest

    return LoadingContextForTest(instance)


def look(root: Root) -> None:
    """Observe the sources, as the button in the UI does."""
    with open_instance(root) as instance:
        assert observe(build_sources(root), instance=instance).success


def test_only_the_bucket_of_an_edited_document_is_unsynced(indexed_root: Root) -> None:
    look(indexed_root)
    assert unsynced(indexed_root) == set(), "the index was made from what is observed"
    put(indexed_root.path, "one.txt", "They say that Scrooge slept.")
    changed = {s.partition for s in find_stale(indexed_root, detect_input(indexed_root)) if s.stage == "documents"}
    assert len(changed) == 1
    look(indexed_root)
    assert unsynced(indexed_root) == {("corpus_manifest", *changed), *((name, "all") for name in MARKED)}
    run_index(indexed_root)
    assert unsynced(indexed_root) == set()


def test_the_job_observes_every_source_in_one_run(indexed_root: Root) -> None:
    put(indexed_root.path, "one.txt", "They say that Scrooge slept.")
    (indexed_root.path / "entity_overrides.csv").write_text("name,entity,action\nFezziwig,OLD FEZZIWIG,merge\n")
    [changed] = {s.partition for s in find_stale(indexed_root, detect_input(indexed_root)) if s.stage == "documents"}
    job, changes = build_definitions(indexed_root).resolve_job_def("observe_sources"), []
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    for _ in range(2):
        with open_instance(indexed_root) as instance:
            result = job.execute_in_process(instance=instance, run_config=quiet)
        [output] = [event.step_output_data.metadata for event in result.all_events if event.is_successful_output]
        changes.append(output["what changed"].value)
        assert unsynced(indexed_root) == {("corpus_manifest", changed), *((name, "all") for name in MARKED)}
    assert changes == [f"input_folder {changed}, whole_input, entity_overrides", "nothing"]


def test_the_button_observe_shows_the_folder_as_the_job_does(indexed_root: Root) -> None:
    put(indexed_root.path, "one.txt", "They say that Scrooge slept.")
    with open_instance(indexed_root) as instance:
        assert observe(build_sources(indexed_root), instance=instance).success
        [record] = instance.fetch_observations(dg.AssetKey("input_folder"), limit=1).records
        [other] = instance.fetch_observations(dg.AssetKey("entity_overrides"), limit=1).records
    assert record.asset_observation and other.asset_observation
    folder = record.asset_observation.metadata
    assert folder["path of the folder"].value == str(indexed_root.path / "input")
    assert folder["documents in the folder"].value == 3 and folder["files in the folder not indexed yet"].value == 1
    assert "| txt |" in folder["documents in the folder by format"].value
    assert other.asset_observation.metadata["bytes of the file (0: no file)"].value == 0


def test_an_observation_shows_the_number_of_documents_and_the_changed_ones(indexed_root: Root) -> None:
    put(indexed_root.path, "one.txt", "They say that Scrooge slept.")
    (indexed_root.path / "input" / "three.md").unlink()
    job = build_definitions(indexed_root).resolve_job_def("observe_sources")
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    with open_instance(indexed_root) as instance:
        assert job.execute_in_process(instance=instance, run_config=quiet).success
        records = instance.fetch_observations(dg.AssetKey("input_folder"), limit=2).records
    seen = [record.asset_observation.metadata for record in records if record.asset_observation]
    assert sum(int(str(shown["documents in this bucket"].value)) for shown in seen) == 2
    paths = ", ".join(str(shown["not indexed yet"].value) for shown in seen if "not indexed yet" in shown)
    assert sorted(paths.split(", ")) == ["one.txt", "three.md"]
    folder = seen[0]
    assert folder["path of the folder"].value == str(indexed_root.path / "input")
    assert (folder["documents in the folder"].value, folder["files in the folder not indexed yet"].value) == (2, 2)
    n_bytes = sum(file.stat().st_size for file in (indexed_root.path / "input").iterdir())
    assert (
        folder["bytes in the folder"].value == n_bytes > 0
        and "| txt | 2 |" in folder["documents in the folder by format"].value
    )


def test_edited_overrides_make_the_graph_unsynced(indexed_root: Root) -> None:
    (indexed_root.path / "entity_overrides.csv").write_text("name,entity,action\nFezziwig,OLD FEZZIWIG,merge\n")
    look(indexed_root)
    assert unsynced(indexed_root) == {(name, "all") for name in MARKED}
    (indexed_root.path / "entity_overrides.csv").unlink()
    look(indexed_root)
    assert unsynced(indexed_root) == set(), "the index was made without overrides"


def test_events_of_an_earlier_release_name_the_whole_input_after_the_next_index(indexed_root: Root) -> None:
    key, tag = dg.AssetKey("graph"), "dagster/input_data_version/whole_input"
    with open_instance(indexed_root) as instance:
        last = instance.get_latest_materialization_event(key)
        assert last and last.asset_materialization
        event = last.asset_materialization
        tags = {name: value for name, value in (event.tags or {}).items() if not name.endswith("/whole_input")}
        instance.report_runless_asset_event(dg.AssetMaterialization(key, metadata=event.metadata, tags=tags))
    assert unsynced(indexed_root) == {("graph", "all")}
    (indexed_root.path / "dagster" / "graphrag_reported.json").unlink()
    run_index(indexed_root)
    assert unsynced(indexed_root) == set()
    with open_instance(indexed_root) as instance:
        after = instance.get_latest_materialization_event(key)
    assert after and after.asset_materialization and tag in (after.asset_materialization.tags or {})
    assert after.asset_materialization.metadata.keys() == event.metadata.keys(), "the preview stays"


def test_with_a_new_dagster_home_nothing_is_unsynced(indexed_root: Root) -> None:
    shutil.rmtree(indexed_root.path / "dagster")
    assert report_missing_events(indexed_root) == sum(
        len(s.partitions(indexed_root.settings)) for s in ALL_STAGES.values()
    )
    assert unsynced(indexed_root) == set()


def test_lineage_starts_at_the_sources_that_a_person_edits(indexed_root: Root) -> None:
    graph = build_definitions(indexed_root).resolve_asset_graph()
    assert graph.get(dg.AssetKey("corpus_manifest")).parent_keys == {dg.AssetKey("input_folder")}
    assert dg.AssetKey("entity_overrides") in graph.get(dg.AssetKey("graph")).parent_keys
