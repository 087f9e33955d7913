"""Checks on the candidate in Dagster: a failed check keeps the published snapshot and gives the reason."""

from __future__ import annotations

import dagster as dg
import pytest

from graphrag_pipeline.defs.assets.checks import build_checks
from graphrag_pipeline.defs.assets.definitions import build_assets
from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.naming import BUCKET_JOB, CORPUS_JOB
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.publishing.checks import CHECKS

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
CHANGED = "storage: {n_buckets: 2}\nextraction: {max_entities_per_sentence: 2}\n"


def run(root: Root, job: str, partition: str | None = None) -> dg.ExecuteInProcessResult:
    with open_instance(root) as instance:
        definition = build_definitions(root).resolve_job_def(job)
        return definition.execute_in_process(
            instance=instance, partition_key=partition, run_config=QUIET, raise_on_error=False
        )


def evaluation(result: dg.ExecuteInProcessResult, name: str) -> dg.AssetCheckEvaluation:
    [found] = [check for check in result.get_asset_check_evaluations() if check.check_name == name]
    return found


def change(root: Root, settings: str) -> Root:
    (root.path / "settings.yaml").write_text(settings)
    return Root(root.path)


@pytest.fixture
def half_filled(indexed_root: Root) -> Root:
    """A root whose first bucket alone was backfilled after a change."""
    root = change(indexed_root, CHANGED)
    assert run(root, BUCKET_JOB, "000").success
    return root


def test_a_half_done_backfill_is_not_published_until_the_other_buckets_are_there(half_filled: Root) -> None:
    published = half_filled.snapshots.current()
    result = run(half_filled, CORPUS_JOB)
    check = evaluation(result, "mixed_prompts")
    assert not result.success and not check.passed and half_filled.snapshots.current() == published
    description = check.description or ""
    assert (
        description.startswith(
            "extracted_graph: its buckets come from 2 versions of extraction.max_entities_per_sentence"
        )
        and "publishing.allow_mixed_prompts" in description
    )
    assert "(buckets 000; others: 001)" in description
    assert evaluation(result, "heads").passed
    [failure] = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    assert failure and description in failure.message, "the page of the run says it, too"
    run_index(half_filled)
    assert half_filled.snapshots.current() not in (None, published)


def test_a_setting_lets_a_half_done_backfill_be_published(half_filled: Root) -> None:
    published = half_filled.snapshots.current()
    root = change(half_filled, CHANGED + "publishing: {allow_mixed_prompts: true}\n")
    result = run(root, CORPUS_JOB)
    assert result.success and evaluation(result, "mixed_prompts").passed
    assert root.snapshots.current() not in (None, published)


def run_checks(root: Root, *names: str) -> dg.ExecuteInProcessResult:
    """Run some checks of the candidate, or all, as "Execute" in the UI does."""
    [checks] = build_checks(root)
    keys = [key for key in checks.check_keys if not names or key.name in names]
    return dg.materialize(
        [*build_assets(root), checks],
        instance=dg.DagsterInstance.ephemeral(),
        selection=dg.AssetSelection.checks(*keys),
        run_config=QUIET,
        raise_on_error=False,
    )


def test_all_checks_are_one_step_and_one_of_them_can_run_alone(indexed_root: Root) -> None:
    result = run_checks(indexed_root)
    assert result.success and len([event for event in result.all_events if event.is_step_success]) == 1
    expected = [*CHECKS, "mixed_prompts", "removed_documents"]
    assert [check.check_name for check in result.get_asset_check_evaluations()] == expected
    [alone] = run_checks(indexed_root, "heads").get_asset_check_evaluations()
    assert alone.check_name == "heads" and alone.passed and alone.metadata["problems found"].value == 0


def test_a_damaged_file_fails_its_check_and_those_that_read_it_are_left_out(indexed_root: Root) -> None:
    file = indexed_root.snapshots.open().table_path("entities")
    file.write_bytes(file.read_bytes()[:-9] + b"damaged!!")
    result = run_checks(indexed_root)
    [check] = result.get_asset_check_evaluations()
    assert (check.check_name, check.passed) == ("files", False)
    [failure] = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    assert failure and f"check files of the candidate failed: {file} is damaged" in failure.message
