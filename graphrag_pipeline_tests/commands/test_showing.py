"""`show`, `sql` and completion on the command line: in a pipe, in a terminal of a size, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_pipeline.settings.rendering import render_settings
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline_tests.support.command_line import Call, assert_one_line_error, in_terminal
from graphrag_pipeline_tests.support.corpora import small_index

Complete = Callable[[str], set[str]]
HOSTILE = "Marley \x1b]0;owned\x07 haunted Scrooge."


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shown")
    (root / "settings.yaml").write_text(render_settings(), encoding="utf-8")
    SnapshotStore(root).point_at(small_index.freeze(root).id)
    return root


@pytest.mark.parametrize(
    ("kind", "name", "wanted"),
    [
        ("entity", "scrooge", ["SCROOGE", "Relationships (", "a.txt (characters 0 to 23"]),
        ("document", "b.txt", ["number", "Entities (3)", "text unit", small_index.TEXTS["b.txt"]]),
        ("community", "0", ["level", "Entities (", "Content", "Cited"]),
        ("report", "0", ["rank", "Content", "Passages ("]),
    ],
)
def test_a_record_is_shown_as_text_and_as_json(root: Path, call: Call, kind: str, name: str, wanted: list[str]) -> None:
    shown = call("--root", root, "show", kind, name)
    assert shown.status == 0 and not shown.err
    assert [word for word in wanted if word not in shown.out] == []
    assert "\x1b" not in shown.out
    assert "number" in json.loads(call("--root", root, "show", kind, name, "--json").out)


def test_an_older_snapshot_is_shown(root: Path, call: Call) -> None:
    snapshot = str(SnapshotStore(root).current())
    assert call("--root", root, "show", "entity", "fog", "--snapshot", snapshot[:5]).status == 0
    assert_one_line_error(call("--root", root, "show", "entity", "fog", "--snapshot", "x"), "no such snapshot")


def test_a_terminal_gets_wrapped_lines_and_colours_unless_it_wants_none(root: Path) -> None:
    shown = in_terminal(60, "--root", root, "show", "entity", "scrooge")
    assert "\x1b[1mSCROOGE\x1b[0m" in shown
    assert max(len(line) for line in shown.replace("\x1b[", "").splitlines()) < 70
    assert "\x1b" not in in_terminal(60, "--root", root, "show", "entity", "scrooge", NO_COLOR="1")


def test_nothing_that_a_document_holds_is_obeyed_by_the_terminal(tmp_path: Path) -> None:
    tables = small_index.contract_tables()
    place = tables["documents"].schema.get_field_index("text")
    tables["documents"] = tables["documents"].set_column(place, "text", [[HOSTILE] * 3])
    (tmp_path / "settings.yaml").write_text(render_settings(), encoding="utf-8")
    SnapshotStore(tmp_path).point_at(small_index.freeze(tmp_path, tables).id)
    shown = in_terminal(80, "--root", tmp_path, "show", "document", "a.txt")
    assert r"\x1b]0;owned\x07" in shown and "\x07" not in shown
    cell = in_terminal(80, "--root", tmp_path, "sql", "-x", "SELECT text FROM documents LIMIT 1")
    assert r"\x1b]0;owned\x07" in cell and "\x07" not in cell


@pytest.mark.thorough
def test_sql_cuts_nothing_in_a_pipe_and_says_what_it_cuts_in_a_terminal(root: Path, call: Call) -> None:
    query = "SELECT 1 AS n, repeat('word ', 60) AS long"
    assert "word " * 59 + "word" in call("--root", root, "sql", query).out
    cut = in_terminal(80, "--root", root, "sql", query)
    assert "cut to the terminal: long; --vertical, --wide or --json shows all" in cut
    assert max(map(len, cut.splitlines())) <= 90
    assert "word " * 59 + "word" in in_terminal(80, "--root", root, "sql", query, "--wide").replace("\n", "")
    vertical = call("--root", root, "sql", query, "--vertical").out.splitlines()
    assert vertical[:2] == ["row 1 of 1", "n     1"] and vertical[2] == ("long  " + "word " * 60).rstrip()


def test_sql_reads_an_older_snapshot(root: Path, call: Call) -> None:
    snapshot = str(SnapshotStore(root).current())
    query = ("sql", "SELECT count(*) AS n FROM entities", "--json")
    assert json.loads(call("--root", root, *query, "--snapshot", snapshot[:4]).out) == [{"n": 5}]


@pytest.fixture
def complete(call: Call, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """What bash offers for the last word of a line."""

    def complete_line(line: str) -> set[str]:
        monkeypatch.setenv("_GRAPHRAG_PIPELINE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", f"graphrag-pipeline {line}")
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" "))))
        outcome = call()
        assert not outcome.err
        return set(outcome.out.split("\n")) - {""}

    return complete_line


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("show entity Ti", {"Tiny\\ Tim"}),
        ("show entity ti", {"tiNY\\ TIM", "tiny\\ Tim"}),
        ("show document ", {"b.txt", "a.txt", "c.txt"}),
        ("query q --method dr", {"drift"}),
        ("query q --strategy depth", {"depth_first"}),
        ("try comm", {"community_reports"}),
    ],
)
def test_a_shell_completes_names(root: Path, complete: Complete, words: str, offered: set[str]) -> None:
    assert complete(f"--root {root} {words}") == offered


def test_a_shell_completes_snapshots(root: Path, complete: Complete) -> None:
    assert SnapshotStore(root).current() in complete(f"--root {root} show entity x --snapshot ")


def test_a_completion_without_a_root_offers_nothing(
    tmp_path: Path, complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert complete("show entity x") == set()
