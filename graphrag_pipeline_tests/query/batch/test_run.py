"""Batches of questions: in order, independent of each other, and never answered twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.batch.question_files import BatchQuestion
from graphrag_pipeline.query.batch.run import (
    AnswerFile,
    BatchAccount,
    BatchAnswer,
    answer_all,
    answer_into_file,
    answer_keys,
)
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.model_server import Fault, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

WHO = BatchQuestion("Who haunted Scrooge?", "local")
LOVED = BatchQuestion("Whom did Bob Cratchit love?", "basic", id="loved")
BAD = BatchQuestion("Who?", "hybrid")
UNREAD = BatchQuestion("", problem="line 3: is not JSON: '{bad'")


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def without_time(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in ("seconds", "key", "question_key", "id")}


@pytest.mark.parametrize("concurrency", [1, 3])
def test_questions_are_answered_in_order_as_one_by_one(small: GraphIndex, concurrency: int) -> None:
    questions = [f"What of Scrooge and number {n}?" for n in range(30)]
    answered = list(answer_all(small, questions, concurrency))
    assert [one.question.question for one in answered] == questions
    alone = small.search(questions[7], "auto").to_dict()
    assert without_time(answered[7].to_dict()) == without_time(alone)


def test_a_question_that_fails_does_not_stop_the_others(small: GraphIndex) -> None:
    bad, unread, empty, good = answer_all(small, [BAD, UNREAD, "", WHO])
    assert "unknown search method 'hybrid'" in bad.error and bad.result is None
    assert unread.error == UNREAD.problem and "question is empty" in empty.error
    assert good.result is not None and good.result.answer
    assert bad.to_dict() == {
        "key": bad.key, "question_key": BAD.key, "question": "Who?", "method": "hybrid",
        "snapshot": small.snapshot.id, "error": bad.error,
    }  # fmt: skip


def test_an_answer_file_has_one_line_per_question_in_their_order(small: GraphIndex, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    account = answer_into_file(small, [BAD, LOVED, WHO, LOVED], path)
    lines = read(path)
    assert [line["question"] for line in lines] == ["Who?", LOVED.question, WHO.question, LOVED.question]
    assert [line.get("id") for line in lines] == [None, "loved", None, "loved"]
    assert (account.answered, account.kept, account.failed) == (3, 0, 1)
    assert account.to_text().splitlines()[0] == "4 questions: 3 answered, 1 failed"


def test_answers_are_kept_and_failed_questions_are_answered_again(small: GraphIndex, tmp_path: Path) -> None:
    path, reported = tmp_path / "answers.jsonl", list[BatchAnswer]()
    answer_into_file(small, [WHO, BAD], path)
    before = path.read_bytes().splitlines()
    account = answer_into_file(small, [LOVED, BAD, WHO], path, on_answer=reported.append)
    assert [answered.question for answered in reported] == [LOVED, BAD]
    assert (account.answered, account.kept, account.failed) == (1, 1, 1)
    assert path.read_bytes().splitlines()[1:] == [before[1], before[0]]


def test_answers_to_other_questions_stay_after_the_present_ones(small: GraphIndex, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    answer_into_file(small, [WHO, BAD, LOVED], path)
    before = path.read_bytes().splitlines()
    other = BatchQuestion("Who is Tiny Tim?", "local")
    account = answer_into_file(small, [other, LOVED], path)  # the error of BAD is no answer
    lines = path.read_bytes().splitlines()
    assert json.loads(lines[0])["question"] == other.question
    assert lines[1:] == [before[2], before[0]]
    assert (account.answered, account.kept, account.others) == (1, 1, 1)
    assert account.to_text().splitlines()[0].endswith("; 1 answer to another question stays in the file")
    assert answer_into_file(small, [WHO], path).kept == 1, "an answer that stayed is reused"
    assert len(read(path)) == 3


def test_an_answer_by_other_settings_is_replaced_not_added(small: GraphIndex, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    filtered = BatchQuestion(WHO.question, "local", filters=("title=a.txt",))
    answer_into_file(small, [WHO, filtered], path)
    settings = Settings.model_validate({"local_search": {"top_k_entities": 3}})
    account = answer_into_file(GraphIndex(small.snapshot, settings, small.embedder), [WHO], path)
    assert (account.answered, account.others) == (1, 1)
    assert [line["question_key"] for line in read(path)] == [WHO.key, filtered.key]


def test_a_batch_continues_after_a_crash(small: GraphIndex, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    answer_into_file(small, [WHO, LOVED], path)
    whole = path.read_bytes()
    for cut in (len(whole) - 1, whole.index(b"\n") + 5):
        path.write_bytes(whole[:cut])
        account = answer_into_file(small, [WHO, LOVED], path)
        assert (account.answered, account.kept) == (1, 1)
        assert [without_time(line) for line in read(path)] == [
            without_time(json.loads(line)) for line in whole.splitlines()
        ]


@pytest.mark.parametrize("content", ["Who?\n", '{"question": "Who?"}\n', "Who?", '{"key": 1}\n', "[]\n"])
def test_a_file_with_other_content_is_not_changed(small: GraphIndex, tmp_path: Path, content: str) -> None:
    path = tmp_path / "questions.txt"
    path.write_text(content)
    with pytest.raises(PipelineError, match="line 1 is not an answer of a batch; choose another file"):
        answer_into_file(small, [WHO], path)
    assert path.read_text() == content


def test_a_missing_folder_is_an_error_and_is_not_created(small: GraphIndex, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"folder `.*missing` does not exist; create it, or choose another file"):
        answer_into_file(small, [WHO], tmp_path / "missing" / "answers.jsonl")
    assert not list(tmp_path.iterdir())


def test_a_file_that_another_batch_writes_is_refused(small: GraphIndex, tmp_path: Path) -> None:
    with AnswerFile(tmp_path / "answers.jsonl"), pytest.raises(PipelineError, match="another batch is writing it"):
        answer_into_file(small, [WHO], tmp_path / "answers.jsonl")


def test_an_answer_depends_on_question_settings_prompts_and_snapshot(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server() as server:
        with_model = open_with_model(small, tmp_path, server)
        [key] = answer_keys(with_model, [WHO])
        (tmp_path / "prompts").mkdir()
        prompt = with_model.prompt("local_search_answer").text
        (tmp_path / "prompts" / "local_search_answer.txt").write_text(f"{prompt}\nBe kind.")
        [edited] = answer_keys(with_model, [WHO])
    changed = GraphIndex(
        small.snapshot, Settings.model_validate({"local_search": {"top_k_entities": 3}}), small.embedder
    )
    filtered = BatchQuestion(WHO.question, "local", filters=("title=a.txt",))
    with_option = BatchQuestion(WHO.question, "local", options={"top_k_entities": 3})
    plain, same, *others = answer_keys(small, [WHO, BatchQuestion(WHO.question, "local"), LOVED, filtered, with_option])
    assert plain == same
    assert len({plain, *others, *answer_keys(changed, [WHO]), key, edited}) == 7


def test_the_account_has_calls_and_tokens_by_model(small: GraphIndex, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    refused: Callable[[Any], Any] = lambda call: (  # noqa: E731
        Fault("refused") if "haunted" in call.conversation.messages[-1][1] else "Tiny Tim."
    )
    with running_model_server(refused) as server:
        index = open_with_model(small, tmp_path, server)
        account = answer_into_file(index, [WHO, LOVED], path)
    assert (account.answered, account.replaced, account.failed) == (2, 1, 0)
    assert account.usage.by_model["test-chat"].calls >= 1
    assert "1 of them by the embedded engine in place of the model" in account.to_text()
    assert account.to_text().splitlines()[-1].startswith("test-chat: ")
    assert account.to_dict()["usage"]["tokens"] > 0
    with running_model_server(lambda call: "Marley.") as server:
        again = answer_into_file(open_with_model(small, tmp_path, server), [WHO, LOVED], path)
    assert again.kept + again.answered == 2 and again.replaced == 0


def test_each_error_is_listed_once() -> None:
    answered = BatchAnswer(BAD, "k", "s", None, "no such method")
    account = BatchAccount().add(answered).add(answered)
    assert (account.failed, account.errors) == (2, ("no such method",))
