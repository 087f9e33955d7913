"""Commands that ask: one question, a conversation, a batch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_pipeline.settings.rendering import render_settings
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.tables import CONTRACT_TABLES
from graphrag_pipeline_tests.support.command_line import Outcome, assert_one_line_error
from graphrag_pipeline_tests.support.corpora import small_index

Call = Callable[..., Outcome]
QUESTION = "Whom did Bob Cratchit love and who haunted Scrooge?"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("asked")
    (root / "settings.yaml").write_text(render_settings(), encoding="utf-8")
    SnapshotStore(root).point_at(small_index.freeze(root).id)
    return root


def test_filters_hold_for_an_answer_and_for_explain(root: Path, call: Call) -> None:
    ask = ("--root", str(root), "query", QUESTION, "--filter", "title in a.txt,c.txt", "--filter", "path!=c.txt")
    result = json.loads(call(*ask, "--json").out)
    assert {citation["document_title"] for citation in result["citations"]} == {"a.txt"}
    assert result["selection"]["filters"] == ["title in a.txt,c.txt", "path!=c.txt"]
    assert {pick["document"] for pick in json.loads(call(*ask, "--explain", "--json").out)["picks"]} == {"a.txt"}


def test_an_older_snapshot_is_queried_by_the_start_of_its_id(root: Path, call: Call) -> None:
    store = SnapshotStore(root)
    other = small_index.freeze(
        root, small_index.contract_tables() | {"covariates": CONTRACT_TABLES["covariates"].empty()}
    )
    ask = ("--root", str(root), "query", QUESTION, "--json")
    assert json.loads(call(*ask, "--snapshot", other.id[:6]).out)["snapshot"] == other.id != store.current()
    assert json.loads(call(*ask).out)["snapshot"] == store.current()
    assert_one_line_error(call(*ask, "--snapshot", "x"), "there is no such snapshot")


def test_a_filter_that_cannot_be_answered_is_one_line(root: Path, call: Call) -> None:
    outcome = call("--root", str(root), "query", QUESTION, "--filter", "tittle=a.txt")
    assert_one_line_error(outcome, "no field 'tittle'; did you mean 'title'?")


@pytest.mark.parametrize(
    ("written", "delimiter"),
    [(",", ","), (";", ";"), ("\t", "\t"), ('"\\t"', "\t"), ("\\t", "\t"), ("tab", "\t"), ("#", "#")],
)
def test_a_delimiter_is_given_as_it_is(root: Path, call: Call, written: str, delimiter: str) -> None:
    ask = ("--root", str(root), "query", QUESTION, "--context-only", "--option", f"column_delimiter={written}")
    assert f"\nid{delimiter}title{delimiter}type" in call(*ask).out


def test_auto_prints_the_method_it_picked_and_why_on_stderr(root: Path, call: Call) -> None:
    outcome = call("--root", str(root), "query", "Who is Marley?", "--method", "auto")
    assert outcome.out == call("--root", str(root), "query", "Who is Marley?").out
    assert outcome.err == "local search: the question names MARLEY\n"


@pytest.mark.parametrize("method", ["drift", "lazy"])
def test_the_other_methods_answer_with_citations(root: Path, call: Call, method: str) -> None:
    out = call("--root", str(root), "query", "Who haunted Scrooge?", "--method", method).out
    assert "Marley **haunted Scrooge**. [" in out and "a.txt, characters 0-23" in out


def test_a_conversation_so_far_is_read_from_a_file(root: Path, call: Call, tmp_path: Path) -> None:
    talk = tmp_path / "talk.jsonl"
    talk.write_text('{"role": "user", "content": "Who is Tiny Tim?"}\n', encoding="utf-8")
    ask = ("--root", str(root), "query", "Who loved him?", "--context-only", "--json")
    [first, *_] = json.loads(call(*ask, "--history", talk).out)["context"]["entities"]
    assert (first["title"], first["match"]) == ("TINY TIM", "name")
    talk.write_text("Who is Tiny Tim?", encoding="utf-8")
    assert_one_line_error(call(*ask, "--history", talk), "line 1: is not a turn")
    assert_one_line_error(call(*ask, "--history", talk, "--method", "basic"), "line 1")


def test_auto_reports_the_options_that_its_method_lacks(root: Path, call: Call) -> None:
    ask = ("--root", str(root), "query", "Who haunted Scrooge?", "--method", "auto", "--strategy", "graph")
    outcome = call(*ask, "--option", "primer_reports=3")
    assert outcome.status == 0
    assert "local search: " in outcome.err and "(ignored, not options of local: primer_reports)" in outcome.err


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
