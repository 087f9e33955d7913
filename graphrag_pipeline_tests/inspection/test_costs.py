"""Paid costs of an index, and limits on them."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import yaml

from graphrag_pipeline.inspection.costs import (
    StageEstimate,
    append_costs,
    costs_logged,
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


def test_calls_of_commands_have_a_cost_line_that_adds_up(model_index: ModelIndex, call: Call) -> None:
    root = model_index.root
    spent_before, [indexed] = root.models.spending.total(), read_costs(root)
    settings = yaml.safe_load((root.path / "settings.yaml").read_text())
    settings |= {"answers": {"engine": "model"}}
    (root.path / "settings.yaml").write_text(yaml.safe_dump(settings))
    (root.path / "asked.txt").write_text("Who leads the talks?\nWhat did the critics say?\n")
    model_index.change_prompt("extract_graph")
    for command in (
        ("query", "Who leads the talks?", "--method", "basic"),
        ("query", "Who leads the talks?", "--method", "basic"),  # stored by now: no call, and no line
        ("batch", root.path / "asked.txt", "--method", "basic", "--out", root.path / "answers.jsonl"),
        ("try", "extraction", "--sample", "2"),
    ):
        done = call("--root", root.path, *command)
        assert done.status == 0, done.err
    known, *lines = read_costs(root)
    assert known == indexed and known["command"] == "index"
    logged = [(line["command"], *line["stages"]) for line in lines]
    assert logged == [("query", "basic"), ("batch", "answers"), ("try", "extracted_graph")]
    paid = [figures["actual"] for line in lines for figures in line["stages"].values()]
    spent = model_index.root.models.spending.total()[0] - spent_before[0]
    assert sum(row["prompt_tokens"] + row["completion_tokens"] for row in paid) == spent
    assert sum(row["calls"] for row in paid) == model_index.server.count()
    output = call("--root", root.path, "costs", "--estimates").out.splitlines()
    assert re.fullmatch(r"\S+Z query basic: calls [12], tokens [\d,]+, USD \S+( or more)?", output[-4])
    report = json.loads(call("--root", root.path, "costs", "--json").out)
    assert report["logged"] == [known, *lines]
    runs = [(run["command"], run["about"], run["status"], run["n_calls"]) for run in report["runs"]]
    assert [run[:3] for run in runs] == [
        ("index", "", "done"), ("query", "basic", "done"), ("batch", "answers", "done"),
        ("try", "extracted_graph", "done"),
    ]  # fmt: skip
    assert [run[3] for run in runs[1:]] == [row["calls"] for row in paid]
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


def test_an_unwritable_log_is_reported_and_the_answer_is_kept(tmp_path: Path) -> None:
    root, said = make_root(tmp_path / "root", {}), []
    root.cache_folder.write_text("no folder")
    with costs_logged(root, "query", "local", said.append) as counted:
        [account] = counted.accounts
        account.add_call(10, 5, 0.25, 0.1)
    [line] = said
    assert line.startswith("query: calls 1, tokens 15, USD 0.2500; not in `graphrag-pipeline costs`: ")
    assert "costs.jsonl` cannot be written" in line


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
