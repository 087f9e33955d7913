"""Dynamic community selection with a rating model: the published method by default, what goes beyond it by option.

All ratings come from a model server by HTTP; its script gives each report the rating that a test wants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphrag_pipeline.engines.model.rating import N_FIRST, count_votes, is_useless
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.ports import Failure
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.search.community_selection import Selection, rate_reports
from graphrag_pipeline.settings.settings import GlobalSearchSettings
from graphrag_pipeline_tests.model_server import Fault, ModelServer, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model
from graphrag_pipeline_tests.support.models.scripted_ratings import ScriptedRatings

QUESTION = "What becomes of Scrooge?"
OVERVIEW = "What are the main themes?"
PUBLISHED: dict[str, dict[str, Any]] = {"rating": {"engine": "model"}, "global_search": {"small_reports_per_call": 1}}
"""Each report is rated in a call of its own."""
Rating = Callable[[int], int | None]


def open_rated(index: GraphIndex, folder: Path, server: ModelServer, **sections: dict[str, Any]) -> GraphIndex:
    return open_with_model(index, folder, server, **PUBLISHED, **sections)


def select(
    index: GraphIndex, folder: Path, rating: Rating, question: str = QUESTION, **options: Any
) -> tuple[Selection, ScriptedRatings]:
    script = ScriptedRatings(index, lambda community, _: rating(community))
    with running_model_server(script) as server:
        asking = open_rated(index, folder, server)
        return rate_reports(asking, question, asking.settings.search("global", **options)), script


def parents_of(index: GraphIndex) -> dict[int, int]:
    numbers, parents = (index.column("communities", name).tolist() for name in ("community", "parent"))
    return dict(zip(numbers, parents, strict=True))


def some(community: int) -> int:
    """Spread the ratings 0 to 5 over communities; half of them are 0."""
    return max(0, community * 7919 % 11 - 5)


def walk(parents: dict[int, int], rating: Rating, threshold: int) -> tuple[set[int], set[int]]:
    """Return what the published method rates and keeps."""
    rated = {number for number, parent in parents.items() if parent == -1}
    kept: set[int] = set()
    generation = set(rated)
    while generation:
        passed = {number for number in generation if (rating(number) or 0) >= threshold}
        kept |= passed
        generation = {number for number, parent in parents.items() if parent in passed}
        rated |= generation
    return rated, kept


@pytest.mark.parametrize("question", [QUESTION, OVERVIEW])
def test_if_all_reports_are_relevant_all_are_kept(carol: GraphIndex, tmp_path: Path, question: str) -> None:
    selection, script = select(carol, tmp_path, lambda _: 5, question)
    n_reports = carol.snapshot.n_rows("community_reports")
    account = selection.account()
    assert (account["rated"], account["kept"], account["pruned"]) == (n_reports, n_reports, 0)
    assert set(script.rated.values()) == {1} and len(script.rated) == n_reports == account["rated_by_model"]
    assert account["options_used"] == {} and selection.is_separated


@pytest.mark.parametrize("question", [QUESTION, OVERVIEW])
@pytest.mark.parametrize("answers", ["model", "embedded"])
def test_if_no_report_is_relevant_none_is_read_and_the_answer_says_so(
    carol: GraphIndex, tmp_path: Path, question: str, answers: str
) -> None:
    script = ScriptedRatings(carol, lambda *_: 0)
    with running_model_server(script) as server:
        index = open_rated(carol, tmp_path, server, answers={"engine": answers})
        result = index.search(question, method="global")
        kinds = {call.kind for call in server.calls}
    n_roots = result.selection["rated"]
    assert kinds == {"rating"} and n_roots == server.count() == len(script.rated)
    assert result.selection["kept"] == 0 and result.selection["points"] == 0
    assert (
        result.answer == f"Not in the index: {n_roots} community reports rated, none of them relevant to the question."
    )
    assert result.citations == () and result.context.is_empty


def test_a_denial_says_how_many_reports_the_model_rated(carol: GraphIndex, tmp_path: Path) -> None:
    selection, _ = select(carol, tmp_path, lambda community: 0)
    assert "by the model" not in selection.describe()
    some_left = replace(selection, rating={"rated_by_model": 2})
    assert f"{len(selection.rated)} community reports rated (2 by the model), none" in some_left.describe()


@pytest.mark.parametrize("threshold", [1, 3])
def test_an_irrelevant_report_hides_all_below_it_and_a_relevant_one_opens_its_children(
    carol: GraphIndex, tmp_path: Path, threshold: int
) -> None:
    selection, script = select(carol, tmp_path, some, threshold=threshold)
    rated, kept = walk(parents_of(carol), some, threshold)
    assert {report.community for report in selection.rated} == set(script.rated) == rated
    assert {report.community for report in selection.kept} == kept
    assert {report.community: report.rating for report in selection.rated} == {number: some(number) for number in rated}
    assert max(report.level for report in selection.rated) >= 2 and len(kept) < len(rated)


def test_only_relevant_reports_are_mapped(carol: GraphIndex, tmp_path: Path) -> None:
    shown: list[str] = []
    script = ScriptedRatings(carol, lambda community, _: some(community))

    def reply(request: Any) -> Any:
        shown.extend([request.prompt] if request.kind == "map" else [])
        return script(request)

    with running_model_server(reply) as server:
        result = open_rated(carol, tmp_path, server).search(QUESTION, method="global")
    _, kept = walk(parents_of(carol), some, 1)
    titles = dict(zip(carol.column("community_reports", "community").tolist(),
                      carol.snapshot.table("community_reports")["title"].to_pylist(), strict=True))  # fmt: skip
    mapped = "\n".join(shown)
    assert result.selection["map"]["batches"] == len(shown) > 0
    assert all(f"] {titles[number]} (occurrence weight " in mapped for number in kept)
    assert sum(mapped.count(f"] {title} (occurrence weight ") for title in set(titles.values())) == len(kept)


def test_parents_give_way_to_their_children_by_option(carol: GraphIndex, tmp_path: Path) -> None:
    selection, _ = select(carol, tmp_path, some, keep_parent=False)
    parents = parents_of(carol)
    _, kept = walk(parents, some, 1)
    assert {report.community for report in selection.kept} == kept - {parents[number] for number in kept}
    n_dropped = len(kept & {parents[number] for number in kept})
    assert selection.account()["options_used"] == {"keep_parent": {"dropped": n_dropped}} and n_dropped > 0
    below = sum(report.rating < selection.threshold for report in selection.rated)
    assert selection.account()["pruned"] == below > 0, "replaced parents were rated relevant"


def test_all_of_the_next_level_are_rated_by_option_if_no_report_is_relevant(carol: GraphIndex, tmp_path: Path) -> None:
    levels = dict(zip(*(carol.column("communities", name).tolist() for name in ("community", "level")), strict=True))

    def finest(community: int) -> int:
        return 4 * (levels[community] == 2)

    bounded, _ = select(carol, tmp_path, finest, fallback_level=1)
    assert not bounded.kept and {report.level for report in bounded.rated} == {0, 1}
    selection, _ = select(carol, tmp_path, finest, fallback_level=2)
    n_kept = sum(level == 2 for level in levels.values())
    assert len(selection.kept) == n_kept
    n_below = sum(level >= 1 for level in levels.values())
    assert selection.options_used == {"fallback_level": {"rated": n_below, "kept": n_kept}}


def test_short_reports_share_calls_and_small_irrelevant_ones_have_none(carol: GraphIndex, tmp_path: Path) -> None:
    n_default = GlobalSearchSettings().small_reports_per_call
    selection, script = select(carol, tmp_path, lambda _: 2, small_reports_per_call=n_default, max_level=0)
    used = selection.options_used["small_reports_per_call"]
    unasked = [report for report in selection.rated if report.is_unasked]
    assert used["rated"] > 0 < used["not_rated"] == len(unasked) == len(selection.rated) - len(script.rated)
    least = carol.settings.reports.min_report_size
    assert {(report.size < least, report.rating, report.is_kept) for report in unasked} == {(True, 0, False)}
    assert {report.community for report in selection.kept} == set(script.rated)


def test_small_communities_are_left_out_by_option(carol: GraphIndex, tmp_path: Path) -> None:
    selection, script = select(carol, tmp_path, lambda _: 2, min_community_size=3)
    n_small = int((carol.column("communities", "size") < 3).sum())
    assert selection.options_used == {"min_community_size": {"not_read": n_small}} and n_small > 0
    assert min(report.size for report in selection.rated) == 3 and len(script.rated) == len(selection.kept)
    static = rate_reports(carol, QUESTION, GlobalSearchSettings(selection="static", min_community_size=3))
    assert min(report.size for report in static.kept) == 3


@pytest.mark.parametrize(
    ("votes", "rating"), [((3, 0), 0), ((0, 3, 3), 3), ((None, None, 4), 1), ((5,), 5), ((4, 2), 2)]
)
def test_the_most_frequent_rating_counts_and_of_several_the_lowest(votes: tuple[int | None, ...], rating: int) -> None:
    assert count_votes(votes) == rating


def test_a_rating_that_cannot_be_read_keeps_its_report(carol: GraphIndex, tmp_path: Path) -> None:
    selection, _ = select(carol, tmp_path, lambda community: None if community == 0 else 0, max_level=0)
    assert [(report.community, report.rating) for report in selection.kept] == [(0, 1)]
    assert selection.rating["failed_ratings"] == 1


def test_a_model_that_cannot_rate_is_asked_for_a_few_reports_only(carol: GraphIndex, tmp_path: Path) -> None:
    script = ScriptedRatings(carol, lambda *_: None)
    with running_model_server(script) as server:
        index = open_rated(carol, tmp_path, server)
        with pytest.raises(PipelineError, match=r"none of the first 8 replies of `test-chat` .*no JSON") as error:
            index.search(QUESTION, method="global")
        kinds = {call.kind for call in server.calls}
    assert "`rating.model`" in str(error.value) and "`rating.engine: embedded`" in str(error.value)
    assert len(script.rated) == N_FIRST and server.count() == 2 * N_FIRST  # each is asked again once
    assert kinds == {"rating"}


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("empty", r"none of the first 8 replies of `test-chat` .*the reply is empty"),
        ("refused", r"none of the first 8 replies of `test-chat` .*the model refused"),
        ("400", r"none of the first 8 replies of `test-chat` .*400"),
        ("500", r"`test-chat` answered none of the first 8 requests \(no answer in 2 attempts.*500"),
    ],
)
def test_a_rating_model_that_writes_nothing_ends_the_question(
    carol: GraphIndex, tmp_path: Path, fault: str, said: str
) -> None:
    with running_model_server([("rating", Fault(fault))]) as server:
        index = open_rated(carol, tmp_path, server)
        with pytest.raises(PipelineError, match=said):
            index.search(QUESTION, method="global")
        assert {call.kind for call in server.calls} <= {"rating"}
        assert server.count() <= 2 * N_FIRST  # each is sent twice at most


def test_a_prompt_that_is_too_long_says_nothing_of_the_model() -> None:
    usual = {"stage": "rating", "record": "report 1", "reason": "", "reply": ""}
    assert is_useless(Failure(**usual, request_key="k"))
    assert not is_useless(Failure(**usual, request_key="k", n_excess=5))
    assert not is_useless(Failure(**usual, request_key="")), "the budget did not let it be sent"


def test_the_first_replies_are_counted_over_the_levels(carol: GraphIndex, tmp_path: Path) -> None:
    sizes, levels = (carol.column("communities", name) for name in ("size", "level"))
    least = int(np.sort(sizes[levels == 0])[-(N_FIRST - 1)])  # so that fewer roots than N_FIRST are large enough
    is_large = sizes >= least
    assert 0 < int((is_large & (levels == 0)).sum()) < N_FIRST < int((is_large & (levels <= 1)).sum())
    with pytest.raises(PipelineError, match="none of the first 8 replies"):
        select(carol, tmp_path, lambda _: None, min_community_size=least)


def test_one_reply_that_can_be_read_lets_the_others_be_rated(carol: GraphIndex, tmp_path: Path) -> None:
    seen: list[int] = []

    def seventh(community: int) -> int | None:
        seen.append(community)
        return 2 if community == seen[0] else None

    selection, script = select(carol, tmp_path, seventh, max_level=0)
    assert len(script.rated) == len(selection.rated) > N_FIRST
    assert selection.rating["failed_ratings"] == len(selection.rated) - 1 and len(selection.kept) == len(script.rated)


def test_the_embedded_engine_says_what_it_added(carol: GraphIndex) -> None:
    result = carol.search("What is quantum chromodynamics?", method="global")
    looked_up = {"looked_up": carol.snapshot.n_rows("community_reports"), "rated": 0, "kept": 0}
    assert result.selection["options_used"] == {"nearest_reports": looked_up, "best_roots": {"kept": 8}}
    assert carol.search(OVERVIEW, method="global").selection["options_used"] == {"overview_roots": {"kept": 8}}
    near = carol.search("How did Bob Cratchit and his family celebrate Christmas?", method="global").selection
    assert near["options_used"]["nearest_reports"]["rated"] > 0
