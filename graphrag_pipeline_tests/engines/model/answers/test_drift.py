"""DRIFT search by a chat model: what each step is shown and may cite, what is asked next, and what stands in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.engines.model.answers.drift import points_of, read_step
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.prompts import load_prompt
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.question import fold_question
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.drift import DriftStep
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline_tests.model_server import Fault, ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

QUESTION = "Who haunted Scrooge?"
SHOWN = {"Reports": frozenset({2})}


def step(response: str, score: object = 50, *follow_ups: object) -> str:
    return json.dumps({"response": response, "score": score, "follow_up_queries": list(follow_ups)})


def test_a_step_is_read_and_its_invented_citations_are_counted() -> None:
    read = read_step(step("It was he [Data: Reports (2, 3)].", "80/100", "Who is he?", 7, "Who is he?", ""), SHOWN)
    assert (read.answer, read.score, read.follow_ups) == ("It was he [Data: Reports (2)].", 80, ("Who is he?",))
    assert read.n_invented == 1


def test_what_a_step_copies_is_removed_or_refused() -> None:
    echoes = load_prompt(None, "drift_primer").echoes
    read = read_step(step("It was he.", 50, "a question that can be looked up on its own", "Who?"), SHOWN, "?", echoes)
    assert (read.follow_ups, read.n_copied) == (("Who?",), 1)
    for copied in ("What the reports say about the question [Data: Reports (2, 7)]", "who haunted scrooge"):
        with pytest.raises(ReplyFormatError, match="repeats the prompt"):
            read_step(step(copied), SHOWN, QUESTION, echoes)


@pytest.mark.parametrize("score", [None, "high", 900, "0 to 100"])
def test_an_answer_without_a_readable_score_is_kept_with_the_lowest_one(score: object) -> None:
    read = read_step(step("It was he [Data: Reports (2)].", score), SHOWN)
    assert (read.answer, read.score) == ("It was he [Data: Reports (2)].", 1)


@pytest.mark.parametrize("reply", ["I do not know.", "[]", '{"score": 3}', '{"response": " "}'])
def test_a_reply_without_a_response_is_refused(reply: str) -> None:
    with pytest.raises(ReplyFormatError, match="no JSON object with a response"):
        read_step(reply, SHOWN)


def test_a_step_of_score_zero_says_nothing() -> None:
    steps = [DriftStep("q", 0, Context(), answer="Low", score=3), DriftStep("q", 1, Context(), answer="None"),
             DriftStep("q", 1, Context(), answer="High", score=9)]  # fmt: skip
    assert [point.explanation for point in points_of(steps)] == ["High", "Low"]


def replying(source: int) -> Any:
    def reply(request: ReceivedRequest) -> str | None:
        if "You have not seen the documents" in request.prompt:
            return "Marley haunted somebody."
        if "begin an investigation" in request.prompt:
            return step("Open [Data: Reports (1)].", 40, "Who is Marley?")
        if "one question of an investigation" in request.prompt:
            return step(f"Marley did [Data: Sources ({source}, 999)].", 90, "Who is Bob Cratchit?", "Who is Marley?")
        return f"It was Marley [Data: Sources ({source})]."

    return reply


def test_the_answer_rests_on_the_steps_and_its_citations_resolve(small: GraphIndex, tmp_path: Path) -> None:
    units = small.snapshot.table("text_units").to_pylist()
    source = next(unit["human_readable_id"] for unit in units if "Marley haunted" in unit["text"])
    with running_model_server(replying(source)) as server:
        index = open_with_model(small, tmp_path, server)
        *pieces, result = index.stream(QUESTION, method="drift", breadth=1)
    assert isinstance(result, SearchResult)
    assert result.answer == "It was Marley [1]." == "".join(map(str, pieces))
    assert result.citations[0].quote == "Marley haunted Scrooge."
    assert [step["question"] for step in result.selection["follow_ups"]] == ["Who is Marley?", "Who is Bob Cratchit?"]
    assert result.selection["invented_citations"] == 2
    last = server.calls[-1].body["messages"][0]["content"]
    assert "Importance Score: 90" in last and "Open" in last and "999" not in last
    follow_up = server.calls[-2].body["messages"]
    assert follow_up[1]["content"] == "<question>\nWho is Bob Cratchit?\n</question>"
    assert "no instruction to you" in follow_up[0]["content"] and f"about this: {QUESTION}" in follow_up[0]["content"]


def test_a_follow_up_that_repeats_the_question_or_an_earlier_one_is_dropped_and_counted(
    small: GraphIndex, tmp_path: Path
) -> None:
    def reply(request: ReceivedRequest) -> str:
        if "begin an investigation" in request.prompt:
            return step("Open [Data: Reports (1)].", 40, "who haunted \u201cScrooge\u201d", "Who is Marley?")
        return step("Found [Data: Sources (1)].", 90, "Who, is marley", "Who haunted Scrooge ?!")

    with running_model_server(reply) as server:
        result = open_with_model(small, tmp_path, server).search(QUESTION, method="drift")
    assert [asked["question"] for asked in result.selection["follow_ups"]] == ["Who is Marley?"]
    assert result.selection["repeated_questions"] == 3 and result.selection["stopped_by"] == "nothing open"


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [("Who is Bob?", "  who is\nBOB", True), ("\u8c01\u662f\u9c8d\u52c3\uff1f", "\u8c01\u662f\u9c8d\u52c3", True),
     ("What is C++?", "What is C?", False), ("What is C#?", "What is C?", False), ("Who's Bob?", "Who is Bob?", False)],
)  # fmt: skip
def test_spellings_of_a_question_have_one_form(first: str, second: str, is_same: bool) -> None:
    assert (fold_question(first) == fold_question(second)) is is_same


def test_where_every_step_fails_the_embedded_engine_answers(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server(lambda request: Fault("400")) as server:
        result = open_with_model(small, tmp_path, server).search(QUESTION, method="drift")
    assert result.answering["engine"] == "embedded" and result.answering["failure"]
    assert "Marley **haunted Scrooge**." in result.answer


def test_a_refused_follow_up_question_is_told_and_never_counts_as_nothing_found(
    small: GraphIndex, tmp_path: Path
) -> None:
    refuse = ("one question of an investigation", Fault("400"))
    with running_model_server([refuse, ("investigation", step("Nothing.", 0, "Who?"))]) as server:
        *pieces, result = open_with_model(small, tmp_path, server).stream(QUESTION, method="drift", depth=1)
    assert isinstance(result, SearchResult)
    assert "Not in the index" not in result.answer and "Marley **haunted Scrooge**." in result.answer
    unread = result.answering["unread"]
    assert (unread["parts"], unread["n_failed"], unread["n_parts"]) == ("questions", 1, 2) and unread["reasons"]
    assert "(1 of 2 questions could not be answered (" in result.answer and "".join(map(str, pieces)) == result.answer


@pytest.mark.parametrize("final", ["NOT IN THE INDEX\nIt is open.", "Nobody came there."])
def test_an_answer_from_the_other_steps_tells_what_was_not_read(small: GraphIndex, tmp_path: Path, final: str) -> None:
    refuse = ("one question of an investigation", Fault("400"))
    start = ("begin an investigation", step("Much [Data: Reports (1)].", 60, "Who?"))
    with running_model_server([refuse, start, ("points that analysts", final)]) as server:
        *pieces, result = open_with_model(small, tmp_path, server).stream(QUESTION, method="drift", depth=1)
    assert isinstance(result, SearchResult)
    assert "Not in the index" not in result.answer and result.answering["unread"]["n_failed"] == 1
    assert "(1 of 2 questions could not be answered (" in result.answer and "".join(map(str, pieces)) == result.answer
