"""Stages that a change makes stale, with old and new values and the cost; no other stage is paid for."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.inspection.costs import read_costs
from graphrag_pipeline.pipeline.data_versions import stage_data_version
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.open_work import measure_lag
from graphrag_pipeline.pipeline.progress import RunObserver
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES
from graphrag_pipeline.pipeline.staleness import StalePartition, find_stale
from graphrag_pipeline.settings.file import set_options
from graphrag_pipeline_tests.bench.articles import write_articles
from graphrag_pipeline_tests.model_server import ReceivedRequest
from graphrag_pipeline_tests.support.command_line import TIMEOUT_S, Call, environment, started
from graphrag_pipeline_tests.support.models.model_roots import ModelIndex, other_reports
from graphrag_pipeline_tests.support.roots import build_tables, put, recluster, table_bytes

SENT = {2: signal.SIGINT, 3: signal.SIGTERM}
"""Signals to send, by the number of extracted text units."""

BELOW_REPORTS = ["community_reports", "report_embeddings", "index_candidate", "index_snapshot"]


def stale(root: Root) -> list[StalePartition]:
    return find_stale(root, detect_input(root))


def versions(root: Root) -> dict[str, str | None]:
    """Data version of every partition of the stages that own tables."""
    return {
        f"{stage.name}/{key}": stage_data_version(root, stage, key)
        for stage in STAGES.values()
        for key in stage.partitions(root.settings)
    }


def test_a_changed_report_prompt_makes_reports_and_later_stages_stale_with_both_hashes(
    model_index: ModelIndex,
) -> None:
    old = model_index.root.prompt("community_report").sha256
    model_index.change_prompt("community_report")
    new = model_index.root.prompt("community_report").sha256
    first, *below = stale(model_index.root)
    assert [item.stage for item in (first, *below)] == BELOW_REPORTS
    assert first.reasons == ("prompt community_report changed",)
    [change] = first.changes
    assert (change.name, change.old, change.new) == ("prompt community_report", old[:16], new[:16])
    assert not any(item.changes for item in below)


def test_a_changed_report_prompt_is_paid_for_reports_and_their_vectors_alone(model_index: ModelIndex) -> None:
    before = versions(model_index.root)
    model_index.change_prompt("community_report")
    model_index.script = other_reports
    report = run_index(model_index.root)
    assert {stage for stage, _ in report.ran} == set(BELOW_REPORTS)
    assert {call.kind for call in model_index.server.calls} == {"report", "embedding"}
    paid = read_costs(model_index.root)[-1]["stages"]
    assert {stage for stage, figures in paid.items() if (figures["actual"] or {}).get("calls")} == set(
        BELOW_REPORTS[:2]
    )
    after = versions(model_index.root)
    changed = {name.partition("/")[0] for name in before if before[name] != after[name]}
    assert changed == set(BELOW_REPORTS[:2])


def test_reports_with_little_new_evidence_are_deferred_until_a_recluster_which_equals_a_rebuild(
    model_index: ModelIndex, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRAPHRAG__REPORTS__REWRITE_SHARE", "0.5")
    root = model_index.root = Root(model_index.root.path)
    build_tables(root, ALL_STAGES)  # the setting changes no prompt: every reply is in the cache
    assert not model_index.server.calls
    write_articles(root.path / "input", 7)
    build_tables(root, ALL_STAGES)
    lag = measure_lag(root)
    assert 0 < lag.n_deferred < lag.n_reports
    assert 0 < lag.largest_new_share <= 0.5
    assert f"deferred {lag.n_deferred} of {lag.n_reports} reports" in call("--root", root.path, "status").out
    assert not stale(root)
    recluster(root)
    assert measure_lag(root).n_deferred == 0
    rebuilt = copy_inputs(root, tmp_path / "rebuilt")
    build_tables(rebuilt)
    assert table_bytes(root) == table_bytes(rebuilt)


def copy_inputs(root: Root, path: Path) -> Root:
    """A new root of the same documents, settings and stored replies."""
    for name in ("settings.yaml", "prompts", "input", "cache"):
        copy = shutil.copytree if (root.path / name).is_dir() else shutil.copy
        path.mkdir(exist_ok=True)
        copy(root.path / name, path / name)
    return Root(path)


def test_a_moved_input_folder_makes_no_model_call(model_index: ModelIndex) -> None:
    path = model_index.root.path
    n_documents = model_index.root.snapshots.open().n_rows("documents")
    os.rename(path / "input", path / "moved")
    (path / "input").mkdir()
    os.rename(path / "moved", path / "input" / "archive")
    assert ("graph", "all") in build_tables(Root(path), ALL_STAGES)
    assert not model_index.server.calls
    paths = Root(path).snapshots.open().table("documents")["path"].to_pylist()
    assert len(paths) == n_documents
    assert all(name.startswith("archive/") for name in paths)


def test_a_moved_root_is_fresh(model_index: ModelIndex, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    os.rename(model_index.root.path, moved)
    assert stale(Root(moved)) == []
    assert not run_index(Root(moved)).ran and not model_index.server.calls


def test_a_stage_below_a_stale_one_names_its_own_changes(model_index: ModelIndex) -> None:
    model_index.change_prompt("extract_graph")
    model_index.change_prompt("community_report")
    reasons = {(item.stage, item.partition): item.reasons for item in stale(model_index.root)}
    assert [key for key in reasons if key[0] == "extracted_graph"] == [
        ("extracted_graph", "000"),
        ("extracted_graph", "001"),
    ]
    above, own = reasons["community_reports", "all"]
    assert above == "graph, summarized_descriptions, communities stale"
    assert own.startswith("prompt community_report changed")
    assert reasons["communities", "all"] == ("graph stale",)


def test_status_shows_old_and_new_hash_and_cost_without_a_call(model_index: ModelIndex, call: Call) -> None:
    model_index.change_prompt("community_report")
    output = call("--root", model_index.root.path, "status").out
    assert "stale community_reports: prompt community_report changed" in output
    assert "model calls of `graphrag-pipeline index`, estimated:" in output
    values = json.loads(call("--root", model_index.root.path, "status", "--json").out)
    reports, embeddings = values["estimates"]
    assert reports["stage"] == "community_reports" and reports["n_calls"] > 0 and reports["cost"] > 0
    assert embeddings["stage"] == "report_embeddings"
    assert values["stale"][0]["changes"][0]["name"] == "prompt community_report"
    unpriced = json.loads(call("--root", model_index.root.path, "status", "--no-estimate", "--json").out)
    assert unpriced["estimates"] == [] and unpriced["stale"] == values["stale"]
    assert not model_index.server.calls


def test_a_changed_setting_of_the_embedding_model_is_named(model_index: ModelIndex) -> None:
    settings = model_index.root.path / "settings.yaml"
    text = set_options(settings.read_text(encoding="utf-8"), {("embedding_model", "batch_max_tokens"): 450})
    settings.write_text(text, encoding="utf-8")
    reasons = {item.stage: item.reasons for item in stale(Root(model_index.root.path))}
    assert reasons["entity_embeddings"] == ("embedding_model.batch_max_tokens: 8000 -> 450",)


class _Lines(RunObserver):
    """Keeps the messages of an index run."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def progress(self, message: str) -> None:
        self.lines.append(message)


def test_an_index_reports_the_progress_of_every_stage(model_index: ModelIndex) -> None:
    model_index.change_prompt("summarize_descriptions")
    observer = _Lines()
    model_index.script = lambda request: "Another summary." if request.kind == "summary" else None
    run_index(model_index.root, observer)
    done = {line.partition(":")[0] for line in observer.lines if " done: " in line}
    assert done == {"summarized_descriptions", "community_reports", "entity_embeddings", "relationship_embeddings",
                    "report_embeddings"}  # fmt: skip


def test_a_background_job_of_a_script_heeds_sigterm_and_ignores_ctrl_c(model_index: ModelIndex) -> None:
    root, server = model_index.root, model_index.server
    model_index.change_prompt("extract_graph")
    put(root.path, "new.txt", "Ada Lovelace wrote to Charles Babbage.")  # its bucket's stages run before extraction
    n_stored, _ = root.models.cache.mean_completion("extraction", "test-chat")

    def send_signals(request: ReceivedRequest) -> None:
        if request.kind == "extraction" and server.count("extraction") in SENT:
            os.kill(process.pid, SENT[server.count("extraction")])

    model_index.script = send_signals
    # As a shell starts `command &` of a script.
    ignoring = ["bash", "-c", "trap '' INT; exec \"$@\"", "bash"]
    program = [*ignoring, sys.executable, "-m", "graphrag_pipeline", "index", "--root", str(root.path)]
    with started(program, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130 and "interrupted: finished work is kept" in errors
    n_paid, _ = root.models.cache.mean_completion("extraction", "test-chat")
    assert n_paid == n_stored + server.count("extraction") + server.count("gleaning")
    assert {call.kind for call in server.calls} == {"extraction", "gleaning"}, "it went no further"
