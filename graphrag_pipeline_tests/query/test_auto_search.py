"""Which method a question gets, and that it is one that can work."""

from __future__ import annotations

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.auto_search import choose_method
from graphrag_pipeline.query.graph_index import GraphIndex
from graphrag_pipeline.settings import AutoSearchSettings

ALL = AutoSearchSettings()


@pytest.mark.parametrize(
    ("question", "method", "strategy"),
    [
        ("Who is Jacob Marley?", "local", None),
        ("Summarize what happened to Scrooge", "local", None),
        ("Who carried the child home?", "local", None),
        ("What are the main themes of the story?", "global", None),
        ("Give me an overview of all documents", "global", None),
        ("What trends are there across the reports?", "global", None),
        ("Catch me up on the last two weeks", "global", None),
        ("Was sind die wichtigsten Themen?", "global", None),
        ("What is the relationship between Bob Cratchit and Tiny Tim?", "local", "graph"),
        ("Compare Scrooge and Fezziwig", "local", "graph"),
        ("How does Scrooge differ from his former self?", "local", "graph"),
        ("Who is Bob Cratchit and how did he celebrate?", "drift", None),
        ("Does anybody say how zinc is refined?", "basic", None),
        ("?!.,", "basic", None),
    ],
)
def test_the_rules(carol: GraphIndex, question: str, method: str, strategy: str | None) -> None:
    choice = choose_method(carol, question, ALL)
    assert (choice.method, choice.options.get("strategy")) == (method, strategy)
    assert choice.reason


def test_a_method_that_is_not_allowed_gives_way_to_the_next(carol: GraphIndex) -> None:
    some = AutoSearchSettings(methods=("local", "basic"))
    assert choose_method(carol, "What are the main themes?", some).method == "basic"
    assert choose_method(carol, "Who is Bob Cratchit and how did he celebrate?", some).method == "local"


def test_the_result_is_that_of_the_method_chosen_and_says_why(carol: GraphIndex) -> None:
    result = carol.search("Who is Jacob Marley?", method="auto")
    assert result.method == "auto"
    assert result.selection == {
        "chosen": "local",
        "reason": "the question names JACOB MARLEY",
        "strategy": "balanced",
    }
    assert result.answer == carol.search("Who is Jacob Marley?").answer


def test_an_unknown_method_in_the_settings_is_refused(carol: GraphIndex) -> None:
    with pytest.raises(PipelineError, match="methods"):
        carol.search("Who?", method="auto", methods=["hybrid"])
