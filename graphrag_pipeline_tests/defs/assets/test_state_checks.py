"""Checks that show on each asset what is stale, unreadable, failed or missing, reported without a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from graphrag_pipeline.defs.assets.state_checks import report_state
from graphrag_pipeline.defs.automation.sensors import why_not_unattended
from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inspection.index_state import find_state, list_checks, read_versions
from graphrag_pipeline.pipeline.code_changes import find_code_changes
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.prompt_texts import diff_prompt, keep_prompts
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline_tests.model_server import ReceivedRequest
from graphrag_pipeline_tests.support.models.model_roots import ModelIndex
from graphrag_pipeline_tests.support.roots import make_root, put
from graphrag_pipeline_tests.support.thoroughness import usually

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
CHANGED = "storage: {n_buckets: 2}\nreports: {max_input_tokens: 4000}\n"


def last(root: Root, stage: str, check: str) -> Any:
    """Return the last evaluation of a check that Dagster has."""
    with open_instance(root) as instance:
        return last_of(instance, stage, check)


def last_of(instance: dg.DagsterInstance, stage: str, check: str) -> Any:
    key = dg.AssetCheckKey(dg.AssetKey(stage), check)
    records = instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
    return records[0].event.dagster_event.asset_check_evaluation_data if records and records[0].event else None


def run_job(root: Root, name: str) -> dg.ExecuteInProcessResult:
    with open_instance(root) as instance:
        job = build_definitions(root).resolve_job_def(name)
        return job.execute_in_process(instance=instance, run_config=QUIET)


def warned(root: Root) -> set[tuple[str, str]]:
    """Return (stage, check) of every check whose last evaluation warns."""
    with open_instance(root) as instance:
        found = {(stage, check): last_of(instance, stage, check) for stage, check, _ in list_checks()}
    assert all(found.values()), "an index run reports every check"
    assert all(evaluation.metadata for evaluation in found.values())
    return {name for name, evaluation in found.items() if not evaluation.passed}


def test_each_check_names_the_materialization_that_it_is_about(indexed_root: Root) -> None:
    checks = list_checks()
    assert checks
    with open_instance(indexed_root) as instance:
        for stage, check, _ in checks:
            made = instance.fetch_materializations(dg.AssetKey(stage), limit=1).records[0]
            target = last_of(instance, stage, check).target_materialization_data
            assert target.storage_id == made.storage_id, (
                "else Dagster shows a check of the same second as not evaluated"
            )


@pytest.mark.parametrize("job", usually(["stale_report", "observe_sources"], "stale_report"))
def test_a_changed_setting_and_file_warn_on_every_stale_asset_until_the_next_index(
    indexed_root: Root, job: str
) -> None:
    assert warned(indexed_root) == set()
    (indexed_root.path / "settings.yaml").write_text(CHANGED)
    put(indexed_root.path, "bad.docx", "no office file")
    root = Root(indexed_root.path)
    assert run_job(root, job).success
    stale = {item.stage for item in find_stale(root, detect_input(root))}
    assert warned(root) == {*((stage, "up_to_date") for stage in stale), ("corpus_manifest", "documents_readable")}
    reports, manifest = (last(root, stage, "up_to_date") for stage in ("community_reports", "corpus_manifest"))
    assert (
        "reports.max_input_tokens: 8000 -> 4000" in reports.description
        and reports.severity is dg.AssetCheckSeverity.WARN
    )
    assert manifest.metadata["stale partitions"].value == 1 and not manifest.blocking
    files = last(root, "corpus_manifest", "documents_readable").metadata["documents not readable, each"].value
    assert "bad.docx" in files and "save it again" in files
    run_index(root)
    assert warned(root) == {("corpus_manifest", "documents_readable")}


def test_an_unchanged_state_is_reported_once(indexed_root: Root) -> None:
    manifests = detect_input(indexed_root)
    with open_instance(indexed_root) as instance:
        assert report_state(instance, indexed_root, manifests) == 0, "the index run reported it"
        (indexed_root.path / "settings.yaml").write_text(CHANGED)
        changed = Root(indexed_root.path)
        n_stale = len({item.stage for item in find_stale(changed, manifests)})
        assert report_state(instance, changed, manifests) == n_stale > 0
        assert report_state(instance, changed, manifests) == 0


def test_a_run_of_assets_executes_the_checks_of_its_assets(indexed_root: Root) -> None:
    result = run_job(indexed_root, "reports_only")
    names = {(c.asset_key.to_user_string(), c.check_name) for c in result.get_asset_check_evaluations() if c.passed}
    assert {("community_reports", "up_to_date"), ("community_reports", "failures")} <= names


def test_whole_corpus_assets_are_unsynced_in_dagster_exactly_if_code_above_changed(indexed_root: Root) -> None:
    from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
    from dagster._core.loader import LoadingContextForTest

    def unsynced() -> set[str]:
        root = Root(indexed_root.path)
        with open_instance(root) as instance:
            graph = build_definitions(root).resolve_asset_graph()
            resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
            whole = [stage.name for stage in ALL_STAGES.values() if not stage.is_partitioned]
            return {name for name in whole if resolver.get_status(dg.AssetKey(name)) is not StaleStatus.FRESH}

    def stale() -> set[str]:
        root = Root(indexed_root.path)
        return {item.stage for item in find_stale(root, detect_input(root)) if item.partition == "all"}

    assert unsynced() == stale() == set()
    (indexed_root.path / "settings.yaml").write_text(
        "storage: {n_buckets: 2}\nextraction: {max_entities_per_sentence: 2}\n"
    )
    assert unsynced() == stale() >= {"graph", "communities", "index_snapshot"}
    run_index(Root(indexed_root.path))
    assert unsynced() == stale() == set()


def test_the_difference_of_a_prompt_is_shown_line_by_line(tmp_path: Path) -> None:
    root = make_root(tmp_path, settings="storage: {n_buckets: 1}\nreports: {engine: model}\nchat_model: {model: m}\n")
    stage, prompt = STAGES["community_reports"], tmp_path / "prompts" / "community_report.txt"
    prompt.write_text(prompt.read_text() + "\nWrite for sailors.\n")
    keep_prompts(Root(tmp_path), stage)
    old = Root(tmp_path).code_of(stage)
    prompt.write_text(prompt.read_text().replace("sailors", "pilots"))
    from graphrag_pipeline.pipeline.code_changes import find_version_changes

    [change] = find_version_changes(old, Root(tmp_path).code_of(stage))
    text = diff_prompt(Root(tmp_path), change)
    assert "\n-Write for sailors.\n+Write for pilots." in text
    assert find_code_changes(root, stage, "all", old) == []


def test_a_prompt_that_cannot_be_used_warns_with_the_reason_and_stops_the_index_run(model_index: ModelIndex) -> None:
    prompt = model_index.root.path / "prompts" / "community_report.txt"
    prompt.write_text(prompt.read_text().replace("{input_text}", ""))
    root = Root(model_index.root.path)
    assert run_job(root, "stale_report").success
    found = last(root, "community_reports", "up_to_date")
    assert not found.passed and found.metadata["stale partitions"].value == 1
    assert "prompt community_report cannot be used: " in found.description
    assert "the placeholder" in found.description and "is missing" in found.description
    assert last(root, "graph", "up_to_date").passed and not last(root, "report_embeddings", "up_to_date").passed
    with pytest.raises(PipelineError, match=r"the placeholder \{input_text\} is missing"):
        run_index(root)
    assert not model_index.server.calls
    assert "is missing" in (why_not_unattended(root) or "")
    with open_instance(root) as instance:
        run = build_definitions(root).resolve_job_def("reports_only")
        assert not run.execute_in_process(instance=instance, run_config=QUIET, raise_on_error=False).success


def test_text_units_without_entities_and_entities_without_descriptions_are_counted(indexed_root: Root) -> None:
    found = {(f.stage, f.check): f for f in find_state(indexed_root, read_versions(indexed_root))}
    units = found["extracted_graph", "coverage"]
    assert units.is_good and units.numbers["all text units"] == 3 and units.numbers["text units without entities"] == 0
    assert found["summarized_descriptions", "coverage"].numbers["entities without a description"] == 0
    assert found["corpus_manifest", "documents_readable"].numbers["documents in the folder"] == 3
    assert all(finding.is_good and finding.numbers for finding in found.values())


def test_replies_that_cannot_be_used_warn_on_their_stages_although_the_run_fails(model_index: ModelIndex) -> None:
    def answer(request: ReceivedRequest) -> str | None:
        empty = {"extraction": "<|COMPLETE|>", "gleaning": "<|COMPLETE|>", "report": "No."}
        return empty.get(request.kind) if "article_00003" in request.prompt or request.kind == "report" else None

    for prompt in ("extract_graph", "community_report"):
        model_index.change_prompt(prompt)
    model_index.script = answer
    with pytest.raises(PipelineError):
        run_index(model_index.root)
    found = last(model_index.root, "community_reports", "failures")
    n_failed = found.metadata["records that the model failed at"].value
    assert not found.passed and n_failed > 0 and f"failed at {n_failed:,} records" in found.description
    assert found.severity is dg.AssetCheckSeverity.WARN and "failures by reason" in found.metadata


def test_a_changed_prompt_is_named_without_hashes_beside_its_difference(model_index: ModelIndex) -> None:
    model_index.change_prompt("community_report")
    root = model_index.root
    found = {(f.stage, f.check): f for f in find_state(root, read_versions(root))}["community_reports", "up_to_date"]
    assert found.line.startswith("stale. prompt community_report changed. Run")
    assert "\n+Be brief." in found.texts["difference of prompt community_report"]
    assert set(found.tables) == {"reasons"}
