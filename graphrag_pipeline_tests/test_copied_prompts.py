"""An index by a model that copies its prompt: nothing of the prompt is published, and what is lost is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.inspection.costs import read_costs
from graphrag_pipeline.models.prompts import load_prompt
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.model_server.habits import echo_example, echo_passage
from graphrag_pipeline_tests.support.command_line import Call
from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, make_model_root

EXAMPLE = ("INES CALVO", "BRILL OBSERVATORY", "TARN", "OMAR SECK")
TOLERANT = {"max_failed_share": 1.0}


def copy_prompts(request: ReceivedRequest) -> str | None:
    """Copy the example in every report, description and gleaning, and the passage in every other extraction."""
    if request.kind in ("report", "summary", "gleaning"):
        return echo_example(request.conversation)
    return None


def test_no_text_of_the_prompt_is_published(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with running_model_server(copy_prompts) as server:
        root = make_model_root(
            tmp_path / "root", server.base_url, 2, publishing=TOLERANT, descriptions={"max_joined": 0}
        )
        shown = call("--root", root.path, "index")
        sent = [json.dumps(call.body, sort_keys=True) for call in server.calls]
    assert shown.status == 0, shown.err
    snapshot = root.snapshots.open()
    titles = set(snapshot.table("entities")["title"].to_pylist())
    assert titles and titles.isdisjoint(EXAMPLE)
    report_echoes = load_prompt(None, "community_report").echoes
    reports = snapshot.table("community_reports").to_pylist()
    assert reports
    assert not any(report_echoes.holds(report[name]) for report in reports for name in ("title", "summary"))
    summary_echoes = load_prompt(None, "summarize_descriptions").echoes
    assert not any(map(summary_echoes.holds, snapshot.table("entities")["description"].to_pylist()))
    failures = snapshot.table("failures").to_pylist()
    assert {row["stage"] for row in failures} == {"summarized_descriptions", "community_reports"}
    assert all("prompt" in row["reason"] for row in failures)
    assert len(sent) == len(set(sent)), "no request is repeated unchanged"
    [logged] = read_costs(root)
    assert logged["stages"]["extracted_graph"]["problems"]["entity not named in the text"] > 0
    status = call("--root", root.path, "status", "--no-estimate").out
    for text in (status, shown.err):
        assert "left out or repaired in replies of extracted_graph:" in text and "not named in the text" in text


def test_a_passage_instead_of_a_reply_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)

    def copy_one(request: ReceivedRequest) -> str | None:
        is_first = request.kind == "extraction" and "article_00001" not in request.prompt and "ada" in request.prompt
        return echo_passage(request.conversation) if is_first else None

    with running_model_server(copy_one) as server:
        root = make_model_root(tmp_path / "root", server.base_url, 2, publishing=TOLERANT)
        (root.path / "input" / "ada.txt").write_text("ada lovelace wrote to charles babbage from london.")
        run_index(root)
    [failure] = [
        row for row in root.snapshots.open().table("failures").to_pylist() if row["stage"] == "extracted_graph"
    ]
    assert "no record could be read" in failure["reason"]


def test_a_text_unit_whose_records_are_all_copied_is_asked_once_more_and_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    copied = '("entity"<|>Ines Calvo<|>PERSON<|>She was head.)##("entity"<|>Tarn<|>GEO<|>A place.)<|COMPLETE|>'

    def copy_one(request: ReceivedRequest) -> str | None:
        return copied if request.kind == "extraction" and "grey ferry" in request.prompt else None

    with running_model_server(copy_one) as server:
        root = make_model_root(tmp_path / "root", server.base_url, 2, publishing=TOLERANT)
        (root.path / "input" / "ferry.txt").write_text("Every morning a grey ferry crossed to Kingsmere and Alford.")
        run_index(root)
        [failure] = [
            row for row in root.snapshots.open().table("failures").to_pylist() if row["stage"] == "extracted_graph"
        ]
        asked = [call for call in server.calls if "grey ferry" in json.dumps(call.body) and call.kind == "extraction"]
    assert "none of the 2 records is about the passage, which does not name 'Ines Calvo', 'Tarn'" in failure["reason"]
    assert "asked twice" in failure["reason"] and len(asked) == 2 and asked[0].body != asked[1].body
