"""Recall and all-evidence: on literal rankings, and through real searches."""

from __future__ import annotations

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.conditions import parse_condition
from graphrag_pipeline.evaluation.questions import Question
from graphrag_pipeline.evaluation.retrieval_figures import (
    DEFAULT_METHODS,
    compare_retrieval,
    measure_retrieval,
    parse_methods,
    recall_each,
    render_figures,
)
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.settings.search_names import SEARCH_METHODS, describe_conditions, list_conditions
from graphrag_pipeline.settings.settings import Settings

GOLD = [
    Question("Who carried Tiny Tim home?", ("two.txt",)),
    Question("Whom did Scrooge love, and who was his partner?", ("three.md", "one.txt")),
]


def test_recall_counts_each_piece_of_evidence_once_and_only_within_k(index: GraphIndex) -> None:
    ids = index.snapshot.table("text_units")["id"].to_pylist()
    evidence = [[frozenset([0]), frozenset([1, 2])]]

    def recall(ranked: list[str], k: int) -> float:
        [value] = recall_each(index, ["?"], evidence, lambda index, question, k: ranked, k)
        return value

    assert recall([ids[1], ids[2]], 2) == 0.5, "two text units of one piece are one"
    assert recall([ids[1], ids[0]], 1) == 0.5
    assert recall([ids[1], ids[0]], 2) == 1
    assert recall([], 5) == 0


def test_baselines_and_every_strategy_are_measured(index: GraphIndex) -> None:
    figures, evidence = measure_retrieval(index, GOLD, parse_methods(DEFAULT_METHODS), 3)
    assert [row.method for row in figures] == list(DEFAULT_METHODS) and not evidence.unknown
    assert all(row.recall == 1 for row in figures), "three text units are all there are"
    [one], _ = measure_retrieval(index, GOLD, parse_methods(["basic"]), 1)
    assert one.recalls[1] <= 0.5 and one.recall == pytest.approx(sum(one.recalls) / 2)
    estimate = one.estimates()["all_evidence"]
    assert estimate.method == "exact" and f"0.500 [{estimate.low:.3f}, {estimate.high:.3f}]" in render_figures([one])[1]
    differences = {row.figure: row for row in compare_retrieval(one, figures[2])}
    assert differences["recall@1"].difference.mean == pytest.approx(one.recall - 1)
    assert (differences["all-evidence@1"].wins, differences["all-evidence@1"].losses) == (0, 1)


def test_methods_without_text_units_and_unknown_ones_are_refused(index: GraphIndex) -> None:
    for name, message in (
        ("global:static", "no ranked text units"),
        ("TS", "no ranked text units"),
        ("lokal", "no way to answer is called 'lokal'; valid: local, .*C0, .*bm25, vector .or SS., TS"),
        ("basic:fast", "has no variant 'fast'"),
    ):
        with pytest.raises(PipelineError, match=message):
            parse_methods([name])
    for method, message in (
        ("local:best", "strategy .best.; valid: balanced"),
        ("local:top_k=3", "unknown option 'top_k'"),
    ):
        with pytest.raises(PipelineError, match=message):
            measure_retrieval(index, GOLD, parse_methods([method]), 3)


def test_every_listed_condition_is_read() -> None:
    for name in describe_conditions():
        condition = parse_condition(name)
        assert condition.name == name
        METHODS[condition.section].settings_of(Settings(), None, condition.options)
    for method in (*SEARCH_METHODS, "C3", "bm25", "vector (or SS)", "TS"):
        assert method in list_conditions()


def test_conditions_of_the_paper_are_names_of_settings() -> None:
    assert parse_condition("C1").options == parse_condition("global:static:level=1").options
    assert parse_condition("ss").method == parse_condition("vector").method == "SS"
    assert parse_condition("local:graph:top_k_entities=4").options == {"strategy": "graph", "top_k_entities": 4}
