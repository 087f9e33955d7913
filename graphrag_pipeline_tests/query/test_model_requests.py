"""Answers that repeat the prompt: refused, corrected, replaced, or without the copied sentence; through real HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.engines.model.answers.drift import imagine_answer
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import PROMPT_NAMES, Prompt, load_prompt
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.model_requests import DECLINED, OwnText, read_own_text
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline_tests.model_server import Fault, ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

QUESTION = "Who haunted Scrooge?"
OWN = "Marley haunted Scrooge."
ANSWER_PROMPTS = ("local_search_answer", "basic_search_answer", "global_search_reduce")
COPIED = "You answer the user's question from"


def is_final(request: ReceivedRequest) -> bool:
    return request.prompt.startswith(COPIED)


def copy_prompt(request: ReceivedRequest) -> Any:
    """Copies the prompt in final answers; maps yield a point."""
    if request.kind == "map":
        return {"points": [{"description": "Marley haunted Scrooge [Data: Reports (0)].", "score": 80}]}
    return Fault("echoed-placeholder") if is_final(request) else None


def prompt_of(name: str) -> Prompt:
    assert name in PROMPT_NAMES
    return load_prompt(None, name)


def instructions_of(prompt: Prompt) -> list[str]:
    return [line for line in prompt.text.partition("<data>\n")[0].splitlines() if line.strip() and "{" not in line]


@pytest.mark.parametrize("method", ["local", "basic", "lazy", "global", "drift"])
def test_a_copied_prompt_is_corrected_once_and_then_replaced(small: GraphIndex, tmp_path: Path, method: str) -> None:
    with running_model_server(copy_prompt) as server:
        index = open_with_model(small, tmp_path, server)
        result = index.search(QUESTION, method=method)
    sent = [call.body["messages"] for call in server.calls if call.body]
    first, second = (messages for messages in sent if messages[0]["content"].startswith(COPIED))
    assert len(first) == 2 and "repeats the prompt" in second[-1]["content"]
    assert result.answer.startswith("The model gave no answer (the reply repeats the prompt")
    assert COPIED not in result.answer and "Marley" in result.answer
    assert result.answering["engine"] == "embedded" and "asked twice" in result.answering["failure"]


def test_a_correction_may_give_the_answer(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server([(lambda request: len(request.body["messages"]) > 2, OWN), (is_final, copy)]) as server:
        result = open_with_model(small, tmp_path, server).search(QUESTION)
    assert result.answer.startswith(OWN) and server.count() == 2
    assert result.answering["engine"] == "model" and "copied_from_prompt" not in result.answering


def copy(request: ReceivedRequest) -> str:
    return request.prompt.splitlines()[0]


def test_a_stored_copy_of_an_earlier_version_is_not_shown_again(
    small: GraphIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_model_server(copy_prompt) as server:
        with monkeypatch.context() as earlier:
            earlier.setattr(PromptEchoes, "holds", lambda *_: False)
            assert COPIED in open_with_model(small, tmp_path, server).search(QUESTION).answer
        index = open_with_model(small, tmp_path, server)
        *pieces, streamed = index.stream(QUESTION)
        again = index.search(QUESTION)
    assert isinstance(streamed, SearchResult) and COPIED not in "".join(map(str, pieces)) + again.answer
    assert streamed.answering["engine"] == again.answering["engine"] == "embedded"


def test_a_stream_of_a_copy_ends_with_the_embedded_answer_and_is_not_stored(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server(copy_prompt) as server:
        index = open_with_model(small, tmp_path, server)
        *pieces, result = index.stream(QUESTION)
        again = index.search(QUESTION)
    assert isinstance(result, SearchResult) and str(pieces[-1]).strip() == result.answer
    assert result.answer.startswith("The model gave no answer (the reply repeats the prompt")
    assert COPIED not in result.answer + again.answer


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_single_copied_sentence_is_dropped_and_counted(small: GraphIndex, tmp_path: Path, is_streamed: bool) -> None:
    def reply(request: ReceivedRequest) -> str:
        return f"{copy(request)}\n\n{OWN}\n\nScrooge feared Marley."

    with running_model_server(reply) as server:
        index = open_with_model(small, tmp_path, server)
        result = [*index.stream(QUESTION)][-1] if is_streamed else index.search(QUESTION)
    assert isinstance(result, SearchResult)
    assert result.answering["copied_from_prompt"] == 1 and result.answering["engine"] == "model"
    assert (COPIED in result.answer) == is_streamed and OWN in result.answer


@pytest.mark.parametrize("name", ANSWER_PROMPTS)
def test_each_line_of_a_prompt_is_refused_alone_and_together(name: str) -> None:
    prompt = prompt_of(name)
    lines = instructions_of(prompt)
    for reply in (*lines, "\n".join(lines)):
        with pytest.raises(ReplyFormatError, match="repeats the prompt"):
            read_own_text(reply, prompt.echoes)


@pytest.mark.parametrize("name", ANSWER_PROMPTS)
@pytest.mark.parametrize(
    "reply",
    [
        DECLINED,
        f"**{DECLINED}**.\nIt only speaks of Scrooge.",
        "The data does not answer the question.",
        "The points do not answer it.",
        "The records disagree on who haunted him [Data: Sources (1)].",
        "他死了【Data：Source （1-2）】。",
        "- Marley did. [Data: Sources (1)]\n- So did three spirits.\n\n```\nx\n```",
    ],
)
def test_an_answer_of_its_own_is_left_as_it_is(name: str, reply: str) -> None:
    assert read_own_text(reply, prompt_of(name).echoes) == OwnText(reply)


@pytest.mark.parametrize("table", ["-----Sources-----\nid|text\n1|", "# Entities\nid,title,type,description\n1,"])
def test_tables_of_the_data_are_refused_though_the_data_holds_them(table: str) -> None:
    reply = f"{OWN}\n\n{table}Marley."
    with pytest.raises(ReplyFormatError, match="repeats the prompt"):
        read_own_text(reply, prompt_of("local_search_answer").echoes, reply)


def test_a_copied_sentence_takes_its_citation_along() -> None:
    echoes = PromptEchoes("Say only what the data supports.\nWhere records disagree, say so.")
    reply = "Marley did [Data: Sources (1)]. Say only what the data supports. [Data: Sources (9)]\n\nHe is dead."
    assert read_own_text(reply, echoes) == OwnText("Marley did [Data: Sources (1)].\n\nHe is dead.", 1)


def test_words_that_the_data_or_the_question_holds_are_not_copied() -> None:
    prompt = prompt_of("local_search_answer")
    sentence = "Say only what the data supports, and name what it leaves open."
    assert read_own_text(sentence, prompt.echoes, data=f"The clerk's rule: {sentence}") == OwnText(sentence)


def test_a_declining_reply_keeps_its_head_without_the_copied_rest() -> None:
    prompt = prompt_of("local_search_answer")
    reply = f"{DECLINED}\nSay only what the data supports, and name what it leaves open."
    assert read_own_text(reply, prompt.echoes) == OwnText(DECLINED, 1)


def test_a_copied_hypothetical_answer_is_not_searched_for(small: GraphIndex, tmp_path: Path) -> None:
    opening = "You write what a good report"

    def imagine(request: ReceivedRequest) -> Fault | None:
        return Fault("echoed-placeholder") if request.prompt.startswith(opening) else None

    with running_model_server(imagine) as server:
        index = open_with_model(small, tmp_path, server)
        assert imagine_answer(index, QUESTION) == QUESTION
        assert server.count() == 2


@pytest.mark.parametrize("reply", ["Who haunted Scrooge?", "who haunted \u201cscrooge\u201d [Data: Sources (1)]"])
def test_the_question_alone_is_no_answer(small: GraphIndex, tmp_path: Path, reply: str) -> None:
    echoes = prompt_of("local_search_answer").echoes
    with pytest.raises(ReplyFormatError, match="repeats the prompt"):
        read_own_text(reply, echoes, "Who haunted Scrooge?")
    assert read_own_text(f"{reply} Marley did.", echoes, "Who haunted Scrooge?").text
    with running_model_server(lambda request: reply if request.kind == "answer" else None) as server:
        result = open_with_model(small, tmp_path, server).search("Who haunted Scrooge?", method="local")
    assert result.answering["engine"] == "embedded" and "Marley **haunted Scrooge**." in result.answer
