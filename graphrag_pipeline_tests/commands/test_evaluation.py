"""`evaluate` on the command line, and its job."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
import yaml

import graphrag_pipeline
from graphrag_pipeline.defs.jobs.evaluation import build_evaluation_job
from graphrag_pipeline.evaluation.figures_store import name_answers
from graphrag_pipeline.evaluation.questions import read_gold
from graphrag_pipeline.inspection.index_reports import report_ledger
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.command_line import Outcome, assert_one_line_error
from graphrag_pipeline_tests.support.models.model_index import benchmark
from graphrag_pipeline_tests.support.two_snapshots import _indexed_twice, first_of, root

__all__ = ["_indexed_twice", "root"]

Call = Callable[..., Outcome]
GOLD = '{"question": "Who carried Tiny Tim home?", "evidence": ["two.txt"]}\n'
DELETED = '{"question": "With whom did Fezziwig dance?", "evidence": ["three.md"]}\n'


@pytest.fixture
def gold(root, tmp_path: Path) -> Path:
    (root.path / "gold.jsonl").write_text(GOLD + DELETED, encoding="utf-8")
    return root.path / "gold.jsonl"


def test_figures_of_two_snapshots_are_shown_side_by_side(root, gold: Path, call: Call) -> None:
    first = first_of(root)
    outcome = call("--root", root.path, "evaluate", gold, "--methods", "bm25,local:graph", "--against", first[:8])
    assert outcome.status == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["method", "recall@5", "all-evidence@5", "ms"]
    assert lines[1].startswith("bm25         0.500 [0.013, 0.987]  ") and lines[2].startswith("local:graph ")
    change = lines[lines.index(f"bm25 minus {first}: mean difference, questions won, lost, tied, sign test") + 1]
    assert change.split() == ["recall@5", "-0.500", "[-1.000,", "+0.000]", "0", "1", "1", "p", "1.000"]
    assert lines[-1].endswith(f"compared with {first}") and "exact for shares" in lines[-2]
    assert "line 2: 'three.md'" in outcome.err
    kept = {path.parent.name for path in (root.path / "evaluations").glob("*/retrieval-*.json")}
    assert kept == {first, root.snapshots.current()}


def test_json_has_every_default_method(root, gold: Path, call: Call) -> None:
    record = json.loads(call("--root", root.path, "evaluate", gold, "--json").out)
    assert [row["method"] for row in record["figures"]][:3] == ["bm25", "vector", "basic"] and len(
        record["figures"]
    ) == 10
    assert record["snapshot"] == root.snapshots.current() and record["unknown_evidence"]


ANSWERED = [
    {"question": "Who carried Tiny Tim home?", "evidence": ["two.txt"], "answer": "Bob Cratchit"},
    {"question": "Which quasar did Zanzibar photograph?", "answer": "unanswerable"},
]


@pytest.fixture
def answered(root) -> Path:
    path = root.path / "answered.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ANSWERED), encoding="utf-8")
    return path


def test_answers_are_measured_beside_retrieval_and_compared_with_another_method(
    root, answered: Path, call: Call
) -> None:
    ask = ("--root", root.path, "evaluate", answered, "--methods", "local,C0")
    outcome = call(*ask, "--against", "local:depth_first")
    assert outcome.status == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[1].startswith("local   1.000 [0.025, 1.000]") and lines[2] == "1 question with evidence"
    assert lines[4].split("  ")[1] == "token F1" and [line.split()[0] for line in lines[5:7]] == ["local", "C0"]
    assert "local minus local:depth_first: mean difference, questions won, lost, tied, sign test" in lines
    record = json.loads(call(*ask, "--against", "local:depth_first", "--json").out)
    assert record["against"] == "local:depth_first" and len(record["answers_against"]) == 2
    estimates = record["answers"][0]["estimates"]
    assert estimates["contained"]["mean"] == estimates["declined_rightly"]["mean"] == 1
    assert estimates["contained"]["method"] == "exact" and estimates["covered_claims"]["mean"] is None
    figures = ["token F1", "ROUGE-L", "contained", "in first", "in three"]
    assert [row["figure"] for row in record["differences"]["C0"]] == figures
    without = call(*ask[:4], "--methods", "local", "--no-answers")
    assert "token F1" not in without.out and "recall@5" in without.out


def test_answers_of_two_snapshots_are_compared_and_stored(root, answered: Path, call: Call) -> None:
    first = first_of(root)
    shown = call("--root", root.path, "evaluate", answered, "--methods", "basic", "--against", first[:8])
    assert shown.status == 0 and "contained         +0.000 " in shown.out
    stored = {path.parent.name: path for path in (root.path / "evaluations").glob("*/answers-*.json")}
    assert set(stored) == {first, root.snapshots.current()}
    assert "Cratchit" not in stored[first].read_text(encoding="utf-8"), "figures hold no text"
    again = call("--root", root.path, "evaluate", answered, "--methods", "basic", "--against", first[:8])
    assert again.out.splitlines()[-4:] == shown.out.splitlines()[-4:]


def test_a_model_judges_answers_only_on_request_and_its_calls_are_booked(root, answered: Path, call: Call) -> None:
    with running_model_server() as server:
        settings = yaml.safe_load((root.path / "settings.yaml").read_text())
        settings |= {"chat_model": {"model": "test-chat", "base_url": server.base_url}, "answers": {"engine": "model"}}
        (root.path / "settings.yaml").write_text(yaml.safe_dump(settings))
        ask = ("--root", root.path, "evaluate", answered, "--methods", "basic")
        free = call(*ask)
        assert "2 questions have reference answers; a model answers them, which costs money" in free.err
        assert "token F1" not in free.out and server.count() == 0
        unjudged = call(*ask, "--answers", "--no-judge")
        assert "covered claims" not in unjudged.out and server.count() == 2
        judged = call(*ask, "--answers")
    assert judged.status == 0 and "covered claims" in judged.out and "faithfulness" in judged.out, judged.err
    assert "basic: judgements took " in judged.out
    runs = report_ledger(Root(root.path)).runs
    assert sum(run.n_calls for run in runs) == server.count() and {run.about for run in runs} == {"answers"}


def test_questions_are_generated_into_a_file_and_compared(root, call: Call, tmp_path: Path) -> None:
    written = tmp_path / "generated.jsonl"
    with running_model_server(benchmark) as server:
        settings = yaml.safe_load((root.path / "settings.yaml").read_text())
        settings |= {"chat_model": {"model": "test-chat", "base_url": server.base_url}, "answers": {"engine": "model"}}
        (root.path / "settings.yaml").write_text(yaml.safe_dump(settings))
        outcome = call("--root", root.path, "evaluate", written, "--generate", "3", "--kind", "local")
        assert (outcome.status, outcome.out) == (0, f"wrote 3 questions to {written}\n"), outcome.err
        assert_one_line_error(call("--root", root.path, "evaluate", written, "--generate", "3"), "is not overwritten")
        assert call("--root", root.path, "evaluate", written, "--methods", "basic").status == 0, (
            "they are gold questions"
        )
        compared = call("--root", root.path, "evaluate", written, "--compare", "C0", "SS", "--json")
    assert compared.status == 0, compared.err
    record = json.loads(compared.out)
    assert record["n_questions"] == 3 and [row["name"] for row in record["conditions"]] == ["C0", "SS"]
    assert list((root.path / "evaluations").glob("*/comparison-*.json"))
    runs = report_ledger(Root(root.path)).runs
    assert [run.about for run in runs] == ["questions", "comparison"]
    assert sum(run.n_calls for run in runs) == server.count()


def test_an_evaluation_error_is_one_line(root, gold: Path, call: Call, tmp_path: Path) -> None:
    ask = ("--root", root.path, "evaluate")
    assert_one_line_error(call(*ask), "no question file", "publishing.golden_questions")
    assert_one_line_error(call(*ask, gold, "--methods", "magic"), "no way to answer is called 'magic'")
    assert_one_line_error(call(*ask, gold, "--k", "0"), "k is 0")
    assert_one_line_error(
        call(*ask, gold, "--against", "zzz"), "there is no such snapshot", "no way to answer is called 'zzz'"
    )
    assert_one_line_error(call(*ask, gold, "--answers"), "no question has a reference answer")
    assert_one_line_error(call(*ask, gold, "--compare", "C0", "C1"), "set `chat_model.model`")


def run_job(root, **config) -> dict[str, dg.MetadataValue]:
    with dg.DagsterInstance.ephemeral() as instance:
        result = build_evaluation_job(root).execute_in_process(run_config=config, instance=instance)
    [output] = [e.step_output_data for e in result.all_events if e.is_successful_output]
    return dict(output.metadata)


def test_figures_of_answers_have_another_name_if_a_prompt_or_an_option_changes(root, answered: Path) -> None:
    questions = read_gold(answered)
    settings = {"chat_model": {"model": "test-chat"}, "answers": {"engine": "model"}}
    (root.path / "settings.yaml").write_text(yaml.safe_dump(settings))
    first = name_answers(questions, False, Root(root.path))
    assert name_answers(questions, True, Root(root.path)) != first == name_answers(questions, False, Root(root.path))
    (root.path / "prompts" / "local_search_answer.txt").write_text("Mine: {context_data}")
    second = name_answers(questions, False, Root(root.path))
    (root.path / "settings.yaml").write_text(yaml.safe_dump({**settings, "local_search": {"top_k_entities": 3}}))
    assert len({first, second, name_answers(questions, False, Root(root.path))}) == 3


def test_the_job_shows_figures_as_a_table_and_as_numbers(root, gold: Path) -> None:
    shown = run_job(root, questions="gold.jsonl", methods=["basic"], k=2)
    assert shown["recall@2 basic"].value == 0.5 and shown["unknown evidence"].value == 1
    assert "basic   0.500 [0.013, 0.987]  0.500 [0.013, 0.987]" in shown["figures"].value
    assert "with reference answers" not in shown["figures"].value and "exact for shares" in shown["figures"].value


def test_the_job_books_what_a_judge_costs(root, answered: Path) -> None:
    with running_model_server() as server:
        settings = yaml.safe_load((root.path / "settings.yaml").read_text())
        settings |= {"chat_model": {"model": "test-chat", "base_url": server.base_url}}
        (root.path / "settings.yaml").write_text(yaml.safe_dump(settings))
        shown = run_job(root, questions="answered.jsonl", methods=["basic"], answers=True)
    assert shown["faithfulness basic"].value == 1 and shown["failed judgements"].value == 0
    [booked] = report_ledger(Root(root.path)).runs
    assert booked.about == "evaluation_job" and booked.n_calls == server.count() > 0


def test_python_measures_what_the_command_measures(root, answered: Path, call: Call) -> None:
    found = graphrag_pipeline.evaluate_index(root, answered, ["basic"], against="local:graph")
    printed = call(
        "--root", root.path, "evaluate", answered, "--methods", "basic", "--against", "local:graph", "--json"
    )
    record = json.loads(printed.out)
    assert found.against == "local:graph" and found.snapshot == record["snapshot"]
    assert found.to_dict()["answers"][0]["estimates"]["f1"] == record["answers"][0]["estimates"]["f1"]
    assert [one.figure for one in found.differences()["basic"]][:2] == ["recall@5", "all-evidence@5"]
