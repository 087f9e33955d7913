"""Lazy search without a model: relevant text units within the budget, with or without reports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.search.lazy import find_relevant
from graphrag_pipeline.query.search.lazy_candidates import group_by_community, rank_candidates
from graphrag_pipeline.query.search.raters import MAX_BACKGROUND_UNITS, RelevanceUnitRater
from graphrag_pipeline.settings.settings import LazySearchSettings, Settings
from graphrag_pipeline_tests.support.corpora import small_index

QUESTION = "How did Bob Cratchit and his family celebrate Christmas?"


@pytest.fixture(scope="module")
def without_reports(tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    tables = small_index.contract_tables()
    tables["community_reports"] = tables["community_reports"].slice(0, 0)
    snapshot = small_index.freeze(tmp_path_factory.mktemp("without_reports"), tables)
    return GraphIndex(snapshot, Settings(), load_static_embeddings())


def test_the_account_adds_up_within_the_budget(carol: GraphIndex) -> None:
    for budget in (3, 100):
        selection = find_relevant(carol, QUESTION, [QUESTION], LazySearchSettings(budget=budget))
        account = selection.account()
        assert account["tests"] == len({unit.row for unit in selection.tested}) <= budget
        assert account["tested_tokens"] == sum(
            carol.column("text_units", "n_tokens")[unit.row] for unit in selection.tested
        )
        assert account["relevant"] == sum(unit.rating >= 2 for unit in selection.tested) > 0
        assert account["stopped_by"] == ("budget" if budget == 3 else "nothing left")


def test_a_higher_threshold_keeps_fewer(carol: GraphIndex) -> None:
    kept = [find_relevant(carol, QUESTION, [QUESTION], LazySearchSettings(threshold=t)).relevant for t in (1, 3, 5)]
    assert len(kept[0]) > len(kept[1]) >= len(kept[2])
    places = [unit.place for unit in kept[0]]
    assert places == sorted(places)


def test_the_first_text_units_are_read_once_for_the_background_and_for_their_rating(
    carol: GraphIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = rank_candidates(carol, [QUESTION], 100)
    rows = candidates.rows.tolist()
    rater = RelevanceUnitRater(carol, [QUESTION], candidates)
    whole = rater.rate([rows])
    assert [unit for batch in rater.rate([rows[3:], rows[:3]]) for unit in batch] == whole[0][3:] + whole[0][:3]
    rater._kept = {}
    assert rater.rate([rows]) == whole
    rater = RelevanceUnitRater(carol, [QUESTION], candidates)
    monkeypatch.setattr(rater, "_split_units", lambda rows: pytest.fail(f"read again: {rows}"))
    assert rater.rate([rows[:MAX_BACKGROUND_UNITS]]) == [whole[0][:MAX_BACKGROUND_UNITS]]


@pytest.mark.parametrize("question", ["Who is Jacob Marley?", "How is Belle related to Scrooge?"])
def test_it_is_never_below_basic_search_where_a_name_is_asked_about(carol: GraphIndex, question: str) -> None:
    nearest = rank_candidates(carol, [question], 100).rows[:5].tolist()
    relevant = find_relevant(carol, question, [question], LazySearchSettings()).relevant
    assert [unit.row for unit in relevant[:5]] == nearest


def test_the_communities_hold_every_candidate_and_children_those_of_their_parents(carol: GraphIndex) -> None:
    rows = rank_candidates(carol, [QUESTION, "Who is Fezziwig?"], 30).rows
    communities = group_by_community(carol, rows)
    assert set().union(*(communities.members[root] for root in communities.roots)) == set(range(len(rows)))
    for parent, children in communities.children.items():
        assert set().union(*(communities.members[child] for child in children)) <= set(communities.members[parent])


def test_a_text_unit_that_mentions_nobody_belongs_to_its_document(tmp_path: Path) -> None:
    tables = small_index.contract_tables()
    empty = tables["communities"].slice(0, 0)
    snapshot = small_index.freeze(tmp_path, {**tables, "communities": empty})
    index = GraphIndex(snapshot, Settings(), load_static_embeddings())
    rows = np.arange(3)
    communities = group_by_community(index, rows)
    assert sorted(len(members) for members in communities.members.values()) == [1, 1, 1]
    assert index.search("Who haunted Scrooge?", method="lazy").citations


def test_no_reports_are_needed(without_reports: GraphIndex) -> None:
    result = without_reports.search("Who haunted Scrooge?", method="lazy")
    assert "Marley **haunted Scrooge**." in result.answer and result.citations
    assert not result.context.reports
    overview = without_reports.search("What are the main themes?", method="lazy")
    assert overview.selection["is_overview"] and overview.citations
    assert overview.answer.startswith("Extractive overview")


@pytest.mark.parametrize("method", ["drift", "auto"])
def test_the_other_methods_find_a_way_without_reports(without_reports: GraphIndex, method: str) -> None:
    assert without_reports.search("Who haunted Scrooge?", method=method).citations
    overview = without_reports.search("What are the main themes?", method=method)
    assert overview.answer
    if method == "auto":
        assert overview.selection["chosen"] == "lazy" and "no reports" in overview.selection["reason"]


def test_a_question_about_something_else_finds_nothing(carol: GraphIndex) -> None:
    result = carol.search("What is the boiling point of tungsten?", method="lazy")
    assert result.selection["relevant"] == 0 and result.selection["pruned"] > 0
    assert not result.context.text_units
