"""The compared part of an answer, and answers that decline, of both engines and in common words."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.evaluation.answer_figures import answer_body, declines, quoted_passages
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.settings.search_names import SEARCH_METHODS
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

NOWHERE = "Which quasar did Zanzibar photograph?"


@pytest.mark.parametrize("method", sorted(SEARCH_METHODS))
def test_a_search_that_finds_nothing_declines_and_one_that_answers_does_not(index: GraphIndex, method: str) -> None:
    assert declines(index.search(NOWHERE, method).answer)
    assert not declines(index.search("Who carried Tiny Tim home?", method).answer)


def test_a_model_that_says_not_in_the_index_declines(index: GraphIndex, tmp_path: Path) -> None:
    with running_model_server(lambda request: "**NOT IN THE INDEX**\nNothing near.") as server:
        asked = open_with_model(index, tmp_path, server).search("Who is Marley?", "basic")
    assert asked.answering["engine"] == "model" and declines(asked.answer)


@pytest.mark.parametrize(
    ("answer", "is_declined"),
    [
        ("I am sorry but I am unable to answer this question given the provided data.", True),
        ("I don\u2019t know.", True),
        ("The documents do not mention it.", True),
        ("The model gave no answer (timeout); the embedded engine answers instead.\n\nNot in the index: no.", True),
        ("There is no information about this.", True),
        ("There is no mention of a dog in the documents.", True),
        ("I could not find any information on that.", True),
        ("Sorry, the documents do not contain the answer.", True),
        ("I'm sorry, but based on the provided documents, I cannot determine who he is.", True),
        ("Unfortunately, the provided context does not mention him. However, I cannot find any mention of Bob.", True),
        ("I don't know, but please add more documents.", True),
        ("Not in the index: 3 text units were read, but no word of the question is there.", True),
        ("抱歉，我无法回答。", True),
        ("索引中没有。", True),
        ("我不知道，但是他叫鲍勃。", False),
        ("鲍勃。", False),
        ("I do not know whether X, but the answer is Bob.", False),
        ("The documents do not say who he is, but Bob is.", False),
        ("The documents do not say it directly. However, Bob Cratchit is the clerk.", False),
        ("There is no information desk in the hall.", False),
        ("No mention was made of it by Scrooge's nephew, but Bob spoke.", False),
        ("I do not answer to Scrooge, says the nephew, but to my wife.", False),
        ("The documents that Marley left are in the vault.", False),
        ("The sources of the river do not freeze.", False),
        ("Bob Cratchit. I do not know his age.", False),
        ("Nothing is known of Marley's childhood.", False),
    ],
)
def test_common_words_for_no_answer(answer: str, is_declined: bool) -> None:
    assert declines(answer) is is_declined


def test_layout_markers_and_the_opening_line_are_not_compared() -> None:
    embedded = (
        "Extractive answer (no model): what follows.\n\n**stave_1**\n\n- Marley was dead. [1]\n- Scrooge *knew* it. [2]"
    )
    assert answer_body(embedded, "embedded") == "Marley was dead.\nScrooge knew it."
    assert (
        answer_body("## Who\n\n- **Bob Cratchit** is the clerk [1][2].", "model") == "Who\nBob Cratchit is the clerk."
    )
    replaced = f"The model gave no answer (no (more) tokens); the embedded engine answers instead.\n\n{embedded}"
    assert answer_body(replaced, "model") == "Marley was dead.\nScrooge knew it."


def test_passages_are_read_in_order_and_those_of_a_model_are_none() -> None:
    embedded = "Extractive answer (no model): two.\n\n**a**\n\n- The **clerk** wept. [1]\n\n**b**\n\n- He *sang*. [2]"
    assert quoted_passages(embedded, "embedded") == ["The clerk wept.", "He sang."]
    replaced = f"The model gave no answer (timeout); the embedded engine answers instead.\n\n{embedded}"
    assert quoted_passages(replaced, "model") == ["The clerk wept.", "He sang."]
    assert quoted_passages(embedded, "model") is None, "a model may write anything"
