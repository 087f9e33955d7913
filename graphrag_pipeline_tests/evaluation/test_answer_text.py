"""The compared part of an answer, and answers that decline, of both engines and in common words."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.evaluation.answer_text import answer_body, declines
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
