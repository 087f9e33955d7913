"""Trial of a changed prompt on a sample: old beside new, its cost, and an unchanged index."""

from __future__ import annotations

import json

import pytest

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.inspection.stage_trial import (
    EMBEDDED,
    try_stage,
)
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline_tests.model_server import ReceivedRequest
from graphrag_pipeline_tests.support.command_line import Call
from graphrag_pipeline_tests.support.models.model_roots import ModelIndex
from graphrag_pipeline_tests.support.roots import built_root, table_bytes


def extract_words(request: ReceivedRequest) -> str | None:
    """Name a few words of the passage, which no rule finds as one name."""
    words = request.prompt.rpartition("<text>")[2].split()[1:5]
    reply = f'("entity"<|>{" ".join(words)}<|>PERSON<|>Wrote the first program.)##<|COMPLETE|>'
    return reply if request.kind in ("extraction", "gleaning") else None


def test_without_a_change_no_call_is_made_and_results_are_equal(model_index: ModelIndex) -> None:
    for name in ("extracted_graph", "summarized_descriptions", "community_reports"):
        trial = try_stage(model_index.root, STAGES[name], 3)
        assert len(trial.records) == 3 and trial.made_by == "test-chat" and not trial.changes
        assert [record.old for record in trial.records] == [record.new for record in trial.records]
        assert trial.sample and trial.sample.n_calls == 0 and trial.sample.n_cached >= 3
        assert trial.backfill and trial.backfill.n_calls >= trial.n_records and trial.backfill.cost
        assert trial.estimate and trial.estimate.n_calls == 0
    assert not model_index.server.calls


def test_a_changed_extraction_prompt_shows_added_and_removed_records_and_the_backfill_cost(
    model_index: ModelIndex,
) -> None:
    before = table_bytes(model_index.root)
    model_index.change_prompt("extract_graph")
    model_index.script = extract_words
    trial = try_stage(model_index.root, STAGES["extracted_graph"], 2)
    assert [change.name for change in trial.changes] == ["prompt extract_graph"]
    for record in trial.records:
        [added] = record.added
        assert f"{added} (PERSON) Wrote the first program." in record.new and record.is_changed
        assert len(record.removed) > 3
        assert all(name in record.old for name in record.removed)
    n_calls = model_index.server.count()
    assert trial.sample and trial.sample.n_calls == n_calls and trial.sample.cost
    assert trial.backfill and trial.backfill.n_calls == n_calls * trial.n_records // 2
    assert trial.backfill.cost == pytest.approx(trial.sample.cost * trial.n_records / 2, rel=0.01)
    assert trial.estimate and trial.estimate.n_cached >= 2
    assert table_bytes(Root(model_index.root.path)) == before


def test_a_backfill_does_not_pay_for_the_sample_again(model_index: ModelIndex) -> None:
    model_index.change_prompt("community_report")
    trial = try_stage(model_index.root, STAGES["community_reports"], 4)
    assert model_index.server.count("report") == len(trial.records) == 4
    run_index(Root(model_index.root.path))
    assert model_index.server.count("report") == trial.n_records
    assert trial.estimate and trial.estimate.n_calls == trial.n_records - 4


@pytest.mark.parametrize(
    ("stage", "setting"),
    [
        ("extracted_graph", "extraction: {max_entities_per_sentence: 2}"),
        ("summarized_descriptions", "descriptions: {max_sentences: 1}"),
        ("community_reports", "reports: {max_input_tokens: 200}"),
    ],
)
def test_the_embedded_engine_can_be_tried_too(built: Root, stage: str, setting: str) -> None:
    settings = "storage: {n_buckets: 2}\n"
    (built.path / "settings.yaml").write_text(settings)
    fresh = try_stage(Root(built.path), STAGES[stage], 50)
    assert fresh.made_by == EMBEDDED and fresh.sample is None and not fresh.changes
    assert not any(record.is_changed for record in fresh.records)
    (built.path / "settings.yaml").write_text(settings + setting)
    trial = try_stage(Root(built.path), STAGES[stage], 50)
    assert len(trial.changes) == 1 and trial.records
    assert any(record.is_changed for record in trial.records)


def test_stale_stages_above_are_shown_and_the_sample_reads_their_present_results(built: Root, call: Call) -> None:
    (built.path / "settings.yaml").write_text("storage: {n_buckets: 2}\ntext_units: {size: 200}\n")
    shown = call("--root", built.path, "try", "extraction", "--sample", "1", "--all").out
    assert "  stale above it: text_units: text_units.size: 1200 -> 200\n  the sample reads the present results" in shown
    assert "its prompts, model, settings and code are those" not in shown and "\nunchanged:\n" in shown
    assert try_stage(Root(built.path), STAGES["community_reports"], 1).stale_above[:2] == (
        "text_units: text_units.size: 1200 -> 200",
        "extracted_graph: text_units stale",
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Root:
    root = built_root(tmp_path_factory.mktemp("built") / "root")
    return root


def test_the_command_shows_two_columns_and_costs(model_index: ModelIndex, call: Call) -> None:
    model_index.change_prompt("summarize_descriptions")
    model_index.script = lambda request: "A new summary." if request.kind == "summary" else None
    shown = call("--root", model_index.root.path, "try", "descriptions", "--sample", "2").out
    assert "difference of prompt summarize_descriptions:\n" in shown and "\n  +Be brief.\n" in shown
    assert (
        "  prompt summarize_descriptions changed\n" in shown and " | NEW\n" in shown and " | A new summary.\n" in shown
    )
    assert "2 of 2 changed" in shown and "does not pay for them again" in shown
    again = json.loads(call("--root", model_index.root.path, "try", "descriptions", "--sample", "2", "--json").out)
    assert [record["new"] for record in again["records"]] == ["A new summary."] * 2
    assert again["sample"]["n_calls"] == 0 and again["sample"]["n_cached"] == 2
    assert again["backfill"]["n_calls"] >= again["n_records"] > 2
