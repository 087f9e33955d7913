"""Commands about the state of a root, its setup and its server."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphrag_pipeline.cli import app
from graphrag_pipeline.commands import serving
from graphrag_pipeline.commands.indexing import _render_failures
from graphrag_pipeline.serve import app as server
from graphrag_pipeline.serve.limits import ServerLimits
from graphrag_pipeline_tests.support.command_line import Call


def test_a_failed_text_unit_is_named_by_its_place_and_with_what_comes_next() -> None:
    place = "stave_1.txt, characters 0 to 5,120"
    failure = {"stage": "extracted_graph", "place": place, "record": "96b9e38e27", "reason": "refused", "reply": ""}
    assert _render_failures([failure]) == [
        "failed extracted_graph: stave_1.txt, characters 0 to 5,120 (96b9e38e): refused",
        "the next `index` asks for these records again",
    ]
    assert _render_failures([]) == []


def failed(record: str, reason: str, stage: str = "text_unit_embeddings") -> dict[str, str]:
    return {"stage": stage, "place": "", "record": record, "reason": reason, "reply": ""}


def test_failures_for_one_reason_are_one_line_with_their_number_and_an_example() -> None:
    too_long = [failed(f"u{n}", f"the text of {n:,} tokens is long: 'Once {n}' (r{n}f)") for n in range(900, 1100)]
    others = [
        failed("u2", "the endpoint can't read it; it isn't text"),
        failed("u3", "the endpoint can't do it; it isn't a list"),
    ]
    assert _render_failures([others[0], *too_long, others[1], failed("Ada", too_long[0]["reason"], "graph")]) == [
        "failed text_unit_embeddings: 200 records, such as u900: the text of 900 tokens is long: 'Once 900' (r900f)",
        "failed text_unit_embeddings: u2: the endpoint can't read it; it isn't text",
        "failed text_unit_embeddings: u3: the endpoint can't do it; it isn't a list",
        "failed graph: Ada: the text of 900 tokens is long: 'Once 900' (r900f)",
        "the next `index` asks for these records again",
    ]


def test_settings_show_names_sources_and_options_that_are_gone(tmp_path: Path, call: Call) -> None:
    (tmp_path / "settings.yaml").write_text("text_units: {size: 800, min_fill: 0.5}\n", encoding="utf-8")
    shown = call("--root", tmp_path, "settings", "show", "text_units")
    assert shown.out.startswith("text_units.size: 800  (line 1; default 1200)  ") and shown.out.count("\n") == 1
    assert "text_units.min_fill is an option of an earlier release and does nothing now" in shown.err
    values = json.loads(call("--root", tmp_path, "settings", "show", "text_units", "--all", "--json").out)
    assert len(values["options"]) > 5 and values["ignored"] == ["text_units.min_fill"]
    wrong = call("--root", tmp_path, "settings", "show", "text_unit")
    assert wrong.status == 1 and "did you mean 'text_units'?" in wrong.err


def test_each_limit_has_the_value_of_its_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[ServerLimits]()
    monkeypatch.setattr(server, "build_app", lambda served, **options: given.append(options["limits"]))
    monkeypatch.setattr(serving, "_listen", lambda *_: None)
    assert CliRunner().invoke(app, ["init", str(tmp_path)]).exit_code == 0
    options = ["--max-running", "3", "--max-waiting", "5", "--timeout", "7", "--max-body", "2000", "--drain", "9"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    result = CliRunner().invoke(app, ["--root", str(tmp_path), "serve", "--port", port, *options])
    assert result.exit_code == 0, result.output
    expected = ServerLimits(max_running=3, max_waiting=5, timeout_s=7, max_body_bytes=2000, drain_s=9, takes_turns=True)
    assert given == [expected]
