"""Questions generated from the corpus: personas, tasks, questions of both kinds, and the evidence of local ones."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.generated_questions import generate_questions, read_generated, read_tasks
from graphrag_pipeline.evaluation.questions import find_evidence
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.prompts import load_prompt
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.models.model_index import benchmark, open_with_model


def test_questions_come_from_tasks_in_turn_and_local_ones_carry_evidence(index: GraphIndex, tmp_path: Path) -> None:
    with running_model_server(benchmark) as server:
        asking = open_with_model(index, tmp_path, server)
        found = generate_questions(asking, 10)
        assert generate_questions(asking, 10) == found
        n_calls = server.count()
    assert len({q.question for q in found}) == 10 and n_calls == 1 + 8, "one call for each kind of each task"
    assert [q.kind for q in found].count("global") == 5 and {q.kind for q in found} == {"global", "local"}
    assert all(not q.evidence and q.answers == ("So.",) for q in found if q.kind == "global")
    local = [q for q in found if q.kind == "local"]
    assert all(len(q.evidence) == 1 and q.answers == ("So.",) for q in local)
    assert not find_evidence(index.snapshot, local).unknown


def test_missing_questions_are_requested_again_and_reported(index: GraphIndex, tmp_path: Path) -> None:
    def same(request: ReceivedRequest) -> Any:
        reply = benchmark(request)
        return {"questions": [{"question": "What is it all about?"}]} if reply and "questions" in reply else reply

    with running_model_server(same) as server:
        found = generate_questions(open_with_model(index, tmp_path, server), 4, ["global"])
    assert [q.question for q in found] == ["What is it all about?"]


def test_without_a_model_no_question_is_generated(index: GraphIndex) -> None:
    with pytest.raises(PipelineError, match="a chat model generates questions"):
        generate_questions(index, 1)


def test_bad_questions_are_lost_alone_and_a_reply_without_any_is_refused() -> None:
    listed = [{"question": "Who?", "sources": [2]}, {"question": "Where?", "sources": [9]}, {"question": 3}, "x"]
    assert [q.question for q in read_generated(json.dumps({"questions": listed}), "local", {2: "two"})] == ["Who?"]
    assert len(read_generated(json.dumps({"questions": listed}), "global", {})) == 2
    assert [len(tasks) for tasks in read_tasks('{"personas": [{"persona": "A", "tasks": ["x", 3]}, {"a": 1}]}')] == [1]
    for reply in ("No.", '{"questions": []}', '{"questions": [{"question": ""}]}'):
        with pytest.raises(ReplyFormatError):
            read_generated(reply, "global", {})


@given(st.text(max_size=80))
def test_any_reply_is_read_or_refused(reply: str) -> None:
    for read in (read_tasks, lambda text: read_generated(text, "local", {1: "a"})):
        with contextlib.suppress(ReplyFormatError):
            read(reply)


def test_questions_and_tasks_copied_from_the_prompt_are_dropped() -> None:
    echoes = load_prompt(None, "benchmark_personas").echoes
    copied = {"persona": "who the reader is and what for they read", "tasks": ["a task"]}
    own = {"persona": "A clerk", "tasks": ["a task", "Count the ghosts."]}
    [tasks] = read_tasks(json.dumps({"personas": [copied, own]}), echoes)
    assert [task.task for task in tasks] == ["Count the ghosts."]
    echoes = load_prompt(None, "benchmark_global_questions").echoes
    listed = [{"question": "a question", "answer": "So."}, {"question": "Who?", "answer": "what the data says"}]
    [question] = read_generated(json.dumps({"questions": listed}), "global", {}, echoes)
    assert (question.question, question.answers) == ("Who?", ())
