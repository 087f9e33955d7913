import numpy as np
import pytest

from graphrag_pipeline.query.search.community_selection import rate_reports
from graphrag_pipeline.query.search.global_ import map_points
from graphrag_pipeline.query.search.raters import MAX_UNSEPARATED_ROOTS, RatedReport, RelevanceRater, worth
from graphrag_pipeline.settings.settings import GlobalSearchSettings

QUESTION = "How did Bob Cratchit and his family celebrate Christmas?"
N_OWN = 122


def rate(index, question=QUESTION, **options):
    return rate_reports(index, question, GlobalSearchSettings(**options))


@pytest.mark.parametrize(("level", "n_reports"), [(0, 23), (1, 76), (2, 97)])
def test_static_selection_reads_the_frontier_of_a_level(carol, level, n_reports):
    kept = rate(carol, selection="static", level=level).kept
    assert sum(report.community < N_OWN for report in kept) == n_reports
    numbers = {report.community for report in kept}
    parents = dict(zip(carol.column("communities", "community"), carol.column("communities", "parent"), strict=True))
    assert not any(parents[number] in numbers for number in numbers)


def ancestors_of(numbers, parents):
    above = {parents[number] for number in numbers} - {-1}
    return above | ancestors_of(above, parents) if above else above


def test_dynamic_selection_rates_children_of_kept_reports_and_those_above_a_relevant_one(carol):
    selection = rate(carol, keep_parent=True, max_level=3)
    ratings = {report.community: report.rating for report in selection.rated}
    parents = dict(zip(carol.column("communities", "community"), carol.column("communities", "parent"), strict=True))
    every = RelevanceRater(carol, QUESTION).rate(np.arange(carol.snapshot.n_rows("communities")))
    above_relevant = ancestors_of({report.community for report in every if report.rating >= 1}, parents)
    n_opened = 0
    for report in selection.rated:
        assert report.is_kept == (report.rating >= 1)
        above = parents[report.community]
        assert report.level == 0 or ratings[above] >= 1 or above in above_relevant
        n_opened += report.level > 0 and ratings[above] < 1
    assert n_opened > 0, "a report that says too little hides nothing below it"
    assert {report.community for report in selection.rated if report.level == 0} == {
        number for number, parent in parents.items() if parent == -1
    }


def test_a_parent_gives_way_to_its_kept_children_unless_told_to_stay(carol):
    with_parents = {r.community for r in rate(carol, keep_parent=True).kept}
    without = {r.community for r in rate(carol, keep_parent=False).kept}
    parents = dict(zip(carol.column("communities", "community"), carol.column("communities", "parent"), strict=True))
    assert without == with_parents - {parents[number] for number in with_parents}
    assert without < with_parents


def test_max_level_is_a_bound(carol):
    assert max(report.level for report in rate(carol, max_level=0).rated) == 0
    assert max(report.level for report in rate(carol, max_level=1).rated) == 1


def test_a_higher_threshold_prunes_more(carol):
    n_kept = [rate(carol, threshold=threshold).account()["kept"] for threshold in (1, 2, 3)]
    assert n_kept == sorted(n_kept, reverse=True)
    assert n_kept[0] > n_kept[-1]


@pytest.mark.parametrize("question", [QUESTION, "What is quantum chromodynamics?", "What are the main themes?"])
@pytest.mark.parametrize("keep_parent", [True, False])
def test_the_account_adds_up(carol, question, keep_parent):
    selection = rate(carol, question, keep_parent=keep_parent)
    account = selection.account()
    n_replaced = account["options_used"].get("keep_parent", {"dropped": 0})["dropped"]
    assert account["rated"] == account["kept"] + account["pruned"] + n_replaced
    assert account["kept"] == len(selection.kept) > 0


def report(row, **values):
    alike = {"community": row, "level": 0, "size": 5, "rank": 5.0, "relevance": 0.1, "rating": 2, "newest_day": 0}
    return RatedReport(row=row, **(alike | values))


def test_roots_that_nothing_separates_stay_by_rating_size_and_recency():
    found = [report(0), report(1, newest_day=9), report(2, size=7), report(3, rating=3), report(4, rank=8.0)]
    assert [r.row for r in sorted(found, key=worth(is_overview=True, is_by_model=True))] == [3, 2, 1, 0, 4]
    assert [r.row for r in sorted(found, key=worth(is_overview=True, is_by_model=False))] == [4, 2, 1, 0, 3]


def test_where_no_root_reaches_the_threshold_the_best_stay(carol):
    selection = rate(carol, "What is quantum chromodynamics?")
    assert not selection.is_separated
    assert len(selection.kept) == MAX_UNSEPARATED_ROOTS
    assert {report.level for report in selection.rated} == {0}


def test_an_overview_question_keeps_the_reports_ranked_highest(carol):
    selection = rate(carol, "Catch me up on the last two weeks")
    assert selection.is_overview
    ranks = [report.rank for report in selection.kept]
    assert ranks == sorted(ranks, reverse=True)
    others = [report.rank for report in selection.rated if not report.is_kept]
    assert max(others) <= min(ranks)
    assert map_points(carol, "Catch me up on the last two weeks", selection)


def test_ratings_do_not_depend_on_how_reports_were_reached(carol):
    dynamic = {report.community: report.relevance for report in rate(carol, max_level=3, threshold=0).rated}
    static = {report.community: report.relevance for report in rate(carol, selection="static", level=2).rated}
    assert all(dynamic[number] == relevance for number, relevance in static.items())
