"""Asking with filters on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_pipeline.settings_file import render_settings
from graphrag_pipeline.storage.snapshots import SnapshotStore
from graphrag_pipeline_tests import small_index
from graphrag_pipeline_tests.test_cli import Outcome, assert_one_line_error, call

__all__ = ["call"]

Call = Callable[..., Outcome]
QUESTION = "Whom did Bob Cratchit love and who haunted Scrooge?"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("asked")
    (root / "settings.yaml").write_text(render_settings(), encoding="utf-8")
    SnapshotStore(root).point_at(small_index.freeze(root).id)
    return root


def test_filters_hold_for_an_answer_and_for_what_strategies_would_pick(root: Path, call: Call) -> None:
    ask = ("--root", str(root), "query", QUESTION, "--filter", "title in a.txt,c.txt", "--filter", "path!=c.txt")
    result = json.loads(call(*ask, "--json").out)
    assert {citation["document_title"] for citation in result["citations"]} == {"a.txt"}
    assert result["selection"]["filters"] == ["title in a.txt,c.txt", "path!=c.txt"]
    assert {pick["document"] for pick in json.loads(call(*ask, "--explain", "--json").out)["picks"]} == {"a.txt"}


def test_a_filter_that_cannot_be_answered_is_one_line(root: Path, call: Call) -> None:
    outcome = call("--root", str(root), "query", QUESTION, "--filter", "tittle=a.txt")
    assert_one_line_error(outcome, "no field 'tittle'; did you mean 'title'?")


def test_filters_have_an_option_of_their_own(root: Path, call: Call) -> None:
    outcome = call("--root", str(root), "query", QUESTION, "--option", "filters=[a]")
    assert outcome.status == 2 and "has an option or argument of its own" in " ".join(outcome.err.split())


def test_auto_says_on_stderr_which_method_it_picked_and_why(root: Path, call: Call) -> None:
    outcome = call("--root", str(root), "query", "Who is Marley?", "--method", "auto")
    assert outcome.out == call("--root", str(root), "query", "Who is Marley?").out
    assert outcome.err == "local search: the question names MARLEY\n"


@pytest.mark.parametrize("method", ["drift", "lazy"])
def test_the_other_methods_answer_with_where_it_stands(root: Path, call: Call, method: str) -> None:
    out = call("--root", str(root), "query", "Who haunted Scrooge?", "--method", method).out
    assert "Marley haunted Scrooge. [" in out and "a.txt, characters 0-23" in out
