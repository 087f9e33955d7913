"""Recall and all-evidence: on literal rankings, and through real searches."""

from __future__ import annotations

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.conditions import parse_condition
from graphrag_pipeline.evaluation.questions import Question
from graphrag_pipeline.evaluation.retrieval_figures import (
    DEFAULT_METHODS,
    measure_retrieval,
    parse_methods,
    recall_each,
    render_figures,
)
from graphrag_pipeline.query.index.graph_index import GraphIndex

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
    assert all(row.recall == row.all_evidence == 1 for row in figures), "three text units are all there are"
    [one], _ = measure_retrieval(index, GOLD, parse_methods(["basic"]), 1)
    assert one.recalls[1] <= 0.5 and one.all_evidence == 0.5 and one.recall == pytest.approx(sum(one.recalls) / 2)
    assert render_figures([one], [figures[2]])[1].endswith("-0.250  -0.500")


def test_methods_without_text_units_and_unknown_ones_are_refused(index: GraphIndex) -> None:
    for name, message in (
        ("global:static", "no ranked text units"),
        ("TS", "no ranked text units"),
        ("lokal", "no way to answer is called 'lokal'; valid: local, .*bm25, vector .or SS., C0"),
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


def test_an_index_with_none_of_the_evidence_is_refused(index: GraphIndex) -> None:
    with pytest.raises(PipelineError, match=r"has none of the evidence, such as here: 'gone\.txt'"):
        measure_retrieval(index, [Question("Who?", ("gone.txt",), place="here")], parse_methods(["basic"]), 5)


def test_conditions_of_the_paper_are_names_of_settings() -> None:
    assert parse_condition("C1").options == parse_condition("global:static:level=1").options
    assert parse_condition("ss").method == parse_condition("vector").method == "SS"
    assert parse_condition("local:graph:top_k_entities=4").options == {"strategy": "graph", "top_k_entities": 4}
