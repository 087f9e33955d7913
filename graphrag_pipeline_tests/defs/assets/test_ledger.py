"""The asset `costs`: its events follow the ledger, and its numbers plot over time."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from graphrag_pipeline.defs.assets.ledger import report_costs
from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.inspection.index_reports import report_ledger
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.command_line import Call
from graphrag_pipeline_tests.support.models.model_roots import ModelIndex
from graphrag_pipeline_tests.support.roots import make_root

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def events(instance: dg.DagsterInstance) -> list[dict[str, Any]]:
    """Return the metadata of the events of `costs`, the newest first."""
    records = instance.fetch_materializations(dg.AssetKey("costs"), limit=10).records
    found = [record.asset_materialization for record in records]
    return [{name: entry.value for name, entry in event.metadata.items()} for event in found if event]


def test_an_index_run_a_question_and_a_run_of_assets_each_add_an_event_with_the_numbers_of_the_ledger(
    model_index: ModelIndex, call: Call
) -> None:
    root = model_index.root
    with open_instance(root) as instance:
        [indexed] = events(instance)
        assert indexed["paid runs so far"] == 1 and indexed["model calls so far"] > 10
        assert "| index | done |" in indexed["last paid runs"]
        assert not report_costs(instance, root), "nothing was paid since"
    assert call("--root", root.path, "try", "descriptions", "--sample", "1").status == 0
    model_index.change_prompt("summarize_descriptions")
    assert call("--root", root.path, "try", "descriptions", "--sample", "1").status == 0
    with open_instance(root) as instance:
        job = build_definitions(Root(root.path)).resolve_job_def("stale_report")
        assert job.execute_in_process(instance=instance, run_config=QUIET).success
        tried = events(instance)[0]
        assert tried["paid runs so far"] == 2 and "| try summarized" in tried["last paid runs"]
        model_index.change_prompt("community_report")
        job = build_definitions(model_index.root).resolve_job_def("reports_only")
        run = job.execute_in_process(instance=instance, run_config=QUIET, raise_on_error=False)
        newest, report = events(instance)[0], report_ledger(model_index.root)
        [line] = [line for line in newest["last paid runs"].splitlines() if run.run_id[:8] in line]
        assert "| done |" in line
    assert newest["model cost so far (USD)"] == pytest.approx(report.spent_cost, abs=1e-6) and report.spent_cost > 0
    assert newest["model calls so far"] == sum(one.n_calls for one in report.runs) > tried["model calls so far"]
    assert newest["model cost of reports so far (USD)"] > tried["model cost of reports so far (USD)"]
    assert newest["plot of model cost by day"].startswith("![model cost by day (USD)](data:image/svg+xml")
    assert {f"model cost by {group}" for group in ("day", "model", "stage", "command")} <= newest.keys()


def test_a_root_that_never_paid_has_no_event(tmp_path: Any) -> None:
    root = make_root(tmp_path / "root")
    with open_instance(root) as instance:
        assert not report_costs(instance, root) and events(instance) == []
