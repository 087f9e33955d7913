"""`settings show`: values with their sources, and options of earlier releases."""

from __future__ import annotations

import json
from pathlib import Path

from graphrag_pipeline_tests.support.command_line import Call


def test_settings_show_names_sources_and_options_that_are_gone(tmp_path: Path, call: Call) -> None:
    (tmp_path / "settings.yaml").write_text("text_units: {size: 800, min_fill: 0.5}\n", encoding="utf-8")
    shown = call("--root", tmp_path, "settings", "show", "text_units")
    assert shown.out.startswith("text_units.size: 800  (line 1; default 1200)  ") and shown.out.count("\n") == 1
    assert "text_units.min_fill is an option of an earlier release and does nothing now" in shown.err
    values = json.loads(call("--root", tmp_path, "settings", "show", "text_units", "--all", "--json").out)
    assert len(values["options"]) > 5 and values["ignored"] == ["text_units.min_fill"]
    wrong = call("--root", tmp_path, "settings", "show", "text_unit")
    assert wrong.status == 1 and "did you mean 'text_units'?" in wrong.err
