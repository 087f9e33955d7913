"""Suggested questions: from what the index holds around a conversation, and by a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.question import fold_question
from graphrag_pipeline.query.suggestions.suggesting import lists_names, read_listed
from graphrag_pipeline_tests.model_server import Fault, ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

QUESTION = "Who is Jacob Marley?"


def test_the_strongest_relationship_that_was_not_named_comes_first(carol: GraphIndex) -> None:
    found = carol.suggest_questions(QUESTION)
    assert found.engine == "embedded" and not found.failure and found.snapshot == carol.snapshot.id
    first = found.questions[0]
    assert {record.title for record in first.about} >= {"JACOB MARLEY"} and "jacob marley" in first.question.lower()
    assert len(found.texts) == 5


def test_before_the_first_question_the_top_of_the_index_is_asked_about(carol: GraphIndex) -> None:
    found = carol.suggest_questions()
    assert found.questions[0].question == "Who is SCROOGE?"  # an imported title, as it is written
    assert {record.kind for one in found.questions for record in one.about} == {"entity", "report"}


@pytest.mark.parametrize(
    ("title", "is_list"),
    [
        ("Jacob Marley and Ebenezer Scrooge", True),
        ("Jacob Marley, the ghost, a door and Ebenezer Scrooge", True),
        ("Ebenezer Scrooge", False),
        ("Cold houses and unpaid debts", False),
    ],
)
def test_a_title_of_several_names_is_no_theme(carol: GraphIndex, title: str, is_list: bool) -> None:
    assert lists_names(carol, title) == is_list


def test_examples_ask_about_each_type_before_a_second_one(carol: GraphIndex) -> None:
    asked = [record.title for one in carol.suggest_questions(n=20).questions for record in one.about]
    titles = {one["title"]: one["type"] for one in carol.snapshot.table("entities").to_pylist()}
    types = [titles[title] for title in asked if title in titles]
    assert len(set(types[:3])) == 3


def test_entities_that_are_mentioned_once_come_last(carol: GraphIndex) -> None:
    n_units = {one["title"]: one["frequency"] for one in carol.snapshot.table("entities").to_pylist()}
    found = [one.about for one in carol.suggest_questions(QUESTION, n=20).questions]
    is_rare = [n_units[about[0].title] < 2 for about in found if [one.kind for one in about] == ["entity"]]
    assert is_rare == sorted(is_rare) and len(set(is_rare)) == 2


def test_what_the_conversation_named_is_not_asked_about_again(carol: GraphIndex) -> None:
    history = [("user", QUESTION), ("assistant", "Scrooge's partner."), ("user", "Who is Ebenezer Scrooge?")]
    found = carol.suggest_questions(history=history, n=20)
    pairs = [{record.title for record in one.about} for one in found.questions]
    assert {"JACOB MARLEY", "EBENEZER SCROOGE"} not in pairs
    assert found.texts == carol.suggest_questions("Who is Ebenezer Scrooge?", history[:2], n=20).texts


@given(st.lists(st.sampled_from([QUESTION, "Who is Fred?", "What is Christmas?", "zzz qqq"]), max_size=3), st.data())
def test_suggestions_are_new_different_few_and_about_records(
    carol: GraphIndex, asked: list[str], data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, 20))
    found = carol.suggest_questions(history=[("user", text) for text in asked], n=n)
    folded = [fold_question(text) for text in found.texts]
    assert len(set(folded)) == len(folded) <= n
    assert not set(folded) & {fold_question(text) for text in asked}
    assert all(one.about for one in found.questions)


def test_every_suggested_question_finds_its_records(carol: GraphIndex) -> None:
    suggested = carol.suggest_questions(QUESTION, n=8).questions
    assert suggested
    for one in suggested:
        context = carol.search(one.question, context_only=True).context
        found = {entity.title for entity in context.entities} | {report.title for report in context.reports}
        assert {record.title for record in one.about} <= found, one


@pytest.mark.parametrize("n", [0, 21])
def test_the_number_is_limited(carol: GraphIndex, n: int) -> None:
    with pytest.raises(PipelineError, match=f"{n} suggested questions: ask for 1 to 20"):
        carol.suggest_questions(QUESTION, n=n)


# --------------------------------------------------------------------------------------------------------- by a model


def test_a_model_reads_the_context_and_what_was_asked(small: GraphIndex, tmp_path: Path) -> None:
    seen: list[ReceivedRequest] = []

    def reply(request: ReceivedRequest) -> str:
        seen.append(request)
        return "Here they are:\n- Whom did Marley haunt?\n- Whom did Marley haunt?\n- Who is Scrooge?\n- Why?"

    with running_model_server(reply) as server:
        index = open_with_model(small, tmp_path, server)
        found = index.suggest_questions("Who is Scrooge?", [("user", "Who is Marley?")], n=2)
    assert found.texts == ["Whom did Marley haunt?", "Why?"] and found.engine == "model"
    assert [[record.title for record in one.about] for one in found.questions] == [["MARLEY"], []]
    assert "Marley haunted" in seen[0].prompt and "2 questions" in seen[0].prompt
    assert "Who is Marley?\nWho is Scrooge?" in seen[0].prompt
    assert found.usage.to_dict()["calls"] == 1


def test_a_model_that_fails_is_replaced_and_named(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server([("", Fault("400"))]) as server:
        found = open_with_model(small, tmp_path, server).suggest_questions("Who is Marley?")
    assert found.engine == "embedded" and found.failure and found.questions


@pytest.mark.parametrize(
    "reply",
    ["- A?\n- B?", "1. A?\n2) B?", '* **A?**\n* "B?"', '{"questions": ["A?", "B?"]}', '["A?", "B?"]', "A?\nB?\n"],
)
def test_lists_of_every_kind_are_read(reply: str) -> None:
    assert read_listed(reply) == ("A?", "B?")


@pytest.mark.parametrize("reply", ["", "I cannot help.", "{}", "- \n-"])
def test_a_reply_without_questions_is_refused(reply: str) -> None:
    with pytest.raises(ReplyFormatError, match="no list of questions"):
        read_listed(reply)


def test_microsofts_prompt_works_under_its_own_name(small: GraphIndex, tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    file = tmp_path / "prompts" / "question_gen_system_prompt.txt"
    file.write_text("List {question_count} questions about\n{context_data}\nmy own words", encoding="utf-8")
    prompts: list[str] = []
    with running_model_server(lambda request: prompts.append(request.prompt) or "- Why?") as server:
        assert open_with_model(small, tmp_path, server).suggest_questions("Who is Marley?").texts == ["Why?"]
    assert "my own words" in prompts[0]
