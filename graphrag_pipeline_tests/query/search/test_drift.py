"""DRIFT search without a model: a start from reports, follow-up questions along the graph, one answer from all."""

from __future__ import annotations

import pytest

from graphrag_pipeline.engines.embedded.answers import GraphFollower
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.community_selection import Selection
from graphrag_pipeline.query.search.drift import (
    DriftStep,
    Primer,
    find_primer,
    follow_up,
    merge_contexts,
    open_questions,
)
from graphrag_pipeline.settings.settings import DriftSearchSettings

QUESTION = "How did Bob Cratchit and his family celebrate Christmas?"
NO_REPORTS = Selection("nearest", (), 0, False, True)
EMPTY = Context()


def primer(index: GraphIndex, question: str = QUESTION, **options: int) -> Selection:
    settings = DriftSearchSettings.model_validate(options)
    return find_primer(index, question, index.embed([question])[0], settings)


def test_the_primer_reads_the_nearest_reports_of_one_frontier(carol: GraphIndex) -> None:
    kept = primer(carol, primer_reports=5, level=2).kept
    assert 0 < len(kept) <= 5
    parents = dict(zip(carol.column("communities", "community"), carol.column("communities", "parent"), strict=True))
    numbers = {report.community for report in kept}
    assert not any(parents[number] in numbers for number in numbers)


def test_a_question_that_names_nothing_starts_from_the_reports_ranked_highest(carol: GraphIndex) -> None:
    kept = primer(carol, "What are the main themes of the story?").kept
    assert {report.level for report in kept} == {0}
    assert [report.rank for report in kept] == sorted((report.rank for report in kept), reverse=True)
    result = carol.search("What are the main themes of the story?", method="drift")
    assert result.selection["is_overview"] and result.citations
    assert [record.community for record in result.context.reports] == [report.community for report in kept]


def test_follow_up_questions_are_about_names_that_nobody_asked_about(carol: GraphIndex) -> None:
    settings = DriftSearchSettings()
    [step] = GraphFollower(carol, QUESTION, settings).start(primer(carol)).steps
    assert step.follow_ups
    named = set(carol.names.find(QUESTION))
    for question in step.follow_ups:
        assert set(carol.names.find(question)) - named
    assert len(set(step.follow_ups)) == len(step.follow_ups)


def test_every_round_has_its_breadth_and_the_last_its_depth(carol: GraphIndex) -> None:
    account = carol.search(QUESTION, method="drift", breadth=2, depth=1).selection
    assert len(account["follow_ups"]) == 2 and account["rounds"] == 1 and account["stopped_by"] == "depth"
    assert carol.search(QUESTION, method="drift", depth=0).selection["follow_ups"] == []


def test_the_budget_stops_it(carol: GraphIndex) -> None:
    whole = carol.search(QUESTION, method="drift", context_only=True)
    result = carol.search(QUESTION, method="drift", context_only=True, budget=14_000)
    assert result.selection["stopped_by"] == "budget"
    assert len(result.selection["follow_ups"]) < len(whole.selection["follow_ups"])


def test_the_context_is_never_below_that_of_the_question_itself(carol: GraphIndex) -> None:
    local = carol.search(QUESTION, context_only=True).context
    drift = carol.search(QUESTION, method="drift", context_only=True).context
    assert {unit.id for unit in local.text_units} <= {unit.id for unit in drift.text_units}
    assert len({unit.id for unit in drift.text_units}) == len(drift.text_units)


def test_the_same_question_has_the_same_answer(carol: GraphIndex) -> None:
    first, second = (carol.search(QUESTION, method="drift") for _ in range(2))
    assert (first.answer, first.citations, first.selection) == (second.answer, second.citations, second.selection)


def test_open_questions_come_from_the_best_step_and_are_asked_once() -> None:
    steps = [
        DriftStep("Who?", 0, EMPTY, score=10, follow_ups=("Why?", "Where?")),
        DriftStep("When?", 1, EMPTY, score=90, follow_ups=("who ?", "How?", "Why?")),
    ]
    assert open_questions([*steps, DriftStep("how", 1, EMPTY)]) == ["Why?", "Where?"]


class Endless:
    """Always has a follow-up question, and answers as many as it is allowed."""

    def __init__(self, most: int) -> None:
        self.left = most

    def follow(self, questions: list[str], depth: int, steps: list[DriftStep]) -> list[DriftStep]:
        asked = questions[: self.left]
        self.left -= len(asked)
        return [DriftStep(q, depth, EMPTY, score=1, follow_ups=(f"{q} a?", f"{q} b?")) for q in asked]


@pytest.mark.parametrize(("most", "stopped_by", "n_steps"), [(100, "depth", 5), (3, "budget", 4)])
def test_rounds_end_at_the_depth_or_where_no_more_is_allowed(most: int, stopped_by: str, n_steps: int) -> None:
    start = Primer(NO_REPORTS, (DriftStep("q", 0, EMPTY, follow_ups=("a", "b", "c")),))
    drift = follow_up(start, Endless(most), DriftSearchSettings(breadth=2, depth=2))
    assert (drift.stopped_by, len(drift.steps)) == (stopped_by, n_steps)


def test_the_question_itself_is_looked_up_if_all_first_follow_ups_repeat_it() -> None:
    start = Primer(NO_REPORTS, (DriftStep("Who?", 0, EMPTY, follow_ups=("who", "Who ?")),))
    drift = follow_up(start, Endless(100), DriftSearchSettings(breadth=2, depth=1))
    assert [(step.question, step.depth) for step in drift.steps] == [("Who?", 0), ("Who?", 1)]
    nothing = Primer(NO_REPORTS, (DriftStep("Who?", 0, EMPTY),))
    assert follow_up(nothing, Endless(100), DriftSearchSettings()).stopped_by == "nothing open"


def test_merged_contexts_hold_each_record_once(carol: GraphIndex) -> None:
    contexts = [carol.search(text, context_only=True).context for text in (QUESTION, "Who is Tiny Tim?")]
    merged = merge_contexts(contexts)
    ids = [record.id for record in merged.entities]
    assert len(ids) == len(set(ids)) == len({r.id for context in contexts for r in context.entities})
    assert merged.entities[: len(contexts[0].entities)] == contexts[0].entities
