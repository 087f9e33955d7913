"""Paid costs of an index, and limits on them."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import yaml

from graphrag_pipeline.inspection.costs import (
    StageEstimate,
    append_costs,
    explain_mixture,
    read_costs,
    render_costs,
)
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline_tests.support.command_line import Call
from graphrag_pipeline_tests.support.models.model_roots import ModelIndex
from graphrag_pipeline_tests.support.roots import built_root, make_root


def test_calls_without_a_known_price_are_not_free(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root", {})
    free, mixed, priced = CallStats(), CallStats(), CallStats()
    free.add_call(10, 5, None, 0.1)
    mixed.add_call(10, 5, None, 0.1)
    mixed.add_call(10, 5, 0.25, 0.1)
    priced.add_call(10, 5, 0.5, 0.1)
    estimates = [StageEstimate("extracted_graph", 1, 0, 10, 5, None)]
    append_costs(root, estimates, {"extracted_graph": free, "graph": mixed, "community_reports": priced})
    time, *lines, spent = render_costs(read_costs(root))
    assert {line.split()[0]: line.partition("USD ")[2] for line in lines} == {
        "community_reports": "0.0000 -> 0.5000",
        "extracted_graph": "not known -> not known",
        "graph": "0.0000 -> 0.2500 or more",
    }
    assert time.endswith("Z")
    assert "lists all paid runs" in spent


def test_calls_of_commands_are_runs_of_the_ledger_that_add_up(model_index: ModelIndex, call: Call) -> None:
    root = model_index.root
    settings = yaml.safe_load((root.path / "settings.yaml").read_text())
    settings |= {"answers": {"engine": "model"}}
    (root.path / "settings.yaml").write_text(yaml.safe_dump(settings))
    (root.path / "asked.txt").write_text("Who leads the talks?\nWhat did the critics say?\n")
    model_index.change_prompt("extract_graph")
    for command in (
        ("query", "Who leads the talks?", "--method", "basic"),
        ("query", "Who leads the talks?", "--method", "basic"),  # stored by now: no call, and no run
        ("batch", root.path / "asked.txt", "--method", "basic", "--out", root.path / "answers.jsonl"),
        ("try", "extraction", "--sample", "2"),
    ):
        done = call("--root", root.path, *command)
        assert done.status == 0, done.err
    report = json.loads(call("--root", root.path, "costs", "--json").out)
    runs = [(run["command"], run["about"], run["status"], run["n_calls"]) for run in report["runs"]]
    assert [run[:3] for run in runs] == [
        ("index", "", "done"), ("query", "basic", "done"), ("batch", "answers", "done"),
        ("try", "extracted_graph", "done"),
    ]  # fmt: skip
    assert sum(run[3] for run in runs[1:]) == model_index.server.count()
    total = report["total"]
    assert total["prompt_tokens"] + total["completion_tokens"] == report["spent_tokens"]
    for group in ("day", "model", "stage", "command"):
        groups = json.loads(call("--root", root.path, "costs", "--by", group, "--json").out)["groups"]
        assert sum(one["n_calls"] for one in groups) == total["n_calls"] and all(one["name"] for one in groups)


def test_parallel_commands_lose_no_line_and_a_truncated_line_loses_only_itself(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root", {})
    (root.cache_folder).mkdir()
    (root.cache_folder / "costs.jsonl").write_bytes(b'{"ended": "2026-11-20T1')

    def ask(number: int) -> None:
        stats = CallStats()
        stats.add_call(number, 0, 0.5, 0.1)
        append_costs(root, (), {"graph": stats})

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tokens = sorted(run["stages"]["graph"]["actual"]["prompt_tokens"] for run in read_costs(root))
    assert tokens == list(range(20))


EXTRACTION = STAGES["extracted_graph"]
CHANGED = "storage: {n_buckets: 2}\nextraction: {max_entities_per_sentence: 2}\n"


def test_a_run_of_one_bucket_warns_if_the_others_come_from_other_settings(tmp_path: Path) -> None:
    root = built_root(tmp_path, stages=("corpus_manifest", "documents", "text_units", "extracted_graph"))
    first, second = EXTRACTION.partitions(root.settings)
    assert explain_mixture(root, EXTRACTION, [first]) == ""
    (tmp_path / "settings.yaml").write_text(CHANGED)
    warning = explain_mixture(Root(tmp_path), EXTRACTION, [first])
    assert f"1 other buckets ({second}) come from other prompts" in warning and "`reindex_stale`" in warning
    assert explain_mixture(Root(tmp_path), EXTRACTION, [first, second]) == ""
    (tmp_path / "settings.yaml").write_text(f"{CHANGED}publishing: {{allow_mixed_prompts: true}}\n")
    assert explain_mixture(Root(tmp_path), EXTRACTION, [first]) == ""
