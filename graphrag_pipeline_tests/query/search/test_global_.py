import dataclasses

from graphrag_pipeline.query.search import global_ as global_search
from graphrag_pipeline.query.search.community_selection import rate_reports, select_global_context
from graphrag_pipeline.settings.settings import GlobalSearchSettings

QUESTION = "How did Bob Cratchit and his family celebrate Christmas?"


def rate(index, question=QUESTION, **options):
    return rate_reports(index, question, GlobalSearchSettings(**options))


def test_what_static_search_would_read_is_told_without_a_model_too(carol):
    estimate = carol.search(QUESTION, method="global").selection["static_search"]
    static = rate(carol, selection="static")
    tokens = select_global_context(carol, static).n_tokens
    assert estimate["reports"] == len(static.kept) and estimate["prompt_tokens"] > tokens


def test_points_are_scored_best_first_and_zero_is_dropped(carol):
    points = global_search.map_points(carol, QUESTION, rate(carol))
    scores = [point.score for point in points]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0
    assert max(scores) <= 100
    assert "Cratchit" in points[0].explanation


def test_points_are_reduced_to_the_best_that_fit_and_do_not_repeat(carol):
    points = global_search.map_points(carol, QUESTION, rate(carol, keep_parent=True))
    assert len(global_search.reduce_points(carol, points, 2000, 4)) == 4
    assert global_search.reduce_points(carol, points, 2000, 4)[0] == points[0]
    assert global_search.reduce_points(carol, points, 0, 4) == ()
    twice = tuple(dataclasses.replace(points[0], score=score) for score in (90, 80))
    assert len(global_search.reduce_points(carol, twice, 2000, 4)) == 1
