"""`tune` with models of small windows, through HTTP: prompts fit, or are refused with figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.engines.model.tuning.adoption import root_with
from graphrag_pipeline.inspection.extraction_room import count_extraction_prompt, find_extraction_room
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.tuned_sets import need_set
from graphrag_pipeline.settings.file import set_options
from graphrag_pipeline_tests.model_server import ModelServer, running_model_server
from graphrag_pipeline_tests.support.command_line import Call, assert_one_line_error
from graphrag_pipeline_tests.support.models.model_roots import make_model_root
from graphrag_pipeline_tests.support.thoroughness import usually

STORY = (
    "Maud Harlan of Kestrel met Piet Maas in Brantwick. Piet Maas sold the ship Halcyon to Maud Harlan and went home. "
    "The captain of the Halcyon was Joan Velde, a friend of Piet Maas from Lunn. Joan Velde praised Maud Harlan. "
)


def make_root(path: Path, server: ModelServer, window: int | str | None) -> Path:
    root = make_model_root(path, server.base_url, 0, chat_model={"context_window": window}).path
    for number in range(8):
        (root / "input" / f"{number}.txt").write_text(f"Story {number}. {STORY * 8}", encoding="utf-8")
    return root


def set_option(root: Path, section: str, key: str, value: Any) -> None:
    path = root / "settings.yaml"
    path.write_text(set_options(path.read_text(encoding="utf-8"), {(section, key): value}), encoding="utf-8")


@pytest.mark.parametrize("window", usually([3000, "read", None], 3000))
def test_a_set_for_a_small_window_fits_it(tmp_path: Path, call: Call, window: int | str | None) -> None:
    dialect = "llama.cpp" if window else "openai"  # the latter tells its window only when it refuses a prompt
    with running_model_server(dialect=dialect, max_context_tokens=3000) as server:
        root = make_root(tmp_path / "root", server, window)
        set_option(root, "text_units", "size", 600)
        found = json.loads(call("--root", root, "tune", "--yes", "--json", "--name", "small", "--examples", "6").out)
        assert server.count("corpus") + server.count("types") + server.count("scale") == 3 + (window is None)
        room = find_extraction_room(Root(root))
        assert room and room.window == 3000
        n_prompt = count_extraction_prompt(root_with(Root(root), need_set(root, "small")))
        assert room.fits(n_prompt) and 0 < len(found["examples"]) < 6
        assert any("of 6 examples fit: with all, the extraction prompt of" in remark for remark in found["remarks"])
        assert call("--root", root, "tune", "adopt", "small").status == 0


def test_a_set_that_does_not_fit_is_shown_tried_with_a_warning_and_never_adopted(tmp_path: Path, call: Call) -> None:
    with running_model_server() as server:
        root = make_root(tmp_path / "root", server, None)
        call("--root", root, "tune", "--yes", "--size", "7", "--name", "large")
        assert "does not fit" not in call("--root", root, "tune", "show", "large").out
        set_option(root, "chat_model", "context_window", 3000)
        assert "take " in call("--root", root, "tune", "show", "large").out.partition("does not fit")[2]
        tried = call("--root", root, "tune", "try", "large", "--sample", "1", "--yes")
        assert tried.status == 0 and "warning: the set `large` does not fit" in tried.err
        refused = call("--root", root, "tune", "adopt", "large")
        assert_one_line_error(refused, "`large` is not adopted", "the window of test-chat (3,000 tokens)")
        assert not Root(root).settings.tuning.adopted
        set_option(root, "chat_model", "context_window", 16000)
        assert call("--root", root, "tune", "adopt", "large").status == 0


def test_a_window_without_room_for_any_tuned_prompt_costs_nothing(tmp_path: Path, call: Call) -> None:
    with running_model_server() as server:
        root = make_root(tmp_path / "root", server, 2048)
        refused = call("--root", root, "tune", "--yes")
        assert_one_line_error(refused, "no tuned prompt would fit", "Nothing was sent; set text_units.size to ")
        assert not server.calls


def test_an_unknown_window_is_said(tmp_path: Path, call: Call) -> None:
    with running_model_server() as server:
        root = make_root(tmp_path / "root", server, None)
        call("--root", root, "tune", "--yes", "--name", "one", "--examples", "0")
        shown = call("--root", root, "tune", "adopt", "one").out
    assert "the window of test-chat is not known, so nothing was checked" in shown


def test_hints_name_the_root_that_the_user_named(tmp_path: Path, call: Call) -> None:
    with running_model_server() as server:
        root = make_root(tmp_path / "root", server, None)
        assert f"run `graphrag-pipeline --root {root} tune`" in call("--root", root, "tune", "list").out
        shown = call("tune", "--root", root, "--yes", "--name", "one", "--examples", "0").out
        assert f"graphrag-pipeline --root {root} tune try one" in shown
