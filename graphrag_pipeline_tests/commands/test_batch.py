"""`batch` as a shell runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_pipeline.settings.rendering import render_settings
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline_tests.support.command_line import Outcome, assert_one_line_error
from graphrag_pipeline_tests.support.corpora import small_index

Call = Callable[..., Outcome]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("batch")
    (root / "settings.yaml").write_text(render_settings(), encoding="utf-8")
    SnapshotStore(root).point_at(small_index.freeze(root).id)
    return root


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.txt"
    path.write_text("Who haunted Scrooge?\nWhom did Bob Cratchit love?\n")
    return path


def test_a_file_of_questions_becomes_a_file_of_answers(root: Path, questions: Path, call: Call) -> None:
    out = questions.with_name("answers.jsonl")
    ask = ("--root", root, "batch", questions, "--out", out, "--method", "local", "--filter", "title!=c.txt")
    first, second = call(*ask), call(*ask, "--json")
    assert (first.status, first.out, first.err) == (0, "2 questions: 2 answered\n", "")
    assert json.loads(second.out)["kept"] == 2
    answers = [json.loads(line) for line in out.read_text().splitlines()]
    assert [answer["question"] for answer in answers] == questions.read_text().splitlines()
    assert all(answer["selection"]["filters"] == ["title!=c.txt"] for answer in answers)


def test_without_a_file_answers_are_printed_and_the_account_goes_to_the_errors(
    root: Path, questions: Path, call: Call
) -> None:
    questions.write_text("Who haunted Scrooge?\n" + "?" * 3 + "\n")
    result = call("--root", root, "batch", questions)
    assert result.status == 0 and result.err == "2 questions: 2 answered\n"
    assert [json.loads(line)["question"] for line in result.out.splitlines()] == ["Who haunted Scrooge?", "???"]


def test_a_failed_question_gives_exit_status_1_after_all_were_answered(root: Path, tmp_path: Path, call: Call) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"question": "Who?", "strategy": "best", "method": "local"}\n"Who haunted Scrooge?"\n')
    result = call("--root", root, "batch", file, "--out", tmp_path / "out.jsonl")
    assert result.status == 1 and "Traceback" not in result.err
    head, error, *_ = result.out.splitlines()
    assert head == "2 questions: 1 answered, 1 failed" and "strategy" in error
    failed, answered = (json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines())
    assert "strategy" in failed["error"] and answered["answer"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "hybrid"), "unknown search method 'hybrid'; valid: local"),
        (("--filter", "colour=red"), "documents have no field 'colour'"),
        (("--out", "."), "cannot be written"),
    ],
)
def test_an_error_that_every_question_would_meet_is_reported_once(
    root: Path, questions: Path, call: Call, arguments: tuple[str, ...], words: str
) -> None:
    assert_one_line_error(call("--root", root, "batch", questions, *arguments), words)
