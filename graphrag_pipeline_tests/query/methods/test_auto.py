"""Which method a question gets, and that it is one that can work."""

from __future__ import annotations

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.methods.auto import choose_method, find_possible
from graphrag_pipeline.settings.settings import AutoSearchSettings

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
    choice = choose_method(carol, question, find_possible(carol, ALL))
    assert (choice.method, choice.options.get("strategy")) == (method, strategy)
    assert choice.reason


def test_a_method_that_is_not_allowed_gives_way_to_the_next(carol: GraphIndex) -> None:
    some = AutoSearchSettings(methods=("local", "basic"))
    assert choose_method(carol, "What are the main themes?", find_possible(carol, some)).method == "basic"
    assert (
        choose_method(carol, "Who is Bob Cratchit and how did he celebrate?", find_possible(carol, some)).method
        == "local"
    )


def test_the_result_is_that_of_the_method_chosen_and_says_why(carol: GraphIndex) -> None:
    result = carol.search("Who is Jacob Marley?", method="auto")
    assert result.method == "auto"
    assert result.selection == {
        "chosen": "local",
        "reason": "the question names JACOB MARLEY",
        "strategy": "balanced",
        "excerpts": len(result.context.excerpts),
        "unheard": [],
    }
    assert result.answer == carol.search("Who is Jacob Marley?").answer


def test_an_unknown_method_in_the_settings_is_refused(carol: GraphIndex) -> None:
    with pytest.raises(PipelineError, match="methods"):
        carol.search("Who?", method="auto", methods=["hybrid"])


def test_options_go_to_the_method_chosen_and_those_it_has_not_are_said(carol: GraphIndex) -> None:
    options = {"top_k_entities": 3, "strategy": "round_robin", "primer_reports": 4}
    result = carol.search("Who is Jacob Marley?", method="auto", context_only=True, **options)
    assert result.selection["strategy"] == "round_robin"
    assert result.selection["ignored_options"] == ["primer_reports"]
    assert len(result.context.entities) == 3
    other = carol.search("Does anybody say how zinc is refined?", method="auto", context_only=True, **options)
    assert (other.selection["chosen"], set(other.selection["ignored_options"])) == ("basic", set(options))


def test_a_strategy_that_is_asked_for_is_taken_before_the_one_that_fits(carol: GraphIndex) -> None:
    result = carol.search("Compare Scrooge and Fezziwig", "auto", "depth_first", context_only=True)
    assert (result.selection["chosen"], result.selection["strategy"]) == ("local", "depth_first")


def test_an_option_that_no_method_has_and_a_value_that_makes_no_sense_are_errors(carol: GraphIndex) -> None:
    with pytest.raises(PipelineError, match=r"'top_k_entitys' of auto_search .* did you mean 'top_k_entities'"):
        carol.search("Who is Jacob Marley?", method="auto", top_k_entitys=3)
    with pytest.raises(PipelineError, match="local_search: top_k_entities"):
        carol.search("Who is Jacob Marley?", method="auto", top_k_entities=0)
    with pytest.raises(PipelineError, match="auto_search: options"):
        carol.search("Who is Jacob Marley?", method="auto", options=["colour"])
    with pytest.raises(PipelineError, match="unknown option 'colour'"):
        carol.search("Who is Jacob Marley?", method="auto", options={"colour": "red"})
