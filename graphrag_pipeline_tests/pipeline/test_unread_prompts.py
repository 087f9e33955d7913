"""Edited prompts that no model gets are named, with the setting that decides."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from graphrag_pipeline.models import prompts
from graphrag_pipeline.pipeline.open_work import list_former_prompts, list_long_text_units, list_unread_prompts
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline_tests.support.command_line import Call
from graphrag_pipeline_tests.support.roots import CAROL, make_root

MODEL = "chat_model:\n  model: test-chat\n"


@pytest.mark.parametrize(
    ("prompt", "settings", "reason"),
    [
        ("community_report", "", "`reports.engine` is embedded, which reads no prompt; set it to model"),
        ("community_report", MODEL + "reports: {engine: model}\n", ""),
        ("extract_claims", MODEL + "extraction: {engine: model}\n", "`extraction.has_claims` is false"),
        (
            "resolve_entities",
            MODEL + "resolution: {engine: model, rules: [alias]}\n",
            "`resolution.rules` has no verdict",
        ),
        ("rate_report", "", "`rating.engine` is embedded"),
        ("local_search_answer", "", "`answers.engine` is embedded"),
        ("local_search_answer", MODEL + "answers: {engine: model}\n", ""),
    ],
)
def test_an_edited_prompt_that_no_model_gets_is_named(tmp_path: Path, prompt: str, settings: str, reason: str) -> None:
    root = make_root(tmp_path, CAROL, settings)
    assert list_unread_prompts(root) == []
    path = root.path / "prompts" / f"{prompt}.txt"
    path.write_text(path.read_text(encoding="utf-8").replace("\n", "\r\n"), encoding="utf-8")
    assert list_unread_prompts(root) == [], "another end of line is not an edit"
    path.write_text(path.read_text(encoding="utf-8") + "\nWrite for engineers.\n", encoding="utf-8")
    lines = list_unread_prompts(root)
    assert len(lines) == bool(reason)
    assert all(line.startswith(f"edited but not used: prompts/{prompt}.txt: {reason}") for line in lines)


def test_text_units_of_more_than_2000_tokens_are_named(tmp_path: Path, call: Call) -> None:
    root = make_root(tmp_path, CAROL, "text_units: {size: 2000, aggregation_target: 2001, aggregation_max: 3000}\n")
    [line] = list_long_text_units(root)
    assert line.startswith("`text_units.aggregation_target` is 2,001 tokens: above 2,000, ")
    assert line in call("status", "--root", root.path).out


def test_index_and_status_say_so(tmp_path: Path, call: Call) -> None:
    root = make_root(tmp_path, CAROL, "storage:\n  n_buckets: 1\n")
    with (root.path / "prompts" / "community_report.txt").open("a", encoding="utf-8") as file:
        file.write("\nWrite for engineers.\n")
    line = "edited but not used: prompts/community_report.txt: `reports.engine` is embedded"
    assert line in call("index", "--root", root.path).err
    assert line in call("status", "--root", root.path).out
    assert "community_report" in str(json.loads(call("status", "--json", "--root", root.path).out)["unread_prompts"])


def test_a_default_of_an_earlier_release_stays_and_is_named(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_root(tmp_path, CAROL, MODEL + "extraction: {engine: model}\n")
    path, stage = root.path / "prompts" / "extract_graph.txt", STAGES["extracted_graph"]
    former = "The default of a release before. {input_text}\n"
    path.write_text(former.replace("\n", "\r\n"), encoding="utf-8")
    monkeypatch.setitem(prompts.FORMER_DEFAULTS, "extract_graph", {hashlib.sha256(former.encode()).hexdigest()})
    version = root.code_of(stage)
    said = "note: default prompt of an earlier release: prompts/extract_graph.txt: "
    assert said in call("--root", root.path, "status").out
    assert not [line for line in list_unread_prompts(make_root(tmp_path / "b", CAROL, "")) if "extract" in line]
    path.unlink()
    adopted = Root(root.path)
    assert list_former_prompts(adopted) == [] and adopted.code_of(stage) != version
